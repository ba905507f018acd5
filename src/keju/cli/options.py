"""What the commands share: how an application is made, its common flags, and its examples."""

from __future__ import annotations

from typing import Annotated

import typer

DATA, OUTPUT = "Data", "Output"

Json = Annotated[
    bool,
    typer.Option("--json", help="Print one JSON document on stdout.", rich_help_panel=OUTPUT),
]
DataDir = Annotated[
    str | None,
    typer.Option(
        "--data-dir",
        "--dataset-dir",
        metavar="DIR",
        help="Folder with one folder a benchmark (or KEJU_DATA_DIR).",
        rich_help_panel=DATA,
    ),
]
Protocol = Annotated[
    str | None,
    typer.Option(metavar="P", help="Published way to put the questions.", rich_help_panel=DATA),
]
DatasetArgs = Annotated[
    str | None,
    typer.Option(
        metavar="JSON",
        help='Settings by benchmark, e.g. \'{"bbh": {"few_shot_num": 0}}\'.',
        rich_help_panel=DATA,
    ),
]
Seed = Annotated[int, typer.Option(help="Seed of whatever is drawn.", rich_help_panel=DATA)]
WorkDir = Annotated[
    str | None,
    typer.Option(
        metavar="DIR", help="Folder of the runs (or KEJU_WORK_DIR).", rich_help_panel=DATA
    ),
]


def new_app() -> typer.Typer:
    """An application without completion or pretty tracebacks: the boundary reports errors."""
    return typer.Typer(
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
        context_settings={"help_option_names": ["-h", "--help"]},
    )


def examples(*lines: str) -> str:
    """The closing part of a command's help; each line stays a line."""
    from rich.markup import escape

    return "Examples:\n\n" + "\n\n".join(f"  {escape(line)}" for line in lines)
