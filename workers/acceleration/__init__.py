"""How an update runs: eager, compiled, or stacked over several agents.

No other package uses private names of torch.
"""
