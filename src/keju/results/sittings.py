"""A sitting: one exam of one source under one reader, question by question.

A source is a stored run, another tool's log, or a file of predictions; an arm of a run is a sitting
of its own. Whatever is compared is compared as sittings, so that pairs of questions are made in one
place (`keju.results.compare`).

Of the facts about a sitting some are its *conditions*: two scores under different ones are not
comparable, as those of two protocols. The others are *circumstances*: what may well be compared
(two models, two temperatures), and what only chooses the questions (a limit), since pairs are made
of those that both have. What one of two sittings does not know is not held against them: of a file
of predictions nobody knows how its questions were put, and another tool's log tells a part of it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, Protocol

from keju.benchmarks import registry
from keju.benchmarks.base import Exam
from keju.benchmarks.grading import GRADED, VERSION
from keju.config import Arm, Price, TaskConfig
from keju.config.load import data_folder, runs_folder
from keju.engine.job import Job, exams_of, make_jobs
from keju.engine.resume import JobRequests, StoredScores
from keju.engine.tally import PENDING
from keju.errors import DataError, UsageError, did_you_mean
from keju.judges import judge_stage
from keju.results.cells import cluster_of
from keju.results.predictions import Gold, read_predictions
from keju.results.schema import Unlike
from keju.runs.folder import find_run
from keju.runs.manifest import FIXED_FACTS, MANIFEST, Manifest, StoredExam
from keju.runs.run import Run
from keju.runs.sameness import CHOOSING
from keju.types import ALL_OUTCOMES, Outcome

LOGS = "keju.interop.imports.building"
"""The module that reads other tools' logs; named by text, since it stands above this room."""
RENDERING = ("form", "decode", "label_lead")
"""Settings of sampling that are part of how a question is put."""
DATA = "data "
"""Stands before the name of a file whose hash is a condition."""
DIGEST = 12
"""Characters of a file's hash that are shown."""

# What a file of predictions is called beside its own name: ``mistral_predictions.jsonl.gz``.
_PREDICTIONS = re.compile(r"([_-]predictions)?\.jsonl(\.gz)?$")


class Stored(Protocol):
    """Something that lies in a run's folder: a run, or its results."""

    @property
    def folder(self) -> Path: ...


Source = str | Path | Stored


class Item(NamedTuple):
    """One question of a sitting."""

    id: str
    subset: str
    cluster: str | None
    """What it shares with other questions; None where questions are independent."""
    score: float | None
    """The mean over its repeats; None unless every one of them has a grade."""
    least: float
    most: float
    """The score with all repeats that lack a grade wrong, and right."""
    outcome: Outcome | None
    """Of the first repeat; None where nothing is recorded of the question."""
    answer: str | None
    """What was read out of the first repeat."""
    target: str
    seconds: float
    """Of one repeat, on average, as tokens and cost."""
    tokens: float
    cost: float | None


@dataclass(frozen=True, eq=False, kw_only=True)
class Sitting:
    """One exam, in one arm, under one reader."""

    name: str
    """The run's id, or the name of the file."""
    model: str
    job: Job
    place: int = 0
    """Of the reader, among those of the job."""
    price: Price | None = None
    conditions: Mapping[str, Any] = field(default_factory=dict)
    """What must be alike for two scores to be comparable, the weightiest first."""
    circumstances: Mapping[str, Any] = field(default_factory=dict)
    """What may differ, and is said."""
    partial: bool = False
    """Whether not all of these are known."""
    targets: Mapping[int, str] = field(default_factory=dict)
    """The gold answers that counted where they are not those of the exam."""
    file: Path | None = None
    """The file of predictions that it was read from."""

    @property
    def exam(self) -> Exam:
        """The exam, with the questions of this sitting alone."""
        return self.job.exam

    @property
    def protocol(self) -> str:
        """How the questions were put; empty where that is not known."""
        return str(self.conditions.get("protocol", ""))

    @property
    def reader(self) -> str:
        """Who read the answers."""
        return self.job.readers[self.place].name

    @property
    def arm(self) -> str:
        """With which tools; empty where the run has no arms."""
        return self.job.arm

    def __len__(self) -> int:
        return len(self.exam.samples)

    def __iter__(self) -> Iterator[Item]:
        """All questions in the order of the exam, those without a record among them."""
        return map(self.item, range(len(self)))

    def item(self, number: int) -> Item:
        """One question."""
        exam, job, epochs = self.exam, self.job, self.job.epochs
        tally, sample = job.tallies[self.place], self.exam.samples[number]
        first = number * epochs
        units = range(first, first + epochs)
        graded = [_exact(tally.values[u]) for u in units if tally.outcomes[u] in GRADED]
        least = math.fsum(graded) / epochs
        recorded = [unit for unit in units if tally.outcomes[unit] != PENDING]
        return Item(
            sample.id,
            sample.subset,
            cluster_of(exam, number) if exam.clustered else None,
            least if len(graded) == epochs else None,
            least,
            least + (epochs - len(graded)) / epochs,
            ALL_OUTCOMES[tally.outcomes[recorded[0]]] if recorded else None,
            tally.answers[recorded[0]] if tally.answers and recorded else None,
            self.targets.get(number, sample.target),
            math.fsum(job.seconds[unit] for unit in units) / epochs,
            math.fsum(map(job.ledger.tokens, units)) / epochs if job.ledger else 0.0,
            self._cost(units),
        )

    def _cost(self, units: range) -> float | None:
        if self.price is None or self.job.ledger is None:
            return None
        return math.fsum(self.job.ledger.cost(u, self.price) for u in units) / len(units)


def _exact(value: float) -> float:
    """A score as it was before it was stored in single precision."""
    return value if value in (0.0, 1.0) else float(f"{value:.7g}")


def sittings_of(
    source: Source,
    *,
    datasets: str | None = None,
    reader: str | None = None,
    gold: Gold | None = None,
    protocol: str | None = None,
    dataset_args: dict[str, Any] | None = None,
    data_dir: str | None = None,
    work_dir: str | None = None,
) -> list[Sitting]:
    """The sittings of a run (its folder or id), of another tool's log, or of predictions.

    A file of predictions needs `datasets`, the exam that it answers; of the others only this exam
    is taken where it is given. `gold`, `protocol` and `dataset_args`, the settings of the exam, say
    how predictions are read.
    """
    source = source if isinstance(source, str | Path) else source.folder
    path, folder = Path(source), str(runs_folder(work_dir))
    exam = registry.get(datasets).name if datasets else None
    if not path.exists() or (path / MANIFEST).is_file():
        return sittings_of_run(Run(find_run(str(source), folder)), reader, data_dir, exam)
    if _is_log(path):
        found = _of_log(path, datasets, reader, data_folder(data_dir))
        own = [sitting for sitting in found if exam in (None, sitting.exam.benchmark)]
        if not own:
            raise _other_exam(source, exam, [sitting.exam.benchmark for sitting in found])
        return own
    if datasets is None:
        raise UsageError("sitting_needs_exam", path=path)
    if path.is_dir():
        raise UsageError("sitting_folder", path=path)
    how = protocol, dataset_args, data_folder(data_dir)
    return [_of_predictions(path, datasets, reader, gold, *how)]


def refuse_unused(sittings: Iterable[Sitting], **how: Any) -> None:
    """Refuse settings that say how predictions are read where there are none."""
    given = [name for name in ("gold", "protocol", "dataset_args") if how.get(name) is not None]
    if given and not any(sitting.file for sitting in sittings):
        flag = f"--{given[0].replace('_', '-')}"
        raise UsageError("sitting_unused", flag=flag)


def _other_exam(source: Source, exam: str | None, sat: Iterable[str]) -> UsageError:
    names = list(dict.fromkeys(sat))
    values = {"source": source, "exam": exam, "sat": ", ".join(names)}
    return UsageError("sitting_other_exam", **values, hint=did_you_mean(exam or "", names))


def sittings_of_run(
    run: Run, reader: str | None = None, data_dir: str | None = None, exam: str | None = None
) -> list[Sitting]:
    """The sittings of a stored run under a reader, by default the headline's of each exam.

    With `exam` those of this exam alone; UsageError if the run did not sit it.
    """
    sat = [stored.name for stored in run.manifest.benchmarks]
    if exam is not None and exam not in sat:
        raise _other_exam(run.id, exam, sat)
    jobs = read_run(run, reader, data_dir, exam)
    return [replace(sitting_of(job, run.manifest, reader), name=run.id) for job in jobs]


def sitting_of(job: Job, manifest: Manifest, reader: str | None = None) -> Sitting:
    """A job of the run that a manifest describes, under one of the job's readers."""
    stored = {exam.name: exam for exam in manifest.benchmarks}
    facts = stored.get(job.exam.benchmark) or job.facts()
    names = [each.name for each in job.readers]
    place = names.index(reader) if reader else 0
    return Sitting(
        name=manifest.run,
        model=manifest.model,
        job=job,
        place=place,
        price=manifest.price,
        conditions=_questions(job, facts)
        | _put(job, facts, manifest)
        | _read(job, place)
        | _judged(manifest),
        circumstances=_circumstances(job, facts, manifest),
        partial=manifest.imported is True,
    )


def read_run(
    run: Run, reader: str | None = None, data_dir: str | None = None, exam: str | None = None
) -> list[Job]:
    """The jobs of a stored run with its replies entered, and the judges' verdicts on them.

    Stored scores are taken where they are what reading anew would give. `reader` is among the
    readers of every job: the run's own, or else this one in their place. `exam` leaves out the jobs
    of all others.
    """
    config = run.config(data_dir)
    if exam is not None:
        named = [name for name in config.datasets if registry.get(name).name == exam]
        config = config.model_copy(update={"datasets": named})
    jobs = make_jobs(config, detailed=True)
    if reader and any(reader not in [each.name for each in job.readers] for job in jobs):
        kept = {
            name: {key: value for key, value in args.items() if key != "reader"}
            for name, args in config.dataset_args.items()
        }
        config = config.model_copy(update={"reader": [reader], "dataset_args": kept})
        jobs = make_jobs(config, detailed=True)
    stage = judge_stage(config, jobs)
    requests, changed = JobRequests(jobs), changed_files(run.manifest, jobs)
    since = run.manifest.believed_from(exams_of(jobs))
    stored = StoredScores(requests, run.records, since)
    for number, start, record in run.counting(requests, match_keys=not changed):
        position, unit = requests.place(number)
        trusted = stored.believed(position, number, start, record)
        jobs[position].recall(unit, record, trusted=trusted)
    if changed and not any(job.tallies[0].done for job in jobs):
        raise DataError("score_data_changed", file=changed[0])
    if stage is not None:
        stage.grade(run.folder, None)
    return jobs


def changed_files(manifest: Manifest, jobs: list[Job]) -> list[str]:
    """The data files that are not what they were when the run was made."""
    before = {exam.name: exam.data.files for exam in manifest.benchmarks}
    return [
        name
        for job in jobs
        for name, digest in job.exam.data.files.items()
        if before.get(job.exam.benchmark, {}).get(name, digest) != digest
    ]


def _is_log(path: Path) -> bool:
    """Whether a tool is known that could have written what lies there."""
    return (path.is_file() or path.is_dir()) and bool(import_module(LOGS).is_log(path))


def _of_log(
    path: Path, dataset: str | None, reader: str | None, data_dir: str | None
) -> list[Sitting]:
    """The sittings of another tool's log, through a run that is thrown away."""
    module = import_module(LOGS)
    with TemporaryDirectory(prefix="keju-log-") as folder:
        wishes = module.Wishes(
            dataset=dataset,
            data_dir=data_dir,
            work_dir=folder,
            run_id="log",
            readers=[reader] if reader else None,
        )
        imported = module.import_log(path, wishes, report=False)
        found = sittings_of_run(Run(imported.folder), reader, data_dir)
    return [replace(sitting, name=path.resolve().name) for sitting in found]


def _of_predictions(
    path: Path,
    dataset: str,
    reader: str | None,
    gold: Gold | None,
    protocol: str | None,
    dataset_args: dict[str, Any] | None,
    data_dir: str | None,
) -> Sitting:
    """A file of predictions as a sitting; how its questions were put is not known."""
    read = read_predictions(
        dataset,
        path,
        protocol=protocol,
        readers=[reader] if reader else None,
        data_dir=data_dir,
        dataset_args=dataset_args,
        gold=gold,
        detailed=True,
    )
    job, name = read.job, _PREDICTIONS.sub("", path.name) or path.name
    return Sitting(
        name=name,
        model=name,
        job=job,
        conditions=_questions(job, job.facts()) | _read(job, 0, read.golds.used),
        circumstances={"questions": len(job.exam.samples)},
        partial=True,
        targets=read.golds.targets,
        file=path,
    )


def _questions(job: Job, facts: StoredExam) -> dict[str, Any]:
    """What was asked."""
    files = facts.data.files
    digests = {f"{DATA}{name}": files[name][:DIGEST] for name in sorted(files)}
    return {"exam": job.exam.benchmark, **digests}


def _put(job: Job, facts: StoredExam, manifest: Manifest) -> dict[str, Any]:
    """How the questions were put: settings as they are understood today, or as a tool's log says.

    A seed is a part of it where something is drawn.
    """
    settings = dict(job.exam.settings)
    if manifest.imported is True:
        tool = (manifest.origin or {}).get("tool", "another tool")
        settings = facts.settings | {"prompts": f"as {tool} wrote them"}
    shuffles = bool(_args_of(facts, manifest).get("shuffle"))
    draws = shuffles or settings.get("shuffle_choices") or settings.get("few_shot_random")
    return {
        "protocol": facts.protocol.name,
        "protocol version": str(facts.protocol.version),
        **settings,
        **{name: facts.sampling[name] for name in RENDERING if name in facts.sampling},
        "shuffle": shuffles,
        "seed": settings.get("seed", manifest.config.get("seed") if draws else None),
    }


def _args_of(facts: StoredExam, manifest: Manifest) -> dict[str, Any]:
    """The settings of one exam in a run's configuration, where it may go by another name."""
    args: dict[str, dict[str, Any]] = manifest.config.get("dataset_args", {})
    own = (given for name, given in args.items() if registry.get(name).name == facts.name)
    return next(own, {})


def _read(job: Job, place: int, gold: str = "current") -> dict[str, Any]:
    """How the answers are read and graded today."""
    reader = job.readers[place]
    return {
        "reader": reader.name,
        "reader version": reader.version,
        "filters": job.filters.model_dump(exclude_none=True) if job.filters else {},
        "gold": gold,
        "grading": VERSION,
    }


def _judged(manifest: Manifest) -> dict[str, Any]:
    """Who grades what no rule decides, where somebody does."""
    judge = manifest.judge or {}
    own = ("model", "strategy", "prompt", "second", "repeats")
    return {f"judge {name}": judge[name] for name in own if name in judge}


def _circumstances(job: Job, facts: StoredExam, manifest: Manifest) -> dict[str, Any]:
    """What may differ: the model, how text is drawn, which questions, with which tools."""
    config, fields = manifest.config, TaskConfig.model_fields
    arm = next((each for each in config.get("arms", ()) if each.get("name") == job.arm), None)
    args = _args_of(facts, manifest)
    sampling = {key: value for key, value in facts.sampling.items() if key not in RENDERING}
    return {
        "model": manifest.model,
        **{name: manifest.endpoint[name] for name in FIXED_FACTS if name in manifest.endpoint},
        "arm": job.arm,
        "arm tools": Arm(**arm).identity() if arm else {},
        **sampling,
        "subset_list": args.get("subset_list"),
        **{name: config.get(name, fields[name].default) for name in CHOOSING},
        "questions": len(job.exam.samples),
        "complete": manifest.complete,
        "keju": manifest.environment.get("packages", {}).get("keju"),
    }


def unlikes(first: Sitting, second: Sitting) -> list[Unlike]:
    """In what two sittings differ, the weightiest first; a decisive one makes them incomparable."""
    partial = first.partial or second.partial
    found: list[Unlike] = []
    for one, other, decisive in (
        (first.conditions, second.conditions, True),
        (first.circumstances, second.circumstances, False),
    ):
        for name in dict.fromkeys([*one, *other]):
            known = name in one and name in other
            if not known and (partial or name.startswith(DATA)):
                continue  # new subsets bring new files
            if one.get(name) != other.get(name) and not any(own.field == name for own in found):
                found.append(Unlike(name, one.get(name), other.get(name), decisive))
    return found
