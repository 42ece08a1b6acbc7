"""Definitions with known faults, and the recorded curves by which the health rules are tried."""
