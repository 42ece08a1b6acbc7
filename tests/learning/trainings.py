"""Whole trainings through the real engine, environments and evaluator, without a worker around them."""

import json
import time
from pathlib import Path
from typing import Any

import yaml

from palestra.contract.definition import RlDefinition
from palestra.contract.options import Submission
from workers.build.rl import build_agent, build_evaluator, build_hooks, cadence_of
from workers.collect.collector import VectorCollector
from workers.core.rng import derive_seed
from workers.core.types import StopReason
from workers.envs.make import make_vector
from workers.evaluate.evaluator import training_seeds
from workers.loop.engine import Engine, Parts

EXAMPLES = Path(__file__).parents[2] / "examples"


class Silent:
    """A recorder, a snapshotter and a control that keep the last evaluation only."""

    order = None
    mean = float("nan")

    def tick(self, *_: object) -> None: ...
    def epoch(self, *_: object) -> None: ...
    def flush(self) -> None: ...
    def load_state_dict(self, _: object) -> None: ...

    def evaluation(self, clock, result, *, final) -> None:
        self.mean = result.mean

    def save(self, *_: object) -> str:
        return "snp_none"

    def state_dict(self) -> dict[str, Any]:
        return {}


class Trained:
    """What a training came to."""

    def __init__(self, definition: RlDefinition, seed: int) -> None:
        silent, env = Silent(), make_vector(definition.env)
        agent = build_agent(definition, env, seed, "cpu")
        evaluator = build_evaluator(definition, agent, training_seeds(seed))
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
        self.env_steps, self.updates, self.mean = engine.clock.env_steps, engine.clock.updates, silent.mean
        fresh = build_evaluator(definition, agent, training_seeds(derive_seed(seed, "other episodes", bits=31)), 20)
        self.fresh_mean = fresh.evaluate(engine.clock).mean
        self.parameters = agent.state_dict()["learning"]["parameters"]
        for part in (env, evaluator, fresh):
            part.close()


def example(name: str, **changes: Any) -> RlDefinition:
    """The definition of an example with some of its sections changed."""
    document = yaml.safe_load((EXAMPLES / name).read_text())
    for section, change in changes.items():
        document["definition"][section] = {**document["definition"].get(section, {}), **change}
    submission = Submission.model_validate_json(json.dumps(document))
    return submission.definition
