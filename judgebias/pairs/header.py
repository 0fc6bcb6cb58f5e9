"""The columns an input has against the columns a run wants."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from judgebias.errors import InputError
from judgebias.pairs.spec import REQUIRED, PairsSpec

_SHOWN = 20


class Header:
    """Checks the columns of each file and remembers those of all."""

    def __init__(self, spec: PairsSpec) -> None:
        self._spec = spec
        self._wanted = set(spec.names.values())
        self._found: set[str] = set()
        self._extra: dict[str, None] = {}
        self._extra_shapes: set[tuple[str, ...]] = set()

    def require(self, found: Iterable[str], file: str) -> None:
        """Refuse a file without a required column, and list both sides."""
        names = list(found)
        missing = [ours for ours in REQUIRED if self._spec.names[ours] not in names]
        if not missing:
            return
        raise InputError(
            f"{file} has no column {', '.join(map(self._call, missing))}; "
            f"it has {', '.join(sorted(names)[:_SHOWN]) or 'none'}",
            expected=f"the columns {', '.join(map(self._call, REQUIRED))}",
            do=self._advice(missing[0], names),
        )

    def _call(self, ours: str) -> str:
        theirs = self._spec.names[ours]
        return ours if ours == theirs else f"{theirs} (for {ours})"

    def _advice(self, ours: str, names: list[str]) -> str:
        free = [name for name in names if name not in self._wanted]
        near = get_close_matches(ours, free, n=1) or ["their_name"]
        return f'name it in the run file: columns = {{ {ours} = "{near[0]}" }}'

    def note(self, shape: tuple[str, ...]) -> None:
        """Remember the columns of a file or row."""
        if shape in self._extra_shapes:
            return
        if len(self._extra_shapes) < 1000:
            self._extra_shapes.add(shape)
        self._found.update(self._wanted.intersection(shape))
        for name in shape:
            # Keys may be data (an id as a key), and then there is no end of them.
            if name not in self._wanted and len(self._extra) <= _SHOWN:
                self._extra[name] = None

    def close(self) -> list[str]:
        """Refuse a column that was asked for and is nowhere; say which columns are not used."""
        for ours, theirs in self._spec.asked_for.items():
            if self._found and theirs not in self._found:
                raise InputError(
                    f"no row of the input has the column {theirs!r}, asked for as {ours}",
                    expected="a column that exists",
                    do=f"correct the name of {ours} in the run file, or leave it out",
                )
        if not self._extra:
            return []
        names = list(self._extra)
        more = " and more" if len(names) > _SHOWN else ""
        return [f"columns not used: {', '.join(names[:_SHOWN])}{more}"]
