"""What a run leaves behind: the results document and the report."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from keju.engine.job import Job
from keju.engine.resume import JobRequests, answers_of
from keju.errors import KejuError
from keju.files import write_json
from keju.report.strings import Language
from keju.results.aggregate import results_document, summarise
from keju.runs.folder import REPORT, RESULTS
from keju.runs.manifest import ManifestFile
from keju.runs.run import Run

if TYPE_CHECKING:
    from keju.judges.stage import Judgement

QUANTILE_SAMPLE = 100_000
"""Latency quantiles are taken over at most this many units."""


def build_results(
    jobs: Sequence[Job],
    file: ManifestFile,
    stop: KejuError | None,
    judgement: Judgement | None = None,
) -> dict[str, Any]:
    """The results document of a run, from the scoreboards of its jobs."""
    entries = []
    for job in jobs:
        entries.extend(entries_of(job, seconds=file.seconds, judgement=judgement))
    document = results_document(file.manifest.run, file.manifest.model, entries)
    document["complete"] = stop is None
    if stop is not None:
        document["stopped"] = str(stop)
    return document


def entries_of(
    job: Job,
    *,
    seconds: float = 0.0,
    beside: bool = True,
    judgement: Judgement | None = None,
) -> list[dict[str, Any]]:
    """One entry for each reader; with `beside` the second stands as a metric of the first.

    The headline is the protocol's own reader. What the reader beside it (nearly always `robust`)
    makes of the same replies is printed next to it, so that a misread format never passes for a
    lack of ability.
    """
    usage, timing = _usage(job), _timing(job, seconds)
    entries = [
        summarise(job.exam, tally, reader=reader.name, usage=usage, timing=timing)
        for reader, tally in zip(job.readers, job.tallies, strict=True)
    ]
    for entry in entries:
        if job.errors:
            entry["errors"] = _errors(job)
    if job.sampling.temperature == 0 and job.epochs > 1:
        for entry in entries:
            entry.setdefault("warnings", []).append(
                "repeats at temperature 0 measure the endpoint's noise, not the model's spread"
            )
    if judgement is not None:
        for place, entry in enumerate(entries):
            judgement.annotate(job, place, entry)
    name = job.exam.beside
    if beside and len(entries) == 2 and entries[1]["reader"] == name:
        other = entries[1]["metrics"]["accuracy"] | {"title": f"accuracy as read by '{name}'"}
        entries[0]["metrics"][f"accuracy_{name}"] = other
        return entries[:1]
    return entries


def _errors(job: Job) -> dict[str, Any]:
    """Which kinds of errors ended samples, the commonest first, and an example of that."""
    kinds = Counter(fault.kind for fault in job.errors.values()).most_common()
    example = next(fault for fault in job.errors.values() if fault.kind == kinds[0][0])
    return {"kinds": dict(kinds), "example": example.message}


def _usage(job: Job) -> dict[str, Any]:
    meter = job.meter
    return {
        "requests": meter.requests,
        "input_tokens": meter.input,
        "output_tokens": meter.output,
        "cached_tokens": meter.cached,
        "reasoning_tokens": meter.reasoning,
    }


def _timing(job: Job, seconds: float) -> dict[str, Any]:
    step = max(1, len(job.seconds) // QUANTILE_SAMPLE)
    known = array("f", sorted(value for value in job.seconds[::step] if value > 0))
    timing: dict[str, Any] = {"seconds": round(seconds, 3)}
    if known:
        for name, share in (("p50", 0.5), ("p95", 0.95), ("max", 1.0)):
            timing[f"latency_{name}"] = round(known[int(share * (len(known) - 1))], 4)
    return timing


def write_outputs(
    run: Run,
    results: dict[str, Any],
    requests: JobRequests,
    language: Language,
    *,
    report: bool,
) -> None:
    """Write ``results.json`` and, if asked, ``report.html``."""
    write_json(run.folder / RESULTS, results)
    if report:
        from keju.report.html import write_report

        write_report(
            results,
            answers_of(run, requests),
            run.folder / REPORT,
            manifest=run.manifest.as_dict(),
            language=language,
        )
