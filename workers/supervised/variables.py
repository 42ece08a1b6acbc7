"""Modules, optimisers and explorations that a model keeps between calls of its function.

A model function is called for every batch. It requests such objects by name; the first request
creates the object, checkpoints save it, and the next training restores it:

    def model_fn(features, labels, mode, params):
        network = get_module("classifier", lambda: nn.Linear(2, 3))
        logits = network(features["x"])
        if mode is Modes.PREDICT:
            return EstimatorSpec(mode, predictions={"results": logits.argmax(1)})
        loss = nn.functional.cross_entropy(logits, labels)
        if mode is Modes.EVAL:
            accuracy = (logits.argmax(1) == labels).float().mean()
            return EstimatorSpec(mode, loss=loss, metrics={"accuracy": accuracy})
        make_optimizer = lambda parameters: torch.optim.Adam(parameters, lr=params["learning_rate"])
        return EstimatorSpec(mode, loss=loss, train_op=minimize(loss, make_optimizer))

Initial parameters depend on the run's seed and the module's name alone, not on the order of calls
or a global generator.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final, TypeVar

import torch
from torch import Tensor, nn

from workers.core.rng import derive_seed
from workers.core.types import Array, StateTree
from workers.supervised.explorations import Exploration
from workers.supervised.modes import Modes
from workers.supervised.spec import TrainOp

OptimizerFactory = Callable[[Iterable[nn.Parameter]], torch.optim.Optimizer]

_Module = TypeVar("_Module", bound=nn.Module)
_COUNTERS: Final = ("global_step", "global_timestep", "global_episode")


class Variables:
    """The modules, optimisers, explorations and counters of one model.

    Args:
        seed: The run's seed.
        device: Name of the torch device of the modules.
    """

    def __init__(self, seed: int = 0, device: str = "cpu") -> None:
        self.global_step = 0
        """Updates made; schedules of learning rates depend on it."""
        self.global_timestep = 0
        """Actions taken in training; rates of explorations depend on it."""
        self.global_episode = 0
        """Training episodes finished."""
        self.device = torch.device(device)
        self.mode = Modes.TRAIN
        self.exploring = False
        self._seed = seed
        self._modules: dict[str, nn.Module] = {}
        self._optimizers: dict[str, _TrainedParameters] = {}
        self._explorations: dict[str, Exploration] = {}
        self._stored: StateTree = {"modules": {}, "optimizers": {}, "explorations": {}}
        """Loaded states of objects that have not been requested yet."""

    @contextmanager
    def activate(self, mode: Modes, *, exploring: bool = False) -> Iterator[None]:
        """Makes this the current model for one call of a model function.

        `get_module`, `minimize` and `explore` use the current model.
        """
        self.mode, self.exploring = mode, exploring
        token = _CURRENT.set(self)
        try:
            yield
        finally:
            _CURRENT.reset(token)

    def module(
        self, name: str, factory: Callable[[], _Module], *, trainable: bool = True
    ) -> _Module:
        """Returns the module called `name`; see `get_module`."""
        module = self._modules.get(name)
        if module is None:
            module = self._modules[name] = self._create_module(name, factory, trainable=trainable)
        training = self.mode is Modes.TRAIN and not self.exploring
        if module.training != training:
            module.train(training)
        return module  # type: ignore[return-value]

    def minimize(
        self, loss: Tensor, optimizer: OptimizerFactory, options: "MinimizeOptions"
    ) -> TrainOp:
        """Returns the update; see the function `minimize`."""
        trained = self._optimizers.get(options.name)
        if trained is None:
            trained = self._optimizers[options.name] = _TrainedParameters(
                self._trainable_parameters(options.modules), optimizer, len(self._modules)
            )
            if (state := self._stored["optimizers"].pop(options.name, None)) is not None:
                trained.load_state_dict(state)
        if options.modules is None and trained.modules != len(self._modules):
            raise ValueError(
                f"minimize: a module was made after optimiser {options.name!r}: "
                "ask for all modules before the first minimize"
            )
        return lambda: trained.step(loss, options, self.global_step)

    def explore(
        self, name: str, factory: Callable[[], Exploration], greedy: Tensor, actions: int | None
    ) -> Tensor:
        """Returns actions [N, ...]; see the function `explore`."""
        found = self._explorations.get(name)
        if found is None:
            found = self._explorations[name] = factory()
            found.seed(derive_seed(self._seed, f"agent/explore/{name}"))
            if (state := self._stored["explorations"].pop(name, None)) is not None:
                found.load_state_dict(state)
        if not self.exploring:
            return greedy
        chosen: Array = greedy.detach().cpu().numpy()
        explored = (
            found.continuous(chosen, self.global_timestep)
            if actions is None
            else self._discrete(found, chosen, actions)
        )
        return torch.from_numpy(explored).to(greedy)

    def exploration_rate(self) -> float | None:
        """Returns the rate of the first exploration at the current timestep.

        Returns `None` if the model has no exploration.
        """
        first = next(iter(self._explorations.values()), None)
        return None if first is None else first.rate(self.global_timestep)

    def learning_rate(self) -> float | None:
        """Returns the learning rate of the first optimiser; `None` before an optimiser exists."""
        first = next(iter(self._optimizers.values()), None)
        return None if first is None else float(first.optimizer.param_groups[0]["lr"])

    def set_learning_rate(self, value: float) -> None:
        """Sets the learning rate of every optimiser.

        If `minimize` was given a schedule, the next step of its optimiser sets the scheduled value.
        """
        for trained in self._optimizers.values():
            for group in trained.optimizer.param_groups:
                group["lr"] = value

    def modules(self) -> dict[str, nn.Module]:
        """Returns the modules by name."""
        return dict(self._modules)

    def state_dict(self) -> StateTree:
        """Returns the counters and the states of modules, optimisers and explorations.

        Loaded states of objects that have not been requested yet are included.
        """
        return {
            **{name: getattr(self, name) for name in _COUNTERS},
            "modules": {
                **self._stored["modules"],
                **{name: dict(one.state_dict()) for name, one in self._modules.items()},
            },
            "optimizers": {
                **self._stored["optimizers"],
                **{name: one.state_dict() for name, one in self._optimizers.items()},
            },
            "explorations": {
                **self._stored["explorations"],
                **{name: one.state_dict() for name, one in self._explorations.items()},
            },
        }

    def load_state_dict(self, state: StateTree) -> None:
        """Restores the counters; other objects are restored when they are requested."""
        for name in _COUNTERS:
            setattr(self, name, int(state[name]))
        self._stored = {
            kind: dict(state[kind]) for kind in ("modules", "optimizers", "explorations")
        }
        self._modules, self._optimizers, self._explorations = {}, {}, {}

    def _create_module(
        self, name: str, factory: Callable[[], _Module], *, trainable: bool
    ) -> _Module:
        with torch.random.fork_rng(devices=[]):
            # `torch.manual_seed` would also seed CUDA's generator, which must not change.
            torch.default_generator.manual_seed(derive_seed(self._seed, f"agent/module/{name}"))
            module = factory()
        if (state := self._stored["modules"].pop(name, None)) is not None:
            _load(module, name, state)
        return module.to(self.device).requires_grad_(trainable)

    def _trainable_parameters(self, modules: Iterable[nn.Module] | None) -> list[nn.Parameter]:
        chosen = (
            [module for _, module in sorted(self._modules.items())]
            if modules is None
            else list(modules)
        )
        parameters = [
            parameter
            for module in chosen
            for parameter in module.parameters()
            if parameter.requires_grad
        ]
        if not parameters:
            raise ValueError(
                "minimize: there is no trainable parameter: make modules with get_module before"
            )
        return parameters

    def _discrete(self, exploration: Exploration, greedy: Array, actions: int) -> Array:
        return exploration.discrete(greedy, actions, self.global_timestep)


@dataclass(frozen=True, slots=True)
class MinimizeOptions:
    """Options of the function `minimize`."""

    name: str
    modules: Iterable[nn.Module] | None
    learning_rate: Callable[[int], float] | None
    clip_norm: float | None


class _TrainedParameters:
    """An optimiser with the parameters that it updates."""

    def __init__(
        self, parameters: list[nn.Parameter], optimizer: OptimizerFactory, modules: int
    ) -> None:
        self._parameters = parameters
        self.optimizer = optimizer(parameters)
        self.modules = modules

    def step(self, loss: Tensor, options: MinimizeOptions, global_step: int) -> None:
        if options.learning_rate is not None:
            for group in self.optimizer.param_groups:
                group["lr"] = options.learning_rate(global_step)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        if options.clip_norm is not None:
            nn.utils.clip_grad_norm_(self._parameters, options.clip_norm)
        self.optimizer.step()

    def state_dict(self) -> StateTree:
        state = self.optimizer.state_dict()
        return {
            "state": {str(key): value for key, value in state["state"].items()},
            "groups": state["param_groups"],
        }

    def load_state_dict(self, state: StateTree) -> None:
        inner = {int(key): value for key, value in state["state"].items()}
        self.optimizer.load_state_dict({"state": inner, "param_groups": state["groups"]})


def _load(module: nn.Module, name: str, state: StateTree) -> None:
    try:
        module.load_state_dict(state)
    except RuntimeError as error:
        raise ValueError(
            f"module {name!r} does not fit the checkpoint: use another model_dir, "
            f"or the model that wrote it: {error}"
        ) from error


_CURRENT: ContextVar[Variables] = ContextVar("current variables")


def current() -> Variables:
    """Returns the variables of the model whose function is running.

    Raises:
        RuntimeError: If no model function is running.
    """
    found = _CURRENT.get(None)
    if found is None:
        raise RuntimeError(
            "get_module, minimize and explore can be called only in a model function: "
            "an Estimator or an Agent calls it"
        )
    return found


def get_module(name: str, factory: Callable[[], _Module], *, trainable: bool = True) -> _Module:
    """Returns the module called `name`, which the first call creates.

    The module is in training mode only while the model trains.

    Args:
        name: Name, unique in the model.
        factory: Creates the module; called once, with torch's generator seeded by the run's seed
            and the name.
        trainable: Whether the parameters of the module require gradients, so that `minimize`
            updates them; false for a target network.
    """
    return current().module(name, factory, trainable=trainable)


def minimize(
    loss: Tensor,
    optimizer: OptimizerFactory,
    *,
    name: str = "optimizer",
    modules: Iterable[nn.Module] | None = None,
    learning_rate: Callable[[int], float] | None = None,
    clip_norm: float | None = None,
) -> TrainOp:
    """Returns an op that makes one optimiser step on `loss`; gradients are computed when it runs.

    Args:
        loss: The loss, a tensor of shape [].
        optimizer: Creates the optimiser for given parameters; called once per `name`.
        name: Name of the optimiser, unique in the model.
        modules: Modules to update; `None` for all trainable modules, which must have been requested
            before the first `minimize`.
        learning_rate: Learning rate as a function of global_step, such as
            `Decay(...).schedule(0.1)`; `None` keeps that of the optimiser.
        clip_norm: Norm to which larger gradients are scaled down; `None` for no clipping.
    """
    return current().minimize(
        loss, optimizer, MinimizeOptions(name, modules, learning_rate, clip_norm)
    )


def explore(
    name: str, factory: Callable[[], Exploration], greedy: Tensor, *, actions: int | None = None
) -> Tensor:
    """Returns actions [N, ...]: `greedy` with exploration while the agent acts in training.

    In evaluations and updates, `greedy` is returned unchanged and no random numbers are drawn.

    Args:
        name: Name of the exploration, unique in the model.
        factory: Creates the exploration; called once.
        greedy: Greedy actions, [N, ...].
        actions: Number of discrete actions; `None` for continuous actions.
    """
    return current().explore(name, factory, greedy, actions)


def global_step() -> int:
    """Returns the number of updates made so far."""
    return current().global_step


def sequence(*ops: TrainOp) -> TrainOp:
    """Returns an op that runs several updates in order and counts as one update."""

    def run() -> None:
        for op in ops:
            op()

    return run


def copy_every(updates: int, source: nn.Module, target: nn.Module) -> TrainOp:
    """Returns an op that copies the parameters of `source` to `target` every `updates` updates.

    The update in which the op runs is counted.
    """
    is_due = (current().global_step + 1) % updates == 0

    def run() -> None:
        if is_due:
            target.load_state_dict(source.state_dict())

    return run
