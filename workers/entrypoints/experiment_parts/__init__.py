"""Implementation of `workers.entrypoints.experiment`."""
