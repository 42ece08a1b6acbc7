"""Runs of the database compared: definitions, origin, scores, importance, and what is refused."""

import json
from typing import Any

import pytest

from app.domain.errors import DomainError, NotFoundError
from app.services.statistics import comparison
from app.services.statistics.compared_fields import compare_fields, flatten
from app.services.statistics.origin_fields import describe_origin
from palestra.contract.comparison import ComparisonQuery, ComparisonResult
from tests.app.services.test_statistics import CARTPOLE, PENDULUM, train_seeds
from tests.support.server_fixture import World


async def ask(world: World, **body: Any) -> ComparisonResult:
    query = ComparisonQuery.model_validate_json(json.dumps(body))
    return await comparison.compare(world.database, world.admin, query)


async def refuse(world: World, **body: Any) -> tuple[str, str | None, str]:
    with pytest.raises(DomainError) as caught:
        await ask(world, **body)
    return caught.value.code, caught.value.pointer, caught.value.detail


def with_agent(**members: Any) -> dict[str, Any]:
    return {"env": CARTPOLE["env"], "agent": {"name": "dqn", **members}}


def find(found: ComparisonResult, path: str) -> Any:
    (field,) = [one for one in (*found.definition, *found.origin) if one.path == path]
    return field


async def test_single_runs_differ_in_what_their_definitions_differ_in(world: World) -> None:
    first = await train_seeds(world, with_agent(gamma=0.9), [(10.0,), (20.0,)])
    second = await train_seeds(world, with_agent(gamma=0.99, batch_size=16), [(90.0,)])
    found = await ask(world, runs=[second[0], *first])
    assert [member.run_ids for member in found.members] == [[second[0]], [first[0]], [first[1]]]
    assert [member.environments[0].mean for member in found.members] == [90.0, 10.0, 20.0]
    assert found.parameters == ["agent.gamma", "agent.batch_size"] or set(found.parameters) == {
        "agent.gamma",
        "agent.batch_size",
    }
    assert find(found, "agent.gamma").values == [[0.99], [0.9], [0.9]]
    assert find(found, "agent.gamma").differs
    assert not find(found, "env.id").differs
    assert "name" not in {one.path for one in found.definition}
    assert [(run.seed, run.member, run.score) for run in found.runs] == [
        (0, 0, 90.0),
        (0, 1, 10.0),
        (1, 2, 20.0),
    ]
    assert found.runs[0].values[found.parameters.index("agent.batch_size")] == 16
    assert found.notes == ["Importance needs 4 runs with a score: CartPole-v1 has 3."]


async def test_groups_have_means_and_importance_is_over_all_runs(world: World) -> None:
    low = await train_seeds(world, with_agent(gamma=0.9), [(10.0,), (11.0,), (12.0,)])
    high = await train_seeds(world, with_agent(gamma=0.99), [(90.0,), (91.0,), (95.0,)])
    found = await ask(world, runs=[*low, *high], group_by=["agent.gamma"])
    assert [member.name for member in found.members] == ["agent.gamma=0.9", "agent.gamma=0.99"]
    assert [member.environments[0].mean for member in found.members] == [11.0, 92.0]
    assert found.members[0].environments[0].iqm.low is not None
    (of_env,) = found.importance
    (gamma,) = of_env.parameters
    assert (of_env.environment, of_env.runs, gamma.path, gamma.levels) == (
        "CartPole-v1",
        6,
        "agent.gamma",
        2,
    )
    assert gamma.explained is not None
    assert gamma.explained > 0.99
    assert gamma.correlation == pytest.approx(0.878, abs=1e-3)
    assert gamma.p_value is not None
    assert gamma.p_value == pytest.approx(0.1, abs=0.04)  # 2 of 20 splits of six runs
    assert await ask(world, runs=[*low, *high], group_by=["agent.gamma"]) == found
    by_experiment = await ask(world, runs=[*low, *high], group_by=["experiment"])
    assert len({member.name for member in by_experiment.members}) == 2


async def test_parameters_that_change_together_are_said(world: World) -> None:
    runs = [
        *await train_seeds(world, with_agent(gamma=0.9, batch_size=16), [(1.0,), (2.0,)]),
        *await train_seeds(world, with_agent(gamma=0.99, batch_size=32), [(8.0,), (9.0,)]),
    ]
    found = await ask(world, runs=runs)
    by_path = {one.path: one for one in found.importance[0].parameters}
    assert by_path["agent.gamma"].same_split == ["agent.batch_size"]


async def test_runs_of_several_environments_are_warned_of_and_ranked_apart(world: World) -> None:
    cart = await train_seeds(world, CARTPOLE, [(1.0,), (2.0,), (3.0,), (4.0,)])
    pendulum = await train_seeds(world, PENDULUM, [(-1.0,)])
    found = await ask(world, runs=[*cart, *pendulum])
    assert found.warnings[0].startswith(
        "The runs are of 2 environments (CartPole-v1, Pendulum-v1), whose returns have different"
    )
    assert found.importance == []
    assert "No hyperparameter differs between the runs of CartPole-v1." in found.notes
    assert "Importance needs 4 runs with a score: Pendulum-v1 has 1." in found.notes


async def test_runs_without_evaluations_are_listed_and_small_groups_have_no_interval(
    world: World,
) -> None:
    runs = await train_seeds(world, CARTPOLE, [(1.0,), ()])
    other = await train_seeds(world, with_agent(gamma=0.5), [(2.0,)])
    found = await ask(world, runs=[*runs, *other], group_by=["agent.gamma"])
    assert [(one.run_id, one.reason) for one in found.left_out] == [
        (runs[1], "0 evaluations, 1 needed")
    ]
    assert found.notes[0].startswith("1 run has no score and is left out")
    assert found.notes[1].startswith("No interval is given where there are fewer than 3 scores:")
    assert found.members[0].environments[0].iqm.low is None


async def test_what_cannot_be_compared_is_refused(world: World) -> None:
    runs = await train_seeds(world, CARTPOLE, [(1.0,), (2.0,)])
    assert (await refuse(world))[:2] == ("empty_group", "/runs")
    code, pointer, detail = await refuse(world, runs=runs[:1])
    assert (code, pointer) == ("too_few_members", "/runs")
    assert detail == "There is only one of the runs to compare: name at least two."
    assert (await refuse(world, runs=runs, group_by=["agent"]))[:2] == (
        "too_few_members",
        "/group_by",
    )
    assert (await refuse(world, runs=runs, group_by=["agnet"]))[:2] == (
        "unknown_field",
        "/group_by/0",
    )
    assert (await refuse(world, filter="agent:none"))[:2] == ("empty_group", "/filter")
    with pytest.raises(NotFoundError):
        await ask(world, runs=[runs[0], "run_" + "0" * 26])


async def test_at_most_thirty_members_are_compared(world: World) -> None:
    document, _ = await world.submit(seeds=tuple(range(31)))
    code, pointer, detail = await refuse(world, experiments=[document.id])
    assert (code, pointer) == ("too_many_members", "/runs")
    assert "31 runs to compare, at most 30 may be" in detail


def test_nested_members_and_lists_are_flattened() -> None:
    document = {
        "name": "a",
        "notes": "b",
        "agent": {"name": "dqn", "sizes": [64, 64], "net": {}},
        "layers": [{"kind": "conv"}, {"kind": "dense", "units": 3}],
    }
    assert flatten(document) == {
        "agent.name": "dqn",
        "agent.sizes": [64, 64],
        "agent.net": {},
        "layers.0.kind": "conv",
        "layers.1.kind": "dense",
        "layers.1.units": 3,
    }


def test_a_member_that_only_some_runs_have_differs_and_stays_beside_its_siblings() -> None:
    found = compare_fields(
        [[{"agent.a": 1, "env.id": "x"}], [{"agent.a": 1, "agent.b": None, "env.id": "x"}]]
    )
    assert [(one.path, one.differs, one.values) for one in found] == [
        ("agent.a", False, [[1], [1]]),
        ("agent.b", True, [[], [None]]),
        ("env.id", False, [["x"], ["x"]]),
    ]
    # A number and a text that reads the same are different values.
    (one,) = compare_fields([[{"a": 1}], [{"a": "1"}]])
    assert one.differs


@pytest.mark.parametrize("git", [None, "text", {"remote": "x"}, {"head": 5}, []])
def test_records_of_another_form_have_no_commit(git: Any) -> None:
    assert describe_origin([], {"git": git}) == {}
