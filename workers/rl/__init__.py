"""Parts of reinforcement learning: agents, networks, memories, exploration, environments,
collectors and evaluators.
"""
