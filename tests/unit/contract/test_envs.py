import json
from typing import Any

import pytest
from pydantic import ValidationError

from palestra.contract.definition import read_definition
from palestra.contract.documents import canonical_json
from palestra.contract.envs import EnvDefinition
from palestra.contract.identity import definition_hash
from palestra.contract.problems import explain


def rl(**env: Any) -> Any:
    document = {
        "kind": "rl",
        "name": "tiny",
        "env": {"id": "ALE/Pong-v5", **env},
        "agent": {"name": "dqn"},
        "loop": {"env_steps": 100},
    }
    return read_definition(json.dumps(document))


def test_definitions_without_preprocessing_keep_their_hash() -> None:
    assert definition_hash(rl()) == definition_hash(rl(preprocessing=None))
    assert b"preprocessing" not in canonical_json(rl())


def test_preprocessing_is_part_of_the_hash_with_its_defaults() -> None:
    plain, named = (
        rl(preprocessing={}),
        rl(preprocessing={"name": "atari", "frame_stack": 4, "clip_rewards": True}),
    )
    assert definition_hash(plain) == definition_hash(named) != definition_hash(rl())
    assert definition_hash(plain) != definition_hash(rl(preprocessing={"frame_stack": 2}))
    assert read_definition(canonical_json(plain)) == plain


def test_a_native_vector_needs_preprocessing() -> None:
    with pytest.raises(ValidationError) as raised:
        EnvDefinition.model_validate_json('{"id": "ALE/Pong-v5", "vectorization": "native"}')
    assert "needs preprocessing" in str(explain(raised.value))
    assert rl(vectorization="native", preprocessing={}).env.vectorization == "native"
