"""How many replies a journal is known to hold, so that files that vanish are noticed.

A journal only grows: a merge keeps every row, and a repair says what it gives up. So a journal with
fewer rows than an owner once counted has lost files, and tables made from it would silently replace
better ones.
"""

from __future__ import annotations

from judgebias.errors import JournalDamaged
from judgebias.journal import JournalReader, read_journal
from judgebias.manifest import Manifest
from judgebias.rundir import RunDir


def check_held(run: RunDir, manifest: Manifest) -> int:
    """Count the replies of the journal.

    Raises
    ------
    JournalDamaged
        When it held more before.
    """
    rows = _count(run)
    if rows < manifest.held:
        # Bytes that fail their checksum are told by their place.
        read_journal(run.journal, columns=("judge",))
        raise JournalDamaged(
            f"{run.name}: the journal holds {rows:,} replies and held {manifest.held:,} before",
            expected="every segment that the run wrote: files of its journal are missing",
            do="bring the missing files back; if they are gone for good, `judgebias salvage DIR` "
            "accepts that, and a run asks those calls again",
        )
    return rows


def with_held(run: RunDir, manifest: Manifest) -> Manifest:
    """Give the manifest with what the journal holds now."""
    return manifest.model_copy(update={"held": check_held(run, manifest)})


def keep_held(run: RunDir) -> None:
    """Note what the journal holds now; only the run's owner does this."""
    manifest = run.manifest()
    run.write_manifest(with_held(run, manifest))


def accept_loss(run: RunDir) -> int:
    """Note what the journal holds now even if it held more; returns how many replies are gone."""
    manifest, rows = run.manifest(), _count(run)
    if rows != manifest.held:
        run.write_manifest(manifest.model_copy(update={"held": rows}))
    return max(0, manifest.held - rows)


def _count(run: RunDir) -> int:
    with JournalReader(run.journal) as journal:
        return journal.count()
