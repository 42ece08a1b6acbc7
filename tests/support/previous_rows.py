"""Fills a database with the code of the previous version, in whose source tree this runs.

    python previous_rows.py URL DIRECTORY RUNS

Prints the secrets that its users, workers and browsers hold, and the IDs of what they work on. The
modules that it imports are those of the tree, not of this repository.
"""

import asyncio
import contextlib
import json
import sys
from pathlib import Path
from typing import Any

from app.db.migrate import upgrade
from app.db.models import MembershipRow, UserRow
from app.services.access import logins, tokens
from palestra.contract.access import TokenRequest
from palestra.contract.names import Scope, new_id
from tests.app.api.serving import ORIGIN, serve

SCOPES = (Scope.READ, Scope.SUBMIT, Scope.ADMIN)
SEEDS = 250
PASSWORD = "a horse on seven staircases"


async def fill(url: str, directory: Path, runs: int) -> dict[str, Any]:
    """Submits experiments of 250 runs each, after the sample rows of the tests of that version.

    One more run belongs to another pool.
    """
    upgrade(url)
    async with serve(url, directory) as served:
        for name, role in (("Vera Viewer", "viewer"), ("mia", "member")):
            served.tokens[role] = await _add_user(served, name, role)
        for first in range(0, runs, SEEDS):
            seeds = list(range(1_000 + first, 1_000 + min(first + SEEDS, runs)))
            await served.world.submit(seeds=seeds)
        await served.world.register(name="gpu-worker", pool="gpu")
        await served.world.submit(seeds=[999], pool="gpu")
        await _set_password(served)  # ends the logins before it
        browser, csrf = await served.browser()
        async with contextlib.aclosing(browser):
            cookie = browser.cookies["palestra_session"]
        link = await _link(served)
        rows = await served.count_rows()
    kept = {"tokens": served.tokens, "names": served.names, "rows": rows}
    return {**kept, "cookie": cookie, "csrf": csrf, "link": link, "password": PASSWORD}


async def _add_user(served: Any, name: str, role: str) -> str:
    project_id = served.world.project_id
    async with served.database.write() as session:
        user = UserRow(id=new_id("usr"), name=name)
        session.add(user)
        await session.flush()
        session.add(MembershipRow(project_id=project_id, user_id=user.id, role=role))
        await session.flush()
        request = TokenRequest(name=role, scopes=SCOPES)
        return str((await tokens.issue_token(session, project_id, user.id, request)).secret)


async def _link(served: Any) -> str:
    # Only this script and the tree's own modules know the signature, which has changed since.
    membership = MembershipRow(
        project_id=served.world.project_id, user_id=served.world.admin.user_id, role="admin"
    )
    async with served.database.write() as session:
        make_link: Any = logins.make_link
        return str(await make_link(session, membership, 86_400))


async def _set_password(served: Any) -> None:
    body = {"code": await _link(served), "password": PASSWORD}
    async with served.client() as client:
        headers = {"Origin": ORIGIN}
        answer = await client.post("/api/v1/session:redeem", json=body, headers=headers)
        assert answer.status_code == 201, answer.text


if __name__ == "__main__":
    facts = asyncio.run(fill(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])))
    sys.stdout.write(f"\n{json.dumps(facts)}\n")
