"""Agents, networks, memories, exploration, environments, collectors and evaluators."""
