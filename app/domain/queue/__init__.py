"""Decides which queued job starts next, on which worker, and why the others wait.

Pure: the dispatcher, the explanation of a waiting job and the simulation of `benchmarks` call the
same functions on the same data.
"""
