"""One attempt from inside: from the work order to the report."""
