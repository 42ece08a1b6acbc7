"""One attempt from outside: lease, limits, telemetry, uploads and orders. Loads no torch."""
