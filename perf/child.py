"""``python -m perf.child MODULE:FUNCTION ARGUMENTS FILE``: call it, write what it returns."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path


def main() -> None:
    """Call the function with the JSON object of arguments."""
    module, _, name = sys.argv[1].partition(":")
    function = getattr(importlib.import_module(module), name)
    Path(sys.argv[3]).write_text(json.dumps(function(**json.loads(sys.argv[2]))))


if __name__ == "__main__":
    main()
