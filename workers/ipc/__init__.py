"""What worker, supervisor and trainer process share: attempt directories, processes, HTTP to the
server. Loads no torch.
"""
