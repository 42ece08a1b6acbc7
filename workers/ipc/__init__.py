"""What worker, supervisor and trainer share: attempt directories, processes, HTTP.

It loads no torch.
"""
