"""Supervises an attempt: lease, limits, telemetry, uploads and orders. Does not import torch."""
