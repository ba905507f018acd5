"""``keju data``: finds, checks and downloads the questions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from keju.benchmarks import registry
from keju.cli.command import command
from keju.cli.common import CommandOutput, all_benchmarks, note, print_json, print_lines
from keju.errors import DataError, TranslatableText, UsageError
from keju.messages import label_text

if TYPE_CHECKING:
    from keju.benchmarks.base import Benchmark
    from keju.sources.folder import DataFolder, Layout
    from keju.sources.verify import Verification

NOT_FOUND = "not found"
"""The origin of missing data in documents."""


@command(
    "data pull",
    "keju data pull bbh",
    "keju data pull mmlu_pro --from modelscope",
    "HF_ENDPOINT=https://MIRROR keju data pull bixbench --capsules",
)
def pull(
    name: str,
    hub: Literal["huggingface", "modelscope"] | None,
    revision: str | None,
    repo: str | None,
    offline: bool,
    capsules: bool,
) -> CommandOutput:
    """Pull a benchmark's data from a hub into the cache, where every command finds it.

    Tokens and mirrors come from the hubs' own variables: HF_TOKEN, HF_ENDPOINT, HF_HOME,
    MODELSCOPE_API_TOKEN, MODELSCOPE_ENDPOINT.
    """
    import msgspec

    from keju.sources import pull as pulling

    benchmark = registry.get(name)
    layout = _layout_of(name)
    if capsules and (layout is None or not layout.capsules):
        raise UsageError("capsules_unused", name=benchmark.name)
    if capsules and layout is not None:
        layout = replace(layout, with_capsules=True)
    receipt = pulling.pull(
        layout.cached_as if layout and layout.cached_as else benchmark.name,
        layout,
        hub,
        repo=repo,
        revision=revision,
        offline=offline,
        say=note,
    )
    facts: dict[str, Any] = msgspec.to_builtins(receipt)
    document = {"name": facts.pop("benchmark"), "origin": receipt.origin, **facts}
    size = sum(stored.size for stored in receipt.files.values()) / 1e6
    values = {"name": benchmark.name, "size": size, "origin": receipt.origin}
    summary = label_text("data.pulled", files=len(receipt.files), **values)
    return CommandOutput(document, lambda: print_lines(summary, receipt.path))


@command("data verify", "keju data verify bbh --data-dir data", "keju data verify --all")
def verify(
    name: str | None,
    everything: bool,
    data_dir: str | None,
    local_path: str | None,
    as_json: bool,
) -> None:
    """Compare a benchmark's files with the published ones: rows of each table, known hashes.

    Exit code 2 if anything is changed or missing.
    """
    if everything == (name is not None):
        raise UsageError("cli_one_or_all")
    if name is not None:
        results = [_verify_data(registry.get(name), data_dir, local_path, _layout_of(name))]
    else:
        results = _verify_all_data(data_dir)
    if as_json:
        documents = [result.document() for result in results]
        print_json({"benchmarks": documents, "sound": all(r.sound for r in results)})
    else:
        _print_verifications(results)
    if broken_exams := [result.summary for result in results if not result.sound]:
        raise DataError("data_broken", exams=broken_exams)


def _verify_all_data(data_dir: str | None) -> list[Verification]:
    """Verify the data of every benchmark that has some on this machine, and name the others."""
    results = []
    for benchmark in all_benchmarks():
        if benchmark.layout is not None:
            try:
                results.append(_verify_data(benchmark, data_dir, None))
            except DataError as error:
                note(label_text("data.none_of", name=benchmark.name, problem=error.message))
    if not results:
        raise DataError("cli_no_data")
    return results


def _print_verifications(results: Sequence[Verification]) -> None:
    """Print a table of all parts with a fault, and a line for each benchmark."""
    from keju.reporting.table import TableColumn, render_table

    faulty_parts = [
        (
            *(result.benchmark, part.name, label_text(f"data.state.{part.status}")),
            *(part.rows, part.published_rows, part.detail),
        )
        for result in results
        for part in result.items
        if part.status != "ok"
    ]
    if faulty_parts:
        titles = ("benchmark", "part", "status", "rows", "published", "why")
        columns = [
            TableColumn(label_text(f"data.{t}"), fold=t == "why", id=t in ("benchmark", "part"))
            for t in titles
        ]
        render_table(columns, faulty_parts)
        print_lines("")
    for result in results:
        values = {"files": result.file_count, "rows": result.rows, "origin": result.origin}
        values |= {"summary": result.summary.message, "path": result.path}
        print_lines(label_text("data.verified", **values))


@command("data path", "keju data path ceval", "ls $(keju data path ceval)")
def path(name: str, data_dir: str | None) -> CommandOutput:
    """Print the folder a benchmark's data is read from."""
    benchmark = registry.get(name)
    folder = _locate_folder(benchmark, data_dir, None, _layout_of(name))
    place = _path_of_folder(folder)

    def show() -> None:
        if place is None:
            from keju.sources.folder import BUILT_IN

            built_in = folder.origin == BUILT_IN
            origin = TranslatableText("data_built_in") if built_in else folder.origin
            raise DataError("cli_no_data_folder", benchmark=benchmark.name, origin=origin)
        print_lines(place)

    return CommandOutput({"name": benchmark.name, "path": place, "origin": folder.origin}, show)


@command("data list", "keju data list", "keju data list --data-dir data --json")
def listing(data_dir: str | None) -> CommandOutput:
    """List all benchmarks: where their data was found, how many files and rows."""
    from keju.reporting.table import TableColumn, render_table
    from keju.sources.folder import BUILT_IN

    documents: list[dict[str, Any]] = []
    for benchmark in all_benchmarks():
        document: dict[str, Any] = {"name": benchmark.name}
        try:
            result = _verify_data(benchmark, data_dir, None)
            document["origin"] = result.origin
            if place := _path_of_folder(_locate_folder(benchmark, data_dir, None)):
                document |= {"path": place, "files": result.file_count, "rows": result.rows}
        except DataError as error:
            document |= {"origin": NOT_FOUND, "detail": str(error)}
        documents.append(document)

    def show() -> None:
        names = ("benchmark", "found", "files", "rows", "path")
        columns = [TableColumn(label_text(f"data.{name}"), fold=name == "path") for name in names]
        fields = ("files", "rows", "path")
        origin_labels = {NOT_FOUND: "data.none", BUILT_IN: "data.built_in"}
        rows = [
            [
                document["name"],
                label_text(origin_labels[document["origin"]])
                if document["origin"] in origin_labels
                else document["origin"],
                *(document.get(key) for key in fields),
            ]
            for document in documents
        ]
        render_table(columns, rows)
        if any(document["origin"] == NOT_FOUND for document in documents):
            print_lines("", label_text("data.bring"))

    return CommandOutput({"benchmarks": documents}, show)


def _layout_of(name: str) -> Layout | None:
    """Return the files of a benchmark; an alias may name a version with a separate data set."""
    benchmark = registry.get(name)
    return benchmark.layout_for(benchmark.Args(**benchmark.alias_settings.get(name, {})))


def _locate_folder(
    benchmark: Benchmark,
    data_dir: str | None,
    local_path: str | None,
    layout: Layout | None = None,
) -> DataFolder:
    from keju.sources.folder import locate

    return locate(
        benchmark.name,
        layout or benchmark.layout,
        local_path=local_path,
        data_dir=data_dir,
        offline=True,
    )


def _path_of_folder(folder: DataFolder) -> str | None:
    from keju.sources.folder import NoFolder

    return None if isinstance(folder, NoFolder) else str(folder.path)


def _verify_data(
    benchmark: Benchmark,
    data_dir: str | None,
    local_path: str | None,
    layout: Layout | None = None,
) -> Verification:
    from keju.sources.verify import verify as compare

    folder = _locate_folder(benchmark, data_dir, local_path, layout)
    return compare(benchmark.name, folder)
