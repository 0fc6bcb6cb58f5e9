"""The stop rule in summary.md: whether it stopped, why it may, and what that saved."""

from __future__ import annotations

from typing import Final

import polars as pl

from judgebias.report import words
from judgebias.report.words import Row

_HOW_TO_READ: Final = (
    "The run had a stop rule, so figures of a fixed size (the intervals, p and q above) are valid "
    "only for judges that were asked in full. The figures here hold at every look: they are wrong "
    "with probability {alpha:.3g} at most for each judge, .05 for all together. They are over the "
    "clusters that were settled from the start of the seeded order."
)


def render_stopping(stopping: pl.DataFrame) -> str:
    """Render the stop rule's section; nothing for a run without judges."""
    rows: list[dict[str, words.Figure]] = [dict(row) for row in stopping.iter_rows(named=True)]
    if not rows:
        return ""
    intro = _HOW_TO_READ.format(alpha=float(rows[0]["alpha"] or 0.0))
    lines = [f"- {words.cell(_line(row))}" for row in rows]
    return "\n\n".join(["## Stop rule", intro, "\n".join(lines)])


def _line(row: Row) -> str:
    settled = f"{row['n_settled_units']:,} of {row['n_units']:,} clusters"
    pairs = f"{row['n_settled_pairs']:,} complete pairs"
    return f"{row['judge']}: {_end(row)}. Over {settled} ({pairs}): {_swing(row)}; {_lean(row)}."


def _end(row: Row) -> str:
    asked, whole = row["n_calls"], row["n_calls_of_set"]
    if row["reason"] is None:
        left = "" if asked == whole else f", {asked:,} of {whole:,} calls so far"
        return f"the bounds did not allow to stop{left}; nothing was saved"
    saved = int(row["n_calls_saved"] or 0)
    if not saved:
        return f"{row['reason']}, but every call had been asked by then; nothing was saved"
    share = words.percent(saved / int(whole or 1))
    return (
        f"stopped, since {row['reason']}; {asked:,} of {whole:,} calls were asked, {saved:,}"
        f" ({share}) were saved"
    )


def _swing(row: Row) -> str:
    if row["swing"] is None:
        return f"swing {words.MISSING}"
    bounds = [
        f"{words.signed_percent(row[f'{name}_low'])} to {words.signed_percent(row[f'{name}_high'])}"
        for name in ("swing_of_set", "swing")
    ]
    swing = words.signed_percent(row["swing"])
    return f"swing {swing} [{bounds[0]} for this set, {bounds[1]} for its population]"


def _lean(row: Row) -> str:
    p = float(row["p_anytime"] or 0.0)
    said = "decided" if p <= float(row["alpha"] or 0.0) else "not decided"
    return (
        f"{row['lean_first']:,} clusters lean to the first slot, {row['lean_second']:,} to the"
        f" second, anytime p {words.p_value(p)}, {said}"
    )
