"""The algorithms of Stable-Baselines3 (Raffin et al. 2021, JMLR 22:268) as agents.

Loaded only where a definition names one.
"""
