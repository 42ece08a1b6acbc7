"""Palestra: the training hall for gymnasium agents. This package is what a user imports."""

__version__ = "0.1.0"
