"""Builds the actor-learner processes of a definition, and the parts within each process."""

import functools

from palestra.contract.agents import A3cParameters
from palestra.contract.definition import RlDefinition
from palestra.contract.job_options import Resources
from palestra.contract.names import CompileMode
from workers.acceleration.compilations import COMPILATIONS
from workers.assembly.process_setup import prepare_process
from workers.core.errors import DefinitionError
from workers.core.rng import derive_seed
from workers.core.shared_counter import SharedCount
from workers.rl.agents.a3c import A3c
from workers.rl.agents.a3c_shared import SharedA3c
from workers.rl.agents.pfrl_adapter import ExternalAgent
from workers.rl.agents.shared_tensors import SharedTensors, adopt
from workers.rl.collect.actor_learners import ActorLearner, ActorLearners
from workers.rl.collect.vector_collector import VectorCollector
from workers.rl.envs.factory import make_training_vector
from workers.rl.networks.observation_encoding import with_byte_bounds


def build_actor_learners(
    definition: RlDefinition,
    agent: SharedA3c,
    seed: int,
    device: str,
    mode: CompileMode,
    *,
    scales_by_bounds: bool = True,
) -> ActorLearners:
    """Returns the collector of an A3C training; the caller must close it.

    Args:
        definition: Definition whose agent is `a3c`.
        agent: Owns the tensors that the processes share.
        seed: The run's seed.
        device: Torch device of the training.
        mode: How gradients are computed.
        scales_by_bounds: See `Manifest.scales_by_bounds`.

    Raises:
        DefinitionError: If the device is a GPU.
    """
    if device != "cpu":
        raise DefinitionError(
            "resources.gpus: the processes of a3c share memory of the CPU: set it to 0"
        )
    assert isinstance(definition.agent, A3cParameters)
    document, count = definition.model_dump_json(), SharedCount()
    makers = [
        functools.partial(
            _build_actor_learner,
            document,
            agent.shared,
            count,
            seed,
            i,
            mode=mode,
            scales_by_bounds=scales_by_bounds,
            compilations=COMPILATIONS.share(),
        )
        for i in range(definition.agent.processes)
    ]
    return ActorLearners(makers, agent, count)


def _build_actor_learner(  # noqa: PLR0913 - keyword only
    document: str,
    shared: SharedTensors,
    count: SharedCount,
    seed: int,
    index: int,
    *,
    mode: CompileMode,
    scales_by_bounds: bool,
    compilations: SharedCount,
) -> ActorLearner:
    """Builds the actor-learner of index `index`; runs in the actor-learner's process."""
    COMPILATIONS.shared = compilations
    definition = RlDefinition.model_validate_json(document)
    hyper, spec = definition.agent, definition.env
    assert isinstance(hyper, A3cParameters)
    prepare_process(Resources(cpu_threads=1), derive_seed(seed, "actor-learner", index))
    if spec.vectorization == "async":  # The actor-learner is a separate process already.
        spec = spec.model_copy(update={"vectorization": "sync"})
    env = make_training_vector(spec)
    space = env.single_observation_space
    learner = A3c(
        hyper,
        space if scales_by_bounds else with_byte_bounds(space),
        env.single_action_space,
        seed=seed,
        process_idx=index,
        compile=mode,
    )
    adopt(learner, shared)
    agent = ExternalAgent(learner, num_envs=1, is_batch=False)
    return ActorLearner(
        VectorCollector(env, agent, seed, first=index), agent.observe, learner, count
    )
