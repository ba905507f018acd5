"""``keju schema``: the configuration as JSON Schema, for editors and checks."""

from __future__ import annotations

from typing import Any

from keju.cli.command import command
from keju.cli.common import CommandOutput, all_benchmarks, print_json

DRAFT = "https://json-schema.org/draft/2020-12/schema"


@command("schema", "keju schema > keju.schema.json", "keju schema --json")
def schema() -> CommandOutput:
    """Print the JSON Schema of a configuration file, each benchmark's own settings included.

    The schema describes every setting, and editors show these descriptions.

    Editors check a config file against the schema if its first line is
    # yaml-language-server: $schema=keju.schema.json
    """
    document = task_schema()
    return CommandOutput(document, lambda: print_json(document))  # the output is JSON in any case


def task_schema() -> dict[str, Any]:
    """Return the schema of `TaskConfig`, with every benchmark's settings in ``dataset_args``."""
    from pydantic import BaseModel
    from pydantic.json_schema import GenerateJsonSchema, models_json_schema

    from keju.config import TaskConfig
    from keju.config.docs import field_docs

    class Described(GenerateJsonSchema):
        """Adds the string below each field as the description of the setting."""

        def model_schema(self, schema: Any) -> dict[str, Any]:
            node = super().model_schema(schema)
            for name, text in field_docs(schema["cls"]).items():
                if text and name in node.get("properties", {}):
                    node["properties"][name]["description"] = text
            return node

    args = {benchmark.name: benchmark.Args for benchmark in all_benchmarks()}
    models: list[type[BaseModel]] = [TaskConfig, *dict.fromkeys(args.values())]
    references, definitions = models_json_schema(
        [(model, "validation") for model in models], schema_generator=Described
    )
    shared = definitions["$defs"]
    args_schemas = {name: references[cls, "validation"] for name, cls in args.items()}
    task = shared.pop(references[TaskConfig, "validation"]["$ref"].rpartition("/")[2])
    task["properties"]["dataset_args"]["properties"] = args_schemas
    return {"$schema": DRAFT, **task, "$defs": shared}
