"""Experiments: what was submitted."""
