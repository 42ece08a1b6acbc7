"""The recorder, which writes all numbers of the training loop as telemetry."""
