"""`judgebias salvage`: get a journal going again whose disk has lost or changed bytes."""

from __future__ import annotations

from judgebias.cli.screen import Screen
from judgebias.held import accept_loss
from judgebias.journal import Salvaged, salvage_journal
from judgebias.stored import open_rundir


def salvage_run(folder: str, screen: Screen) -> None:
    """Replace every damaged segment of a run by one of its whole records, and say what is lost.

    Segments that are missing altogether are given up here too, and nowhere else.
    """
    run = open_rundir(folder)
    run.manifest()
    with run.owned():
        found = salvage_journal(run.journal)
        # What an original without a name held is known by its number only.
        gone = accept_loss(run) - sum(segment.rows for segment in found if not segment.named)
        run.push()
    for segment in found:
        screen.say(_line(segment))
    if gone > 0:
        screen.say(f"{gone:,} replies that the journal held are gone; a run asks those calls again")
    elif not found:
        screen.say(f"{run.name}: no damage, nothing was changed")


def _line(segment: Salvaged) -> str:
    lost = ", ".join(f"{start:,} to {end:,}" for start, end in segment.lost)
    return (
        f"{segment.original}: {segment.rows:,} replies saved, bytes {lost} hold none; "
        f"the original is now {segment.aside}"
    )
