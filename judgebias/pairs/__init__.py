"""The pairs table: find it, check it once, read it again block by block.

`survey_pairs` reads everything once before anything is asked and keeps no text; `read_block`
gives a worker the pairs of one block. Both parse alike, so a worker sees what was checked.
"""

from judgebias.pairs.block import Block, Reject, Source
from judgebias.pairs.read import close_readers, read_block
from judgebias.pairs.spec import PairsSpec
from judgebias.pairs.survey import Survey, survey_pairs

__all__ = [
    "Block",
    "PairsSpec",
    "Reject",
    "Source",
    "Survey",
    "close_readers",
    "read_block",
    "survey_pairs",
]
