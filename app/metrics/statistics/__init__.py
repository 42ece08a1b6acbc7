"""Statistics over runs and environments as reinforcement learning papers report them.

The definitions are those of Agarwal et al. (2021), "Deep Reinforcement Learning at the Edge of the
Statistical Precipice", and of its library `rliable`. Everything here is a pure function of arrays
and needs numpy alone.
"""
