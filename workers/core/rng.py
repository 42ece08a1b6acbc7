"""Random streams that are derived from the run's seed, a role and indices.

An episode can therefore be repeated exactly.

Also captures and restores the global generators, for code that uses them. torch's generators are
included only if torch is already imported.
"""

import hashlib
import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import numpy as np

from workers.core.types import StateTree

ENV_SEED_BITS: Final = 31
"""Environments pass seeds on to generators that take 32-bit signed numbers."""


def derive_seed(seed: int, role: str, *indices: int, bits: int = 63) -> int:
    """Returns a seed in [0, 2**bits) that depends on nothing but the arguments.

    It is the same on every machine and in every version.

    Args:
        seed: The run's seed.
        role: What the stream is for, for example `env`, `explore` or `evaluation`.
        indices: Environment index, episode index or other numbers that distinguish the streams of
            one role.
        bits: Number of bits of the result, at most 64.
    """
    text = "/".join((str(seed), role, *map(str, indices)))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> (
        64 - bits
    )


def derive_generator(seed: int, role: str, *indices: int) -> np.random.Generator:
    """Returns a numpy generator (PCG64) seeded by `derive_seed`."""
    return np.random.Generator(np.random.PCG64(derive_seed(seed, role, *indices)))


def generator_state(generator: np.random.Generator) -> StateTree:
    """Returns the state of a numpy generator as a tree that a snapshot can hold."""
    state: StateTree = _to_json(generator.bit_generator.state)
    return state


def load_generator_state(generator: np.random.Generator, state: StateTree) -> None:
    """Restores a generator of the same kind from a state of `generator_state`."""
    generator.bit_generator.state = _from_json(state)


def seed_global(seed: int) -> None:
    """Seeds `random`, numpy's legacy generator and, where it is loaded, torch on every device."""
    random.seed(derive_seed(seed, "global/python"))
    # Third-party environments use the legacy generator.
    np.random.seed(derive_seed(seed, "global/numpy", bits=32))  # noqa: NPY002
    if (torch := sys.modules.get("torch")) is not None:
        torch.manual_seed(derive_seed(seed, "global/torch"))


def global_state() -> StateTree:
    """Returns the states of the global random generators.

    They are those of `random`, of numpy's legacy generator and, where torch is loaded, of torch on
    the CPU and on each CUDA device.
    """
    version, words, gauss = random.getstate()
    name, keys, position, has_gauss, cached = np.random.get_state()  # noqa: NPY002
    state: StateTree = {
        "python": {"version": version, "words": np.asarray(words, dtype=np.uint64), "gauss": gauss},
        "numpy": {
            "name": name,
            "keys": np.array(keys),
            "position": int(position),
            "has_gauss": int(has_gauss),
            "gauss": float(cached),
        },
    }
    if (torch := sys.modules.get("torch")) is not None:
        state["torch"] = {"cpu": torch.get_rng_state()}
        if torch.cuda.is_initialized():
            state["torch"]["cuda"] = list(torch.cuda.get_rng_state_all())
    return state


def load_global_state(state: StateTree) -> None:
    """Restores the global generators from a state that `global_state` returned."""
    python, legacy = state["python"], state["numpy"]
    random.setstate(
        (python["version"], tuple(int(word) for word in python["words"]), python["gauss"])
    )
    keys = np.asarray(legacy["keys"], dtype=np.uint32)
    numpy_state = (legacy["name"], keys, legacy["position"], legacy["has_gauss"], legacy["gauss"])
    np.random.set_state(numpy_state)  # noqa: NPY002
    torch = sys.modules.get("torch")
    if torch is None or "torch" not in state:
        return
    torch.set_rng_state(state["torch"]["cpu"])
    devices = state["torch"].get("cuda", [])
    if devices and torch.cuda.device_count() == len(devices):
        torch.cuda.set_rng_state_all(devices)


@contextmanager
def preserve_global_state() -> Iterator[None]:
    """Restores the states of the global generators when the context is left."""
    before = global_state()
    try:
        yield
    finally:
        load_global_state(before)


def _to_json(value: object) -> Any:
    """Converts integers of more than 53 bits to text, because JSON readers may round them."""
    if isinstance(value, dict):
        return {key: _to_json(item) for key, item in value.items()}
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > 53:
        return {"int": str(value)}
    return value


def _from_json(value: object) -> Any:
    if isinstance(value, dict):
        return (
            int(value["int"])
            if set(value) == {"int"}
            else {key: _from_json(item) for key, item in value.items()}
        )
    return value
