"""Tells whoever upgrades the database how far a long step is."""

from alembic import op


def tell_progress(sentence: str) -> None:
    """Passes a sentence to the `progress` that `app.db.migrate.upgrade` was given, if any."""
    config = op.get_context().config
    tell = None if config is None else config.attributes.get("progress")
    if tell is not None:
        tell(sentence)
