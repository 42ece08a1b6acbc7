"""The uptime of the servers."""

from datetime import datetime

from sqlalchemy.orm import Mapped, mapped_column

from app.db.models.base import Base


class ServerUptimeRow(Base):
    """The uptime counter that all server processes on this database share.

    The counter counts the seconds in which at least one server process was up.
    """

    __tablename__ = "server_uptime"

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    seconds: Mapped[float] = mapped_column(default=0.0)
    counted_at: Mapped[datetime]
    """Time at which a server last added to the counter."""
