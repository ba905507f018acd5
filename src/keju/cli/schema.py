"""``keju schema``: the configuration as JSON Schema, for editors and checks."""

from __future__ import annotations

from typing import Any

from keju.cli import options
from keju.cli.arguments import StrictCommand
from keju.cli.output import print_json
from keju.cli.prepare import all_benchmarks

app = options.new_app()

DRAFT = "https://json-schema.org/draft/2020-12/schema"


@app.command(
    cls=StrictCommand,
    epilog=options.examples(
        "keju schema > keju.schema.json",
        "# yaml-language-server: $schema=keju.schema.json   (first line of a config file)",
    ),
)
def schema(as_json: options.Json = False) -> None:
    """Print the JSON Schema of a configuration file, each benchmark's own settings included."""
    del as_json  # the document is JSON in any case
    print_json(task_schema())


def task_schema() -> dict[str, Any]:
    """The schema of `TaskConfig`, with the settings of every benchmark under ``dataset_args``."""
    from pydantic import BaseModel
    from pydantic.json_schema import models_json_schema

    from keju.config import TaskConfig

    args = {benchmark.name: benchmark.Args for benchmark in all_benchmarks()}
    models: list[type[BaseModel]] = [TaskConfig, *dict.fromkeys(args.values())]
    references, definitions = models_json_schema([(model, "validation") for model in models])
    named = definitions["$defs"]
    own = {name: references[cls, "validation"] for name, cls in args.items()}
    task = named.pop(_name(references[TaskConfig, "validation"]))
    task["properties"]["dataset_args"]["properties"] = own
    return {"$schema": DRAFT, **task, "$defs": named}


def _name(reference: dict[str, Any]) -> str:
    return str(reference["$ref"]).rpartition("/")[2]
