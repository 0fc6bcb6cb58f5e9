"""Replies on disk: append, read, recover. The journal is the source of truth of a run.

A journal is a folder of *segments*, each written by one worker; a segment is a row of *frames*,
each a batch of replies with its own checksums, made durable by one fsync. Every other file of a run
can be made again from it.
"""

from judgebias.journal.calls_file import CALL_COLUMNS, write_calls
from judgebias.journal.commit import GroupCommit
from judgebias.journal.done import contains, done_and_failed, done_keys, failed_tries
from judgebias.journal.merge import merge_segments
from judgebias.journal.objects import (
    JournalCopy,
    create_segment,
    journal_folder,
    open_commit,
)
from judgebias.journal.read import JournalReader, JournalReport
from judgebias.journal.recover import (
    Recovery,
    Salvage,
    Salvaged,
    recover,
    salvage,
    salvage_journal,
)
from judgebias.journal.rows import SCHEMA, Row, now_us, row_of
from judgebias.journal.segment import JournalWriteError, Segment
from judgebias.journal.table import (
    JournalContents,
    extra_spend,
    first_wins,
    read_journal,
)

__all__ = [
    "CALL_COLUMNS",
    "SCHEMA",
    "GroupCommit",
    "JournalContents",
    "JournalCopy",
    "JournalReader",
    "JournalReport",
    "JournalWriteError",
    "Recovery",
    "Row",
    "Salvage",
    "Salvaged",
    "Segment",
    "contains",
    "create_segment",
    "done_and_failed",
    "done_keys",
    "extra_spend",
    "failed_tries",
    "first_wins",
    "journal_folder",
    "merge_segments",
    "now_us",
    "open_commit",
    "read_journal",
    "recover",
    "row_of",
    "salvage",
    "salvage_journal",
    "write_calls",
]
