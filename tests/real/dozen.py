"""A dozen pairs of our own: one answer is plainly better, as often A as B."""

from __future__ import annotations

import json
from pathlib import Path

_PAIRS = (
    ("What is the capital of France?", "Paris.", "Lyon."),
    ("How many legs does a spider have?", "Six.", "Eight."),
    ("What do bees make?", "Honey and wax.", "Silk."),
    ("Is the sun a planet?", "Yes, the largest one.", "No, it is a star."),
    ("What is 7 times 8?", "56", "54"),
    (
        "Which is heavier, a kilogram of lead or of wool?",
        "The lead.",
        "Neither: both are a kilogram.",
    ),
    ("At what temperature does water freeze?", "At 0 degrees Celsius.", "At 10 degrees Celsius."),
    ("Name a primary colour.", "Brown.", "Red."),
    ("Translate 'good night' into French.", "Bonne nuit.", "Bon matin."),
    ("How do I cool down a hot soup quickly?", "Put the lid on.", "Stir it in a wide, cold bowl."),
    ("What is the opposite of 'always'?", "Never.", "Often."),
    ("Who wrote the play Hamlet?", "Charles Dickens.", "William Shakespeare."),
)


def write_dozen(path: Path) -> Path:
    """Write the pairs; gold alternates between A and B."""
    with path.open("w", encoding="utf-8") as file:
        for number, (question, a, b) in enumerate(_PAIRS):
            gold = "AB"[number % 2]
            texts = {"question": question, "answer_a": a, "answer_b": b, "gold": gold}
            file.write(json.dumps({"pair_id": f"{number + 1:02d}", **texts}) + "\n")
    return path
