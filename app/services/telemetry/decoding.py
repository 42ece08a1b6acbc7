"""Decodes batches of records: curves straight to arrays, other records by their models.

msgspec keeps the last of two equal keys, so a text with more colons than the decoded keys explain
is decoded by the models of the contract. So is everything that msgspec refuses, for the reason and
the place of a fault are theirs; `decode_batch` only returns what is valid beyond doubt.
"""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import msgspec
import numpy as np
from pydantic import TypeAdapter, ValidationError

from app.metrics.columns import Floats, Ints
from app.metrics.sort_records import EPISODE_LENGTH, EPISODE_RETURN, DecodedTable
from app.services.telemetry.batches import Delivery
from palestra.contract.names import MAX_STEP, SERIES_PATTERN
from palestra.contract.strict_json import JsonError, check_json
from palestra.contract.telemetry import (
    MAX_BATCH_RECORDS,
    MAX_COLUMN,
    MAX_SERIES_PER_RUN,
    Record,
    TelemetryBatch,
)

_RECORD: Final[TypeAdapter[Record]] = TypeAdapter(Record)
_MAX_WALL: Final = 1e11
_series: Final = re.compile(SERIES_PATTERN)
_run: Final = re.compile(r"run_[0-9a-z]{26}")
_ENVELOPE_KEYS: Final = 2
_AXES_KEYS: Final = 6
"""Keys of `type`, `run` and the axes."""


class _Axes(msgspec.Struct, forbid_unknown_fields=True):
    run: str
    env_step: list[int]
    update: list[int]
    episode: list[int]
    wall: list[float]


class _Points(_Axes, tag_field="type", tag="points"):
    series: str
    value: list[float]


class _Table(_Axes, tag_field="type", tag="table"):
    series: dict[str, list[float]]


class _Episodes(_Axes, tag_field="type", tag="episodes"):
    env_index: list[int]
    episode_return: list[float]
    episode_length: list[int]
    terminated: list[bool]


class _Envelope(msgspec.Struct, forbid_unknown_fields=True):
    first_seq: int
    records: list[msgspec.Raw]


_envelopes: Final = msgspec.json.Decoder(_Envelope)
_curves: Final = msgspec.json.Decoder(_Points | _Table | _Episodes)


class _DoubtError(ValueError):
    """The text must be decoded by the models."""


def decode_batch(attempt_id: str, raw: bytes) -> Delivery | None:
    """Returns the batch of a JSON text.

    Args:
        attempt_id: The attempt that sent it.
        raw: The text.

    Returns:
        The batch; `None` unless it is certainly a valid one, so that the caller decodes the text by
            the models of the contract.
    """
    try:
        envelope = _envelopes.decode(raw)
        texts = [bytes(one) for one in envelope.records]
        colons = [text.count(b":") for text in texts]
        if raw.count(b":") != sum(colons) + _ENVELOPE_KEYS:
            return None
        if not 1 <= envelope.first_seq <= MAX_STEP or not 1 <= len(texts) <= MAX_BATCH_RECORDS:
            return None
        records = [_decode_record(*one) for one in zip(texts, colons, strict=True)]
    except (_DoubtError, msgspec.DecodeError, OverflowError, ValidationError, JsonError):
        return None
    return Delivery.from_texts(attempt_id, envelope.first_seq, records, texts)


def build_delivery(attempt_id: str, raw: bytes, batch: TelemetryBatch) -> Delivery:
    """Returns a batch that the models decoded, with digests of the text that was sent."""
    try:
        texts = [bytes(one) for one in _envelopes.decode(raw).records]
    except msgspec.DecodeError:
        return Delivery.from_batch(attempt_id, batch)
    return Delivery.from_texts(attempt_id, batch.first_seq, batch.records, texts)


def _decode_record(text: bytes, colons: int) -> Record | DecodedTable:
    try:
        found = _curves.decode(text)
    except msgspec.DecodeError:
        check_json(text)
        return _RECORD.validate_json(text)
    match found:
        case _Points():
            names: Sequence[str] = (found.series,)
            values: Mapping[str, Any] = {found.series: found.value}
            extra: Mapping[str, Mapping[str, Ints]] = {}
            keys = _AXES_KEYS + 2
        case _Table():
            names, values, extra = tuple(found.series), found.series, {}
            keys = _AXES_KEYS + 1 + len(names)
        case _Episodes():
            names, keys = (), _AXES_KEYS + 4
            values = {EPISODE_RETURN: found.episode_return, EPISODE_LENGTH: found.episode_length}
            extra = {
                EPISODE_LENGTH: {
                    "env_index": _read_counters(found.env_index, len(found.env_step)),
                    "terminated": np.array(found.terminated, np.int64),
                }
            }
            _read_counters(found.episode_length, len(found.env_step))
            _require(len(found.terminated) == len(found.env_step))
    _require(colons == keys and 0 < len(found.env_step) <= MAX_COLUMN)
    _require(0 < len(values) <= MAX_SERIES_PER_RUN)
    _require(all(map(_is_series, names)) and _is_run(found.run))
    return _build(found, names, values, extra)


def _build(
    found: _Axes,
    names: Sequence[str],
    values: Mapping[str, Any],
    extra: Mapping[str, Mapping[str, Ints]],
) -> DecodedTable:
    count = len(found.env_step)
    wall = _read_floats(found.wall, count)
    _require(bool(np.all(np.abs(wall) <= _MAX_WALL)))
    return DecodedTable(
        found.run,
        _read_counters(found.env_step, count),
        _read_counters(found.update, count),
        _read_counters(found.episode, count),
        wall,
        {name: _read_floats(column, count) for name, column in values.items()},
        extra,
        names,
    )


def _read_counters(column: list[int], count: int) -> Ints:
    _require(len(column) == count)
    found = np.array(column, np.int64)
    _require(count == 0 or (int(found.min()) >= 0 and int(found.max()) <= MAX_STEP))
    return found


def _read_floats(column: list[float] | list[int], count: int) -> Floats:
    _require(len(column) == count)
    return np.array(column, np.float64)


def _require(is_certain: bool) -> None:
    if not is_certain:
        raise _DoubtError


@lru_cache(4_096)
def _is_series(name: str) -> bool:
    return _series.fullmatch(name) is not None


@lru_cache(4_096)
def _is_run(run_id: str) -> bool:
    return _run.fullmatch(run_id) is not None
