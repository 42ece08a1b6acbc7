"""Exports: the weights and the graph needed only to act."""
