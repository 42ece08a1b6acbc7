"""Lists of runs and experiments: filters, keys and columns."""
