"""Adapts external agents, objects with the methods of a PFRL agent, to agents of this package.

Such an object decides inside its `observe` when it learns, and writes its own files. The adapter
passes it copies of all arrays, since the object may keep references and the engine reuses its
arrays. The adapter must not depend on what the object learns or how.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from workers.core.null_parts import NoMemory
from workers.core.rng import seed_global
from workers.core.types import (
    Array,
    CollectPlan,
    Experience,
    LearnReport,
    LearnSchedule,
    PartFiles,
    PartFilesDirectory,
    StateTree,
)
from workers.rl.networks.torch_optimizers import optimizers_of

_NEVER: Final = 2**62
_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9_.-]+")
_MAX_NAME_LENGTH: Final = 100
_COMMON: Final = ("save", "load", "get_statistics", "eval_mode")
_SERIAL: Final = ("act", "observe", *_COMMON)
_BATCH: Final = ("batch_act", "batch_observe", *_COMMON)


class ExternalAgent:
    """An external agent: an object with PFRL's methods.

    These are `act`, `observe`, `save`, `load`, `get_statistics` and `eval_mode`.

    A snapshot holds the files that the object's `save` writes, for its `load`. If the object has
    them, a snapshot also holds its `state_dict`, which is restored instead of the files, and its
    step counter `t`; and the files are those of `save_snapshot`, for `load_snapshot`.

    Args:
        agent: The external agent.
        num_envs: Number of environments of training.
        is_batch: Whether to call `batch_act` and `batch_observe` with one entry per environment,
            instead of `act` and `observe`.
        save_memory: Snapshots hold the files of the object's `save_snapshot`, if it has that
            method, instead of those of its `save`.

    Raises:
        TypeError: If the object lacks a method, which the message names.
        ValueError: If there are several environments and `is_batch` is false.
    """

    report_names: tuple[str, ...] = ()
    collect_plan = CollectPlan(vector_steps=1)
    learn_schedule = LearnSchedule(every_env_steps=_NEVER, updates=1)
    exportable = False
    """Only the object's own `act` can compute its actions."""
    learns_by_itself = True
    """The object learns inside `observe`; its updates are not reported."""

    def __init__(
        self, agent: Any, *, num_envs: int, is_batch: bool, save_memory: bool = True
    ) -> None:
        check_methods(agent, is_batch=is_batch)
        if num_envs != 1 and not is_batch:
            raise ValueError(
                f"num_envs is {num_envs}: act and observe take one environment, batch_act and "
                "batch_observe take several"
            )
        self.wrapped = agent
        self.memory = NoMemory()
        self._batch = is_batch
        self._save_memory = save_memory
        self._choose = agent.batch_act if is_batch else agent.act
        self._pass_on = agent.batch_observe if is_batch else agent.observe
        self._held: list[object] = [None] * num_envs
        """Copy of the newest observation of each episode in progress. The object received it in
        `observe` and receives the same array again in `act`, so that it stores it only once.
        """
        self._has_begun_episode = True

    @property
    def exact(self) -> bool:
        """Whether the object has `state_dict` and `load_state_dict`: a resume can be bit-exact."""
        return _has_methods(self.wrapped, "state_dict", "load_state_dict")

    # Acting and learning

    def act(self, observation: Array, *, explore: bool) -> Array:
        """Returns actions [B, ...] of the object's `act` or `batch_act`.

        Whether the object explores depends on its `eval_mode`. With `explore` it receives the
        copies of the observations that it received in `observe`.
        """
        rows = self._newest(observation) if explore else list(observation.copy())
        return np.array(self._choose(rows) if self._batch else [self._choose(rows[0])])

    @property
    def has_stochastic_policy(self) -> bool:
        """Whether the object says by `act_deterministically` how it acts in evaluations."""
        return hasattr(self.wrapped, "act_deterministically")

    @contextmanager
    def sample_actions(self, seed: int, rows: Sequence[np.random.Generator]) -> Iterator[None]:
        """Draws the actions of an evaluation from the policy; see `StochasticActor`."""
        del rows
        before = self.wrapped.act_deterministically
        self.wrapped.act_deterministically = False
        seed_global(seed)
        try:
            yield
        finally:
            self.wrapped.act_deterministically = before

    def observe(self, experience: Experience) -> None:
        """Calls the object's `observe` or `batch_observe` for each vector step in order.

        The object may learn during these calls.
        """
        pass_on = self._observe_batch if self._batch else self._observe_single
        for step in range(len(experience.reward)):
            pass_on(experience, step)

    def observe_evaluation(
        self,
        observation: Array,
        reward: Array,
        terminated: npt.NDArray[np.bool_],
        reset: npt.NDArray[np.bool_],
    ) -> None:
        """Passes a step of an evaluation to the object, which is in its `eval_mode`.

        With it the object can reset its recurrent state at the end of episodes.

        Args:
            observation: Observation after the step, [B, ...].
            reward: float64 [B].
            terminated: bool [B].
            reset: bool [B]: the episode ended or was abandoned.
        """
        rows = list(observation.copy())
        if self._batch:
            self._pass_on(rows, reward.copy(), terminated.copy(), reset.copy())
        else:
            self._pass_on(rows[0], float(reward[0]), bool(terminated[0]), bool(reset[0]))

    def learn(self, updates: int) -> LearnReport:
        """Does nothing: the object learns in `observe`."""
        del updates
        return LearnReport(0)

    @property
    def learning_rate(self) -> float:
        """Step size of the first torch optimiser among the object's attributes.

        NaN if it has none. Setting it changes all optimisers among the attributes.
        """
        return next(
            (
                float(group["lr"])
                for one in optimizers_of(self.wrapped)
                for group in one.param_groups
            ),
            float("nan"),
        )

    @learning_rate.setter
    def learning_rate(self, value: float) -> None:
        for optimizer in optimizers_of(self.wrapped):
            for group in optimizer.param_groups:
                group["lr"] = value

    def count_optimizer_steps(self) -> Callable[[], int]:
        """Returns a function that returns the number of updates since this call.

        An update steps each torch optimiser among the attributes at most once. Without an
        optimiser there the number is 0.
        """
        counts: list[int] = []
        for index, optimizer in enumerate(optimizers_of(self.wrapped)):

            def count(*_: object, index: int = index) -> None:
                counts[index] += 1

            counts.append(0)
            optimizer.register_step_post_hook(count)
        return lambda: max(counts, default=0)

    def find_non_finite_parameter(self) -> str | None:
        """Returns the first parameter of the torch modules among the attributes that is not finite.

        See `workers.rl.networks.finite_parameters.find_non_finite`.
        """
        import torch  # noqa: PLC0415 - takes seconds to load, and not every agent uses it

        from workers.rl.networks.finite_parameters import find_non_finite  # noqa: PLC0415

        return find_non_finite(
            (f"{name}.{of_module}", parameter)
            for name, module in vars(self.wrapped).items()
            if isinstance(module, torch.nn.Module)
            for of_module, parameter in module.named_parameters()
        )

    def statistics(self) -> dict[str, Any]:
        """Returns the object's `get_statistics` as a dictionary of values by name."""
        return dict(self.wrapped.get_statistics())

    def metrics(self) -> Mapping[str, float]:
        """Returns the numeric values of `get_statistics` as series `agent/<name>`.

        Characters that are not allowed in names of series are replaced by `_`.
        """
        numbers = (
            (str(name), value) for name, value in self.statistics().items() if _is_number(value)
        )
        return {
            f"agent/{_NOT_IN_NAMES.sub('_', name)[:_MAX_NAME_LENGTH]}": float(value)
            for name, value in numbers
        }

    def eval_mode(self) -> AbstractContextManager[None]:
        """Returns the context of the object's `eval_mode`."""
        context: AbstractContextManager[None] = self.wrapped.eval_mode()
        return context

    def acting_module(self) -> Any:
        """Raises TypeError: only the object's own `act` can compute its actions."""
        raise TypeError(
            f"{type(self.wrapped).__name__} cannot be exported: only its own act computes actions"
        )

    # State

    @property
    def step(self) -> int | None:
        """The object's attribute `t`, its count of env_steps.

        `None` if the object has no attribute `t`, or if it has an attribute `t_start`: objects such
        as PFRL's A2C compute their position in a rollout from both, so `t` must not be set from
        outside.
        """
        if not hasattr(self.wrapped, "t") or hasattr(self.wrapped, "t_start"):
            return None
        return int(self.wrapped.t)

    @step.setter
    def step(self, value: int) -> None:
        if self.step is not None:
            self.wrapped.t = value

    def state_dict(self) -> StateTree:
        """Returns the object's `state_dict` and step counter, where it has them, and its files.

        The files are written when the snapshot is written.
        """
        agent, snapshots = self.wrapped, self._save_memory and self._has_snapshots()
        state: StateTree = {
            "files": PartFiles(agent.save_snapshot if snapshots else agent.save),
            "snapshot_files": snapshots,
        }
        if (step := self.step) is not None:
            state["t"] = step
        if self.exact:
            state["state"] = agent.state_dict()
        return state

    def load_state_dict(self, state: StateTree) -> None:
        """Restores the object from its `state_dict` in `state`, or else from its files."""
        files, agent = state["files"], self.wrapped
        if "state" in state and self.exact:
            agent.load_state_dict(state["state"])
        elif isinstance(files, PartFilesDirectory):
            load = (
                agent.load_snapshot
                if state.get("snapshot_files") and self._has_snapshots()
                else agent.load
            )
            load(files.directory)
        if "t" in state:
            self.step = state["t"]
        self._held, self._has_begun_episode = [None] * len(self._held), True

    def load_parts(self, state: StateTree, parts: Sequence[str] | None) -> None:
        """Restores some parts of the object from a snapshot, and leaves the rest unchanged.

        Args:
            state: What `state_dict` returned, as read from the snapshot.
            parts: Names of entries of the object's `state_dict`, or of attributes that have a file
                `<name>.pt` in the snapshot; `None` for its networks (torch modules), without
                optimisers and counters.

        Raises:
            ValueError: If the snapshot or the object has no such part.
        """
        import torch  # noqa: PLC0415 - as above

        directory = state["files"].directory
        if "state" in state and self.exact:
            self._load_entries(state["state"], parts)
            return
        names = (
            tuple(
                name
                for name, value in vars(self.wrapped).items()
                if isinstance(value, torch.nn.Module)
            )
            if parts is None
            else parts
        )
        found = (
            [name for name in names if (Path(directory) / f"{name}.pt").exists()]
            if parts is None
            else list(names)
        )
        if not found:
            raise ValueError(
                f"resume_parts: {type(self.wrapped).__name__} has no torch module with a file in "
                f"{directory}: name its parts"
            )
        for name in found:
            self._load_attribute(Path(directory) / f"{name}.pt", name)

    def _newest(self, observation: Array) -> list[Any]:
        held = self._held
        if self._has_begun_episode:
            self._has_begun_episode = False
            for index, row in enumerate(held):
                if row is None:
                    held[index] = observation[index].copy()
        return held.copy()

    def _observe_single(self, experience: Experience, step: int) -> None:
        done, reset = experience.terminated.item(step), experience.truncated.item(step)
        row = experience.next_observation[step, 0].copy()
        self._held[0] = row
        if done or reset:
            self._held[0], self._has_begun_episode = None, True
        self._pass_on(row, experience.reward.item(step), done, reset)

    def _observe_batch(self, experience: Experience, step: int) -> None:
        terminated, truncated = (
            experience.terminated[step].copy(),
            experience.truncated[step].copy(),
        )
        rows = list(experience.next_observation[step].copy())
        self._held = rows.copy()
        over = (terminated | truncated).tolist()
        if True in over:
            self._has_begun_episode = True
            self._held = [None if ended else row for ended, row in zip(over, rows, strict=True)]
        self._pass_on(rows, experience.reward[step].copy(), terminated, truncated)

    def _load_entries(self, saved: Mapping[str, object], parts: Sequence[str] | None) -> None:
        import torch  # noqa: PLC0415 - as above

        now = self.wrapped.state_dict()
        names = [
            name
            for name, value in saved.items()
            if isinstance(value, dict | torch.Tensor) and not name.endswith("optimizer")
        ]
        wanted = names if parts is None else list(parts)
        if missing := sorted(set(wanted) - set(saved)):
            raise ValueError(f"resume_parts: the snapshot has no {missing}, it has {sorted(saved)}")
        self.wrapped.load_state_dict({**now, **{name: saved[name] for name in wanted}})

    def _load_attribute(self, path: Path, name: str) -> None:
        import torch  # noqa: PLC0415 - as above

        target = getattr(self.wrapped, name, None)
        if target is None or not path.exists():
            raise ValueError(
                f"resume_parts: {name!r} is no attribute of the agent that the snapshot has a file "
                "of"
            )
        target.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))

    def _has_snapshots(self) -> bool:
        return _has_methods(self.wrapped, "save_snapshot", "load_snapshot")


def check_methods(agent: object, *, is_batch: bool) -> None:
    """Raises TypeError if `agent` lacks a required method; the message names the methods."""
    missing = [
        name
        for name in (_BATCH if is_batch else _SERIAL)
        if not callable(getattr(agent, name, None))
    ]
    if missing:
        raise TypeError(
            f"agent: {type(agent).__name__} has no method {', '.join(missing)}; an agent of this "
            "function needs them all"
        )


def _has_methods(agent: object, *names: str) -> bool:
    return all(callable(getattr(agent, name, None)) for name in names)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)
