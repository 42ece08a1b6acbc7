"""Evaluation with exploration off, on separate environments and seeds."""
