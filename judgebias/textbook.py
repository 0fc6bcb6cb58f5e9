"""The textbook form: one judge, a list of pairs, both orders, one dictionary."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypedDict

from judgebias.errors import InputError
from judgebias.stats.binomial import sign_test_p
from judgebias.verdicts import Slot, final, settle


class PositionBiasReport(TypedDict):
    """What `position_bias_report` returns."""

    consistency: float
    """Share of pairs on which both orders agree; 1 for no pairs."""

    first_position_rate: float
    """Share of the decisive verdicts that name the first slot; 0.5 with none."""

    p_value: float
    """Two-sided exact sign test of that share, calls pooled; 1 with none."""

    verdicts: list[str]
    """Per pair, "A" or "B" when both orders agree on it, else "tie"."""


def position_bias_report(
    pairs: Iterable[tuple[str, str]], judge: Callable[[str, str], str]
) -> PositionBiasReport:
    """Ask a judge about every pair in both orders and report its position bias.

    Parameters
    ----------
    pairs
        The texts (a, b).
    judge
        Called as judge(first, second); answers "first", "second" or "tie".

    Raises
    ------
    InputError
        The judge answered anything else.

    Notes
    -----
    The swap rule of Zheng et al. (2023). The p-value here is the customary one, over pooled calls;
    `judgebias summarize` tests pairs and clusters instead, and that is the one to trust.
    """
    calls = [(_ask(judge, a, b), _ask(judge, b, a)) for a, b in pairs]
    slots = [slot for call in calls for slot in call]
    firsts, decisive = slots.count(Slot.FIRST), len(slots) - slots.count(Slot.TIE)
    cells = [settle(ab, ba) for ab, ba in calls]
    agreed = sum(cell.startswith("agreed") for cell in cells)
    return {
        "consistency": agreed / len(cells) if cells else 1.0,
        "first_position_rate": firsts / decisive if decisive else 0.5,
        "p_value": sign_test_p(firsts, decisive),
        "verdicts": [final(cell).value for cell in cells],
    }


def _ask(judge: Callable[[str, str], str], first: str, second: str) -> Slot:
    answer = judge(first, second)
    try:
        return Slot(answer)
    except ValueError as error:
        raise InputError(
            f"the judge answered {answer!r} about ({first[:40]!r}, {second[:40]!r})",
            expected='"first", "second" or "tie"',
            do="return one of these three words; raise an error when the judge has no verdict",
        ) from error
