"""Opens each one-time link that a file contains, as the login page does.

    python -m tests.support.login_links SERVER FILE

A link that was opened before is left out: the codes of opened links are kept beside the file.
"""

import json
import re
import sys
from pathlib import Path

import httpx

PASSWORD = "seventeen green otters paddle"


def open_new_links(url: str, output: Path) -> None:
    """Opens each printed link that is still valid."""
    codes = dict.fromkeys(re.findall(r"#code=([\w-]+)", output.read_text(encoding="utf-8")))
    opened = output.with_suffix(".opened")
    known = set(json.loads(opened.read_text(encoding="utf-8"))) if opened.exists() else set()
    new = [code for code in codes if code not in known]
    assert new, "no new link was printed"
    # The server may still be starting: the waits between the tries double, up to a minute in all.
    transport = httpx.HTTPTransport(retries=8)
    with httpx.Client(base_url=f"{url}/api/v1", transport=transport, timeout=60) as browser:
        for code in new:
            answer = browser.post("/session:redeem", json={"code": code, "check_only": True})
            preview = answer.raise_for_status().json()
            name = {"user": preview["user"]} if preview["kind"] == "invitation" else {}
            body = {"code": code, "password": PASSWORD, **name}
            browser.post("/session:redeem", json=body).raise_for_status()
            browser.cookies.clear()
    opened.write_text(json.dumps([*known, *new]), encoding="utf-8")


if __name__ == "__main__":
    open_new_links(sys.argv[1], Path(sys.argv[2]))
