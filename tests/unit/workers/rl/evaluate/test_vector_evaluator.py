"""The vector evaluator: unbiased episodes, budgets, statistics, and no side effects."""

import random
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

import tests.support.misbehaving_envs  # noqa: F401 - registers
from palestra.contract.envs import EnvDefinition
from workers.core.rng import global_state
from workers.core.shared_counter import SharedCount
from workers.core.types import EvaluationResult
from workers.rl.envs.factory import make_vector
from workers.rl.evaluate.vector_evaluator import (
    EvaluationBudget,
    VectorEvaluator,
    fixed_seed_rule,
    new_seed_rule,
    success_rate,
    summarise,
)

CLOCK: Any = SimpleNamespace(env_steps=100, updates=7)


class DrawingAgent:
    """An agent that always chooses 1 and draws from every global generator."""

    def act(self, observation: Any, *, explore: bool) -> Any:
        assert not explore
        random.random()
        np.random.rand()  # noqa: NPY002
        torch.rand(1)
        return np.ones(len(observation), np.int64)

    def eval_mode(self) -> AbstractContextManager[None]:
        return nullcontext()


def make_evaluator(num_envs: int = 1, seed: int = 5, **budget: Any) -> VectorEvaluator:
    env = make_vector(
        EnvDefinition(id="OddWalk-v0", num_envs=num_envs, kwargs={"random_length": True})
    )
    agent: Any = DrawingAgent()
    return VectorEvaluator(env, agent, EvaluationBudget(**budget), fixed_seed_rule(seed))


@pytest.mark.parametrize(
    "budget", [{"episodes": 9}, {"steps": 40}, {"steps": 41}, {"steps": 1}, {"episodes": 1}]
)
@pytest.mark.parametrize("num_envs", [2, 3, 8])
def test_several_environments_give_the_result_of_one(budget: dict[str, int], num_envs: int) -> None:
    assert make_evaluator(num_envs, **budget).evaluate(CLOCK) == make_evaluator(
        1, **budget
    ).evaluate(CLOCK)


class CoinAgent(DrawingAgent):
    """An agent that throws a coin of each row where it draws its actions, else chooses 1."""

    rows: Sequence[np.random.Generator] | None = None

    def act(self, observation: Any, *, explore: bool) -> Any:
        chosen = super().act(observation, explore=explore)
        if self.rows is None:
            return chosen
        return np.array([row.integers(2) for row in self.rows[: len(observation)]])

    @contextmanager
    def sample_actions(self, seed: int, rows: Sequence[np.random.Generator]) -> Iterator[None]:
        self.rows = rows
        yield
        self.rows = None


def evaluate_coins(num_envs: int, seed: int = 5, policy: Any = "stochastic") -> EvaluationResult:
    env = make_vector(EnvDefinition(id="CartPole-v1", num_envs=num_envs))
    agent: Any = CoinAgent()
    budget = EvaluationBudget(episodes=7)
    return VectorEvaluator(env, agent, budget, fixed_seed_rule(seed), policy=policy).evaluate(CLOCK)


@pytest.mark.parametrize("num_envs", [2, 3, 8])
def test_drawn_actions_of_an_episode_are_those_of_its_seed(num_envs: int) -> None:
    whole = evaluate_coins(1)
    assert evaluate_coins(num_envs) == whole
    assert evaluate_coins(num_envs, seed=6).returns != whole.returns
    greedy = evaluate_coins(num_envs, policy="greedy")
    assert max(greedy.returns) < max(whole.returns), "one action throughout fails early"
    assert evaluate_coins(num_envs, policy="both") == replace(greedy, drawn=whole)


def test_steps_drop_the_unfinished_episode() -> None:
    whole = make_evaluator(episodes=6).evaluate(CLOCK)
    until = sum(whole.lengths[:4])
    assert make_evaluator(steps=until).evaluate(CLOCK).lengths == whole.lengths[:4]
    assert make_evaluator(steps=until - 1).evaluate(CLOCK).lengths == whole.lengths[:3]
    partial = make_evaluator(steps=1).evaluate(CLOCK)
    assert (partial.is_partial, partial.lengths, partial.returns) == (True, (1,), (1.0,))


@pytest.mark.parametrize(("num_envs", "vectorization"), [(1, "sync"), (4, "sync"), (2, "async")])
def test_the_success_rate_is_the_share_of_the_counted_episodes(
    num_envs: int, vectorization: str
) -> None:
    spec = EnvDefinition(
        id="OddSuccess-v0",
        num_envs=num_envs,
        kwargs={"random_length": True},
        vectorization=vectorization,
    )
    agent: Any = DrawingAgent()
    judged = VectorEvaluator(
        make_vector(spec), agent, EvaluationBudget(episodes=9), fixed_seed_rule(5)
    )
    result = judged.evaluate(CLOCK)
    judged.close()
    assert result.success_rate == sum(length > 6 for length in result.lengths) / 9
    assert 0 < result.success_rate < 1
    assert make_evaluator(episodes=3).evaluate(CLOCK).success_rate is None
    assert success_rate([None, True, False, None]) == 0.25


@pytest.mark.parametrize("num_envs", [1, 3])
def test_a_result_says_how_many_episodes_were_cut(num_envs: int) -> None:
    def evaluate(limit: int | None, cut_at: int | None) -> EvaluationResult:
        spec = EnvDefinition(id="OddWalk-v0", num_envs=num_envs, kwargs={"random_length": True})
        agent: Any = DrawingAgent()
        budget = EvaluationBudget(episodes=9, cut_at=cut_at)
        env = make_vector(spec, max_episode_steps=limit)
        return VectorEvaluator(env, agent, budget, fixed_seed_rule(5)).evaluate(CLOCK)

    whole = evaluate(None, None)
    assert whole.cut_episodes is None
    assert evaluate(6, None).cut_episodes is None
    cut = evaluate(6, 6)
    assert cut.cut_episodes == sum(length > 6 for length in whole.lengths)
    assert 0 < cut.cut_episodes < 9
    assert evaluate(100, 100).cut_episodes == 0


def test_the_steps_of_evaluations_are_counted() -> None:
    env = make_vector(EnvDefinition(id="OddWalk-v0", kwargs={"random_length": True}))
    agent: Any = DrawingAgent()
    progress = SharedCount()
    evaluator = VectorEvaluator(
        env, agent, EvaluationBudget(episodes=3), fixed_seed_rule(5), progress=progress
    )
    lengths = [*evaluator.evaluate(CLOCK).lengths, *evaluator.evaluate(CLOCK).lengths]
    assert progress.value == sum(lengths)


def test_the_statistics_are_those_of_the_counted_episodes() -> None:
    result = summarise([1.0, 2.0, 6.0], [3, 4, 8], 0)
    assert (result.mean, result.median, result.min, result.max) == (3.0, 2.0, 1.0, 6.0)
    assert result.stdev == pytest.approx(7**0.5)
    assert (result.length_mean, result.length_median, result.length_min, result.length_max) == (
        5.0,
        4.0,
        3.0,
        8.0,
    )
    assert summarise([4.0], [1], 0).stdev == 0.0
    assert np.isnan(summarise([1.0, float("nan")], [1, 1], 0).mean)
    assert summarise([1.0, float("inf")], [1, 1], 0).max == float("inf")


def test_an_evaluation_restores_every_global_generator() -> None:
    made = make_evaluator(2, episodes=3)
    before = global_state()
    made.evaluate(CLOCK)
    after = global_state()
    assert np.array_equal(before["python"]["words"], after["python"]["words"])
    assert np.array_equal(before["numpy"]["keys"], after["numpy"]["keys"])
    assert before["numpy"]["position"] == after["numpy"]["position"]
    assert torch.equal(before["torch"]["cpu"], after["torch"]["cpu"])


def test_seeds_during_training_change_with_the_clock_and_repeat_after_a_resume() -> None:
    rule = new_seed_rule(3)
    later: Any = SimpleNamespace(env_steps=200, updates=7)
    assert rule(CLOCK) == new_seed_rule(3)(CLOCK)
    assert len({rule(CLOCK), rule(later), new_seed_rule(4)(CLOCK)}) == 3
    assert make_evaluator(seed=5, episodes=5).evaluate(CLOCK) == make_evaluator(
        seed=5, episodes=5
    ).evaluate(later)
    assert (
        make_evaluator(seed=5, episodes=5).evaluate(CLOCK).lengths
        != make_evaluator(seed=6, episodes=5).evaluate(CLOCK).lengths
    )


@pytest.mark.parametrize("budget", [{}, {"episodes": 1, "steps": 1}])
def test_a_budget_is_episodes_or_steps(budget: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="exactly one"):
        EvaluationBudget(**budget)
