"""Verification of the audit log: walks the chain and reports the first entry that breaks it."""

from dataclasses import dataclass, field
from typing import Final

from app.db.engine import Database, Session
from app.db.models.audit import AuditRow
from app.db.repositories import audit as rows
from app.db.repositories import audit_entries
from app.db.repositories.audit_entries import AuditFilter, ChainEnds
from app.domain import audit_chain
from app.domain.audit_chain import BEGIN, ChainFault, ChainPlace
from app.services.audit.retention import CUT
from palestra.contract.audit import AuditFault, AuditVerification

_BATCH: Final = 1_000
_EVERYTHING: Final = AuditFilter()


async def verify(database: Database, noted: ChainPlace | None = None) -> AuditVerification:
    """Checks every entry against its hash and against the entry before it.

    Entries may be appended and removed by the retention rule meanwhile. An attacker who can write
    to the database can also compute a new chain. Only a hash that was noted outside the database
    detects that.

    Args:
        database: The database.
        noted: Id and hash of an entry, from an earlier verification.
    """
    while True:
        async with database.read() as session:
            ends = await audit_entries.read_ends(session)
        walk = _Walk(ends, noted)
        await walk.run(database)
        async with database.read() as session:
            again = await audit_entries.read_ends(session)
        was_cut = ends is not None and again is not None and again.checkpoint != ends.checkpoint
        if walk.fault is None or not was_cut:
            return walk.report()


@dataclass
class _Walk:
    """One walk along the chain from its checkpoint to the end that was stored when it began."""

    ends: ChainEnds | None
    noted: ChainPlace | None
    fault: ChainFault | None = None
    entries: int = 0
    last: ChainPlace = field(init=False)
    cut: ChainPlace = BEGIN
    """The checkpoint that the newest entry about a removal names."""

    def __post_init__(self) -> None:
        self.last = BEGIN if self.ends is None else self.ends.checkpoint

    async def run(self, database: Database) -> None:
        """Walks until the first fault."""
        end = BEGIN if self.ends is None else self.ends.last
        while self.fault is None and self.last.id < end.id:
            async with database.read() as session:
                batch = await audit_entries.list_oldest_first(
                    session, _EVERYTHING, after=self.last.id, last=end.id, limit=_BATCH
                )
            if not batch:
                break
            for row in batch:
                self.fault = self._check(row)
                if self.fault is not None:
                    return
        self.fault = (
            self.fault
            or audit_chain.compare_to_stored_end(self.last, end)
            or self._missing_at_ends()
        )
        if self.fault is None:
            async with database.read() as session:
                self.fault = await self._outside_ends(session)

    def _check(self, row: AuditRow) -> ChainFault | None:
        place = ChainPlace(row.id, row.hash)
        fault = audit_chain.compare_to_chain(
            self.last, place, row.previous_hash, rows.compute_hash(row)
        ) or self._against_noted(place)
        if fault is None:
            self.last, self.entries = place, self.entries + 1
            if row.action == CUT:
                self.cut = ChainPlace(row.data["last_id"], row.data["hash"])
        return fault

    def _against_noted(self, place: ChainPlace) -> ChainFault | None:
        if self.noted is None or place.id != self.noted.id or place == self.noted:
            return None
        message = f"Entry {place.id} has not the hash that was noted: the chain was rewritten."
        return ChainFault("replaced", place.id, message)

    def _missing_at_ends(self) -> ChainFault | None:
        """Returns a fault where entries are missing before the first or after the last one."""
        checkpoint = BEGIN if self.ends is None else self.ends.checkpoint
        if self.cut != checkpoint:
            message = (
                f"The entries up to {checkpoint.id} were removed, and no entry {CUT} tells of it."
            )
            return ChainFault("checkpoint", checkpoint.id, message)
        if self.noted is not None and self.noted.id > self.last.id:
            return audit_chain.describe_missing_entries(self.last.id + 1, self.noted.id)
        return self._against_noted(checkpoint)

    async def _outside_ends(self, session: Session) -> ChainFault | None:
        added = await audit_entries.find_outside_ends(session)
        if added is None:
            return None
        if self.ends is None:
            message = (
                "The end of the chain is not stored: the entries after the last may be missing."
            )
            return ChainFault("end_lost", added, message)
        message = f"Entry {added} stands outside the ends of the chain: it was added by hand."
        return ChainFault("added", added, message)

    def report(self) -> AuditVerification:
        """Returns the result of the walk."""
        fault = self.fault
        return AuditVerification(
            entries=self.entries,
            removed=0 if self.ends is None else self.ends.checkpoint.id,
            last_id=self.last.id,
            last_hash=self.last.hash,
            fault=None
            if fault is None
            else AuditFault(kind=fault.kind, entry=fault.entry, message=fault.message),
        )
