"""Parts of reinforcement learning.

Agents, networks, memories, exploration, environments, collectors and evaluators.
"""
