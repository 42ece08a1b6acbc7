"""Login names of the users that views name."""

from collections.abc import Collection, Mapping
from typing import Final

from app.db.engine import Session
from app.db.repositories import access as access_rows

DELETED_USER: Final = "(deleted user)"
"""Stands for a user who was deleted after the rows were read. No login name has brackets.

A deletion transfers what the user owned, so that reading again names the new owner.
"""


async def load_login_names(session: Session, user_ids: Collection[str]) -> Mapping[str, str]:
    """Returns the login names of users, by user ID."""
    found = await access_rows.load_user_names(session, user_ids)
    return {user_id: found.get(user_id, DELETED_USER) for user_id in user_ids}
