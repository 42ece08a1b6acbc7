"""Tokens of users as they cross the API."""

from collections.abc import Sequence

from app.db.engine import Session
from app.db.models.access import TokenRow
from app.db.repositories import access as access_rows
from app.services.views.columns import build_view
from app.services.views.login_names import load_login_names
from palestra.contract.access import TokenView


async def build_token_views(
    session: Session, tokens: Sequence[TokenRow], secret: str | None = None
) -> list[TokenView]:
    """Returns tokens as they cross the API; `secret` is that of a new or rotated one."""
    users = await load_login_names(session, {token.user_id for token in tokens})
    slugs = await access_rows.load_project_slugs(
        session, {token.project_id for token in tokens if token.project_id is not None}
    )
    return [
        _view(token, users[token.user_id], slugs.get(token.project_id or ""), secret)
        for token in tokens
    ]


def _view(token: TokenRow, user: str, project: str | None, secret: str | None) -> TokenView:
    return build_view(
        TokenView,
        token,
        user=user,
        project=project,
        secret=secret,
    )
