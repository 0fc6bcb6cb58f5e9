"""The parts of `scripts/force`: kills, crash points, a bad network, and a long run."""
