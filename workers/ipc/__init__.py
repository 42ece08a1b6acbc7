"""Attempt directories, processes and HTTP calls of worker, supervisor and trainer.

It does not import torch.
"""
