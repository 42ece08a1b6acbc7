"""Statistics over runs and environments."""
