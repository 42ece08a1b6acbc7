import json
from typing import Any

import pytest
from pydantic import ValidationError

from palestra.contract.definition import read_definition
from palestra.contract.documents import encode_canonical_json
from palestra.contract.envs import EnvDefinition
from palestra.contract.identity import hash_definition
from palestra.contract.problems import explain


def make_definition(**env: Any) -> Any:
    document = {
        "kind": "rl",
        "name": "tiny",
        "env": {"id": "ALE/Pong-v5", **env},
        "agent": {"name": "dqn"},
        "loop": {"env_steps": 100},
    }
    return read_definition(json.dumps(document))


def test_definitions_without_preprocessing_keep_their_hash() -> None:
    assert hash_definition(make_definition()) == hash_definition(
        make_definition(preprocessing=None)
    )
    assert b"preprocessing" not in encode_canonical_json(make_definition())


def test_preprocessing_is_part_of_the_hash_with_its_defaults() -> None:
    plain, named = (
        make_definition(preprocessing={}),
        make_definition(preprocessing={"name": "atari", "frame_stack": 4, "clip_rewards": True}),
    )
    assert hash_definition(plain) == hash_definition(named) != hash_definition(make_definition())
    assert hash_definition(plain) != hash_definition(
        make_definition(preprocessing={"frame_stack": 2})
    )
    assert read_definition(encode_canonical_json(plain)) == plain


def test_a_native_vector_needs_preprocessing() -> None:
    with pytest.raises(ValidationError) as raised:
        EnvDefinition.model_validate_json('{"id": "ALE/Pong-v5", "vectorization": "native"}')
    assert "needs preprocessing" in str(explain(raised.value))
    assert make_definition(vectorization="native", preprocessing={}).env.vectorization == "native"
