"""The sample-size answer in words."""

from __future__ import annotations

import re

import pytest

from judgebias.stats.sampling import sample_size
from judgebias.summary.sample_size import plan_sample_sentence


@pytest.mark.parametrize("n", [246, 500, 1000, 12_345, 1_000_000, 10_000_000])
@pytest.mark.parametrize("consistency", [0.5, 0.8, 0.98])
def test_the_share_it_names_asks_enough_and_hardly_more(n: int, consistency: float) -> None:
    m = sample_size(consistency, 0.1)
    words = plan_sample_sentence(consistency, 0.1, n)
    if m >= n:
        assert words.endswith(f'and there are {n}: orders = "both"')
        return
    share = re.search(r"swap_fraction = (\S+) asks (\d+) of", words)
    assert share is not None
    asked = round(float(share[1]) * n)
    assert int(share[2]) == asked
    assert m <= asked <= m + max(1, n // 1000)
    assert f"{n + asked} calls a judge and repeat in place of {2 * n}" in words


def test_it_says_what_it_was_asked() -> None:
    assert plan_sample_sentence(0.8, 0.1, 1000) == (
        "to know a consistency of about 80% within 10.0% from end to end (95%), 245 independent "
        'pairs must be asked in both orders: orders = "sampled" with swap_fraction = 0.245 asks '
        "245 of 1000 pairs twice, 1245 calls a judge and repeat in place of 2000"
    )


def test_an_impossible_wish_is_refused() -> None:
    with pytest.raises(ValueError, match=r"consistency 1\.2"):
        plan_sample_sentence(1.2, 0.1, 100)
