"""Write an exam of one's own into a folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

SIZES = {"easy": 600, "hard": 200}


def write_exam(
    folder: Path = Path("quiz"), *, sizes: dict[str, int] = SIZES, **fields: Any
) -> None:
    """Questions whose answer is A, three of four in the subset `easy`."""
    folder.mkdir()
    number = 0
    for subset, size in sizes.items():
        with (folder / f"{subset}.jsonl").open("w") as file:
            for _ in range(size):
                row = {"question": f"case {number}: which?", "choices": ["yes", "no", "so"]}
                extra = {key: value(number) for key, value in fields.items()}
                file.write(json.dumps(row | {"answer": "A", "id": f"q{number}"} | extra) + "\n")
                number += 1
