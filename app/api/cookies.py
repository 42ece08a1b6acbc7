"""The cookies of the server: their names and attributes.

Servers below different paths of one host share its cookies. Path and name of a cookie therefore
have the path of the setting `public_url`: a path alone does not keep a server at `/` from
overwriting what one at `/palestra` has set.
"""

from fastapi import Request, Response

from app.api.deps import get_settings


def build_cookie_name(request: Request, name: str) -> str:
    """Returns the full name of a cookie.

    Over TLS it has a prefix by which browsers enforce `Secure` and, at the path `/`, the host.
    `__Host-` permits no other path.
    """
    settings = get_settings(request)
    # A path has no "+", and a cookie's name may have one.
    name += settings.public_path.replace("/", "+")
    if not settings.secure_cookies:
        return name
    return f"__Secure-{name}" if settings.public_path else f"__Host-{name}"


def read_cookie(request: Request, name: str) -> str:
    """Returns the value of a cookie; empty if the request has none."""
    return request.cookies.get(build_cookie_name(request, name), "")


def set_cookie(
    request: Request, response: Response, name: str, value: str, *, max_age: int
) -> None:
    """Sets a cookie that scripts cannot read, for `max_age` seconds."""
    settings = get_settings(request)
    response.set_cookie(
        build_cookie_name(request, name),
        value,
        max_age=max_age,
        path=settings.public_path or "/",
        secure=settings.secure_cookies,
        httponly=True,
        samesite="lax",
    )


def remove_cookie(request: Request, response: Response, name: str) -> None:
    """Removes a cookie from the browser."""
    set_cookie(request, response, name, "", max_age=0)
