"""Reads the options --filter, --sort and --columns of lists; invalid ones are wrong usage."""

from palestra.cli.output import fail_usage
from palestra.cli.refusals import mark_position
from palestra.contract.filters import FilterError, Target, parse_filter
from palestra.contract.list_order import OrderError, parse_order


def check_filter(text: str, target: Target) -> str:
    """Returns a filter that can be read; points at the character where it cannot."""
    try:
        parse_filter(text, target)
    except FilterError as error:
        fail_usage(f"--filter: {error}\n{mark_position(text, error.position)}")
    return text


def check_sort(text: str, target: Target) -> str:
    """Returns an order that can be read."""
    try:
        parse_order(text, target)
    except OrderError as error:
        fail_usage(f"--sort: {error.message}")
    return text


def split_keys(text: str) -> list[str]:
    """Returns keys that commas separate."""
    return [key.strip() for key in text.split(",") if key.strip()]
