"""The summary's figures computed slowly: pair by pair, in floats, straight from the definitions."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from math import sqrt

from scipy import stats

Z = float(stats.norm.ppf(0.975))
CELLS = {
    ("first", "second"): "agreed_a",
    ("second", "first"): "agreed_b",
    ("tie", "tie"): "agreed_tie",
    ("first", "first"): "stuck_first",
    ("second", "second"): "stuck_second",
    ("first", "tie"): "half_first",
    ("tie", "first"): "half_first",
    ("second", "tie"): "half_second",
    ("tie", "second"): "half_second",
}
STEP = {"first": 1, "second": -1, "tie": 0}


@dataclass(frozen=True)
class Judged:
    """A pair with what each order gave: a slot, "failed", or None where it was not asked."""

    task: str
    pair_id: str
    repeat: int
    ab: str | None
    ba: str | None
    gold: str | None
    cluster: str | None

    @property
    def group(self) -> object:
        return self.cluster if self.cluster is not None else (self.task, self.pair_id)

    @property
    def complete(self) -> bool:
        return (self.ab, self.ba) in CELLS

    @property
    def cell(self) -> str:
        return CELLS[self.ab, self.ba]

    @property
    def lean(self) -> int:
        name = self.cell
        return 0 if name.startswith("agreed") else 1 if name.endswith("first") else -1

    @property
    def swing(self) -> float:
        return (STEP[self.ab] + STEP[self.ba]) / 2

    @property
    def final(self) -> str:
        return {"agreed_a": "A", "agreed_b": "B"}.get(self.cell, "tie")

    @property
    def score(self) -> float:
        return {"A": 1.0, "B": 0.0, "tie": 0.5}[self.final]


def oracle(pairs: list[Judged]) -> dict[str, float | None]:
    """Compute the figures of one judge x task."""
    done = [pair for pair in pairs if pair.complete]
    calls = [slot for pair in pairs for slot in (pair.ab, pair.ba) if slot is not None]
    found: dict[str, float | None] = {
        "n_pairs": len(pairs),
        "n_calls": len(calls),
        "n_failed": calls.count("failed"),
        **{f"n_{slot}": calls.count(slot) for slot in STEP},
        **{cell: sum(pair.cell == cell for pair in done) for cell in CELLS.values()},
        "n_complete": len(done),
        "n_clusters": len({pair.group for pair in done}),
    }
    found |= _share("consistency", [(p, p.cell.startswith("agreed")) for p in done])
    found |= _mean("lean_rate", [(p, float(p.lean)) for p in done], -1.0)
    found |= _mean("swing", [(p, p.swing) for p in done], -1.0)
    found |= _mean("win_rate_a", [(p, p.score) for p in done], 0.0)
    wins = [(p, p.final == "A") for p in done if p.final != "tie"]
    found |= {k: v for k, v in _share("decisive_win_rate_a", wins).items() if k != "design_effect"}
    found["p_position"] = _flip([(p, p.lean) for p in done])
    found["p_preference"] = _flip([(p, {"A": 1, "B": -1, "tie": 0}[p.final]) for p in done])
    found["n_leaning_clusters"] = sum(total != 0 for total in _sums([(p, p.lean) for p in done]))
    found |= _ratio(done)
    return found | _kappa([pair for pair in done if pair.gold is not None])


def _sums(values: list[tuple[Judged, float]]) -> list[float]:
    totals: dict[object, float] = {}
    for pair, value in values:
        totals[pair.group] = totals.get(pair.group, 0.0) + value
    return list(totals.values())


def _mean(name: str, values: list[tuple[Judged, float]], low: float) -> dict[str, float | None]:
    n = len(values)
    estimate = sum(value for _, value in values) / n if n else None
    clusters = _sums(values)
    if len(clusters) < 6:
        return {name: estimate, f"{name}_low": None, f"{name}_high": None}
    with_ends = (sum(value for _, value in values) + low + 1.0) / (n + 2)
    residuals = _sums([(pair, value - with_ends) for pair, value in values])
    residuals += [low - with_ends, 1.0 - with_ends]
    g = len(residuals)
    half = stats.t.ppf(0.975, g - 1) * sqrt(
        g / (g - 1) * sum(r * r for r in residuals) / (n + 2) ** 2
    )
    return {
        name: estimate,
        f"{name}_low": max(low, with_ends - half),
        f"{name}_high": min(1.0, with_ends + half),
    }


def _share(name: str, values: list[tuple[Judged, bool]]) -> dict[str, float | None]:
    n = len(values)
    nothing = {f"{name}_low": None, f"{name}_high": None, "design_effect": None}
    if not n:
        return {name: None, **nothing}
    p = sum(value for _, value in values) / n
    g = len({pair.group for pair, _ in values})
    several = g < n
    if several and g < 6:
        return {name: p, **nothing}
    effect, z = 1.0, Z
    if several:
        z = float(stats.t.ppf(0.975, g - 1))
        squares = sum(r * r for r in _sums([(pair, value - p) for pair, value in values]))
        variance = g / (g - 1) * squares / n**2
        effect = n / g if p in (0.0, 1.0) else max(1.0, variance / (p * (1 - p) / n))
    m = n / effect
    centre = (p + z * z / (2 * m)) / (1 + z * z / m)
    half = z * sqrt(p * (1 - p) / m + z * z / (4 * m * m)) / (1 + z * z / m)
    return {
        name: p,
        f"{name}_low": 0.0 if p == 0 else centre - half,
        f"{name}_high": 1.0 if p == 1 else centre + half,
        "design_effect": effect,
    }


def _ratio(done: list[Judged]) -> dict[str, float | None]:
    name = "first_position_rate"
    firsts = [(pair, float((pair.ab, pair.ba).count("first"))) for pair in done]
    decisive = [(pair, 2.0 - (pair.ab, pair.ba).count("tie")) for pair in done]
    f, d = sum(v for _, v in firsts), sum(v for _, v in decisive)
    estimate = f / d if d else None
    g = len({pair.group for pair in done}) + 2
    if not d or g < 8:
        return {name: estimate, f"{name}_low": None, f"{name}_high": None}
    r = (f + 2) / (d + 4)
    residuals = _sums([(p, a - r * b) for (p, a), (_, b) in zip(firsts, decisive, strict=True)])
    squares = sum(v * v for v in residuals) + (2 - 2 * r) ** 2 + (2 * r) ** 2
    half = stats.t.ppf(0.975, g - 1) * sqrt(g / (g - 1) * squares) / (d + 4)
    return {name: estimate, f"{name}_low": max(0.0, r - half), f"{name}_high": min(1.0, r + half)}


def _flip(values: list[tuple[Judged, int]]) -> float | None:
    totals = [int(total) for total in _sums(values) if total]
    if not totals:
        return None
    observed = abs(sum(totals))
    signs = list(product((1, -1), repeat=len(totals)))
    sums = [abs(sum(s * t for s, t in zip(sign, totals, strict=True))) for sign in signs]
    return sum(total >= observed for total in sums) / len(signs)


def _kappa(labelled: list[Judged]) -> dict[str, float | None]:
    n = len(labelled)
    nothing = {"kappa": None, "kappa_low": None, "kappa_high": None}
    if not n:
        return {"n_gold": 0, "agreement": None, **nothing}
    labels = ("A", "B", "tie")
    p = {label: sum(pair.final == label for pair in labelled) / n for label in labels}
    q = {label: sum(pair.gold == label for pair in labelled) / n for label in labels}
    po = sum(pair.final == pair.gold for pair in labelled) / n
    pe = sum(p[label] * q[label] for label in labels)
    if any(p[label] == q[label] == 1.0 for label in labels):
        return {"n_gold": n, "agreement": po, **nothing}
    kappa = (po - pe) / (1 - pe)
    psi = [
        (
            pair,
            ((pair.final == pair.gold) - po) / (1 - pe)
            - (1 - po) / (1 - pe) ** 2 * (q[pair.final] + p[str(pair.gold)] - 2 * pe),
        )
        for pair in labelled
    ]
    clusters = _sums(psi)
    if len(clusters) < 6:
        return {"n_gold": n, "agreement": po, **nothing, "kappa": kappa}
    z = Z if len(clusters) == n else float(stats.t.ppf(0.975, len(clusters) - 1))
    half = z * sqrt(sum(v * v for v in clusters)) / n
    return {
        "n_gold": n,
        "agreement": po,
        "kappa": kappa,
        "kappa_low": kappa - half,
        "kappa_high": kappa + half,
    }
