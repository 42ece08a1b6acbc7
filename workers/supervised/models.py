"""Registered model functions: a classifier, a deep Q-network and a vanilla policy gradient.

They are short, to serve as examples. N is the number of rows of a batch. Each function documents
the keys of its `params`, with defaults in parentheses.
"""

from collections.abc import Sequence
from copy import deepcopy
from itertools import pairwise
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, huber_loss

from workers.supervised.explorations import DISCRETE, exploration, policy_sampling
from workers.supervised.model_function import ModelFn
from workers.supervised.modes import Modes
from workers.supervised.named_parts import find_part
from workers.supervised.rate_decays import Decay
from workers.supervised.spec import RESULTS, EstimatorSpec, Params
from workers.supervised.variables import (
    OptimizerFactory,
    copy_every,
    explore,
    get_module,
    minimize,
    sequence,
)

DISCOUNT: Final = 0.97
CLIP_NORM: Final = 0.5


def classifier(features: Any, labels: Any, mode: Modes, params: Params) -> EstimatorSpec:
    """Fully connected classifier with cross-entropy loss.

    Args:
        features: `x` float [N, ...].
        labels: int64 [N] in [0, classes); `None` in modes without labels.
        mode: Purpose of the call.
        params: `classes`, `hidden_sizes` ([64]), `learning_rate` (0.001), `decay` (none): options
            of `rate_decays.Decay` for the learning rate by global_step.
    """
    flat = features["x"].float().flatten(1)
    network = get_module(
        "classifier",
        lambda: mlp((flat.shape[1], *params.get("hidden_sizes", (64,)), params["classes"])),
    )
    logits: Tensor = network(flat)
    predictions = {RESULTS: logits.argmax(1), "probabilities": logits.softmax(1)}
    if not mode.has_labels:
        return EstimatorSpec(mode, predictions)
    loss = cross_entropy(logits, labels)
    metrics = {"accuracy": (predictions[RESULTS] == labels).float().mean()}
    train_op = (
        minimize(loss, adam_factory(params, 0.001), learning_rate=_schedule(params, 0.001))
        if mode is Modes.TRAIN
        else None
    )
    return EstimatorSpec(mode, predictions, loss, train_op, metrics)


def dqn(features: Any, labels: Any, mode: Modes, params: Params) -> EstimatorSpec:
    """Deep Q-network (Mnih et al. 2015) for discrete actions.

    Optionally double (van Hasselt et al. 2016) and dueling (Wang et al. 2016).

    The target bootstraps from `next_state`, except where the episode terminated.

    Args:
        features: `state` float [N, ...].
        labels: `action`, `reward` and `done` [N], `next_state` [N, ...]; `done` is true for
            terminated, not for truncated episodes. `None` in modes without labels.
        mode: Purpose of the call.
        params: `actions`, `hidden_sizes` ([64]), `double` (true), `dueling` (null, `mean`, `max` or
            `naive`), `discount` (0.97), `target_update` (5 updates), `learning_rate` (0.001),
            `decay`, `clip_norm` (0.5), `exploration` (`decay`) and `exploration_params`.
    """

    def make() -> QNetwork:
        width = features["state"].flatten(1).shape[1]
        return QNetwork(
            (width, *params.get("hidden_sizes", (64,))), params["actions"], params.get("dueling")
        )

    online = get_module("online", make)
    values = online(features["state"])
    name, options = params.get("exploration", "decay"), params.get("exploration_params", {})
    if not mode.has_labels:
        actions = explore(
            "epsilon",
            lambda: exploration(name, DISCRETE, options),
            values.argmax(1),
            actions=params["actions"],
        )
        return EstimatorSpec(mode, {RESULTS: actions, "values": values})
    target = get_module("target", lambda: deepcopy(online), trainable=False)
    with torch.no_grad():
        following = target(labels["next_state"])
        best = online(labels["next_state"]) if params.get("double", True) else following
        following = (
            following.gather(1, best.argmax(1, keepdim=True))
            .squeeze(1)
            .masked_fill(labels["done"], 0.0)
        )
        wanted = labels["reward"].float() + params.get("discount", DISCOUNT) * following
    taken = values.gather(1, labels["action"].long().view(-1, 1)).squeeze(1)
    loss = huber_loss(taken, wanted)
    train_op = None
    if mode is Modes.TRAIN:
        rate, clip = _schedule(params, 0.001), params.get("clip_norm", CLIP_NORM)
        learned = minimize(loss, adam_factory(params, 0.001), learning_rate=rate, clip_norm=clip)
        train_op = sequence(learned, copy_every(params.get("target_update", 5), online, target))
    return EstimatorSpec(
        mode, loss=loss, train_op=train_op, metrics={"q/mean": taken.detach().mean()}
    )


def vpg(features: Any, labels: Any, mode: Modes, params: Params) -> EstimatorSpec:
    """Vanilla policy gradient (Williams 1992) with a mean baseline, for discrete actions.

    It is for a `PGAgent`, whose batches consist of whole episodes.

    Args:
        features: `state` float [N, ...], in the order of time.
        labels: `action`, `reward`, `done` and `truncated`, [N] each; `None` in modes without
            labels.
        mode: Purpose of the call.
        params: `actions`, `hidden_sizes` ([64]), `discount` (0.97), `learning_rate` (0.004),
            `decay`, `clip_norm` (none).
    """
    flat = features["state"].float().flatten(1)
    policy = get_module(
        "policy",
        lambda: mlp((flat.shape[1], *params.get("hidden_sizes", (64,)), params["actions"])),
    )
    logits: Tensor = policy(flat)
    if not mode.has_labels:
        return EstimatorSpec(
            mode, {RESULTS: explore("policy", policy_sampling, logits).argmax(1), "logits": logits}
        )
    returns = returns_to_go(
        labels["reward"].float(),
        labels["done"] | labels["truncated"],
        params.get("discount", DISCOUNT),
    )
    advantage = (returns - returns.mean()) / (returns.std() + 1e-8) if len(returns) > 1 else returns
    log_probability = (
        logits.log_softmax(1).gather(1, labels["action"].long().view(-1, 1)).squeeze(1)
    )
    loss = -(log_probability * advantage).mean()
    train_op = None
    if mode is Modes.TRAIN:
        train_op = minimize(
            loss,
            adam_factory(params, 0.004),
            learning_rate=_schedule(params, 0.004),
            clip_norm=params.get("clip_norm"),
        )
    return EstimatorSpec(mode, loss=loss, train_op=train_op)


MODELS: Final[dict[str, ModelFn]] = {"classifier": classifier, "dqn": dqn, "vpg": vpg}
"""The registered model functions by name."""


def model_function(name: str) -> ModelFn:
    """Returns the model function that is registered as `name`.

    Raises:
        PartNotFoundError: If no such model function is registered.
    """
    return find_part(name, MODELS, "model function")


class QNetwork(nn.Module):
    """Maps states [N, ...] to action values [N, actions].

    Args:
        sizes: Number of entries of a state, then number of units of each hidden layer.
        actions: Number of actions.
        dueling: `mean` or `max` subtracts the mean or maximum of the advantages before the state
            value is added, `naive` subtracts nothing; `None` for a network without state value.

    Raises:
        ValueError: If `dueling` is none of these.
    """

    def __init__(self, sizes: Sequence[int], actions: int, dueling: str | None = None) -> None:
        super().__init__()
        if dueling not in {None, "mean", "max", "naive"}:
            raise ValueError(f"dueling must be null, mean, max or naive, not {dueling!r}")
        self._dueling = dueling
        self.actions = mlp((*sizes, actions))
        self.state = mlp((*sizes, 1)) if dueling else None

    def forward(self, state: Tensor) -> Tensor:
        flat = state.float().flatten(1)
        advantage: Tensor = self.actions(flat)
        if self.state is None:
            return advantage
        if self._dueling == "mean":
            advantage = advantage - advantage.mean(1, keepdim=True)
        elif self._dueling == "max":
            advantage = advantage - advantage.amax(1, keepdim=True)
        values: Tensor = self.state(flat) + advantage
        return values


def mlp(sizes: Sequence[int]) -> nn.Sequential:
    """Returns linear layers of these sizes with ReLU between them, but not after the last."""
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(sizes):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def adam_factory(params: Params, default: float) -> OptimizerFactory:
    """Returns a factory of Adam with `params["learning_rate"]`, or `default` without that key."""
    return lambda parameters: torch.optim.Adam(parameters, lr=params.get("learning_rate", default))


def returns_to_go(reward: Tensor, last: Tensor, discount: float) -> Tensor:
    """Returns the discounted sum of rewards from each step to the end of its episode.

    Args:
        reward: Rewards in the order of time, float [N].
        last: Whether the row is the last of its episode, bool [N]; row N - 1 is treated as last.
        discount: Discount factor, in [0, 1].
    """
    rewards, ends = reward.cpu().numpy(), last.cpu().numpy()
    returns, running = np.zeros(len(rewards), np.float32), 0.0
    for index in range(len(rewards) - 1, -1, -1):
        running = float(rewards[index]) + (0.0 if ends[index] else discount * running)
        returns[index] = running
    return torch.from_numpy(returns).to(reward)


def _schedule(params: Params, default: float) -> Any:
    """Returns the learning rate as a function of global_step; `None` if it is constant."""
    options = params.get("decay")
    return (
        None if options is None else Decay(**options).schedule(params.get("learning_rate", default))
    )
