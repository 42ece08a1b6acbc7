"""Work, load generator and servers of `benchmarks.tracking`."""
