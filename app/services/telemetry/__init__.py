"""The telemetry ingest: checks batches of records and commits them in groups."""
