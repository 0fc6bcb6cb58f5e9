"""How many replies each segment of a journal is known to hold, so that lost files are noticed.

A segment only grows: a merge names those whose rows it holds, and a repair says what it gives up.
So a segment that is gone, or has fewer rows than an owner once counted, has lost replies, and
tables made without them would silently replace better ones.
"""

from __future__ import annotations

from judgebias.errors import JournalDamaged
from judgebias.journal import JournalReader, read_journal
from judgebias.manifest import Manifest
from judgebias.rundir import RunDir


def check_held(run: RunDir, manifest: Manifest) -> dict[str, int]:
    """Count the replies of each segment.

    Raises
    ------
    JournalDamaged
        When segments are missing, or held more before.
    """
    found, replaced = _count(run)
    if lost := _lost(manifest.held, found, replaced):
        # Bytes that fail their checksum are told by their place.
        read_journal(run.journal, columns=("judge",))
        raise JournalDamaged(
            f"{run.name}: {lost:,} replies that the journal held are not there any more",
            expected="every segment that the run wrote: files of its journal are missing",
            do="bring the missing files back; if they are gone for good, `judgebias salvage DIR` "
            "accepts that, and a run asks those calls again",
        )
    return found


def with_held(run: RunDir, manifest: Manifest) -> Manifest:
    """Give the manifest with what the journal holds now."""
    return manifest.model_copy(update={"held": check_held(run, manifest)})


def keep_held(run: RunDir) -> None:
    """Note what the journal holds now; only the run's owner does this."""
    manifest = run.manifest()
    run.write_manifest(with_held(run, manifest))


def accept_loss(run: RunDir) -> int:
    """Note what the journal holds now even if it held more; returns how many replies are gone."""
    manifest, (found, replaced) = run.manifest(), _count(run)
    run.write_manifest(manifest.model_copy(update={"held": found}))
    return _lost(manifest.held, found, replaced)


def _lost(held: dict[str, int], found: dict[str, int], replaced: set[str]) -> int:
    there = {name: rows for name, rows in held.items() if name not in replaced}
    return sum(max(0, rows - found.get(name, 0)) for name, rows in there.items())


def _count(run: RunDir) -> tuple[dict[str, int], set[str]]:
    """Count the rows of the segments, and name those that others replace."""
    with JournalReader(run.journal) as journal:
        found = {_name(number): rows for number, rows in journal.count().items()}
        return found, {_name(number) for number in journal.replaced}


def _name(segment: int) -> str:
    # JSON's numbers end where a double's do.
    return f"{segment:016x}"
