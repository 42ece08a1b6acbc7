"""Where a request comes from: its address and its credential."""

from fastapi import Request

from app.domain.networks import find_client_address
from app.domain.principal import Principal
from app.services.audit.audit_log import RequestOrigin

_MAX_LENGTH = 64
"""Characters of an address that is no IP address, which only servers on Unix sockets see."""


def get_client_address(request: Request) -> str:
    """Returns the client's address of a request; empty if it has none."""
    peer = request.client.host if request.client else ""
    proxies = request.app.state.settings.proxy_networks
    forwarded = request.headers.getlist("x-forwarded-for")
    return find_client_address(peer, forwarded, proxies)[:_MAX_LENGTH]


def read_origin(request: Request) -> RequestOrigin:
    """Returns the origin that the audit entries of a request name."""
    principal: Principal | None = getattr(request.state, "principal", None)
    address = get_client_address(request) or None
    if principal is None:
        return RequestOrigin(address=address, user_agent=request.headers.get("user-agent"))
    ids = (principal.attempt_id, principal.worker_id, principal.token_id, principal.session_id)
    return RequestOrigin(
        address=address,
        user_agent=request.headers.get("user-agent"),
        user_id=principal.user_id if principal.via in {"cookie", "token"} else None,
        credential=next((found for found in ids if found is not None), None),
    )
