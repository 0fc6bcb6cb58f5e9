"""The parts of `scripts/bench_peers`: what users write by hand, and what measures it."""
