"""The worker of one machine: it registers, listens to its pool's queue, owns slots and starts
supervisors. Loads no torch.
"""
