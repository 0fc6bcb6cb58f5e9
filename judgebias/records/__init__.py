"""Recorded verdicts: the calls somebody made before, read from files."""

from judgebias.records.join import join_pairs
from judgebias.records.read import Records, read_records, with_shares

__all__ = ["Records", "join_pairs", "read_records", "with_shares"]
