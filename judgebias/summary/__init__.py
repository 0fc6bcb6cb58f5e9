"""From calls to tables: settle the orders, count the cells, compute the rates last."""

from judgebias.summary.failures import failures_table
from judgebias.summary.models import several_models
from judgebias.summary.profiles import count
from judgebias.summary.repeats import repeats_table
from judgebias.summary.rows import SUMMARY_COLUMNS, summarize
from judgebias.summary.settle import VERDICT_COLUMNS, settle_calls

__all__ = [
    "SUMMARY_COLUMNS",
    "VERDICT_COLUMNS",
    "count",
    "failures_table",
    "repeats_table",
    "settle_calls",
    "several_models",
    "summarize",
]
