"""Record framing, spool and shipper: the one way in for telemetry, for workers and for any script."""
