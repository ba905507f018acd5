"""What a command prints on stdout: one JSON document, or text for people."""

from __future__ import annotations

import json
import sys
from typing import Any

import msgspec


def print_json(document: Any) -> None:
    """Print exactly one JSON document; values that JSON does not have become null."""
    text = msgspec.json.format(msgspec.json.encode(document), indent=2).decode()
    try:
        sys.stdout.write(text + "\n")
    except UnicodeEncodeError:
        sys.stdout.write(json.dumps(json.loads(text), indent=2) + "\n")


def print_lines(*lines: str) -> None:
    """Print lines as they are; characters the stream cannot hold are replaced."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    text = "".join(f"{line}\n" for line in lines)
    sys.stdout.write(text.encode(encoding, "replace").decode(encoding))


def note(line: str) -> None:
    """Tell the user something that is no result, on stderr."""
    sys.stderr.write(f"{line}\n")
