"""How an agent acts, stores and learns, whatever its algorithm: from replayed transitions or from
rollouts.
"""
