"""The parts of `scripts/bench`."""
