"""The facts about a scored exam: conditions of a comparison, and circumstances that may differ.

`keju.results.scored_exam` explains the two kinds.
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
from keju.errors import KejuError
from keju.results.schema import DATA
from keju.runs.manifest import FIXED_FACTS, Manifest, StoredExam
from keju.runs.resume_compat import CHOOSING, agree_by_subset
from keju.scores.exam_scores import ExamScores

RENDERING = ("form", "decode", "label_lead")
"""Settings of sampling that are part of the prompt."""
TOOLS = "arm tools"
"""The tools that an arm offers to the model. Two arms of one run are compared because they
differ."""
DIGEST = 12
"""The number of characters of a file's hash that are shown."""


def question_conditions(job: ExamScores, facts: StoredExam) -> dict[str, Any]:
    """Return the facts that identify the questions: the exam and its data."""
    files = facts.data.files
    digests = {f"{DATA}{name}": files[name][:DIGEST] for name in sorted(files)}
    return {"exam": job.exam.benchmark, **digests}


def protocol_key(job: ExamScores, facts: StoredExam, manifest: Manifest) -> dict[str, Any]:
    """Return how the questions were asked: the settings as Keju understands them today.

    For an imported run, they are the settings in the log of the other tool. The seed is included
    only if something is drawn at random.
    """
    settings = dict(job.exam.settings)
    if manifest.imported is True:
        tool = (manifest.origin or {}).get("tool", "another tool")
        settings = facts.settings | {"prompts": f"as {tool} wrote them"}
    shuffles = bool(args_of_exam(facts, manifest).get("shuffle"))
    is_random = shuffles or settings.get("shuffle_choices") or settings.get("few_shot_random")
    return {
        "protocol": facts.protocol.name,
        "protocol version": str(facts.protocol.version),
        **settings,
        **{name: facts.sampling[name] for name in RENDERING if name in facts.sampling},
        "shuffle": shuffles,
        "seed": settings.get("seed", manifest.config.get("seed") if is_random else None),
    }


def is_comparable(left_value: Any, right_value: Any, left_exam: Exam, right_exam: Exam) -> bool:
    """Whether a setting has the same value in two scored exams.

    A setting with a value for each subset, such as the worked examples of an exam in a folder, is
    compared on the subsets that both exams have: other subsets only choose questions.
    """
    if left_value == right_value:
        return True
    pairs = ((left_value, left_exam), (right_value, right_exam))
    by_subset = all(
        isinstance(value, dict) and all(subset.name in value for subset in exam.subsets)
        for value, exam in pairs
    )
    return by_subset and agree_by_subset(left_value, right_value)


def args_of_exam(facts: StoredExam, manifest: Manifest) -> dict[str, Any]:
    """Return the settings of one exam in a run's configuration, which may name it by an alias."""
    args: dict[str, dict[str, Any]] = manifest.config.get("dataset_args", {})
    matching_args = (
        exam_args for name, exam_args in args.items() if registry.get(name).name == facts.name
    )
    return next(matching_args, {})


def reader_key(job: ExamScores, place: int, gold: str = "current") -> dict[str, Any]:
    """Return how the answers are read and graded today."""
    reader = job.readers[place]
    return {
        "reader": reader.name,
        "reader version": reader.version,
        "filters": job.filters.model_dump(exclude_none=True) if job.filters else {},
        "gold": gold,
        "grading": VERSION,
    }


def settings_summary(facts: StoredExam, manifest: Manifest, arm: str = "") -> dict[str, Any]:
    """Return the conditions that a manifest alone contains, without loading a question.

    Scores with different conditions are shown together but not ranked.
    """
    config, fields = manifest.config, TaskConfig.model_fields
    args: dict[str, Any] = {}
    with suppress(KejuError):  # The exam is not installed here.
        args = args_of_exam(facts, manifest)
    selection = {name: config.get(name, fields[name].default) for name in ("total", "ids", "shard")}
    limit, files = args.get("limit", config.get("limit")), facts.data.files
    sample = config.get("sample", fields["sample"].default)
    is_part = limit is not None or selection["total"] is not None
    samples_questions = is_part and sample != "first"
    settings = facts.settings
    chances = samples_questions, args.get("shuffle")
    is_random = any((*chances, settings.get("shuffle_choices"), settings.get("few_shot_random")))
    return {
        **settings,
        **{name: facts.sampling[name] for name in RENDERING if name in facts.sampling},
        "shuffle": bool(args.get("shuffle")),
        "seed": settings.get("seed", config.get("seed") if is_random else None),
        "filters": facts.filters,
        "subset_list": args.get("subset_list"),
        "limit": limit,
        **selection,
        "sample": sample if samples_questions else None,
        "questions": (facts.samples_of or {}).get(arm, facts.samples),
        "data": _digest_of(files) if files else None,
        **judge_conditions(manifest),
    }


def _digest_of(files: dict[str, str]) -> str:
    """Return a short digest that identifies the data of a run."""
    return sha256(msgspec.json.encode(sorted(files.items()))).hexdigest()[:DIGEST]


def judge_conditions(manifest: Manifest) -> dict[str, Any]:
    """Return the settings of the judge, if there is one."""
    judge = manifest.judge or {}
    judge_keys = ("model", "strategy", "prompt", "second", "repeats")
    return {f"judge {name}": judge[name] for name in judge_keys if name in judge}


def describe_tools(arm: Arm) -> str | None:
    """Return a text that describes an arm's tools: ``calc (python server.py)``; None without tools.

    The text contains every setting of the tools, so that different tools have different texts.
    """
    definition = arm.identity()
    words: list[str] = [*arm.tools]
    for server, server_settings in zip(arm.servers, definition.get("servers", ()), strict=True):
        command = " ".join(
            (server_settings.pop("command", server.transport), *server_settings.pop("args", ()))
        )
        server_settings.pop("name", None)
        remaining_settings = [
            f"{name} {msgspec.json.encode(value).decode()}"
            for name, value in server_settings.items()
        ]
        words.append(f"{server.name} ({', '.join((command, *remaining_settings))})")
    if arm.stub_tools:
        words.append("stub_tools")
    return ", ".join(words) or None


def has_exam_limit(args: Mapping[str, Any]) -> bool:
    """Whether the settings of an exam limit its questions, instead of the run's ``--limit``."""
    return args.get("limit") is not None


def circumstances_of(job: ExamScores, facts: StoredExam, manifest: Manifest) -> dict[str, Any]:
    """Return the facts that may differ: the model, sampling, the choice of questions, the tools."""
    config, fields = manifest.config, TaskConfig.model_fields
    arm = next(
        (settings for settings in config.get("arms", ()) if settings.get("name") == job.arm), None
    )
    args = args_of_exam(facts, manifest)
    sampling = {key: value for key, value in facts.sampling.items() if key not in RENDERING}
    return {
        "model": manifest.model,
        **{name: manifest.endpoint[name] for name in FIXED_FACTS if name in manifest.endpoint},
        "arm": job.arm,
        TOOLS: describe_tools(Arm(**arm)) if arm else None,
        **sampling,
        "subset_list": args.get("subset_list"),
        **{name: config.get(name, fields[name].default) for name in CHOOSING},
        **({"limit": args["limit"], "total": None} if has_exam_limit(args) else {}),
        "questions": len(job.exam.samples),
        "complete": manifest.complete,
        "keju": manifest.environment.get("packages", {}).get("keju"),
    }
