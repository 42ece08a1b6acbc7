"""Whole trainings with the real engine, environments and evaluator, without a worker."""

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from benchmarks._train_in_process import EvaluationSink, evaluate_from_seed, open_pack
from palestra.contract.definition import RlDefinition
from palestra.contract.job_options import Submission
from workers.assembly.rl_parts import build_agent, build_evaluator, build_hooks, cadence_of
from workers.core.rng import derive_seed
from workers.core.types import StopReason
from workers.engine.engine import Engine, Parts
from workers.rl.collect.vector_collector import VectorCollector
from workers.rl.envs.factory import make_vector
from workers.rl.evaluate.vector_evaluator import new_seed_rule
from workers.trainer_process.schedules.native import train_pack

EXAMPLES = Path(__file__).parents[2] / "examples"


class LastEvaluationRecorder:
    """A recorder, a snapshotter and a control that keep only the last evaluation."""

    order = None
    mean = float("nan")

    def record_iteration(self, *_: object) -> None: ...
    def record_epoch(self, *_: object) -> None: ...
    def record_note(self, *_: object) -> None: ...
    def flush(self) -> None: ...
    def load_state_dict(self, _: object) -> None: ...

    def record_evaluation(self, clock, result, *, is_final) -> None:
        self.mean = result.mean

    def save(self, *_: object) -> str:
        return "snp_none"

    def state_dict(self) -> dict[str, Any]:
        return {}


class TrainingResult:
    """Trains a definition with a seed in this process; holds the results."""

    def __init__(self, definition: RlDefinition, seed: int) -> None:
        silent, env = LastEvaluationRecorder(), make_vector(definition.env)
        agent = build_agent(definition, env, seed, "cpu")
        evaluator = build_evaluator(definition, agent, new_seed_rule(seed))
        parts = Parts(
            agent=agent,
            collector=VectorCollector(env, agent, seed),
            recorder=silent,
            snapshotter=silent,
            control=silent,
            evaluator=evaluator,
            hooks=build_hooks(definition, agent),
        )
        engine = Engine(parts, cadence_of(definition), time.monotonic)
        self.reason: StopReason = engine.run().reason
        self.env_steps, self.updates, self.mean = (
            engine.clock.env_steps,
            engine.clock.updates,
            silent.mean,
        )
        fresh = build_evaluator(
            definition, agent, new_seed_rule(derive_seed(seed, "other episodes", bits=31)), 20
        )
        self.fresh_mean = fresh.evaluate(engine.clock).mean
        self.parameters = agent.state_dict()["learning"]["parameters"]
        for part in (env, evaluator, fresh):
            part.close()


class RunOutcome(NamedTuple):
    """Stop reason, env_steps and mean returns of one run of a pack."""

    reason: StopReason
    env_steps: int
    mean: float
    """Mean return of the last evaluation."""
    fresh_mean: float
    """Mean return of episodes with other seeds."""


def train_seeds(submission: Submission, seeds: Sequence[int], directory: Path) -> list[RunOutcome]:
    """Trains seeds as a worker trains a pack of them, and evaluates each when it ends."""
    sinks, outcomes = [EvaluationSink() for _ in seeds], dict[int, RunOutcome]()
    with open_pack(submission, seeds, directory, sinks) as pack:

        def judge(index: int) -> None:
            training = pack.trainings[index]
            fresh = evaluate_from_seed(
                training,
                submission.definition,
                derive_seed(seeds[index], "other episodes", bits=31),
                20,
            )
            reason, env_steps = training.engine.result.reason, training.engine.clock.env_steps
            outcomes[index] = RunOutcome(reason, env_steps, sinks[index].kept[-1].mean, fresh)

        train_pack(pack, judge)
    return [outcomes[index] for index in range(len(seeds))]


def make_example_submission(name: str, **changes: Any) -> Submission:
    """Returns an example submission with some sections of its definition changed."""
    document = yaml.safe_load((EXAMPLES / name).read_text())
    for section, change in changes.items():
        document["definition"][section] = {**document["definition"].get(section, {}), **change}
    return Submission.model_validate_json(json.dumps(document))


def make_example_definition(name: str, **changes: Any) -> RlDefinition:
    """Returns the definition of an example with some of its sections changed."""
    return make_example_submission(name, **changes).definition
