"""How an update runs: eager, compiled, or stacked over several agents.

All private names of torch are used here.
"""
