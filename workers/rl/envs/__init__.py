"""Environments: Gymnasium vector environments without autoreset, whose running episodes can be
saved and begun again.
"""
