"""Collectors: they step the training environment and keep its state between calls."""
