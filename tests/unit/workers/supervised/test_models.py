"""The shipped model functions compute the formulas of their papers."""

from typing import Any

import numpy as np
import pytest
import torch

from tests.acceptance.estimator_kit import are_equal
from workers.core.errors import PartNotFoundError
from workers.supervised.batches import to_tensors
from workers.supervised.inputs import ArrayBatches, bound_input, digits, input_function, spirals
from workers.supervised.models import QNetwork, model_function, returns_to_go
from workers.supervised.modes import Modes
from workers.supervised.spec import EstimatorSpec
from workers.supervised.variables import Variables

PARAMS: dict[str, Any] = {
    "actions": 2,
    "hidden_sizes": [4],
    "discount": 0.5,
    "learning_rate": 0.01,
    "target_update": 3,
}


def make_batch(**changes: Any) -> tuple[Any, Any]:
    labels = {
        "action": np.array([0, 1]),
        "reward": np.array([1.0, 2.0]),
        "done": np.array([False, True]),
        "truncated": np.array([True, False]),
        "next_state": np.array([[1.0, 2.0], [9.0, 9.0]], np.float32),
        **changes,
    }
    return to_tensors({"state": np.array([[0.5, 0.5], [1.0, -1.0]], np.float32)}), to_tensors(
        labels
    )


def run(
    variables: Variables, features: Any, labels: Any, mode: Modes = Modes.TRAIN, **params: Any
) -> EstimatorSpec:
    with variables.activate(mode):
        return model_function("dqn")(features, labels, mode, {**PARAMS, **params})


def test_dqn_bootstraps_from_the_true_next_state_and_not_from_terminal_ones() -> None:
    variables = Variables(3)
    features, labels = make_batch()
    loss = run(variables, features, labels).loss
    online = variables.modules()["online"]
    taken = online(features["state"])[torch.arange(2), labels["action"]]
    wanted = torch.tensor([1.0 + 0.5 * online(labels["next_state"])[0].max().item(), 2.0])
    assert loss is not None
    assert torch.allclose(loss, torch.nn.functional.huber_loss(taken, wanted)), (
        "a truncated row bootstraps, a terminal one does not"
    )
    other = run(
        variables, *make_batch(next_state=np.array([[1.0, 2.0], [-5.0, 7.0]], np.float32))
    ).loss
    assert torch.equal(loss, other), "what follows a terminal state does not matter"


def test_dqn_chooses_by_the_online_network_and_values_by_the_target() -> None:
    features, labels = make_batch(done=np.array([False, False]))
    losses = {}
    for double in (True, False):
        variables = Variables(3)
        run(variables, features, labels)
        online, target = variables.modules()["online"], variables.modules()["target"]
        with torch.no_grad():
            for parameter in online.parameters():
                parameter.mul_(-1.5)
        following = target(labels["next_state"])
        best = (online if double else target)(labels["next_state"]).argmax(1)
        wanted = labels["reward"].float() + 0.5 * following[torch.arange(2), best]
        taken = online(features["state"])[torch.arange(2), labels["action"]]
        losses[double] = run(variables, features, labels, double=double).loss
        assert torch.allclose(
            losses[double], torch.nn.functional.huber_loss(taken, wanted.detach())
        )
    assert losses[True] != losses[False]


def test_the_target_follows_every_third_update() -> None:
    variables = Variables(3)
    for step in range(1, 7):
        spec = run(variables, *make_batch())
        assert spec.train_op is not None
        spec.train_op()
        variables.global_step += 1
        online, target = (variables.modules()[name].state_dict() for name in ("online", "target"))
        assert are_equal(dict(online), dict(target)) == (step % 3 == 0), step


@pytest.mark.parametrize(
    ("dueling", "expected"), [("mean", [1.5, 2.5]), ("max", [1.0, 2.0]), ("naive", [5.0, 6.0])]
)
def test_dueling_streams_are_joined(dueling: str, expected: list[float]) -> None:
    network = QNetwork((1,), 2, dueling)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.zero_()
        network.actions[0].bias.copy_(torch.tensor([3.0, 4.0]))
        assert network.state is not None
        network.state[0].bias.fill_(2.0)
    assert network(torch.zeros(1, 1))[0].tolist() == expected
    with pytest.raises(ValueError, match="dueling"):
        QNetwork((1,), 2, "sum")


def test_returns_do_not_cross_episode_ends() -> None:
    reward = torch.tensor([1.0, 2.0, 4.0, 8.0])
    last = torch.tensor([False, True, False, False])
    assert returns_to_go(reward, last, 0.5).tolist() == [2.0, 2.0, 8.0, 8.0]


def test_parameters_depend_on_seed_and_name_alone() -> None:
    def make_weights(seed: int) -> dict[str, Any]:
        variables = Variables(seed)
        torch.rand(3)
        run(variables, *make_batch())
        return dict(variables.modules()["online"].state_dict())

    assert are_equal(make_weights(1), make_weights(1))
    assert not are_equal(make_weights(1), make_weights(2))


@pytest.mark.parametrize("function", [spirals, digits])
def test_training_and_evaluation_share_no_example(function: Any) -> None:
    def read_rows(mode: Modes) -> set[bytes]:
        return {
            row.tobytes() for features, _ in function(mode, {"epochs": 1}) for row in features["x"]
        }

    training, evaluation = read_rows(Modes.TRAIN), read_rows(Modes.EVAL)
    assert len(training) >= 600
    assert not training & evaluation
    assert read_rows(Modes.TRAIN) == training


def test_passes_are_reshuffled_and_their_state_can_be_saved() -> None:
    x = np.arange(10)
    source = ArrayBatches(x, x, batch_size=4, epochs=3, seed=1)
    drawn = [labels.tolist() for _, labels in source]
    assert [len(labels) for labels in drawn] == [4, 4, 2] * 3
    passes = [[*drawn[at], *drawn[at + 1], *drawn[at + 2]] for at in (0, 3, 6)]
    assert all(sorted(one) == list(range(10)) for one in passes)
    assert passes[0] != passes[1]
    source = ArrayBatches(x, x, batch_size=4, epochs=3, seed=1)
    iterator = iter(source)
    for _ in range(4):
        next(iterator)
    other = ArrayBatches(x, x, batch_size=4, epochs=3, seed=1)
    other.load_state_dict(source.state_dict())
    assert [labels.tolist() for _, labels in other] == drawn[4:]


def test_errors_of_unknown_names_list_the_known_ones() -> None:
    for find, name in ((model_function, "oracle"), (input_function, "moon")):
        with pytest.raises(PartNotFoundError, match=name):
            find(name)
    features, labels = next(iter(bound_input("spirals", Modes.TRAIN, {"batch_size": 5})()))  # type: ignore[arg-type]
    assert (features["x"].shape, labels.shape) == ((5, 2), (5,))
