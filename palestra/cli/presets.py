"""`palestra presets`: the submissions that come with Palestra."""

import sys
from typing import Annotated

import typer

from palestra.cli.output import build_table, emit_json, fail_usage, show
from palestra.cli.server_address import Json
from palestra.contract.problems import suggest_nearest
from palestra.presets import list_presets


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command()(presets)


def presets(
    name: Annotated[
        str | None, typer.Argument(help="Print this preset, as a file to change and submit.")
    ] = None,
    json: Json = False,
) -> None:
    """Lists the submissions that come with Palestra, or prints one as YAML."""
    found = {one.name: one for one in list_presets()}
    if name is None:
        if json:
            return emit_json(list(found.values()))
        rows = [(one.name, one.env, one.agent, one.title) for one in found.values()]
        return show(build_table(("preset", "environment", "agent", "title"), rows))
    if name not in found:
        fail_usage(f"there is no preset {name!r}{suggest_nearest(name, found)}")
    if json:
        return emit_json(found[name])
    sys.stdout.write(found[name].document)
    return None
