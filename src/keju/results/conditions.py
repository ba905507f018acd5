"""The facts about a sitting: what must be alike for scores to be comparable, what may differ.

See `keju.results.sittings`, whose first lines say which is which.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
from typing import Any

import msgspec

from keju.benchmarks import registry
from keju.benchmarks.base import Exam
from keju.benchmarks.grading import VERSION
from keju.config import Arm, TaskConfig
from keju.engine.job import Job
from keju.errors import KejuError
from keju.results.schema import DATA
from keju.runs.manifest import FIXED_FACTS, Manifest, StoredExam
from keju.runs.sameness import CHOOSING, agree_by_subset

RENDERING = ("form", "decode", "label_lead")
"""Settings of sampling that are part of how a question is put."""
TOOLS = "arm tools"
"""What an arm offers the model; two arms of one run are compared because it differs."""
DIGEST = 12
"""Characters of a file's hash that are shown."""


def questions_asked(job: Job, facts: StoredExam) -> dict[str, Any]:
    """What was asked."""
    files = facts.data.files
    digests = {f"{DATA}{name}": files[name][:DIGEST] for name in sorted(files)}
    return {"exam": job.exam.benchmark, **digests}


def manner_of_asking(job: Job, facts: StoredExam, manifest: Manifest) -> dict[str, Any]:
    """How the questions were put: settings as they are understood today, or as a tool's log says.

    A seed is a part of it where something is drawn.
    """
    settings = dict(job.exam.settings)
    if manifest.imported is True:
        tool = (manifest.origin or {}).get("tool", "another tool")
        settings = facts.settings | {"prompts": f"as {tool} wrote them"}
    shuffles = bool(args_of_exam(facts, manifest).get("shuffle"))
    draws = shuffles or settings.get("shuffle_choices") or settings.get("few_shot_random")
    return {
        "protocol": facts.protocol.name,
        "protocol version": str(facts.protocol.version),
        **settings,
        **{name: facts.sampling[name] for name in RENDERING if name in facts.sampling},
        "shuffle": shuffles,
        "seed": settings.get("seed", manifest.config.get("seed") if draws else None),
    }


def alike(one: Any, other: Any, first: Exam, second: Exam) -> bool:
    """Whether a setting of two sittings is the same.

    One that is given for each subset, as the worked examples of an exam in a folder are, counts for
    the subsets that both have: other subsets only choose questions.
    """
    if one == other:
        return True
    pairs = ((one, first), (other, second))
    by_subset = all(
        isinstance(value, dict) and all(subset.name in value for subset in exam.subsets)
        for value, exam in pairs
    )
    return by_subset and agree_by_subset(one, other)


def args_of_exam(facts: StoredExam, manifest: Manifest) -> dict[str, Any]:
    """The settings of one exam in a run's configuration, where it may go by another name."""
    args: dict[str, dict[str, Any]] = manifest.config.get("dataset_args", {})
    own = (given for name, given in args.items() if registry.get(name).name == facts.name)
    return next(own, {})


def manner_of_reading(job: Job, place: int, gold: str = "current") -> dict[str, Any]:
    """How the answers are read and graded today."""
    reader = job.readers[place]
    return {
        "reader": reader.name,
        "reader version": reader.version,
        "filters": job.filters.model_dump(exclude_none=True) if job.filters else {},
        "gold": gold,
        "grading": VERSION,
    }


def asked_at_a_glance(facts: StoredExam, manifest: Manifest, arm: str = "") -> dict[str, Any]:
    """What a manifest alone tells of how an exam was put and graded, and of which questions.

    Scores that differ in it stand side by side and are not ranked. No question is loaded.
    """
    config, fields = manifest.config, TaskConfig.model_fields
    args: dict[str, Any] = {}
    with suppress(KejuError):  # an exam that is not installed here
        args = args_of_exam(facts, manifest)
    chosen = {name: config.get(name, fields[name].default) for name in ("total", "ids", "shard")}
    limit, files = args.get("limit", config.get("limit")), facts.data.files
    sample = config.get("sample", fields["sample"].default)
    picks = (limit is not None or chosen["total"] is not None) and sample != "first"
    settings = facts.settings
    drawn = settings.get("shuffle_choices") or settings.get("few_shot_random")
    draws = picks or drawn or args.get("shuffle")
    return {
        **settings,
        **{name: facts.sampling[name] for name in RENDERING if name in facts.sampling},
        "shuffle": bool(args.get("shuffle")),
        "seed": settings.get("seed", config.get("seed") if draws else None),
        "filters": facts.filters,
        "subset_list": args.get("subset_list"),
        "limit": limit,
        **chosen,
        "sample": sample if picks else None,
        "questions": (facts.samples_of or {}).get(arm, facts.samples),
        "data": _digest_of(files) if files else None,
        **judge_facts(manifest),
    }


def _digest_of(files: dict[str, str]) -> str:
    """What tells the data of two runs apart in a few characters."""
    return sha256(msgspec.json.encode(sorted(files.items()))).hexdigest()[:DIGEST]


def judge_facts(manifest: Manifest) -> dict[str, Any]:
    """Who grades what no rule decides, where somebody does."""
    judge = manifest.judge or {}
    own = ("model", "strategy", "prompt", "second", "repeats")
    return {f"judge {name}": judge[name] for name in own if name in judge}


def tools_in_words(arm: Arm) -> str | None:
    """Which tools an arm has: ``calc (python server.py)``; None for an arm without any.

    Everything that makes the arm what it is stands in it, so that other tools have other words.
    """
    definition = arm.identity()
    words: list[str] = [*arm.tools]
    for server, own in zip(arm.servers, definition.get("servers", ()), strict=True):
        command = " ".join((own.pop("command", server.transport), *own.pop("args", ())))
        own.pop("name", None)
        rest = [f"{name} {msgspec.json.encode(value).decode()}" for name, value in own.items()]
        words.append(f"{server.name} ({', '.join((command, *rest))})")
    if arm.stub_tools:
        words.append("stub_tools")
    return ", ".join(words) or None


def has_exam_limit(args: Mapping[str, Any]) -> bool:
    """Whether the settings of an exam limit its questions, instead of the run's ``--limit``."""
    return args.get("limit") is not None


def circumstances_of(job: Job, facts: StoredExam, manifest: Manifest) -> dict[str, Any]:
    """What may differ: the model, how text is drawn, which questions, with which tools."""
    config, fields = manifest.config, TaskConfig.model_fields
    arm = next((each for each in config.get("arms", ()) if each.get("name") == job.arm), None)
    args = args_of_exam(facts, manifest)
    sampling = {key: value for key, value in facts.sampling.items() if key not in RENDERING}
    return {
        "model": manifest.model,
        **{name: manifest.endpoint[name] for name in FIXED_FACTS if name in manifest.endpoint},
        "arm": job.arm,
        TOOLS: tools_in_words(Arm(**arm)) if arm else None,
        **sampling,
        "subset_list": args.get("subset_list"),
        **{name: config.get(name, fields[name].default) for name in CHOOSING},
        **({"limit": args["limit"], "total": None} if has_exam_limit(args) else {}),
        "questions": len(job.exam.samples),
        "complete": manifest.complete,
        "keju": manifest.environment.get("packages", {}).get("keju"),
    }
