"""The algorithms of Stable-Baselines3 (Raffin et al. 2021, JMLR 22:268) as agents.

Stable-Baselines3 is imported only if a definition names one of its algorithms.
"""
