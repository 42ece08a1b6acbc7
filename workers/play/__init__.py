"""The process behind `palestra play`."""
