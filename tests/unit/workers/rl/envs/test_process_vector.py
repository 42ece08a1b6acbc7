"""Environments in processes of their own, and what is left of them after an error."""

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tests.support.misbehaving_envs  # noqa: F401 - registers
from palestra.contract.envs import EnvDefinition
from workers.core.errors import EnvironmentFailedError
from workers.rl.envs.factory import make_vector

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*(from Worker|Traceback|Raising the last exception):UserWarning"
)
"""Gymnasium warns of each exception of a process."""

BOTH = np.ones(2, np.bool_)
ACTIONS = np.zeros(2, np.int64)


@pytest.fixture
def make() -> Iterator[Any]:
    """Makes two copies of an environment in processes, and checks that all of them end."""
    made: list[Any] = []

    def make_two(name: str, **options: Any) -> Any:
        made.append(
            make_vector(EnvDefinition(id=name, num_envs=2, vectorization="async", **options))
        )
        return made[-1]

    yield make_two
    for vector in made:
        vector.close()
        assert not any(process.is_alive() for process in vector._env.processes)


def advance_until_error(vector: Any) -> EnvironmentFailedError:
    vector.begin(BOTH, [1, 2])
    with pytest.raises(EnvironmentFailedError) as caught:
        step_three_times(vector)
    return caught.value


def step_three_times(vector: Any) -> None:
    for _ in range(3):
        vector.advance(ACTIONS)


def test_infos_with_arrays_of_varying_length_do_not_hinder_a_step(make: Any) -> None:
    vector = make("OddRaggedInfo-v0", kwargs={"length": 2})
    vector.begin(BOTH, [1, 2])
    vector.advance(ACTIONS)
    assert vector.advance(ACTIONS)[2].tolist() == [True, True]
    assert vector.successes() == [True, True]


def test_infos_stay_in_the_processes(make: Any) -> None:
    vector = make("OddRaggedInfo-v0")
    _, infos = vector._env.reset(seed=[1, 2])
    assert infos == {}
    assert vector._env.step(ACTIONS)[4] == {}


def test_an_exception_of_a_copy_ends_all_processes_with_its_message(make: Any) -> None:
    vector = make("OddRaising-v0")
    assert "raised in step 3: ValueError: the robot fell over" in str(advance_until_error(vector))
    assert not any(process.is_alive() for process in vector._env.processes)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("OddDying-v0", "the process of environment [01] ended by SIGKILL: the log shows"),
        ("OddExiting-v0", "the process of environment [01] ended with status 0: the log shows"),
    ],
)
def test_a_process_that_ends_is_named_with_its_status(make: Any, name: str, text: str) -> None:
    assert re.fullmatch(f"{text} what it wrote", str(advance_until_error(make(name))))


def test_a_process_that_was_killed_between_two_steps_is_named(make: Any) -> None:
    vector = make("OddWalk-v0")
    vector.begin(BOTH, [1, 2])
    vector._env.processes[1].kill()
    vector._env.processes[1].join()
    with pytest.raises(EnvironmentFailedError, match="of environment 1 ended by SIGKILL"):
        vector.advance(ACTIONS)


@pytest.mark.parametrize("error", [ValueError("no memory left"), KeyboardInterrupt()])
def test_an_exception_in_the_parents_step_ends_a_copy_that_hangs(
    make: Any, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    """For example, the handler of a signal raises it while the parent waits for the step."""
    vector = make("OddHanging-v0")
    vector.begin(BOTH, [1, 2])
    for _ in range(2):
        vector.advance(ACTIONS)

    def interrupt() -> None:
        raise error

    monkeypatch.setattr(vector._env, "step_wait", interrupt)
    with pytest.raises((EnvironmentFailedError, KeyboardInterrupt)) as caught:
        vector.advance(ACTIONS)
    assert isinstance(caught.value, KeyboardInterrupt) or "ValueError: no memory left" in str(
        caught.value
    )
    assert not any(process.is_alive() for process in vector._env.processes)


def test_episodes_can_be_saved_after_an_error_and_are_over(make: Any) -> None:
    vector, other = make("OddRaising-v0"), make("OddRaising-v0")
    advance_until_error(vector)
    restored = other.restore_episodes(vector.save_episodes())
    assert [one.observation for one in restored] == [None, None]


def test_an_action_that_is_changed_in_place_does_not_prevent_an_exact_resume(make: Any) -> None:
    vector, other = make("OddActionChanging-v0"), make("OddActionChanging-v0")
    vector.begin(BOTH, [1, 2])
    for step in range(3):
        observation = vector.advance(np.full((2, 2), 0.1 * step, np.float32))[0].copy()
    restored = other.restore_episodes(vector.save_episodes())
    assert [one.is_reproduced for one in restored] == [True, True]
    assert np.array_equal(np.stack([one.observation for one in restored]), observation)
