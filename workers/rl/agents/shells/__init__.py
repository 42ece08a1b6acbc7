"""How agents act, store and learn, from a replay memory or from rollouts."""
