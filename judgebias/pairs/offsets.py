"""Where in its block, and in its file, each row of an index lies, repeats not left out yet."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from judgebias.pairs.block import Block


class Offsets:
    """The places of an index's rows, by the blocks it was made of."""

    def __init__(self, blocks: Sequence[Block]) -> None:
        self._blocks = tuple(blocks)
        self._starts = np.cumsum([0, *(block.n_pairs for block in blocks)])

    def within(self, number: int, at: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Give the offsets of rows of the index in their block."""
        block = self._blocks[number]
        kept = np.delete(np.arange(block.n_rows), np.array(block.skip, dtype=np.int64))
        return kept[at - self._starts[number]]

    def place(self, at: int) -> str:
        """Name the file and the row."""
        number = int(np.searchsorted(self._starts, at, side="right")) - 1
        block = self._blocks[number]
        offset = int(self.within(number, np.array([at]))[0])
        return f"{block.source.file} row {block.first_row + offset + 1}"
