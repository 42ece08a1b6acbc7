"""Runs several engines in turn, one iteration each: the driver of a pack."""

from collections.abc import Callable, Sequence

from workers.engine.engine import Engine
from workers.engine.parts import RunResult


def run_in_lockstep(engines: Sequence[Engine], on_end: Callable[[int], None]) -> list[RunResult]:
    """Runs engines, an iteration of each in turn, until each has ended by its own conditions.

    An engine that ends does so within its turn, before another engine changes the shared parts.

    Args:
        engines: The engines, in the order of their turns.
        on_end: Called with the index of each engine that has ended, before the next turn.

    Returns:
        The result of each engine, in the order of `engines`.

    Raises:
        Exception: Whatever a part raised, after the engine in whose turn it was raised and then all
            engines that still ran have saved their states.
    """
    running = {index: engine.ticks() for index, engine in enumerate(engines)}
    while running:
        for index, ticks in tuple(running.items()):
            try:
                ended = next(ticks, None) is None or (
                    engines[index].is_stopping and next(ticks, None) is None
                )
            except BaseException as error:
                for other in running.keys() - {index}:
                    engines[other].save_after(error)
                raise
            if ended:
                del running[index]
                on_end(index)
    return [engine.result for engine in engines]
