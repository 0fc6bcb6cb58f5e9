"""Settings of the run file that this version knows and cannot do yet: refused, never ignored."""

from __future__ import annotations

from collections.abc import Iterator

from judgebias.config import RunConfig, WireJudge
from judgebias.errors import ConfigError


def refuse_unbuilt(config: RunConfig) -> None:
    """Refuse a run that asks for what would silently not happen.

    Raises
    ------
    ConfigError
        Naming every such setting.
    """
    named = list(_unbuilt(config))
    if named:
        raise ConfigError(
            "this version cannot do what the run file asks for: " + "; ".join(named),
            do="leave these settings out, or wait for the version that has them",
        )


def _unbuilt(config: RunConfig) -> Iterator[str]:
    if config.stop.asked and config.orders != "both":
        yield f'[stop] together with orders = "{config.orders}"'
    for judge in config.judges:
        if isinstance(judge, WireJudge) and judge.mode == "batch":
            yield f'mode = "batch" of judge {judge.name!r}'
