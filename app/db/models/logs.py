"""Log lines of runs."""

from sqlalchemy import BigInteger, ForeignKey, Index, LargeBinary, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from app.db.models.base import Base, BigKey


class LogBlockRow(Base):
    """Consecutive lines of a run's log that arrived in one batch (`app.metrics.logs`)."""

    __tablename__ = "log_blocks"
    __table_args__ = (UniqueConstraint("run_id", "first_line"), Index(None, "attempt_id"))

    id: Mapped[int] = mapped_column(BigKey, primary_key=True, autoincrement=True)
    run_id: Mapped[str] = mapped_column(String(64), ForeignKey("runs.id", ondelete="CASCADE"))
    attempt_id: Mapped[str] = mapped_column(
        String(64), ForeignKey("attempts.id", ondelete="CASCADE")
    )
    first_line: Mapped[int] = mapped_column(BigInteger)
    """Ordinal of the first line within the run, from 1."""
    last_line: Mapped[int] = mapped_column(BigInteger)
    total_bytes: Mapped[int] = mapped_column(BigInteger)
    """Bytes of the run's log up to and including this block, for its limit."""
    content: Mapped[bytes] = mapped_column(LargeBinary)


class OpenLogLinesRow(Base):
    """Lines of an attempt's output that are not complete yet, such as progress bars.

    They are replaced by their newest text and have no ordinal until they are complete.
    """

    __tablename__ = "open_log_lines"
    __table_args__ = (Index(None, "attempt_id"),)

    run_id: Mapped[str] = mapped_column(
        String(64), ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True
    )
    attempt_id: Mapped[str] = mapped_column(
        String(64), ForeignKey("attempts.id", ondelete="CASCADE"), primary_key=True
    )
    stream: Mapped[str] = mapped_column(String(16), primary_key=True)
    content: Mapped[bytes] = mapped_column(LargeBinary)
    """The lines as a block (`app.metrics.logs`)."""
