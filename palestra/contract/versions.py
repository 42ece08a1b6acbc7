"""Changes of the definition from one schema version to the next, as functions of JSON.

Also the form of a definition from which identities are computed.

A step up is kept for ever, since stored definitions are read through it. A step down converts a
definition to the previous version if that version can express the same training. The identity of a
definition is computed from the oldest version that the steps down reach. So a definition keeps its
ID in every version that expresses the same training, and definitions of different trainings have
different IDs.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

Step = Callable[[dict[str, Any]], dict[str, Any]]

HALVED_UNTIL_2: Final = frozenset({"ppo", "a2c", "a3c", "reinforce", "recurrent_ppo"})
"""Agents whose value loss was half the squared error in version 1.

Since version 2 it is the squared error.
"""
_COEFFICIENT: Final = "value_coefficient"
_DEFAULT_1: Final = 0.5
"""Value of a coefficient that a document of version 1 leaves out."""


def _with_whole_squares(document: dict[str, Any]) -> dict[str, Any]:
    agent = document.get("agent")
    if not isinstance(agent, dict) or agent.get("name") not in HALVED_UNTIL_2:
        return document
    given = agent.get(_COEFFICIENT, _DEFAULT_1)
    return {**document, "agent": {**agent, _COEFFICIENT: given / 2 if _is_number(given) else given}}


def _with_half_squares(document: dict[str, Any]) -> dict[str, Any]:
    agent = document.get("agent")
    if not isinstance(agent, dict) or agent.get("name") not in HALVED_UNTIL_2:
        return document
    return {**document, "agent": {**agent, _COEFFICIENT: 2 * agent[_COEFFICIENT]}}


def _as_it_is(document: dict[str, Any]) -> dict[str, Any]:
    """Version 3 adds `evaluation.policy`, which is left out where it is greedy as before.

    A document has that version where the policy is another one. On the way back the policy stays,
    since version 2 cannot express it: it is part of the identity.
    """
    return document


def _is_number(value: object) -> bool:
    """Returns whether a value is a number; the model refuses other values later."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= 1e300


STEPS: Final[Mapping[int, Step]] = {1: _with_whole_squares, 2: _as_it_is}
"""Step from the version that is the key to the next one. Version 1 is the first."""

STEPS_BACK: Final[Mapping[int, Step]] = {2: _with_half_squares, 3: _as_it_is}
"""Step from the version that is the key, of a canonical document, to the version before it; the
training is the same.
"""


def convert_to_oldest_form(document: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a canonical document in the oldest version with the same meaning.

    Identities are computed from that form.
    """
    form, version = dict(document), int(document["schema_version"])
    while version in STEPS_BACK:
        form = {**STEPS_BACK[version](form), "schema_version": version - 1}
        version -= 1
    return form
