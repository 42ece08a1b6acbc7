"""Exact resume: a training of 2N steps equals N steps, an interruption and N more steps.

Weights and recorded points are compared bit by bit.
"""

from pathlib import Path

import pytest

from tests.support.trainings import (
    TrainingAttempt,
    load_order_snapshot,
    make_definition,
    make_work_order,
)
from workers.core.errors import DefinitionError
from workers.core.types import StateTree

SHORT = {"loop": {"env_steps": 500, "epoch_env_steps": 100}}
SCHEDULE = {"name": "learning_rate_schedule", "env_steps": 450}
CASES = [
    ("dqn", 1, {}),
    ("dqn", 3, {"hooks": [{"name": "nan_guard"}, SCHEDULE]}),
    ("ppo", 1, {}),
    ("dqn", 1, {"hooks": [{"name": "video", "every_evaluations": 2, "max_frames": 20}]}),
    ("ppo", 4, {"env": {"id": "Pendulum-v1", "num_envs": 4, "max_episode_steps": 37}}),
]


@pytest.mark.parametrize(("agent", "num_envs", "sections"), CASES)
def test_a_killed_training_resumes_exactly(
    tmp_path: Path, agent: str, num_envs: int, sections: dict[str, object]
) -> None:
    order = make_work_order(make_definition(agent, num_envs, **SHORT, **sections))
    straight = TrainingAttempt(order, tmp_path / "straight").run()
    killed = TrainingAttempt(order, tmp_path / "killed").run(stop_at=400)
    snapshot, at = killed.get_snapshot("periodic")
    assert 0 < at < 500
    assert is_within_episodes(load_order_snapshot(order, snapshot).state["collector"])
    resumed = TrainingAttempt(order, tmp_path / "resumed", snapshot).run()
    assert resumed.exact
    assert resumed.hash_weights() == straight.hash_weights()
    assert (
        sorted(killed.list_points(until=at) + resumed.list_points(), key=repr)
        == straight.list_points()
    )


def test_one_actor_learner_resumes_exactly(tmp_path: Path) -> None:
    """The snapshot is of the training itself, because each training's process imports torch."""
    sections = {**SHORT, "snapshot": {"every_env_steps": 260, "keep_last": 4}, "hooks": [SCHEDULE]}
    order = make_work_order(make_definition("a3c", **sections))
    straight = TrainingAttempt(order, tmp_path / "straight").run()
    snapshot, at = straight.get_snapshot("periodic")
    assert 0 < at < 500
    (process,) = load_order_snapshot(order, snapshot).state["collector"]["processes"]
    assert is_within_episodes(process["collector"])
    resumed = TrainingAttempt(order, tmp_path / "resumed", snapshot).run()
    assert resumed.exact
    assert resumed.hash_weights() == straight.hash_weights()
    assert (
        sorted(straight.list_points(until=at) + resumed.list_points(), key=repr)
        == straight.list_points()
    )


def is_within_episodes(collector: StateTree) -> bool:
    """Returns whether the state of a collector has an episode that goes on."""
    return any(not one["over"] and one["length"] > 0 for one in collector["episodes"])


@pytest.mark.parametrize(
    ("agent", "num_envs", "sections"),
    [
        ("dqn", 2, {}),
        ("ppo", 2, {}),
        pytest.param(
            "a3c",
            1,
            {"snapshot": {"every_env_steps": None}, "evaluation": {"every_env_steps": 550}},
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_pause_at_any_step_changes_nothing(
    tmp_path: Path, agent: str, num_envs: int, sections: dict[str, object]
) -> None:
    order = make_work_order(make_definition(agent, num_envs, **sections))
    straight = TrainingAttempt(order, tmp_path / "straight").run()
    paused = TrainingAttempt(order, tmp_path / "paused").run(pause_at=307)
    snapshot, at = paused.get_snapshot("stop")
    resumed = TrainingAttempt(order, tmp_path / "resumed", snapshot).run()
    assert resumed.hash_weights() == straight.hash_weights()
    assert sorted(paused.list_points() + resumed.list_points(), key=repr) == straight.list_points()
    assert max(row[1] for row in paused.list_points()) <= at < 600


def test_several_actor_learners_are_cut_at_the_exact_step_and_resume_statistically(
    tmp_path: Path,
) -> None:
    document = make_definition("a3c", snapshot={"every_env_steps": None})
    document["agent"]["processes"] = 2
    order = make_work_order(document)
    paused = TrainingAttempt(order, tmp_path / "paused").run(pause_at=200)
    last = [record for record in paused.dump_records() if record["type"] == "snapshot"][-1]
    assert (last["env_step"], last["resume_exact"]) == (500, False)
    snapshot = tmp_path / "paused" / last["snapshot_id"]
    resumed = TrainingAttempt(order, tmp_path / "resumed", snapshot).run()
    assert resumed.exact is False
    assert [record["code"] for record in resumed.dump_records() if record["type"] == "note"] == [
        "resume_statistical"
    ]
    assert [one[0] for one in list_evaluations(paused) + list_evaluations(resumed)] == [
        250,
        500,
        600,
    ]
    episodes = sorted(
        (row[4], row[1])
        for row in paused.list_points() + resumed.list_points()
        if row[0] == "episode"
    )
    assert [number for number, _ in episodes] == list(range(1, len(episodes) + 1))
    assert [step for _, step in episodes] == sorted({step for _, step in episodes})


@pytest.mark.slow
def test_an_evaluation_in_its_own_process_equals_one_within_the_training(
    tmp_path: Path,
) -> None:
    order = make_work_order(
        make_definition("dqn", 1, snapshot={"every_env_steps": 100, "keep_last": 100})
    )
    apart = order.model_copy(
        update={"resources": order.resources.model_copy(update={"evaluation": "process"})}
    )
    inline = TrainingAttempt(order, tmp_path / "inline").run()
    beside = TrainingAttempt(apart, tmp_path / "beside").run()
    assert beside.hash_weights() == inline.hash_weights()
    assert list_evaluations(beside) == list_evaluations(inline)
    snapshot, _ = beside.get_snapshot("best")
    assert "memory" not in load_order_snapshot(apart, snapshot).state
    resumed = TrainingAttempt(apart, tmp_path / "resumed", snapshot)
    assert resumed.run().exact is False


def list_evaluations(trained: TrainingAttempt) -> list[tuple[int, tuple[float, ...], int]]:
    found = [record for record in trained.dump_records() if record["type"] == "evaluation"]
    return [(one["env_step"], tuple(one["returns"]), one["seed"]) for one in found]


def test_every_second_evaluation_is_filmed(tmp_path: Path) -> None:
    order = make_work_order(
        make_definition(
            "dqn", 1, hooks=[{"name": "video", "every_evaluations": 2, "max_frames": 20}]
        )
    )
    trained = TrainingAttempt(order, tmp_path / "snapshots").run()
    steps = [one[0] for one in list_evaluations(trained)]
    made = sorted(path.name for path in (tmp_path / "videos").iterdir())
    assert [int(name[:12]) for name in made if name.endswith(".mp4")] == steps[::2]
    assert len(made) == 2 * len(steps[::2])


def test_filming_and_an_evaluating_process_exclude_each_other(tmp_path: Path) -> None:
    order = make_work_order(make_definition("dqn", 1, hooks=[{"name": "video"}]))
    apart = order.model_copy(
        update={"resources": order.resources.model_copy(update={"evaluation": "process"})}
    )
    with pytest.raises(DefinitionError, match=r"resources\.evaluation"):
        TrainingAttempt(apart, tmp_path).run()
