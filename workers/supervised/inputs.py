"""Registered input functions, and small generated data sets that need no download.

A registered input function takes the mode and its parameters and returns a new iterable of
`(features, labels)`. Training and evaluation data are generated from different random streams. By
default, training data are shuffled in each pass and repeated without end, and evaluation data are
returned once and in order.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final

import numpy as np

from workers.core.rng import derive_generator
from workers.core.types import Array, StateTree
from workers.supervised.batches import Batches, InputFn
from workers.supervised.modes import Modes
from workers.supervised.named_parts import find_part
from workers.supervised.spec import Params

NamedInput = Callable[[Modes, Mapping[str, Any]], Batches]
"""Returns the batches for a mode and parameters."""


class ArrayBatches:
    """Passes over arrays in batches; can be saved in the middle of a pass.

    Args:
        features: Features of all M examples, [M, ...].
        labels: Labels of all M examples, [M, ...].
        batch_size: Examples per batch, N; the last batch of a pass may be smaller.
        epochs: Number of passes; `None` for no end.
        seed: Seed from which, with the number of the pass, the order of each pass is derived;
            `None` keeps the order of the arrays.

    Raises:
        ValueError: If there are no examples, features and labels differ in number, or `batch_size`
            or `epochs` is less than 1.
    """

    def __init__(
        self,
        features: Array,
        labels: Array,
        *,
        batch_size: int,
        epochs: int | None = None,
        seed: int | None = None,
    ) -> None:
        if not len(features) or len(features) != len(labels):
            raise ValueError(
                "an input needs as many labels as features, at least one: "
                f"got {len(features)} and {len(labels)}"
            )
        if batch_size < 1 or (epochs is not None and epochs < 1):
            raise ValueError(
                f"batch_size and epochs must be at least 1, not {batch_size} and {epochs}"
            )
        self._features, self._labels = features, labels
        self._batch_size = batch_size
        self._epochs = epochs
        self._seed = seed
        self._epoch, self._at = 0, 0

    def __iter__(self) -> Iterator[tuple[object, object]]:
        while self._epochs is None or self._epoch < self._epochs:
            order = self._order()
            while self._at < len(order):
                rows = order[self._at : self._at + self._batch_size]
                self._at += self._batch_size
                yield {"x": self._features[rows]}, self._labels[rows]
            self._epoch, self._at = self._epoch + 1, 0

    def state_dict(self) -> StateTree:
        """Returns the number of the pass and the position in it."""
        return {"epoch": self._epoch, "at": self._at}

    def load_state_dict(self, state: StateTree) -> None:
        """Restores the position, from which the next iterator starts."""
        self._epoch, self._at = int(state["epoch"]), int(state["at"])

    def _order(self) -> Array:
        count = len(self._features)
        return (
            np.arange(count)
            if self._seed is None
            else derive_generator(self._seed, "input/order", self._epoch).permutation(count)
        )


def spirals(mode: Modes, params: Params) -> Batches:
    """Returns points of the plane on interleaved spirals.

    `x` is float32 [N, 2]; labels int64 [N] are the index of the spiral.

    Args:
        mode: TRAIN for training data, any other mode for evaluation data.
        params: `arms` (3), `points` per arm (200), `noise` (0.1) as the standard deviation of the
            angle, and those of `_batched`.
    """
    options = {"arms": 3, "points": 200, "noise": 0.1, **params}
    return _make_batches(
        mode, options, partial(_spiral_points, options["arms"], options["points"], options["noise"])
    )


def digits(mode: Modes, params: Params) -> Batches:
    """Returns images of digits: `x` float32 [N, 8, 8] in [0, 1], labels int64 [N].

    Each image is a glyph of 5 by 7 dots at a random position with random intensity and noise; some
    dots are missing.

    Args:
        mode: TRAIN for training data, any other mode for evaluation data.
        params: `images` (2,000), `noise` (0.15) as a standard deviation, `missing` (0.05) as a
            probability, and those of `_batched`.
    """
    options = {"images": 2000, "noise": 0.15, "missing": 0.05, **params}
    return _make_batches(
        mode,
        options,
        partial(_digit_images, options["images"], options["noise"], options["missing"]),
    )


INPUTS: Final[dict[str, NamedInput]] = {"spirals": spirals, "digits": digits}
"""The registered input functions by name."""


def input_function(name: str) -> NamedInput:
    """Returns the input function that is registered as `name`.

    Raises:
        PartNotFoundError: If no such input function is registered.
    """
    return find_part(name, INPUTS, "input function")


def bound_input(name: str, mode: Modes, params: Mapping[str, object]) -> InputFn:
    """Returns a registered input function with mode and parameters bound, for an estimator."""
    return partial(input_function(name), mode, dict(params))


def _make_batches(
    mode: Modes,
    options: Mapping[str, Any],
    make: Callable[[np.random.Generator], tuple[Array, Array]],
) -> Batches:
    """Returns batches of the examples that `make` generates.

    Args:
        mode: TRAIN for training data, any other mode for evaluation data.
        options: `seed` of the data (0), `batch_size` (64), `epochs` (no end for training, else 1)
            and `shuffle` (true for training, else false).
        make: Returns features and labels of all examples.
    """
    is_training = mode is Modes.TRAIN
    seed = int(options.get("seed", 0))
    features, labels = make(derive_generator(seed, f"input/{'train' if is_training else 'eval'}"))
    is_shuffled = bool(options.get("shuffle", is_training))
    epochs = options.get("epochs", None if is_training else 1)
    return ArrayBatches(
        features,
        labels,
        batch_size=int(options.get("batch_size", 64)),
        epochs=epochs,
        seed=seed if is_shuffled else None,
    )


def _spiral_points(
    arms: int, points: int, noise: float, generator: np.random.Generator
) -> tuple[Array, Array]:
    labels = np.repeat(np.arange(arms), points)
    radius = generator.uniform(0.05, 1.0, labels.size)
    angle = (
        4.0 * radius + 2 * np.pi * labels / arms + noise * generator.standard_normal(labels.size)
    )
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1).astype(
        np.float32
    ), labels


def _digit_images(
    images: int, noise: float, missing: float, generator: np.random.Generator
) -> tuple[Array, Array]:
    labels = generator.integers(len(_GLYPHS), size=images)
    glyphs = np.array(
        [[[row >> bit & 1 for bit in (4, 3, 2, 1, 0)] for row in glyph] for glyph in _GLYPHS],
        np.float32,
    )
    canvas = np.zeros((images, 8, 8), np.float32)
    for image, digit, top, left in zip(
        canvas,
        labels,
        generator.integers(2, size=images),
        generator.integers(4, size=images),
        strict=True,
    ):
        image[top : top + 7, left : left + 5] = glyphs[digit]
    canvas *= generator.random(canvas.shape) >= missing
    canvas *= generator.uniform(0.6, 1.0, (images, 1, 1))
    return np.clip(canvas + noise * generator.standard_normal(canvas.shape), 0, 1).astype(
        np.float32
    ), labels


_GLYPHS: Final = (
    (0x0E, 0x11, 0x13, 0x15, 0x19, 0x11, 0x0E),
    (0x04, 0x0C, 0x04, 0x04, 0x04, 0x04, 0x0E),
    (0x0E, 0x11, 0x01, 0x02, 0x04, 0x08, 0x1F),
    (0x1F, 0x02, 0x04, 0x02, 0x01, 0x11, 0x0E),
    (0x02, 0x06, 0x0A, 0x12, 0x1F, 0x02, 0x02),
    (0x1F, 0x10, 0x1E, 0x01, 0x01, 0x11, 0x0E),
    (0x06, 0x08, 0x10, 0x1E, 0x11, 0x11, 0x0E),
    (0x1F, 0x01, 0x02, 0x04, 0x08, 0x08, 0x08),
    (0x0E, 0x11, 0x11, 0x0E, 0x11, 0x11, 0x0E),
    (0x0E, 0x11, 0x11, 0x0F, 0x01, 0x02, 0x0C),
)
"""Seven rows of five dots for each digit; bit 4 of a row is the leftmost dot."""
