"""Record framing, spool and shipper: the path of telemetry, for workers and any script."""
