"""The worker of one machine: registration, the pool's queue, slots and supervisors.

It loads no torch.
"""
