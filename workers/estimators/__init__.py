"""Estimators and agents that are made of a model function, with their inputs, memories, explorations, hooks and checkpoints."""
