"""An embedded Palestra on one machine: its processes, its data directory, start and stop."""
