"""Names that cross a process boundary: identifiers, text rules, series, schedules.

Defines the format of every identifier. Independent of the documents that use them.
"""

import re
import secrets
import time
import unicodedata
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field, StringConstraints

_CROCKFORD: Final = "0123456789abcdefghjkmnpqrstvwxyz"
_PAIRS: Final = tuple(high + low for high in _CROCKFORD for low in _CROCKFORD)
"""Two digits for each ten bits."""
_BIDI_AND_ZERO_WIDTH: Final = frozenset(
    "\u200b\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2060\u2066\u2067\u2068\u2069\ufeff"
)
_JOINERS: Final = frozenset("\u200c\u200d")
"""Zero-width non-joiner, which Persian and others write, and joiner, which emoji are made with."""
_FILLERS: Final = frozenset("\u115f\u1160\u2800\u3164\uffa0")
"""Letters and symbols that show nothing: Hangul fillers and the blank of Braille."""
_SLUG_PATTERN: Final = re.compile(r"[^a-z0-9]+")

MAX_SERIES_NAME: Final = 128
"""Characters of a series name."""
SERIES_PATTERN: Final = r"^[A-Za-z0-9_][A-Za-z0-9_./-]{0,127}$"
NAME_PATTERN: Final = r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$"
SLUG_PATTERN: Final = r"^[a-z0-9]+(-[a-z0-9]+)*$"
WORKER_IMPORTS: Final = "PALESTRA_WORKER_IMPORTS"
"""Variable with the comma-separated modules of the option `--import`, which register environments.
"""

WORKER_ALLOWED_PATHS: Final = "PALESTRA_WORKER_ALLOWED_PATHS"
"""Variable with the directories of the option `--allow-path`, whose files definitions may name."""

TRAINER_SIMULATOR: Final = "PALESTRA_TRAINER_SIMULATOR"
"""Variable with `resources.simulator`, for a trainer and all processes that it starts."""

Simulator = Literal["palestra", "registered"]
"""Which code computes an environment: Palestra's own, or that of the registration."""

CompileMode = Literal["eager", "compiled", "cudagraph"]
"""How the update of a built-in agent runs: without compilation, compiled as one function, or
compiled and replayed as a CUDA graph.
"""

TrainerPhase = Literal["starting", "compiling"]
"""What an attempt does while it does not train: prepare everything (`starting`: inputs, imports,
agent and environments), or compile an update.
"""

MAX_STEP: Final = 2**53 - 1
"""Largest counter that JSON, JavaScript and a double all hold exactly."""

IdPrefix = Literal[
    "prj",
    "usr",
    "tok",
    "exp",
    "run",
    "job",
    "att",
    "wrk",
    "slt",
    "snp",
    "art",
    "evl",
    "ses",
    "aud",
    "inv",
    "pol",
    "ent",
    "use",
    "win",
    "viw",
]


def new_id(prefix: IdPrefix) -> str:
    """Returns a fresh identifier: the prefix and 26 base-32 digits of a UUIDv7 (RFC 9562).

    Identifiers of one prefix sort by creation time to the millisecond.
    """
    milliseconds = time.time_ns() // 1_000_000
    number = (
        (milliseconds & (2**48 - 1)) << 80
        | 0x7 << 76
        | secrets.randbits(12) << 64
        | 0b10 << 62
        | secrets.randbits(62)
    )
    digits = "".join([_PAIRS[(number >> shift) & 1_023] for shift in range(120, -1, -10)])
    return f"{prefix}_{digits}"


def slugify(text: str, limit: int = 40, *, substitute: str = "experiment") -> str:
    """Returns a lower-case ASCII slug of at most `limit` characters.

    Returns `substitute` if no character remains.
    """
    ascii_text = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    return _SLUG_PATTERN.sub("-", ascii_text).strip("-")[:limit].strip("-") or substitute


def _readable(text: str) -> str:
    normal = unicodedata.normalize("NFC", text)
    if any(character in _BIDI_AND_ZERO_WIDTH for character in normal):
        raise ValueError("must not contain bidirectional or zero-width characters")
    if any(
        not beside or unicodedata.category(beside)[0] in "ZC"
        for beside in _find_neighbours_of_joiners(normal)
    ):
        raise ValueError(
            "must not contain zero-width joiners but between other characters, as in emoji"
        )
    if any(
        unicodedata.category(character) in {"Cc", "Cs"} and character not in "\n\t"
        for character in normal
    ):
        raise ValueError("must not contain control characters")
    return normal


def _find_neighbours_of_joiners(text: str) -> Iterator[str]:
    """Yields the characters before and after each zero-width joiner and non-joiner."""
    for place, character in enumerate(text):
        if character in _JOINERS:
            yield text[place - 1 : place]
            yield text[place + 1 : place + 2]


def is_visible(text: str) -> bool:
    """Returns whether a text holds at least one visible character.

    Spaces, marks, format characters and fillers are not visible.
    """
    return any(
        character not in _FILLERS and (category[0] not in "ZMC" or category in {"Co", "Cn"})
        for character, category in (
            (character, unicodedata.category(character)) for character in text
        )
    )


def _title(text: str) -> str:
    normal = _readable(text)
    if "\n" in normal or "\t" in normal:
        raise ValueError("must be one line")
    if not normal.strip():
        raise ValueError("must not be blank")
    return normal.strip()


def _safe_file_name(text: str) -> str:
    if text != text.strip():
        raise ValueError("must not begin or end with white space")
    normal = _title(text)
    stem = normal.split(".", 1)[0].upper()
    reserved = (
        stem in {"CON", "PRN", "AUX", "NUL"} or re.fullmatch(r"(COM|LPT)[0-9]", stem) is not None
    )
    parts = normal.split("/")
    if (
        reserved
        or len(parts) > 8
        or any(not part or set(part) <= {"."} or part[-1] in ". " for part in parts)
    ):
        raise ValueError("must be a relative name without empty, dotted or reserved components")
    if any(character in normal for character in '\\:\u2215%#?*"<>|;'):
        raise ValueError(r"must not contain any of \ : % # ? * ; quotes or angle brackets")
    if any(len(part.encode()) > 255 for part in parts):
        raise ValueError("must not have a component of more than 255 bytes")
    return normal


def _check_length(limit: int) -> AfterValidator:
    """Returns a check of the length that a text has in NFC, which can be three times as long."""

    def check(text: str) -> str:
        if len(text) > limit:
            raise ValueError(f"must have at most {limit:,} characters in NFC, not {len(text):,}")
        return text

    return AfterValidator(check)


def _seen(text: str) -> str:
    if not is_visible(text):
        raise ValueError("must have at least one visible character")
    return text


StoredTitle = Annotated[
    str, StringConstraints(min_length=1, max_length=64), AfterValidator(_title), _check_length(64)
]
"""One line of at most 64 characters, NFC, without control or bidirectional characters."""

Title = Annotated[StoredTitle, AfterValidator(_seen)]
"""A `StoredTitle` of which something is seen."""

Text = Annotated[
    str, StringConstraints(max_length=16_384), AfterValidator(_readable), _check_length(16_384)
]
"""Free text with line breaks, NFC."""

Email = Annotated[
    str,
    StringConstraints(pattern=r"^[^\s@]+@[^\s@]+$", max_length=254),
    AfterValidator(_title),
    _check_length(254),
]
"""An e-mail address, of which only the form `name@host` is checked."""

Slug = Annotated[str, StringConstraints(pattern=SLUG_PATTERN, max_length=64)]
"""The login name of a user, or the name of a project in addresses: lower-case ASCII letters and
digits, with single hyphens between them.
"""

Name = Annotated[str, StringConstraints(pattern=NAME_PATTERN)]
"""A registered name, a pool or a worker."""

SeriesName = Annotated[str, StringConstraints(pattern=SERIES_PATTERN)]
"""The name of a curve, for example `loss/td` or `episode/return`."""

ArtifactName = Annotated[
    str, StringConstraints(min_length=1, max_length=1024), AfterValidator(_safe_file_name)
]
"""Display name of a stored blob.

It is text in the database and never becomes a path on the server.
"""

Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
Seed = Annotated[int, Field(ge=0, lt=2**32)]
Counter = Annotated[int, Field(ge=0, le=MAX_STEP)]


class Schedule(StrEnum):
    """The kind of work that a job does on its run."""

    TRAIN = "train"
    EVALUATE = "evaluate"
    CONTINUOUS_EVAL = "continuous_eval"
    CONTINUOUS_EVAL_ON_TRAIN_DATA = "continuous_eval_on_train_data"
    TRAIN_AND_EVALUATE = "train_and_evaluate"
    CONTINUOUS_TRAIN_AND_EVALUATE = "continuous_train_and_evaluate"
    TEST = "test"
    EXPORT = "export"

    @property
    def writes_training_state(self) -> bool:
        """Whether a claim for this schedule raises the fence of its runs."""
        return self in _TRAINING_SCHEDULES

    @property
    def starts_runs(self) -> bool:
        """Whether a job of this schedule can be the first of its run.

        A definition can be submitted with such a schedule, and the job's state can be the run's.
        """
        return self.writes_training_state or self is Schedule.TEST

    @property
    def follows_training(self) -> bool:
        """Whether a job of this schedule runs beside a training and evaluates its snapshots."""
        return self in _FOLLOWING_SCHEDULES


_TRAINING_SCHEDULES: Final = frozenset(
    {Schedule.TRAIN, Schedule.TRAIN_AND_EVALUATE, Schedule.CONTINUOUS_TRAIN_AND_EVALUATE}
)
_FOLLOWING_SCHEDULES: Final = frozenset(
    {Schedule.CONTINUOUS_EVAL, Schedule.CONTINUOUS_EVAL_ON_TRAIN_DATA}
)


class PriorityClass(StrEnum):
    """Class of a job in its pool's queue, the first to start first.

    Within a class the projects' shares and the usage of their members decide.
    """

    INTERACTIVE = "interactive"
    """Jobs of at most 30 minutes; each person has at most one at a time."""
    URGENT = "urgent"
    """Reserved for maintainers of the project."""
    NORMAL = "normal"
    IDLE = "idle"
    """Uses what no other class needs."""


class EvaluationSource(StrEnum):
    """The seeds and actions of an evaluation's episodes, which determine its series."""

    EVALUATION = "evaluation"
    """Fresh ones: the series `evaluation/<statistic>`, and the scores of lists and snapshots."""
    TRAIN_DATA = "train_data"
    """The first ones of the training itself, from the same seeds:
    `evaluation_on_train_data/<statistic>`.
    """
    TEST = "test"
    """That of a `test`, of an agent with one update: `evaluation_of_test/<statistic>`."""
    STOCHASTIC = "stochastic"
    """Fresh ones, with actions that are drawn from the policy where the definition scores greedy
    ones: `evaluation_stochastic/<statistic>`.
    """
    GREEDY = "greedy"
    """Fresh ones, with greedy actions where the definition scores drawn ones:
    `evaluation_greedy/<statistic>`.
    """


EvaluationPolicy = Literal["greedy", "stochastic", "both"]
"""Which actions an evaluation takes: `greedy` the most probable ones, `stochastic` those that are
drawn from the policy, as a training does; `both` evaluates twice, on the same episodes' seeds.
"""
_DRAWS: Final[Mapping[EvaluationPolicy, tuple[bool, ...]]] = {
    "greedy": (False,),
    "stochastic": (True,),
    "both": (False, True),
}


def list_sources(
    policy: EvaluationPolicy, scored: EvaluationPolicy
) -> tuple[EvaluationSource, ...]:
    """Returns the sources of the results of an evaluation, the greedy one first.

    Args:
        policy: The actions that are evaluated.
        scored: Those of the definition, whose scores follow greedy ones unless it is `stochastic`.
    """
    scores_drawn = scored == "stochastic"
    return tuple(
        EvaluationSource.EVALUATION
        if is_drawn == scores_drawn
        else EvaluationSource.STOCHASTIC
        if is_drawn
        else EvaluationSource.GREEDY
        for is_drawn in _DRAWS[policy]
    )


ExportFormat = Literal["weights", "program", "onnx"]
"""A form in which what is needed to act is written: `weights`: safetensors and a JSON description.

`program`: a `torch.export` program; `onnx`: an ONNX file, by workers that have the packages onnx
and onnxscript.
"""


EXPORT_FILES: Final[Mapping[ExportFormat, tuple[str, ...]]] = {
    "weights": ("weights.safetensors", "policy.json"),
    "program": ("policy.pt2",),
    "onnx": ("policy.onnx",),
}
"""Names of the files of an export, by its format."""


class Scope(StrEnum):
    """Upper bounds on what a token permits. `admin` includes the others except `worker`."""

    READ = "read"
    SUBMIT = "submit"
    ADMIN = "admin"
    WORKER = "worker"


def worker_queue(pool: str, worker_id: str) -> str:
    """Returns the Celery queue that a worker listens to.

    The name begins with the name of the pool's former queue, on which the broker's rules are based.
    """
    return f"palestra.pool.{pool}.{worker_id}"


DISPATCH_TASK: Final = "palestra.ring"
"""Name of the one Celery task: a dispatch message `{v, job_id, expected_attempt}`."""
