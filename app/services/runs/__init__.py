"""Runs and their evaluations."""
