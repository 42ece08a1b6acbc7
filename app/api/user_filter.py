"""The query parameter with which lists show what one user submitted."""

from typing import Annotated

from fastapi import Depends, Query

from app.api.auth import Reader


async def read_user_filter(
    principal: Reader,
    user: Annotated[
        str | None,
        Query(max_length=64, description="Login name of who submitted; `me` is the caller."),
    ] = None,
) -> str | None:
    """Reads the user whose submissions to list: a login name, or `None` for all users."""
    return principal.user if user == "me" else user


SubmittedBy = Annotated[str | None, Depends(read_user_filter)]
