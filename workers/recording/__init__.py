"""The recorder: the only way in which a number leaves the loop."""
