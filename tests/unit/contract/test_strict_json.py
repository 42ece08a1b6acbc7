import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palestra.contract.strict_json import (
    MAX_CONTAINERS,
    MAX_KEYS,
    MAX_VALUES,
    JsonError,
    check_json,
)

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(JSON)
def test_output_of_json_dumps_is_read_back(value: object) -> None:
    assert check_json(json.dumps(value, ensure_ascii=False).encode(), nul=True) == value
    if "\\u0000" not in json.dumps(value):
        assert check_json(json.dumps(value).encode()) == value


@pytest.mark.parametrize(
    ("raw", "code", "pointer", "syntax"),
    [
        (b"", "invalid_json", "", True),
        (b'{"a": 1', "invalid_json", "", True),
        (b"\xff", "not_utf8", "", True),
        (b"\xef\xbb\xbf{}", "byte_order_mark", "", True),
        (b'{"a": {"b": 1, "b": 1}}', "duplicate_key", "", True),
        (b"[" * 100_000, "too_deep", "", True),
        (b"[" * 33 + b"]" * 33, "too_deep", "", True),
        (b'{"a": [0, NaN]}', "not_finite", "/a/1", False),
        (b'{"a": -1e400}', "not_finite", "/a", False),
        (b'{"a": 1E+00400}', "not_finite", "/a", False),
        (b'{"a/b": {"~": "\\ud800"}}', "not_unicode", "/a~1b/~0", False),
        (b'{"a": "x\\u0000"}', "nul_character", "/a", False),
        (b'{"a": ' + b"9" * 5_000 + b"}", "out_of_range", "", False),
    ],
)
def test_nonstandard_or_excessive_json_is_refused(
    raw: bytes, code: str, pointer: str, *, syntax: bool
) -> None:
    with pytest.raises(JsonError) as refused:
        check_json(raw)
    assert (refused.value.code, refused.value.pointer, refused.value.is_syntax_error) == (
        code,
        pointer,
        syntax,
    )


def test_valid_json_that_resembles_refused_json_is_accepted() -> None:
    for raw in (
        b'["NaN"]',
        b'["1e999"]',
        b"[1e99, 1e-400]",
        b'["\\ud83d\\ude00"]',
        b"[" * 32 + b"]" * 32,
        b'["\\\\u0000"]',
    ):
        check_json(raw)


def test_a_large_body_takes_little_longer_than_json_loads() -> None:
    raw = json.dumps(
        {"records": [{"values": [index + 0.5 for index in range(50)]} for _ in range(2_000)]}
    ).encode()
    began = time.process_time()
    json.loads(raw)
    plain = time.process_time() - began
    began = time.process_time()
    check_json(raw)
    assert time.process_time() - began < 10 * plain + 0.05


def test_a_duplicate_among_many_keys_is_found_in_linear_time() -> None:
    """Regression: each key was compared with all keys before it, which took 69 s for 360 KB."""
    keys = ",".join(f'"{index:x}":0' for index in range(60_000))
    raw = f'{{{keys},"ea5f":0}}'.encode()
    began = time.process_time()
    json.loads(raw)
    plain = time.process_time() - began
    began = time.process_time()
    with pytest.raises(JsonError, match="duplicate key ea5f"):
        check_json(raw)
    assert time.process_time() - began < 100 * plain, "a thousand times as long, once"


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        (b"[" + b"0," * MAX_VALUES + b"0]", "too_many_values"),
        (b"[" + b"{}," * MAX_CONTAINERS + b"0]", "too_many_values"),
        (b"{" + b",".join(b'"%d":0' % i for i in range(MAX_KEYS + 1)) + b"}", "too_many_values"),
        (b'{"a":' * 50_000, "too_deep"),
        (b'["' + b'\\"' * 500_000, "invalid_json"),
        (b"[" + b"9" * 4_000 + b"]", "out_of_range"),
    ],
)
def test_too_many_values_are_refused_before_objects_are_built(raw: bytes, code: str) -> None:
    """Regression: 9 MB of unknown keys took 42 s and 1.2 GiB."""
    with pytest.raises(JsonError) as refused:
        check_json(raw)
    assert refused.value.code == code


def test_commas_and_brackets_in_strings_are_not_counted() -> None:
    text = '[{,\\"' * (MAX_VALUES // 2)
    assert check_json(json.dumps([text, "\\"]).encode()) == [text, "\\"]
