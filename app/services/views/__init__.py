"""Converts rows to the resources of the API."""
