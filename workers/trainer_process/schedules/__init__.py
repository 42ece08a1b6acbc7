"""Executes a job of each schedule in a trainer process."""
