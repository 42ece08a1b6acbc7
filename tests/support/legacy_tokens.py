"""Users' tokens of the scope `worker`, as earlier versions made them.

The server makes none any more, and such tokens stay valid.
"""

from app.db.engine import Session
from app.db.models import TokenRow
from app.domain.secrets import generate_secret, hash_secret
from palestra.contract.names import new_id


async def write_legacy_token(
    session: Session, project_id: str, user_id: str, name: str, *, parent_id: str | None = None
) -> tuple[str, str]:
    """Writes a token with which workers enrol; returns its ID and its secret."""
    token_id, secret = new_id("tok"), generate_secret("plr")
    session.add(
        TokenRow(
            id=token_id,
            project_id=project_id,
            user_id=user_id,
            parent_id=parent_id,
            name=name,
            secret_hash=hash_secret(secret),
            scopes=["worker"],
        )
    )
    await session.flush()
    return token_id, secret
