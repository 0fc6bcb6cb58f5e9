"""The planted judges of the self-test: honest ones, biased ones, awkward ones."""

from __future__ import annotations

from typing import Final

from judgebias.selftest.planted import (
    Planted,
    by_cells,
    by_contents,
    by_davidson,
    mixed,
)
from judgebias.stats.offset import detectable_offset

_CONSISTENCIES: Final = (0.0, 0.2, 0.5, 0.75, 0.9, 0.98)
_LEANING: Final = 100
"""Leaning pairs that are expected of the judges whose offset is promised to be seen."""
_OFFSETS: Final = (-1.0, -0.5, -0.2, 0.2, 0.5, 1.0)


def planted_judges() -> list[Planted]:
    """List the judges, those without bias first."""
    return [*_honest(), *_awkward(), *_clustered(), *_biased(), *_promised()]


def _honest() -> list[Planted]:
    large = [
        Planted(
            name=f"no bias, consistency {c:g}", kinds=mixed(by_cells(c)), clusters=200, null=True
        )
        for c in _CONSISTENCIES
    ]
    small = [
        Planted(
            name=f"no bias, consistency {c:g}", kinds=mixed(by_cells(c)), clusters=50, null=True
        )
        for c in (0.6, 0.9, 0.98)
    ]
    return [*large, *small]


def _awkward() -> list[Planted]:
    both_ways = (by_contents(offset=0.8), by_contents(offset=-0.8))
    fixed = (by_contents(offset=0.6, noise=0.0), by_contents(offset=-0.6, noise=0.0))
    return [
        Planted(
            name="no bias, 70% of leans by half",
            kinds=mixed(by_cells(0.6, halves=0.7, ties=0.3)),
            clusters=200,
            null=True,
        ),
        Planted(
            name="+0.8 on one task, -0.8 on the other",
            kinds=both_ways[0] + both_ways[1],
            clusters=200,
            null=True,
        ),
        Planted(
            name="no noise, direction varies by pair",
            kinds=fixed[0] + fixed[1],
            clusters=200,
            null=True,
        ),
        Planted(
            name="no bias, gold labels",
            kinds=mixed(by_cells(0.75)),
            clusters=100,
            gold_share=0.7,
            null=True,
        ),
    ]


def _clustered() -> list[Planted]:
    direction = mixed(by_cells(0.6, offset=0.9), by_cells(0.6, offset=-0.9))
    quality = mixed(by_cells(0.98), by_cells(0.9), by_cells(0.98), by_cells(0.98))
    return [
        Planted(
            name=f"direction by cluster, {clusters} x {' or '.join(map(str, sizes))}",
            kinds=direction,
            clusters=clusters,
            sizes=sizes,
            null=True,
        )
        for clusters, sizes in ((8, (25,)), (10, (10,)), (20, (10,)), (80, (5, 15)))
    ] + [
        Planted(
            name="consistency by cluster, 20 x 10",
            kinds=quality,
            clusters=20,
            sizes=(10,),
            null=True,
        ),
        Planted(
            name="direction by cluster, gold, 20 x 10",
            kinds=direction,
            clusters=20,
            sizes=(10,),
            gold_share=0.7,
            null=True,
        ),
    ]


def _biased() -> list[Planted]:
    logistic = [
        Planted(name=f"offset {b:+g}", kinds=by_contents(offset=b), clusters=400) for b in _OFFSETS
    ]
    return [
        *logistic,
        Planted(name="offset +0.5, ties (Davidson)", kinds=by_davidson(offset=0.5), clusters=400),
        Planted(
            name="offset +0.5, ties (threshold)",
            kinds=by_contents(offset=0.5, tie_width=0.8),
            clusters=400,
            scale=False,
        ),
        Planted(
            name="offset +0.5, no noise",
            kinds=by_contents(offset=0.5, noise=0.0),
            clusters=400,
        ),
        Planted(
            name="offset +0.5, consistency 0.98",
            kinds=mixed(by_cells(0.98, offset=0.5)),
            clusters=1000,
        ),
        Planted(
            name="offset +0.3 or +0.7, 40 clusters x 10",
            kinds=mixed(by_cells(0.7, offset=0.3), by_cells(0.7, offset=0.7)),
            clusters=40,
            sizes=(10,),
        ),
    ]


def _promised() -> list[Planted]:
    """Plant the very offset that the report says could not be missed, four times out of five."""
    offset = detectable_offset(_LEANING)
    if offset is None:
        return []
    lone = [
        Planted(
            name=f"detectable {offset:.2f}, {halves:.0%} of leans by half",
            kinds=mixed(by_cells(0.5, offset=offset, halves=halves)),
            clusters=2 * _LEANING,
            promised=halves,
        )
        for halves in (0.0, 0.3, 0.7)
    ]
    grouped = Planted(
        name=f"detectable {offset:.2f} on average, 20 clusters",
        kinds=mixed(by_cells(0.5, offset=offset + 0.7), by_cells(0.5, offset=offset - 0.7)),
        clusters=20,
        sizes=(2 * _LEANING // 20,),
        promised=0.0,
    )
    return [*lone, grouped]
