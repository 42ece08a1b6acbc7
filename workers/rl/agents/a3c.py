"""Asynchronous advantage actor-critic (A3C).

Mnih et al. 2016, "Asynchronous Methods for Deep Reinforcement Learning", algorithm S3.

Processes with one environment each train shared parameters without a lock: each process copies the
parameters, makes up to t_max steps, and applies its gradient to the shared parameters by RMSprop,
whose statistics are shared too (section 4 and supplement 4). The processes are started by
`train_agent_async`, or for a definition by `workers.rl.collect.actor_learners`; the agent of the
engine then is `a3c_shared.SharedA3c`. P parameters, t_max steps of a rollout.
"""

from collections import deque
from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np
import torch
from gymnasium import Space
from torch import Tensor

from palestra.contract.agents import A3cParameters
from palestra.contract.names import CompileMode
from workers.acceleration.update_runner import Gradient, make_runner
from workers.core.rng import derive_generator
from workers.core.types import AgentContext, Array, LearnReport, StateTree
from workers.rl.agents.common.actor_critic import ActorCritic, actor_critic
from workers.rl.agents.common.optimizers import clip_to_norm
from workers.rl.agents.shells.base import TrainingSwitch, torch_generator
from workers.rl.agents.shells.rollout_statistics import EXPLAINED_VARIANCE, VALUE_MEAN, ValueFit
from workers.rl.exploration.random_blocks import RandomBlocks
from workers.rl.networks.parameter_layout import Parameters

UPDATE_NAMES: Final = (
    "loss/total",
    "loss/policy",
    "loss/value",
    "policy/entropy",
    VALUE_MEAN,
    "gradient/norm",
)
"""Series of one update: means over its steps, and the gradient's norm before clipping."""

REPORT_NAMES: Final = (*UPDATE_NAMES, EXPLAINED_VARIANCE)
"""Series of a report: means over its updates, and the explained variance over all their steps."""

SHARED_ATTRIBUTES: Final = ("parameters", "squares", "largest_reward")
"""Tensors of an agent that the processes share."""

NO_REWARD: Final = -1.0
"""Largest |reward| before the first update."""

_MAX_ROWS: Final = 4_096
"""Number of updates whose values are kept for a report, which PFRL's loops never request."""

_FILE: Final = "a3c.npz"


class PaddedRollout(NamedTuple):
    """A rollout of at most t_max steps of one environment, padded to t_max steps."""

    observation: Tensor
    """[t_max, ...]"""
    action: Tensor
    """Raw [t_max, ...]"""
    returned: Tensor
    """float32 [t_max]: R, discounted rewards to the end of the rollout plus the bootstrap value."""
    weight: Tensor
    """float32 [t_max]: 1 for steps of the rollout, 0 for padding."""


def returns(rewards: list[float], bootstrap_value: float, gamma: float) -> list[float]:
    """Returns R of each step: R <- r + gamma R, from the last step to the first.

    Args:
        rewards: Rewards of the rollout, in order.
        bootstrap_value: Bootstrap value, with which R begins.
        gamma: Discount factor.
    """
    result = list[float]()
    for reward in reversed(rewards):
        bootstrap_value = reward + gamma * bootstrap_value
        result.append(bootstrap_value)
    return result[::-1]


def update_shared_rmsprop(
    parameters: Tensor,
    squares: Tensor,
    gradient: Tensor,
    hyper: A3cParameters,
    learning_rate: float,
) -> None:
    """Updates parameters and squares, float32 [P], in place by shared RMSprop (equation S2).

    Other processes may write to the same tensors at the same time; there is no lock.
    """
    decay = hyper.rmsprop_decay
    squares.mul_(decay).addcmul_(gradient, gradient, value=1 - decay)
    parameters.addcdiv_(gradient, (squares + hyper.rmsprop_epsilon).sqrt_(), value=-learning_rate)


@dataclass(frozen=True)
class A3cMath:
    """Loss and gradient of algorithm S3 as pure functions."""

    model: ActorCritic
    hyper: A3cParameters

    def loss(self, parameters: Parameters, steps: PaddedRollout) -> tuple[Tensor, tuple[Tensor]]:
        """Returns the loss [], and the values of `UPDATE_NAMES` except the last [5].

        The loss is the sum over the steps of -log pi(a|s) (R - V(s)) - beta H + c (R - V(s))^2.
        """
        policy, weight = self.model.policy, steps.weight
        outputs, value = self.model(parameters, steps.observation)
        error, entropy = steps.returned - value, policy.entropy(parameters, outputs)
        policy_loss, value_loss = (
            -policy.log_probability(parameters, outputs, steps.action) * error.detach(),
            error.square(),
        )
        each = (
            policy_loss
            + self.hyper.value_coefficient * value_loss
            - self.hyper.entropy_coefficient * entropy
        )
        means = (
            torch.stack((each, policy_loss, value_loss, entropy, value)).detach()
            @ weight
            / weight.sum()
        )
        return (each * weight).sum(), (means,)

    def clipped_gradient(
        self, gradient: Gradient, vector: Tensor, steps: PaddedRollout
    ) -> tuple[Tensor, Tensor]:
        """Returns the clipped gradient [P] and the values of `UPDATE_NAMES` [6].

        Args:
            gradient: Differentiates a function of one vector.
            vector: Parameters, float32 [P], at which the gradient is computed.
            steps: A rollout.
        """
        grad, _, (means,) = gradient(
            lambda own: self.loss(self.model.layout.split(own), steps), vector
        )
        grad, norm = clip_to_norm(grad, self.hyper.max_grad_norm)
        return grad, torch.cat((means, norm.unsqueeze(0)))


class A3c:
    """The agent of one process: acts in its environment and updates the shared parameters.

    It has the methods of a PFRL agent.

    Args:
        hyper: Hyperparameters.
        observation_space: Observation space of the environment.
        action_space: Action space of the environment.
        seed: The run's seed; initial parameters are the same for every process.
        process_idx: Index of the process; each process has a separate generator for exploration.
        compile: Whether the gradient is compiled, which takes less time in total from some 100,000
            steps on.

    Raises:
        DefinitionError: If the agent does not support a space.
    """

    shared_attributes: ClassVar[tuple[str, ...]] = SHARED_ATTRIBUTES

    def __init__(
        self,
        hyper: A3cParameters,
        observation_space: Space[object],
        action_space: Space[object],
        *,
        seed: int = 0,
        process_idx: int = 0,
        compile: CompileMode = "eager",  # noqa: A002 - the name that a definition has for it
    ) -> None:
        context = AgentContext(observation_space, action_space, 1, seed)
        model = actor_critic(context, "a3c", hyper.hidden_sizes, hyper.activation)
        self.learning_rate = hyper.learning_rate
        self.parameters = model.layout.join(model.initial_parameters(torch_generator(seed)))
        self.squares = torch.zeros_like(self.parameters)
        self.largest_reward = torch.tensor(NO_REWARD, dtype=torch.float64)
        self._largest = NO_REWARD
        self._hyper, self._model = hyper, model
        self._slope = make_runner(A3cMath(model, hyper).clipped_gradient, mode=compile)
        generator = derive_generator(seed, "agent/explore", process_idx)
        self._draws = RandomBlocks(
            generator, lambda generator, shape: (model.policy.noise(generator, shape),)
        )
        self._training = TrainingSwitch()
        self.forget_rollout()
        self._last = torch.full((len(UPDATE_NAMES),), float("nan"))
        self._begin_report()
        self.sync_parameters()

    def sync_parameters(self) -> None:
        """Copies the shared parameters.

        The process acts and computes gradients with the copy until its next update.
        """
        self._own = self.parameters.clone()
        self._named, self._arrays = (
            self._model.layout.split(self._own),
            self._model.layout.split_array(self._own.numpy()),
        )

    def act(self, observation: Array) -> Any:
        """Returns an action of the space: sampled, or in `eval_mode` the most probable one."""
        policy, noise = self._model.policy, None
        if self._training.is_on:
            self._draws.advance((1,))
            noise = self._draws.block[0][self._draws.step]
        raw = policy.sample(
            self._arrays,
            self._model.acting_outputs(self._named, self._arrays, observation[None]),
            noise,
        )
        if self._training.is_on:
            self._observations.append(observation)
            self._actions.append(raw[0])
        return policy.to_space(raw)[0]

    def observe(self, observation: Array, reward: float, done: bool, reset: bool) -> None:
        """Stores the reward of an action; learns after t_max steps and at the end of an episode.

        The bootstrap value is V of `observation`, the successor, or 0 if the episode terminated
        (`done`). `reset` marks that the episode was truncated. Does nothing in `eval_mode`.
        """
        if not self._training.is_on:
            return
        self._rewards.append(float(reward))
        if done or reset or len(self._rewards) == self._hyper.rollout_steps:
            self._learn(0.0 if done else self._value(observation))

    def eval_mode(self) -> AbstractContextManager[None]:
        """Returns a context in which `act` returns most probable actions and nothing is learnt."""
        return self._training.turn_off()

    def get_statistics(self) -> Iterable[tuple[str, float]]:
        """Returns mean value and entropy of the last rollout."""
        last = dict(zip(UPDATE_NAMES, self._last.tolist(), strict=True))
        return [("average_value", last[VALUE_MEAN]), ("average_entropy", last["policy/entropy"])]

    def report(self) -> LearnReport:
        """Returns the number of updates since the last call and the values of `REPORT_NAMES`."""
        updates, rows, fit = self._updates, list(self._rows), self._fit
        values: list[float] = (self._sum / max(1, updates)).tolist()
        self._begin_report()
        if not updates:
            return LearnReport(0)
        named = dict(zip(UPDATE_NAMES, values, strict=True))
        explained = fit.explained_variance(named[VALUE_MEAN], named["loss/value"])
        own = [[*row, explained] for row in torch.stack(rows).tolist()]
        return LearnReport(updates, [*values, explained], own if len(own) == updates else None)

    def save(self, dirname: str) -> None:
        """Writes the shared tensors to a file in the directory `dirname`."""
        np.savez(
            Path(dirname) / _FILE, parameters=self.parameters.numpy(), squares=self.squares.numpy()
        )

    def load(self, dirname: str) -> None:
        """Reads the shared tensors that `save` wrote and copies the parameters."""
        with np.load(Path(dirname) / _FILE, allow_pickle=False) as stored:
            self._take(torch.from_numpy(stored["parameters"]), torch.from_numpy(stored["squares"]))

    def state_dict(self) -> StateTree:
        """Returns the shared tensors, and the state of this process as in `own_state`."""
        parameters = {
            name: part.clone() for name, part in self._model.layout.split(self.parameters).items()
        }
        shared = {"squares": self.squares.clone(), "largest_reward": float(self.largest_reward)}
        return {"parameters": parameters, **shared, **self.own_state()}

    def load_state_dict(self, state: StateTree) -> None:
        """Restores `state` in a new agent of the same definition.

        Raises ValueError if the stored parameters are of another network.
        """
        self._take(self._model.layout.join(state["parameters"]), torch.as_tensor(state["squares"]))
        self._largest = float(state["largest_reward"])
        self.largest_reward.fill_(self._largest)
        self.load_own_state(state)

    def own_state(self) -> StateTree:
        """Returns this process's copy of the parameters, generator state and current rollout."""
        model, count = self._model, len(self._rewards)
        return {
            "own": self._own.clone(),
            "explorer": self._draws.state_dict(),
            "observation": np.stack(self._observations[:count])
            if count
            else np.zeros((0, *model.encoding.shape), model.encoding.dtype),
            "action": np.stack(self._actions[:count])
            if count
            else np.zeros((0, *model.policy.raw_shape), model.policy.raw_dtype),
            "reward": np.array(self._rewards),
        }

    def load_own_state(self, state: StateTree) -> None:
        """Restores what `own_state` returned."""
        self._own.copy_(state["own"])
        self._draws.load_state_dict(state["explorer"])
        self._observations, self._actions = list(state["observation"]), list(state["action"])
        self._rewards = [float(reward) for reward in state["reward"]]

    def forget_rollout(self) -> None:
        """Discards the current rollout, because its episode will not be continued."""
        self._observations, self._actions, self._rewards = (
            list[Array](),
            list[Array](),
            list[float](),
        )

    # Private

    def _begin_report(self) -> None:
        self._sum, self._updates = torch.zeros(len(UPDATE_NAMES)), 0
        self._rows = deque[Tensor](maxlen=_MAX_ROWS)
        self._fit = ValueFit()

    def _take(self, parameters: Tensor, squares: Tensor) -> None:
        """Copies the values into the shared tensors, in place, and synchronises the parameters."""
        self.parameters.copy_(parameters)
        self.squares.copy_(squares)
        self.sync_parameters()

    def _value(self, observation: Array) -> float:
        with torch.inference_mode():
            return float(self._model.values(self._named, torch.from_numpy(observation[None])))

    def _learn(self, bootstrap_value: float) -> None:
        returned = returns(self._rewards, bootstrap_value, self._hyper.gamma)
        grad, self._last = self._slope(self._own, self._steps(returned))
        update_shared_rmsprop(self.parameters, self.squares, grad, self._hyper, self.learning_rate)
        self._sum, self._updates = self._sum + self._last, self._updates + 1
        self._rows.append(self._last)
        self._fit.note(returned)
        self._note_largest_reward()
        self.sync_parameters()
        self.forget_rollout()

    def _note_largest_reward(self) -> None:
        """Raises the shared largest |reward| to that of this process.

        Another process may overwrite it with a smaller one at the same time, so it is compared with
        the largest of this process at each update. A reward that is not a number is left out, since
        it is not larger than any other.
        """
        self._largest = max((self._largest, *map(abs, self._rewards)))
        if self._largest > self.largest_reward.item():
            self.largest_reward.fill_(self._largest)

    def _steps(self, returned: list[float]) -> PaddedRollout:
        """Returns the rollout with returns R, padded to t_max steps.

        The padding repeats its first step with weight 0. With it one compiled gradient is used for
        rollouts of every length.
        """
        count, length = len(self._rewards), self._hyper.rollout_steps
        spare = length - count
        weight = torch.zeros(length)
        weight[:count] = 1.0
        observation = torch.from_numpy(
            np.stack([*self._observations, *self._observations[:1] * spare])
        )
        action = torch.from_numpy(np.stack([*self._actions, *self._actions[:1] * spare]))
        return PaddedRollout(
            observation, action, torch.tensor([*returned, *returned[:1] * spare]), weight
        )
