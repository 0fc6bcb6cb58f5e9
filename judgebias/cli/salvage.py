"""`judgebias salvage`: get a journal going again whose disk has lost or changed bytes."""

from __future__ import annotations

from judgebias.cli.screen import Screen
from judgebias.journal import Salvaged, salvage_journal
from judgebias.stored import open_rundir


def salvage_run(folder: str, screen: Screen) -> None:
    """Replace every damaged segment of a run by one of its whole records, and say what is lost."""
    run = open_rundir(folder)
    run.manifest()
    with run.owned():
        found = salvage_journal(run.journal)
        run.push()
    for segment in found:
        screen.say(_line(segment))
    if not found:
        screen.say(f"{run.name}: no damage, nothing was changed")


def _line(segment: Salvaged) -> str:
    lost = ", ".join(f"{start:,} to {end:,}" for start, end in segment.lost)
    return (
        f"{segment.original}: {segment.rows:,} replies saved, bytes {lost} hold none; "
        f"the original is now {segment.aside}"
    )
