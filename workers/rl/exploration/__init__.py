"""Rules that turn greedy actions into exploring ones."""
