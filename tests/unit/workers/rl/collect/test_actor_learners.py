"""Actor-learners: exact numbers of steps, a consistent state between steps, failing processes."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch

import tests.support.misbehaving_envs  # noqa: F401 - registers
from palestra.contract.definition import RlDefinition
from palestra.contract.states import Cause
from tests.support.orphan_check import check_end_with_parent
from tests.support.trainings import TrainingAttempt, make_definition, make_work_order
from workers.assembly import actor_learners
from workers.assembly.rl_parts import build_agent
from workers.core.errors import DefinitionError
from workers.core.rng import preserve_global_state
from workers.core.shared_counter import SharedCount
from workers.core.types import CollectPlan, StateTree
from workers.rl.agents.a3c import A3c
from workers.rl.agents.a3c_shared import SharedA3c
from workers.rl.agents.pfrl_adapter import ExternalAgent
from workers.rl.collect.actor_learners import ActorLearner, ActorLearnerError, ActorLearners
from workers.rl.collect.vector_collector import VectorCollector
from workers.rl.envs.factory import make_training_vector
from workers.trainer_process.failures import describe_failure

SEED = 3
_actor_learner = actor_learners._build_actor_learner


def build_actor_learner_with_test_envs(*arguments: Any, **options: Any) -> ActorLearner:
    """Builds an actor-learner in its process.

    Spawned processes import this module with the function, which registers its environments.
    """
    return _actor_learner(*arguments, **options)


@pytest.fixture(autouse=True, scope="module")
def _use_test_envs() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(actor_learners, "_build_actor_learner", build_actor_learner_with_test_envs)
        yield


def define_training(processes: int = 1, env: str = "CartPole-v1", **kwargs: Any) -> RlDefinition:
    document = {
        "kind": "rl",
        "name": "test",
        "env": {"id": env, "kwargs": kwargs},
        "agent": {
            "name": "a3c",
            "processes": processes,
            "hidden_sizes": [16],
            "learning_rate": 0.01,
        },
        "loop": {"env_steps": 1_000},
    }
    return RlDefinition.model_validate_json(json.dumps(document))


def make_shared_agent(definition: RlDefinition) -> SharedA3c:
    env = make_training_vector(definition.env)
    agent = build_agent(definition, env, SEED, "cpu")
    env.close()
    assert isinstance(agent, SharedA3c)
    return agent


def make_plan(count: int) -> CollectPlan:
    return CollectPlan(vector_steps=count)


StartLearners = Callable[[RlDefinition], tuple[SharedA3c, ActorLearners]]


@pytest.fixture(scope="module")
def start_learners(_use_test_envs: None) -> Iterator[StartLearners]:
    """Returns a function that returns the agent and the actor-learners of a definition, untrained.

    Tests of the same definition share the processes, since each of them imports torch.
    """
    running: dict[str, tuple[SharedA3c, ActorLearners, StateTree, StateTree]] = {}

    def start(definition: RlDefinition) -> tuple[SharedA3c, ActorLearners]:
        key = definition.model_dump_json()
        if key in running:
            agent, learners, agent_state, learners_state = running[key]
            agent.load_state_dict(agent_state)
            learners.restore(learners_state)
        else:
            agent = make_shared_agent(definition)
            learners = actor_learners.build_actor_learners(definition, agent, SEED, "cpu", "eager")
            learners.wait()
            running[key] = (agent, learners, agent.state_dict(), learners.state_dict())
        return agent, learners

    yield start
    for _, learners, *_ in running.values():
        learners.close()
        assert not any(psutil.pid_exists(pid) for pid in learners.pids)


def test_two_processes_make_the_exact_steps_and_report_each_episode_once(
    start_learners: StartLearners,
) -> None:
    agent, learners = start_learners(define_training(2, "OddUnseeded-v0", length=7))
    begin = agent.parameters.clone()
    counts, ends, updates = [200, 13, 1, 400], [], [0, 0]
    for count in counts:
        experience = learners.collect(make_plan(count))
        assert experience.env_steps == count
        at = [end.vector_step for end in experience.episodes]
        assert at == sorted(set(at))
        assert not at or 0 <= at[0] <= at[-1] < count
        assert [step for step, _ in experience.ends(100)] == [101 + step for step in at]
        ends += experience.episodes
        if len(experience.learn_reports) == 2:
            updates = [
                total + report.updates
                for total, report in zip(updates, experience.learn_reports, strict=True)
            ]
    states = learners.state_dict()["processes"]
    running = [
        int(state["collector"]["lengths"][0])
        for state in states
        if not state["collector"]["over"][0]
    ]
    assert {(end.episode_length, end.terminated) for end in ends} == {(7, True)}
    assert 7 * len(ends) + sum(running) == sum(counts)
    assert {end.env_index for end in ends} == {0, 1}
    assert min(updates) > 0
    own = [state["learner"]["own"] for state in states]
    assert not any(torch.equal(copy, begin) for copy in own)
    assert any(torch.equal(copy, agent.parameters) for copy in own), (
        "the last to learn has just copied what is shared"
    )


def test_a_process_uses_the_parameters_that_another_one_updated() -> None:
    definition, count = define_training(2), SharedCount()
    agent = make_shared_agent(definition)
    first, second = (make_actor_learner(definition, agent, count, index) for index in (0, 1))
    begin = agent.parameters.clone()
    _, _, report = first(("gather", 5, 0.01))
    middle = agent.parameters.clone()
    assert report.updates == 1
    assert not torch.equal(begin, middle)
    assert torch.equal(get_own_parameters(second), begin)
    count.value = 0
    second(("gather", 5, 0.0))
    assert torch.equal(get_own_parameters(second), middle), (
        "its update of step size 0 changed nothing, then it copied"
    )
    count.value = 0
    second(("gather", 5, 0.01))
    assert not torch.equal(agent.parameters, middle)
    assert torch.equal(get_own_parameters(first), middle)


def make_actor_learner(
    definition: RlDefinition, agent: SharedA3c, count: SharedCount, index: int
) -> ActorLearner:
    with preserve_global_state():
        return actor_learners._build_actor_learner(
            definition.model_dump_json(),
            agent.shared,
            count,
            SEED,
            index,
            mode="eager",
            scales_by_bounds=True,
            compilations=SharedCount(),
        )


def get_own_parameters(one: ActorLearner) -> torch.Tensor:
    return torch.from_numpy(one(("state",))["learner"]["own"]["$torch"])


def test_one_process_equals_a_plain_loop_for_any_collect_lengths(
    start_learners: StartLearners,
) -> None:
    definition = define_training(1)
    agent, learners = start_learners(definition)
    gathered = [learners.collect(make_plan(count)) for count in (100, 33, 200)]
    env = make_training_vector(definition.env)
    plain: Any = A3c(
        definition.agent, env.single_observation_space, env.single_action_space, seed=SEED
    )  # type: ignore[arg-type]
    actor = ExternalAgent(plain, num_envs=1, is_batch=False)
    collector, ends = VectorCollector(env, actor, SEED), []
    plain.learning_rate = agent.learning_rate
    for _ in range(333):
        experience = collector.collect(make_plan(1))
        actor.observe(experience)
        ends += experience.episodes
    assert torch.equal(agent.parameters, plain.parameters)
    assert torch.equal(agent.squares, plain.squares)
    assert [(end.episode_return, end.terminated) for part in gathered for end in part.episodes] == [
        (end.episode_return, end.terminated) for end in ends
    ]
    assert (
        sum(one.updates for part in gathered for one in part.learn_reports)
        == plain.report().updates
    )


def test_the_learning_rate_reaches_the_processes_with_the_next_collect(
    start_learners: StartLearners,
) -> None:
    agent, learners = start_learners(define_training(1))
    agent.learning_rate = 0.0
    begin = agent.parameters.clone()
    assert learners.collect(make_plan(60)).learn_reports[0].updates > 0
    assert torch.equal(agent.parameters, begin)
    agent.learning_rate = 0.01
    learners.collect(make_plan(60))
    assert not torch.equal(agent.parameters, begin)
    with pytest.raises(ValueError, match="must not ask for episodes"):
        learners.collect(CollectPlan(episodes=1))
    with pytest.raises(ValueError, match="the state is of 2 actor-learners, here are 1"):
        learners.restore({"processes": [{}, {}]})


def test_an_episode_that_its_environment_does_not_repeat_takes_its_rollout_with_it(
    start_learners: StartLearners,
) -> None:
    _, learners = start_learners(define_training(2, "OddUnseeded-v0", length=7))
    learners.collect(make_plan(6))
    state = learners.state_dict()
    # One process may have made all steps, and an update after five of them, or each made some.
    assert sum(count_rollout_steps(state)) in {6, 6 - 5}
    report = learners.restore(state)
    assert not report.is_exact
    assert {code for code, _ in report.notes} == {"env_not_deterministic", "resume_statistical"}
    assert count_rollout_steps(learners.state_dict()) == [0, 0]


def count_rollout_steps(state: StateTree) -> list[int]:
    """Returns the number of steps since the last update in each process."""
    return [len(process["learner"]["reward"]) for process in state["processes"]]


def test_a_process_that_raises_or_dies_is_an_error_that_names_it(
    start_learners: StartLearners,
) -> None:
    _, learners = start_learners(define_training(2, "OddFailing-v0"))
    with pytest.raises(
        ActorLearnerError, match=r"(?s)actor-learner [01] raised.*the robot fell over"
    ):
        learners.collect(make_plan(50))
    assert len(learners.state_dict()["processes"]) == 2
    with pytest.raises(ActorLearnerError, match="No space left on device") as caught:
        learners.collect(make_plan(50))
    assert describe_failure(caught.value)[0] is Cause.DISK_FULL
    with pytest.raises(
        ActorLearnerError, match=r"actor-learner [01] \(process \d+\) was ended by SIGKILL"
    ):
        learners.collect(make_plan(50))
    with pytest.raises(ActorLearnerError, match="no common state"):
        learners.state_dict()


def test_processes_end_with_their_parent_in_the_middle_of_an_episode(tmp_path: Path) -> None:
    definition = define_training(2, "OddHanging-v0")
    agent = make_shared_agent(definition)

    def run_parent(tell: Callable[[tuple[int, ...]], None]) -> None:
        learners = actor_learners.build_actor_learners(definition, agent, SEED, "cpu", "eager")
        learners.wait()
        tell(learners.pids)
        learners.collect(make_plan(50))

    check_end_with_parent(tmp_path / "pids", run_parent, 2)


def test_losses_that_are_not_finite_end_the_run(tmp_path: Path) -> None:
    document = make_definition(
        "a3c", env={"id": "OddWalk-v0", "kwargs": {"length": 7, "nan_reward": True}}
    )
    document |= {
        "loop": {"env_steps": 5_000},
        "evaluation": {"every_env_steps": None, "episodes": 1},
    }
    document["hooks"] = [{"name": "nan_guard", "updates": 20}]
    trained = TrainingAttempt(make_work_order(document), tmp_path).run()
    last = [record for record in trained.dump_records() if record["type"] == "snapshot"][-1]
    assert last["reason"] == "exception"
    assert last["env_step"] < 5_000


def test_a_gpu_is_refused() -> None:
    definition = define_training(1)
    with pytest.raises(DefinitionError, match=r"resources\.gpus"):
        actor_learners.build_actor_learners(
            definition, make_shared_agent(definition), SEED, "cuda", "eager"
        )
