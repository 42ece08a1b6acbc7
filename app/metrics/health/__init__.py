"""Health of a training: what an expert would see in the curves of one run.

Each rule is a pure function of a `TrainingRecord`; nothing here reads or writes.
"""
