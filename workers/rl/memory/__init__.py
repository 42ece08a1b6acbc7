"""Stored transitions, and apart from them the rules by which they are sampled."""
