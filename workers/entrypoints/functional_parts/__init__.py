"""Implementation of the training functions of `workers.entrypoints.functional`."""
