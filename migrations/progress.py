"""Reports to whoever upgrades the database how far a long step is."""

from alembic import op


def report_progress(sentence: str) -> None:
    """Passes a sentence to the `progress` that `app.db.migrate.upgrade` was given, if any."""
    config = op.get_context().config
    report = None if config is None else config.attributes.get("progress")
    if report is not None:
        report(sentence)
