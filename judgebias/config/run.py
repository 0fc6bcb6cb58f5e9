"""A whole run, as the TOML file or the same model in Python says it."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator

from judgebias.config.judge import JudgeConfig, Strict
from judgebias.config.values import PathText, Seconds, Seed


class Panel(Strict):
    """How the judges together decide."""

    quorum: int = Field(default=0, ge=0, le=10_000)
    """0 = max(2, half of the judges, rounded up)."""


class Budget(Strict):
    """What the run may spend, retries and failed calls included."""

    max_usd: float | None = Field(default=None, gt=0, le=1e12)
    """Absent = no bound."""
    max_calls: int = Field(default=0, ge=0, le=10**12)
    """0 = no bound."""


class Stop(Strict):
    """When the run may stop buying before all pairs are judged."""

    swing_half_width: float = Field(default=0.0, ge=0, lt=1)
    """Stop a judge when its swing over all pairs is known this well; 0 = not asked for."""
    decided: bool = False
    """Stop a judge when it is shown to lean to a slot; with both, the first of the two."""

    @property
    def asked(self) -> bool:
        """Whether there is a stop rule at all."""
        return self.decided or self.swing_half_width > 0.0


class Engine(Strict):
    """How the run is spread; none of it changes a figure."""

    address: str = ""
    """"" = RAY_ADDRESS where set, else a fresh local Ray; "auto"; HOST:PORT."""
    workers: int = Field(default=0, ge=0, le=10_000)
    """0 = one per CPU at most, no more than the blocks need."""
    pairs_per_block: int = Field(default=0, ge=0, le=100_000)
    """0 = up to 2048."""
    grace_s: Seconds = 60
    """Seconds that calls in flight get when stopping."""


PAIR_COLUMNS = frozenset(
    {
        "pair_id",
        "task",
        "question",
        "answer_a",
        "answer_b",
        "model_a",
        "model_b",
        "gold",
        "cluster",
        "reference",
        "quality_a",
        "quality_b",
    }
)
"""The columns of a pairs file that mean something to us."""


class RunConfig(Strict):
    """The run file's model; paths are relative to the file that holds them."""

    pairs: PathText = Field(min_length=1)
    """Path, glob, directory or URI of the pairs."""
    out: PathText = Field(min_length=1)
    """The run directory: path or URI."""
    orders: Literal["both", "sampled", "ab", "ba", "random"] = "both"
    swap_fraction: float = Field(default=0.2, gt=0, le=1)
    """Share of the pairs that `sampled` asks in both orders."""
    repeats: int = Field(default=1, ge=1, le=1000)
    seed: Seed = 0
    self_pair: int = Field(default=0, ge=0, le=10**9)
    """Items for the self-pair probe, taken from the input's answers."""
    cluster: str = "question"
    """question, pair, or a column of the pairs."""
    empty: Literal["judge", "reject"] = "judge"
    on_leak: Literal["warn", "skip"] = "warn"
    keep_raw: bool = True
    columns: dict[str, str] = Field(default_factory=dict)
    """Ours <- theirs."""
    judges: tuple[JudgeConfig, ...]
    families: dict[str, str] = Field(default_factory=dict)
    """Glob of a model name -> family."""
    panel: Panel = Panel()
    budget: Budget = Budget()
    stop: Stop = Stop()
    engine: Engine = Engine()

    @field_validator("columns")
    @classmethod
    def _known_columns(cls, columns: dict[str, str]) -> dict[str, str]:
        unknown = sorted(set(columns) - PAIR_COLUMNS)
        if unknown:
            msg = f"columns maps ours <- theirs, and {unknown[0]!r} is not one of ours: "
            raise ValueError(msg + ", ".join(sorted(PAIR_COLUMNS)))
        return columns

    @field_validator("judges")
    @classmethod
    def _unique_names(cls, judges: tuple[JudgeConfig, ...]) -> tuple[JudgeConfig, ...]:
        # Not a bound of the field: pydantic would count the faulty judges as absent.
        if not judges:
            msg = "a run needs at least one judge"
            raise ValueError(msg)
        names = [judge.name for judge in judges]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            msg = f"two judges are named {twice[0]!r}; a name is unique in a run"
            raise ValueError(msg)
        return judges
