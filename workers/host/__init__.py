"""The worker of one machine: registration, the pool's queue, slots and supervisors.

It does not import torch.
"""
