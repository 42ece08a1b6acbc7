r"""The filter language of the lists of runs and experiments. Pure.

A filter is a sequence of terms that must all hold, for example
`agent:ppo env:~Ant evaluation/mean>3000 state:running,queued created:<7d -user:ada`:

- `FIELD:VALUE` equals, `FIELD:A,B` equals one of several, `FIELD:~PART` contains, ignoring case.
- `FIELD>NUMBER`, also `>=`, `<`, `<=`, and with a colon before it: `created:<7d`.
- A value with spaces, commas or quotes is written in double quotes, where `\\` escapes.
- `-` or `not` before a term negates it.
- A word without an operator is a part of a name or of an ID.

`FILTER_FIELDS` lists the fields. A field with a dot is a member of the definition
(`agent.learning_rate`), a field with a slash is a series of the run: its last value, or
`evaluation/mean.best`, `.mean10`, `.last`, `.count`. `series.NAME` is a series without a slash in
its name. `reached.NAME` is the env_step at which the run first reached a threshold of its project,
`reached.NAME.seconds` the seconds since its first point; a run that has not reached it has neither.
An experiment has the median over its runs, where those that have not reached it come last, and
`reached.NAME.runs`, the number of those that have.
"""

import math
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Literal

from palestra.contract.health import RULES
from palestra.contract.names import SERIES_PATTERN, SLUG_PATTERN
from palestra.contract.problems import suggest_nearest
from palestra.contract.states import RunState

MAX_FILTER: Final = 1_000
"""Characters of a filter."""
MAX_TERMS: Final = 32
MAX_THRESHOLD_NAME: Final = 64
MAX_VALUES: Final = 100
"""Values of one term."""

Operator = Literal["is", "contains", "lt", "le", "gt", "ge"]
Kind = Literal["text", "number", "time", "choice", "flag", "member", "series", "threshold"]
Statistic = Literal["last", "best", "mean10", "count", "env_step", "seconds", "runs"]
STATISTICS: Final[tuple[Statistic, ...]] = ("last", "best", "mean10", "count")
"""Of a series."""
CROSSINGS: Final[tuple[Statistic, ...]] = ("env_step", "seconds")
"""Of the first crossing of a threshold."""
EXPERIMENT_CROSSINGS: Final[tuple[Statistic, ...]] = (*CROSSINGS, "runs")
"""Of the first crossings of all runs of an experiment."""

ANY_FINDING: Final = "any"
"""Value of the field `finding` for all rules."""
_STATES: Final = tuple(state.value for state in RunState)


@dataclass(frozen=True, slots=True)
class FilterField:
    """A field that a filter may name.

    Attributes:
        kind: What it is compared with.
        description: What it holds.
        choices: Its values, if there are few.
        only: The list that has the field; `None` for both.
    """

    kind: Kind
    description: str
    choices: tuple[str, ...] = ()
    only: Literal["runs", "experiments"] | None = None


FILTER_FIELDS: Final[dict[str, FilterField]] = {
    "agent": FilterField("text", "name of the agent, or of the estimator"),
    "env": FilterField("text", "ID of the environment, or name of the training input"),
    "kind": FilterField("text", "kind of the definition"),
    "name": FilterField("text", "name of the experiment"),
    "experiment": FilterField("text", "ID of the experiment"),
    "id": FilterField("text", "ID of the run, or of the experiment"),
    "state": FilterField("choice", "state of the run, or of the experiment", _STATES),
    "user": FilterField("text", "login name of who submitted it; `me` is the caller"),
    "project": FilterField("text", "slug of the project"),
    "archived": FilterField("flag", "whether the experiment is archived", ("true", "false")),
    "created": FilterField("time", "when it was submitted"),
    "started": FilterField("time", "when its first attempt started", only="runs"),
    "finished": FilterField("time", "when it ended", only="runs"),
    "seed": FilterField("number", "seed of the run", only="runs"),
    "env_step": FilterField("number", "env_steps of the run", only="runs"),
    "update": FilterField("number", "updates of the run", only="runs"),
    "episode": FilterField("number", "episodes of the run", only="runs"),
    "cause": FilterField("text", "why the run failed", only="runs"),
    "finding": FilterField(
        "choice",
        "rule that finds something wrong with the training; `any` is one of them",
        (ANY_FINDING, *RULES),
        only="runs",
    ),
}

Target = Literal["runs", "experiments"]


@dataclass(frozen=True, slots=True)
class Age:
    """A time relative to now: so many seconds ago."""

    seconds: float


Value = str | float | bool | datetime | Age


@dataclass(frozen=True, slots=True)
class Term:
    """One condition of a filter.

    Attributes:
        field: Name of a field of `FILTER_FIELDS`, of a member of the definition, of a series or of
            a threshold; empty for a word that names and IDs may contain.
        kind: Kind of the field.
        operator: How it is compared. A time `lt` an `Age` is younger than that.
        values: What it is compared with: several for `is` and `contains`, of which one must fit.
        position: Index of the term's first character in the filter.
        is_negated: Whether the condition must not hold.
        statistic: Which statistic of a series, or of a crossing.
    """

    field: str
    kind: Kind
    operator: Operator
    values: tuple[Value, ...]
    position: int
    is_negated: bool = False
    statistic: Statistic = "last"


class FilterError(ValueError):
    """A filter that cannot be read.

    Args:
        code: Stable error code.
        message: What is wrong, without values of the filter.
        position: Index of the faulty character.
    """

    def __init__(self, code: str, message: str, position: int) -> None:
        super().__init__(f"at character {position + 1}: {message}")
        self.code = code
        self.message = message
        self.position = position


_SPACE: Final = re.compile(r"\s*")
_NOT: Final = re.compile(r"-|not\s+", re.IGNORECASE)
_WORD: Final = re.compile(r'(?:[^\s"]|"(?:[^"\\]|\\.)*"?)+', re.DOTALL)
"""What stands between white space outside of quotes."""
_FIELD: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./-]*")
_OPERATOR: Final = re.compile(r":?(?:<=|>=|<|>)|:~|:")
_BARE: Final = re.compile(r'[^\s,"]+')
_QUOTED: Final = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_AGE: Final = re.compile(r"(\d+(?:\.\d+)?)(min|[smhdw])")
_AGE_SECONDS: Final = {"s": 1, "m": 60, "min": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_MEMBER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_SERIES: Final = re.compile(SERIES_PATTERN)
_THRESHOLD: Final = re.compile(SLUG_PATTERN)
_OPERATORS: Final[dict[str, Operator]] = {
    ":": "is", ":~": "contains", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"
}  # fmt: skip
_ORDERS: Final = frozenset({"lt", "le", "gt", "ge"})
_ONE_OF: Final = "is not known: several values of a field are given as agent:dqn,ppo"
_ALL_OF: Final = "is not needed: all terms of a filter must hold"
_CONNECTIVES: Final = {"or": _ONE_OF, "||": _ONE_OF, "and": _ALL_OF, "&&": _ALL_OF}
"""Words of other query languages, which are in quotes where a name has them."""
_SERIES_PREFIX: Final = "series."
_THRESHOLD_PREFIX: Final = "reached."


def parse_filter(text: str, target: Target) -> tuple[Term, ...]:
    """Returns the terms of a filter.

    Args:
        text: The filter; an empty one has no terms.
        target: The list that is filtered.

    Raises:
        FilterError: If it cannot be read.
    """
    if len(text) > MAX_FILTER:
        raise FilterError("filter_too_long", f"has more than {MAX_FILTER} characters", MAX_FILTER)
    terms: list[Term] = []
    position = _skip(text, 0)
    while position < len(text):
        if len(terms) == MAX_TERMS:
            message = f"a filter has at most {MAX_TERMS} terms"
            raise FilterError("filter_too_many_terms", message, position)
        term, position = _read_term(text, position, target)
        terms.append(term)
        position = _skip(text, position)
    return tuple(terms)


def split_terms(text: str) -> list[str]:
    """Returns the texts of the terms of a filter, also where one of them cannot be read."""
    found: list[str] = []
    for word in _WORD.findall(text):
        if found and found[-1].lower() == "not":
            found[-1] += f" {word}"
        else:
            found.append(word)
    return found


def parse_key(text: str, target: Target) -> tuple[str, Kind, Statistic]:
    """Returns field, kind and statistic of a key by which lists are sorted, or a column of them.

    Raises:
        FilterError: `unknown_filter_field`.
    """
    return _classify(text, 0, target)


def _skip(text: str, position: int) -> int:
    found = _SPACE.match(text, position)
    return found.end() if found else position


def _read_term(text: str, start: int, target: Target) -> tuple[Term, int]:
    position, is_negated = start, False
    if negation := _NOT.match(text, position):
        position, is_negated = _skip(text, negation.end()), True
    if position >= len(text) or (is_negated and _NOT.match(text, position)):
        message = "names nothing after the negation"
        raise FilterError("filter_nothing_to_negate", message, start)
    if text[position] == '"':
        word, end = _read_quoted(text, position)
        return Term("", "text", "contains", (word,), start, is_negated), end
    if _OPERATOR.match(text, position):
        raise FilterError("filter_missing_field", "has no field before the operator", position)
    field = _FIELD.match(text, position)
    operator = _OPERATOR.match(text, field.end()) if field else None
    if field is None or operator is None:
        return _read_word(text, position, start, is_negated=is_negated)
    name, kind, statistic = _classify(field.group(), position, target)
    symbol = operator.group()
    kind_of_test = _OPERATORS[symbol if symbol in _OPERATORS else symbol[1:]]
    _check_operator(name, kind, kind_of_test, operator.start())
    raw, end = _read_values(text, operator.end())
    if kind_of_test in _ORDERS and len(raw) > 1:
        message = "compares with one value, not with several"
        raise FilterError("filter_wrong_operator", message, operator.start())
    values = tuple(_convert(kind, name, kind_of_test, value, at) for value, at in raw)
    return Term(name, kind, kind_of_test, values, start, is_negated, statistic), end


def _read_word(text: str, position: int, start: int, *, is_negated: bool) -> tuple[Term, int]:
    word = _BARE.match(text, position)
    if word is None:
        raise FilterError("filter_missing_field", "has a comma where a term begins", position)
    if word.group().lower() in _CONNECTIVES:
        raise FilterError("filter_connective", _CONNECTIVES[word.group().lower()], position)
    operator = _OPERATOR.search(word.group())
    if operator is not None:
        message = f"is no name of a field{suggest_nearest(word.group()[:64], FILTER_FIELDS)}"
        raise FilterError("unknown_filter_field", message, position)
    return Term("", "text", "contains", (word.group(),), start, is_negated), word.end()


def _classify(text: str, position: int, target: Target) -> tuple[str, Kind, Statistic]:
    known = FILTER_FIELDS.get(text)
    if known is not None and known.only in {None, target}:
        return text, known.kind, "last"
    if text.startswith(_THRESHOLD_PREFIX):
        statistics = CROSSINGS if target == "runs" else EXPERIMENT_CROSSINGS
        name, found = _split_statistic(text.removeprefix(_THRESHOLD_PREFIX), statistics)
        if _THRESHOLD.match(name) and len(name) <= MAX_THRESHOLD_NAME:
            return name, "threshold", found or "env_step"
    elif "/" in text or text.startswith(_SERIES_PREFIX):
        name, found = _split_statistic(text.removeprefix(_SERIES_PREFIX), STATISTICS)
        if _SERIES.match(name):
            return name, "series", found or "last"
    elif "." in text and _MEMBER.fullmatch(text) and len(text) <= 128:
        return text, "member", "last"
    names = [name for name, one in FILTER_FIELDS.items() if one.only in {None, target}]
    message = f"is no field of this list{suggest_nearest(text[:64], names)}"
    raise FilterError("unknown_filter_field", message, position)


def _split_statistic(text: str, statistics: tuple[Statistic, ...]) -> tuple[str, Statistic | None]:
    """Returns a name and the statistic behind its last dot, if there is one."""
    name, dot, end = text.rpartition(".")
    found = next((one for one in statistics if dot and one == end), None)
    return (text, None) if found is None else (name, found)


def _check_operator(name: str, kind: Kind, operator: Operator, position: int) -> None:
    fits = {
        "text": operator not in _ORDERS,
        "choice": operator == "is",
        "flag": operator == "is",
        "number": operator != "contains",
        "time": operator in _ORDERS,
        "member": True,
        "series": operator != "contains",
        "threshold": operator != "contains",
    }[kind]
    if not fits:
        allowed = {
            "text": ": or :~", "choice": ":", "flag": ":", "number": ":, <, <=, > or >=",
            "time": "<, <=, > or >=", "series": ":, <, <=, > or >=",
            "threshold": ":, <, <=, > or >=",
        }[kind]  # fmt: skip
        shown = f"a {kind}" if kind in {"series", "threshold"} else name
        raise FilterError("filter_wrong_operator", f"{shown} takes {allowed}", position)


def _read_values(text: str, position: int) -> tuple[list[tuple[str, int]], int]:
    found: list[tuple[str, int]] = []
    while True:
        if position < len(text) and text[position] == '"':
            value, end = _read_quoted(text, position)
        else:
            bare = _read_list(text, position) or _BARE.match(text, position)
            if bare is None:
                raise FilterError("filter_missing_value", "has no value here", position)
            value, end = bare.group(), bare.end()
        found.append((value, position))
        if len(found) > MAX_VALUES:
            message = f"a term has at most {MAX_VALUES} values"
            raise FilterError("filter_too_many_terms", message, position)
        position = end
        if position >= len(text) or text[position] != ",":
            break
        position += 1
    if position < len(text) and not text[position].isspace():
        raise FilterError("filter_missing_space", "needs a space before the next term", position)
    return found, position


_LIST: Final = re.compile(r"\[[^\]\s]*\]")


def _read_list(text: str, position: int) -> re.Match[str] | None:
    """Returns a value in brackets, such as `[64,64]`, which is one value in spite of its commas."""
    return _LIST.match(text, position)


def _read_quoted(text: str, position: int) -> tuple[str, int]:
    found = _QUOTED.match(text, position)
    if found is None:
        raise FilterError("filter_unclosed_quote", "the quote is not closed", position)
    return re.sub(r"\\(.)", r"\1", found.group(1), flags=re.DOTALL), found.end()


def _convert(kind: Kind, name: str, operator: Operator, value: str, position: int) -> Value:
    if kind in {"choice", "flag"}:
        choices = FILTER_FIELDS[name].choices
        if value.lower() not in choices:
            message = f"{name} is one of {', '.join(choices)}{suggest_nearest(value[:64], choices)}"
            raise FilterError("filter_not_a_choice", message, position)
        return value.lower() == "true" if kind == "flag" else value.lower()
    if kind == "time":
        return _convert_time(name, value, position)
    if kind in {"number", "series", "threshold"} or (kind == "member" and operator in _ORDERS):
        return _convert_number(value, position)
    return value


def _convert_number(value: str, position: int) -> float:
    try:
        number = float(value.replace("_", ""))
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise FilterError("filter_not_a_number", "must be a finite number", position)
    return number


def _convert_time(name: str, value: str, position: int) -> Value:
    if age := _AGE.fullmatch(value):
        seconds = float(age.group(1)) * _AGE_SECONDS[age.group(2)]
        if seconds <= 3e10:
            return Age(seconds)
    try:
        time = datetime.fromisoformat(value)
        return time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        message = f"{name} is compared with an age like 7d or 12h, or with a date like 2026-01-31"
        raise FilterError("filter_not_a_time", message, position) from None
