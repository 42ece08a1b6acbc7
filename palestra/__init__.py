"""Palestra, an experiment server for reinforcement learning: what a user imports."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from palestra.cli.server_address import connect as connect
    from palestra.client import Client as Client
    from palestra.provenance import generate_exp_id as generate_exp_id
    from palestra.provenance import prepare_output_dir as prepare_output_dir

__version__ = "0.1.0"

_HOMES = {
    "Client": "palestra.client",
    "connect": "palestra.cli.server_address",
    "generate_exp_id": "palestra.provenance",
    "prepare_output_dir": "palestra.provenance",
}


def __getattr__(name: str) -> Any:
    """Imports the client and its helpers at first use.

    A trainer or a server that imports only the contract does not load them.
    """
    if name not in _HOMES:
        raise AttributeError(f"module 'palestra' has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415 - as above

    return getattr(import_module(_HOMES[name]), name)
