"""The exams of a configuration as scores, and their description in a manifest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

import msgspec

from keju.benchmarks.base import Exam
from keju.benchmarks.prepare import (
    choose_readers,
    merge_generation,
    prepare_exams,
    resolve_sampling,
)
from keju.config import DatasetArgs, TaskConfig
from keju.errors import ConfigError, Notice
from keju.models.registry import fit_sampling, model_name
from keju.runs.manifest import StoredData, StoredExam
from keju.scores.exam_scores import ExamScores
from keju.scores.question_limits import QuestionLimits
from keju.types import Sampling

SAMPLED = ("temperature", "top_p", "top_k", "min_p", "max_tokens", "stop", "seed")
"""Settings that control how text is sampled."""
MAX_UNITS = 50_000_000
"""The most requests of one exam. A few bytes of each are held in memory."""

Scores = TypeVar("Scores", bound=ExamScores)


def collect_hints(scores: Iterable[ExamScores]) -> list[Notice]:
    """Return the hints of the exams to show before a run starts, once for all arms."""
    return list({notice.text(): notice for arm in scores for notice in arm.exam.hints}.values())


def make_scores(config: TaskConfig, *, detailed: bool = False) -> list[ExamScores]:
    """Return the scores of the exams of a run, without replies. Raise ConfigError if one cannot be
    run."""
    return make_scores_of(ExamScores, config, detailed=detailed)


def make_scores_of(
    kind: type[Scores], config: TaskConfig, *, detailed: bool = False
) -> list[Scores]:
    """Do the same with a subclass of `ExamScores`."""
    scores = []
    for exam, args in prepare_exams(config):
        sampling = _fit_sampling(config, exam, args)
        if not exam.samples and (config.ids is not None or config.part is not None):
            continue
        _refuse_exam(config, exam, args, sampling)
        readers = choose_readers(exam, args.reader or config.reader)
        repeats = repeats_of(config, exam)
        exam.hints = (*exam.hints, *exam.repeat_hints(repeats))
        for arm in config.arms or (None,):
            acts = arm is not None and arm.acts
            if acts:
                _refuse_tools(exam, sampling)
            scores.append(
                kind(
                    exam,
                    sampling,
                    readers,
                    model=model_name(config),
                    epochs=repeats,
                    filters=args.filters,
                    detailed=detailed,
                    arm=arm.name if arm is not None else exam.arm,
                    setup=arm.identity() | config.agent.identity() if arm and acts else None,
                    repeat_seed=config.seed,
                    limits=QuestionLimits.of(config.agent, config.price),
                )
            )
    if not scores:
        raise ConfigError("shard_empty", shard=config.shard)
    return scores


def repeats_of(config: TaskConfig, exam: Exam) -> int:
    """Return how many times each question is asked: the user's number, else the protocol's."""
    return config.repeats if "repeats" in config.model_fields_set else exam.protocol.repeats


def _fit_sampling(config: TaskConfig, exam: Exam, args: DatasetArgs) -> Sampling:
    """Return the sampling of an exam as the model allows it. Add its notices to the exam's."""
    requested_sampling = resolve_sampling(exam.protocol, config, args.generation_config)
    try:
        sampling, notices = fit_sampling(config, requested_sampling)
    except ConfigError as error:
        raise ConfigError("sampling_refused", name=exam.benchmark, problem=error) from None
    exam.warnings = (*exam.warnings, *notices)
    return sampling


def _refuse_exam(config: TaskConfig, exam: Exam, args: DatasetArgs, sampling: Sampling) -> None:
    """Raise ConfigError if an exam cannot be asked with these settings."""
    if not exam.samples:
        raise ConfigError("no_question_selected", name=exam.benchmark)
    if (units := len(exam.samples) * repeats_of(config, exam)) > MAX_UNITS:
        raise ConfigError("too_many_units", name=exam.benchmark, units=units, most=MAX_UNITS)
    # Where log-probabilities are compared, settings of sampling would do nothing.
    for name in SAMPLED if sampling.decode != "generate" else ():
        if getattr(merge_generation(config, args.generation_config), name) not in (None, 0):
            raise ConfigError("sampling_of_labels", setting=name, name=exam.benchmark)
    if sampling.form == "completion" and exam.render(exam.samples[0]).prefix.messages:
        values = {"name": exam.benchmark, "protocol": exam.protocol.name}
        raise ConfigError("conversation_as_completion", **values)


def _refuse_tools(exam: Exam, sampling: Sampling) -> None:
    """Raise ConfigError where tools cannot be used, because no conversation can follow the
    questions."""
    cue = exam.render(exam.samples[0]).cue
    if sampling.form != "chat" or sampling.decode != "generate" or cue:
        values = {"name": exam.benchmark, "protocol": exam.protocol.name}
        raise ConfigError("tools_without_conversation", **values)
    for name in ("tools", "tool_choice", "continue_final_message"):
        if name in sampling.extra:
            raise ConfigError("tools_in_extra_body", name=name)


def describe_exams(scores: Iterable[ExamScores]) -> list[StoredExam]:
    """Return the exams of several scores as a manifest describes them: one for all arms.

    An exam's own settings can add arms that ask different questions. Then the files of all arms are
    listed together, and a setting that differs has the values of all arms.
    """
    exams: dict[str, dict[str, StoredExam]] = {}
    for exam_scores in scores:
        arms = exams.setdefault(exam_scores.exam.benchmark, {})
        arms.setdefault(exam_scores.exam.arm, exam_scores.facts())
    return [_merge_arms(arms) for arms in exams.values()]


def _merge_arms(arms: Mapping[str, StoredExam]) -> StoredExam:
    base_arm, *other_arms = arms.values()
    if not any(arms):
        return base_arm
    settings = {
        name: [stored_exam.settings[name] for stored_exam in arms.values()]
        if any(stored_exam.settings[name] != value for stored_exam in other_arms)
        else value
        for name, value in base_arm.settings.items()
    }
    parts = [stored_exam.data for stored_exam in arms.values()]
    return msgspec.structs.replace(
        base_arm,
        settings=settings,
        samples=sum(stored_exam.samples for stored_exam in arms.values()),
        samples_of={arm: stored_exam.samples for arm, stored_exam in arms.items()},
        data=StoredData(
            "; ".join(dict.fromkeys(part.version for part in parts)),
            {name: digest for part in parts for name, digest in part.files.items()},
            list(dict.fromkeys(note for part in parts for note in part.notes)),
        ),
    )
