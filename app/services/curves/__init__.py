"""Series of numbers of runs, and the lines of their logs."""
