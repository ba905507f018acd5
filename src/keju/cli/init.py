"""``keju init``: start a plug-in benchmark or a configuration file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from keju.cli import options
from keju.cli.arguments import StrictCommand
from keju.cli.output import print_json, print_lines

app = options.new_app()


@app.callback()
def init() -> None:
    """Write the first version of a plug-in benchmark or of a configuration file."""


@app.command(
    cls=StrictCommand,
    epilog=options.examples("keju init benchmark chess", "keju init benchmark chess --dir plugins"),
)
def benchmark(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What the benchmark is called.")],
    folder: Annotated[
        str | None,
        typer.Option(
            "--dir",
            metavar="DIR",
            help="Where to write; a folder called NAME by default.",
            rich_help_panel=options.OUTPUT,
        ),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Write a working plug-in package: a benchmark, its data and its test."""
    from keju.cli.scaffold import write_benchmark

    place = Path(folder or name)
    files = write_benchmark(name, place)
    if as_json:
        print_json({"name": name, "folder": str(place), "files": [str(file) for file in files]})
        return
    print_lines(*(f"wrote {file}" for file in files))
    print_lines(f"next: pip install -e {place} && keju show {name}")


@app.command(
    cls=StrictCommand,
    epilog=options.examples("keju init config", "keju init config -o nightly.yaml"),
)
def config(
    output: Annotated[
        str,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Where to write.",
            rich_help_panel=options.OUTPUT,
        ),
    ] = "keju.yaml",
    as_json: options.Json = False,
) -> None:
    """Write a commented configuration that works as it stands."""
    from keju.cli.scaffold import write_config

    path = write_config(Path(output))
    if as_json:
        print_json({"file": str(path)})
        return
    print_lines(f"wrote {path}", f"next: keju eval -c {path}")
