"""Negotiates the coding of files (RFC 9110, section 12.5.3)."""

from collections.abc import Sequence


def choose_coding(accepted: str, offered: Sequence[str]) -> str | None:
    """Returns the first of the offered codings that an `Accept-Encoding` header permits.

    `None` if it permits none of them.
    """
    weights: dict[str, float] = {}
    for part in accepted.lower().split(",")[:20]:
        name, _, parameter = part.partition(";")
        weights[name.strip()] = _weight(parameter)
    permitted = (name for name in offered if weights.get(name, weights.get("*", 0.0)) > 0.0)
    return next(permitted, None)


def _weight(parameter: str) -> float:
    name, _, value = parameter.partition("=")
    try:
        return float(value) if name.strip() == "q" else 1.0
    except ValueError:
        return 0.0
