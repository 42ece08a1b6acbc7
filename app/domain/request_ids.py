"""IDs of requests, which answers, logs and the audit log share."""

from palestra.contract.names import new_id


def new_request_id() -> str:
    """Returns an ID for a request whose client sent none."""
    return new_id("aud").removeprefix("aud_")
