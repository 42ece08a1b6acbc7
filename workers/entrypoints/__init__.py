"""The faces that callers know, each a thin layer over the one engine."""
