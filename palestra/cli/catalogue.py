"""`palestra catalogue`: what the workers of a pool can train, and on which environments."""

from typing import Annotated

import typer

from palestra.cli.output import build_table, emit_json, say, show
from palestra.cli.server_address import Json, Server, TokenFile, connect
from palestra.contract.catalogue import Catalogue, SpaceDescription
from palestra.contract.code import describe_code

_PART_KINDS = {
    "agents": "agent",
    "model_functions": "model function",
    "input_functions": "input function",
}


def register(app: typer.Typer) -> None:
    """Adds the command of this module to a group."""
    app.command()(catalogue)


def catalogue(
    text: Annotated[
        str | None, typer.Argument(help="Part of a name or of an environment's id.")
    ] = None,
    pool: Annotated[str, typer.Option(help="Pool of workers.")] = "default",
    server: Server = None,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Lists the agents, functions and environments that the workers of a pool offer."""
    with connect(server, token_file) as client:
        found = client.catalogue(pool)
    if json:
        return emit_json(found)
    if not found.known:
        return say(f"no worker of the pool {pool} has registered yet")
    wanted = (text or "").lower()
    parts = [row for row in _parts(found.catalogue) if wanted in row[1].lower()]
    environments = [row for row in _environments(found.catalogue) if wanted in row[0].lower()]
    if parts:
        show(build_table(("kind", "name", "code"), parts))
    if environments:
        show(
            build_table(
                ("environment", "observations", "actions", "time limit", "code"),
                environments,
                numbers=("time limit",),
            )
        )
    if not parts and not environments:
        say(f"nothing that the pool {pool} offers has {text!r} in its name")
    return None


def _parts(found: Catalogue) -> list[tuple[str, str, str]]:
    return [
        (word, part.name, describe_code(part.code) if part.code else "")
        for kind, word in _PART_KINDS.items()
        for part in getattr(found, kind)
    ]


def _environments(found: Catalogue) -> list[tuple[str, str, str, int | None, str]]:
    return [
        (
            one.id,
            _format_space(one.observation_space),
            _format_space(one.action_space),
            one.max_episode_steps,
            describe_code(one.code) if one.code else "",
        )
        for one in found.environments
    ]


def _format_space(space: SpaceDescription | None) -> str:
    """Returns the short form of a space, for example `box 84x84 uint8` or `discrete 4`."""
    if space is None:
        return ""
    size = str(space.n) if space.n is not None else "x".join(map(str, space.shape))
    kind = f"{space.kind} {size}".strip()
    return f"{kind} {space.dtype}" if space.kind == "box" else kind
