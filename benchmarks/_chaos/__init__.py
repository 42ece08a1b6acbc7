"""The parts of `benchmarks.chaos`."""
