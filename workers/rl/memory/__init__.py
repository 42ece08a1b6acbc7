"""Replay and rollout memories, and the rules by which stored transitions are sampled."""
