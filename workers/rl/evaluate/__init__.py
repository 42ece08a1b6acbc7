"""Evaluation: exploration off, on an environment and seeds of its own."""
