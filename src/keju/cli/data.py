"""``keju data``: where the questions lie, whether they are the published ones, pulling them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from keju.benchmarks import registry
from keju.cli.command import command
from keju.cli.common import all_benchmarks, note, print_json, print_lines
from keju.errors import DataError, UsageError

if TYPE_CHECKING:
    from keju.benchmarks.base import Benchmark
    from keju.sources.folder import DataFolder
    from keju.sources.verify import Verification

NOT_FOUND = "not found"


@command(
    "data pull",
    "keju data pull bbh",
    "keju data pull mmlu_pro --from modelscope",
    "HF_ENDPOINT=https://MIRROR keju data pull bixbench",
)
def pull(
    name: str,
    hub: Literal["huggingface", "modelscope"] | None,
    revision: str | None,
    repo: str | None,
    offline: bool,
    as_json: bool,
) -> None:
    """Pull a benchmark's data from a hub into the cache, where every command finds it.

    Tokens and mirrors come from the hubs' own variables: HF_TOKEN, HF_ENDPOINT, HF_HOME,
    MODELSCOPE_API_TOKEN, MODELSCOPE_ENDPOINT.
    """
    import msgspec

    from keju.sources import pull as pulling

    benchmark = registry.get(name)
    receipt = pulling.pull(
        benchmark.name,
        benchmark.layout,
        hub,
        repo=repo,
        revision=revision,
        offline=offline,
        say=note,
    )
    if as_json:
        document: dict[str, Any] = msgspec.to_builtins(receipt)
        name = document.pop("benchmark")
        print_json({"name": name, "origin": receipt.origin, **document})
        return
    size = sum(stored.size for stored in receipt.files.values()) / 1e6
    print_lines(f"{receipt.benchmark}: {len(receipt.files)} files, {size:.1f} MB, {receipt.origin}")
    print_lines(receipt.path)


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
    results = (
        _verify_all(data_dir)
        if name is None
        else [_verify(registry.get(name), data_dir, local_path)]
    )
    if as_json:
        documents = [result.document() for result in results]
        print_json({"benchmarks": documents, "sound": all(r.sound for r in results)})
    else:
        _print_verified(results)
    broken = [result.summary() for result in results if not result.sound]
    if broken:
        raise DataError("; ".join(broken))


@command("data path", "keju data path ceval", "ls $(keju data path ceval)")
def path(name: str, data_dir: str | None, as_json: bool) -> None:
    """Print the folder a benchmark's data is read from."""
    benchmark = registry.get(name)
    folder = _folder(benchmark, data_dir, None)
    if as_json:
        print_json({"name": benchmark.name, "path": _path(folder), "origin": folder.origin})
        return
    if _path(folder) is None:
        raise DataError("cli_no_data_folder", benchmark=benchmark.name, origin=folder.origin)
    print_lines(str(folder.path))


@command("data list", "keju data list", "keju data list --data-dir data --json")
def listing(data_dir: str | None, as_json: bool) -> None:
    """List all benchmarks: where their data was found, how many files and rows."""
    documents = [_listed(each, data_dir) for each in all_benchmarks()]
    if as_json:
        print_json({"benchmarks": documents})
        return
    from keju.report.table import Column, render_table

    columns: list[Column | str] = ["benchmark", "found in", "files", "rows"]
    fields = ("name", "origin", "files", "rows", "path")
    rows = [[document.get(key) for key in fields] for document in documents]
    render_table([*columns, Column("path", fold=True)], rows)
    if any(document["origin"] == NOT_FOUND for document in documents):
        print_lines(
            "", "keju data pull NAME brings what is not found; --data-dir points at a folder"
        )


def _folder(benchmark: Benchmark, data_dir: str | None, local_path: str | None) -> DataFolder:
    from keju.sources.locate import locate

    return locate(
        benchmark.name, benchmark.layout, local_path=local_path, data_dir=data_dir, offline=True
    )


def _path(folder: DataFolder) -> str | None:
    from keju.sources.folder import NoFolder

    return None if isinstance(folder, NoFolder) else str(folder.path)


def _verify(benchmark: Benchmark, data_dir: str | None, local_path: str | None) -> Verification:
    from keju.sources.verify import verify as compare

    return compare(benchmark.name, _folder(benchmark, data_dir, local_path))


def _verify_all(data_dir: str | None) -> list[Verification]:
    results = []
    for benchmark in all_benchmarks():
        if benchmark.layout is None:
            continue
        try:
            results.append(_verify(benchmark, data_dir, None))
        except DataError as error:
            note(f"{benchmark.name}: {NOT_FOUND} ({error})")
    if not results:
        raise DataError("cli_no_data")
    return results


def _print_verified(results: list[Verification]) -> None:
    from keju.report.table import render_table

    wrong = [
        (result.benchmark, item.name, item.status, item.rows, item.published_rows, item.detail)
        for result in results
        for item in result.items
        if item.status != "ok"
    ]
    if wrong:
        render_table(["benchmark", "table or file", "status", "rows", "published", "why"], wrong)
        print_lines("")
    for result in results:
        where = f"{result.file_count} files, {result.rows} rows in {result.path}"
        print_lines(f"{result.summary()}; {where} ({result.origin})")


def _listed(benchmark: Benchmark, data_dir: str | None) -> dict[str, Any]:
    try:
        result = _verify(benchmark, data_dir, None)
        folder = _folder(benchmark, data_dir, None)
    except DataError as error:
        return {"name": benchmark.name, "origin": NOT_FOUND, "detail": str(error)}
    document = {"name": benchmark.name, "origin": result.origin}
    where = _path(folder)
    if where is None:
        return document
    return {**document, "path": where, "files": result.file_count, "rows": result.rows}
