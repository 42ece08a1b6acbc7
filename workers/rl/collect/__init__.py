"""Collectors, which step the training environments and keep their episodes between calls."""
