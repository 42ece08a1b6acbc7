"""Several engines that go on together, an iteration of each in turn: the driver of a pack."""

from collections.abc import Callable, Sequence

from workers.engine.engine import Engine
from workers.engine.parts import RunResult


def lockstep(engines: Sequence[Engine], left: Callable[[int], None]) -> list[RunResult]:
    """Runs engines until each has ended, by its own conditions.

    One that ends does so within its turn, before the next of any other moves what they share.

    Args:
        engines: In the order of their turns.
        left: Told the index of each engine that has ended, before the next turn of any other.

    Returns:
        How each ended.

    Raises:
        Exception: Whatever a part raised. The engine it was raised in has saved its state, then all
            others that still ran save theirs.
    """
    running = {index: engine.ticks() for index, engine in enumerate(engines)}
    while running:
        for index, ticks in tuple(running.items()):
            try:
                ended = next(ticks, None) is None or (
                    engines[index].stopping and next(ticks, None) is None
                )
            except BaseException as error:
                for other in running.keys() - {index}:
                    engines[other].save_after(error)
                raise
            if ended:
                del running[index]
                left(index)
    return [engine.result for engine in engines]
