"""The flags of ``keju eval``: one row a field of `TaskConfig`, grouped as the help shows them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from inspect import Parameter
from typing import Annotated, Any, NamedTuple

import typer

from keju.config import load as settings

MAPPING = "JSON"
"""Metavar of the flags whose value is a mapping."""


class Flag(NamedTuple):
    """One flag; a mapping is given as JSON or as ``key=value,key=value``."""

    field: str
    metavar: str
    help: str
    kind: type = str
    names: tuple[str, ...] = ()
    """Its spellings; ``--field-name`` by default."""


PANELS: dict[str, tuple[Flag, ...]] = {
    "Model": (
        Flag(
            "model",
            "NAME",
            "Name at the endpoint, or scripted, replay:RUN, embedded, gguf:PATH, hf:NAME.",
            names=("--model", "-m"),
        ),
        Flag("api_url", "URL", "OpenAI-compatible endpoint (or OPENAI_BASE_URL)."),
        Flag("api_key", "KEY", "Its key (or OPENAI_API_KEY); never stored."),
        Flag("api", "ROUTE", "auto (the protocol's own), chat or completions."),
        Flag("headers", MAPPING, "Further request headers; never stored."),
        Flag("ca_file", "FILE", "Certificate authority to trust, in PEM."),
        Flag("model_args", MAPPING, "Settings of a local model, e.g. n_ctx=4096."),
        Flag("generation_config", MAPPING, "Sampling, e.g. temperature=0.6, max_tokens=512."),
    ),
    "Exams": (
        Flag("datasets", "NAME...", "Benchmarks: a b, a,b, or repeated.", list[str]),
        Flag("dataset_args", MAPPING, 'Settings by benchmark: {"bbh": {"few_shot_num": 0}}.'),
        Flag("protocol", "P", "Published way to sit the exam; see 'keju list protocols'."),
        Flag("reader", "R,R2", "Readers to score with; several stand side by side."),
        Flag("limit", "N", "Questions of each subset: a number, or a share below 1.", float),
        Flag("sample", "HOW", "Which questions a limit keeps: first, random or stratified."),
        Flag("repeats", "K", "Times each question is asked.", int),
        Flag("rotate_options", "K", "Ask under K rotations of the options.", int),
        Flag("seed", "S", "Seed of whatever is drawn.", int),
        Flag(
            "data_dir",
            "DIR",
            "Folder with one folder a benchmark (or KEJU_DATA_DIR).",
            names=("--data-dir", "--dataset-dir"),
        ),
        Flag("dataset_hub", "HUB", "huggingface or modelscope: for data not in --data-dir."),
        Flag("offline", "", "Open no socket but the model's.", bool),
        Flag("judge", MAPPING, "A model that grades open answers, e.g. model=NAME."),
    ),
    "Pace and limits": (
        Flag("eval_batch_size", "C", "The most requests in flight.", int),
        Flag("timeout", "SECONDS", "Time for one attempt.", float),
        Flag("attempts", "N", "Attempts for one request, the first included.", int),
        Flag("retry_interval", "SECONDS", "Wait before the second attempt; doubles.", float),
        Flag("rpm", "N", "Requests a minute.", float),
        Flag("tpm", "N", "Tokens a minute, input and output.", float),
        Flag("give_up_after", "SECONDS", "How long an endpoint may stay down.", float),
        Flag("error_limit", "SHARE", "Share of errors above which the exit code is 4.", float),
        Flag("budget", MAPPING, "Hard limits: requests=N, tokens=N, cost=X, seconds=S."),
        Flag("price", MAPPING, "Money a million tokens: input=X, output=Y."),
    ),
    "Run": (
        Flag("work_dir", "DIR", "Folder of the runs; 'runs' by default."),
        Flag("run_id", "ID", "Name of the run; one that exists is resumed."),
        Flag("resume", "", "Require that the run exists.", bool),
        Flag("use_cache", "RUN", "Reuse the replies of a stored run."),
        Flag("language", "en|zh", "Language of the report."),
    ),
}


def parameters() -> Iterator[Parameter]:
    """The flags as parameters of a typer command, None where they are not given."""
    for panel, flags in PANELS.items():
        for flag in flags:
            names = flag.names or ("--" + flag.field.replace("_", "-"),)
            option = typer.Option(
                *names,
                metavar=flag.metavar or None,
                help=flag.help.replace("[", "\\["),
                show_default=False,
                rich_help_panel=panel,
            )
            annotation: Any = Annotated[flag.kind | None, option]
            yield Parameter(flag.field, Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


def collect(given: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that were given, with mappings parsed and lists split at commas."""
    texts: dict[str, str] = {}
    fields: dict[str, Any] = {}
    for flag in (flag for flags in PANELS.values() for flag in flags):
        value = given[flag.field]
        if value is None or value == []:
            continue
        if flag.metavar == MAPPING:
            texts[flag.field] = value
        elif flag.kind == list[str]:
            fields[flag.field] = [name for text in value for name in text.split(",") if name]
        else:
            fields[flag.field] = value
    return fields | settings.from_flags(texts)
