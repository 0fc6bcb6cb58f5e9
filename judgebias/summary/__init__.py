"""From calls to tables: settle the orders, count the cells, compute the rates last."""

from judgebias.summary.columns import Row
from judgebias.summary.costs import COST_COLUMNS, costs_table
from judgebias.summary.failures import failures_table
from judgebias.summary.models import several_models
from judgebias.summary.profiles import count
from judgebias.summary.repeats import compare_repeats, repeat_rows, repeats_table
from judgebias.summary.rows import SUMMARY_COLUMNS, compare, rows_of, summarize, table
from judgebias.summary.settle import VERDICT_COLUMNS, settle_calls

__all__ = [
    "COST_COLUMNS",
    "SUMMARY_COLUMNS",
    "VERDICT_COLUMNS",
    "Row",
    "compare",
    "compare_repeats",
    "costs_table",
    "count",
    "failures_table",
    "repeat_rows",
    "repeats_table",
    "rows_of",
    "settle_calls",
    "several_models",
    "summarize",
    "table",
]
