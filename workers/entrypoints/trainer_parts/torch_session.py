"""Device and precision for the body of a trainer, and the shapes of lazy parameters."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass

import gymnasium as gym
import numpy as np
import torch
from torch import nn
from torch.nn.parameter import is_lazy

from workers.rl.envs.env_types import Env


@dataclass(frozen=True, slots=True)
class TorchSession:
    """Device and dtype of new tensors: takes the place of a TensorFlow session."""

    device: str | None = None
    """A torch device; `None` keeps the current default."""
    dtype: torch.dtype | None = None
    """A floating-point type; `None` keeps the current default."""

    @classmethod
    def of(cls, session: object) -> "TorchSession":
        """Returns a session from one, a device, a type, or `None`.

        Raises:
            TypeError: If it is nothing of these.
        """
        if session is None or isinstance(session, TorchSession):
            return session or cls()
        if isinstance(session, str | torch.device):
            return cls(device=str(torch.device(session)))
        if isinstance(session, torch.dtype):
            return cls(dtype=session)
        raise TypeError(
            "sess must be a TorchSession, a device, a dtype or None, "
            f"not a {type(session).__name__}"
        )

    @contextmanager
    def active(self) -> Iterator[None]:
        """Makes these the defaults of the body.

        The defaults from before are restored afterwards.
        """
        before = torch.get_default_dtype()
        device = nullcontext() if self.device is None else torch.device(self.device)
        try:
            torch.set_default_dtype(self.dtype or before)
            with device:
                yield
        finally:
            torch.set_default_dtype(before)


def materialise(part: object, env: Env | None, path: str) -> None:
    """Gives every parameter below a part that has no shape yet its shape and its first values.

    Touches no other parameter.

    Args:
        part: A module, or an object whose attributes may be modules.
        env: Its observation, or its observation and action, is the input that tells the shapes.
        path: What to call the part in errors.

    Raises:
        ValueError: If a module takes neither as its input.
    """
    for name, module in _lazy_modules(part, path):
        if env is None:
            raise ValueError(
                f"{name} has parameters without a shape: "
                "give setup an environment, or call the module once before"
            )
        _run_once(name, module, env)


def _lazy_modules(part: object, path: str) -> list[tuple[str, nn.Module]]:
    found = [(path, part)] if isinstance(part, nn.Module) else []
    if not found and hasattr(part, "__dict__"):
        found = [
            (f"{path}.{name}", value)
            for name, value in vars(part).items()
            if isinstance(value, nn.Module)
        ]
    return [
        (name, module)
        for name, module in found
        if any(is_lazy(one) for one in (*module.parameters(), *module.buffers()))
    ]


def _run_once(name: str, module: nn.Module, env: Env) -> None:
    """Runs a module in eval mode, in which running statistics stay, and restores the modes."""
    observation, action = (
        _example(space, module) for space in (env.observation_space, env.action_space)
    )
    modes = {one: one.training for one in module.modules()}
    module.eval()
    try:
        with torch.no_grad():
            try:
                module(observation)
            except TypeError:
                module(observation, action)
    except (TypeError, RuntimeError) as error:
        message = (
            f"{name} takes neither an observation nor an observation and an action: "
            f"call it once before setup ({error})"
        )
        raise ValueError(message) from error
    finally:
        for one, mode in modes.items():
            one.training = mode


def _example(space: gym.Space[object], module: nn.Module) -> torch.Tensor:
    parameter = next(iter(module.parameters()))
    zero = torch.as_tensor(np.zeros((1, *(space.shape or ())), np.float32))
    return zero.to(device=parameter.device, dtype=parameter.dtype)
