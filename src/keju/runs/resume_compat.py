"""The rule for what a session may change in its run, and which changes need a new run.

    a reply answers one request         model, protocol, sampling and data stay the same
    questions are never removed         limit, subsets, repeats, exams and arms may grow but not
                                        shrink; an arm keeps its settings
    replies can always be read again    readers, filters and judges may change

So Keju refuses a session if the run was made with another model, protocol, sampling or data. It
also refuses a session if stored replies would no longer count: their questions are not asked any
more, or another setting gives them another prompt.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple

import msgspec

from keju.config import AgentLimits, Arm, TaskConfig
from keju.config.exams import is_path, resolve_name
from keju.errors import Notice, TranslatableText, UsageError, join_hints
from keju.redaction import mask_secrets
from keju.runs.manifest import LIMITS, Manifest, StoredExam
from keju.types import Sampling

CHOOSING = ("limit", "total", "ids", "sample", "shard", "repeats", "rotate_options", "seed")
"""Settings of a task that choose the questions, or the order of their options."""
_DEFAULT_SAMPLING: dict[str, Any] = msgspec.to_builtins(Sampling())
_SHOWN = 60
_DIGEST = 12


class ResumeDifference(NamedTuple):
    """A setting in which an earlier session of a run differed."""

    field: str
    stored: str
    requested: str
    is_decisive: bool
    """Whether it always makes another run, or only if stored replies no longer count."""

    @property
    def hint(self) -> str:
        """The difference as text that can be shown in every language."""
        return TranslatableText(
            "run_difference", field=self.field, stored=self.stored, asked=self.requested
        )


def find_differences(before: Manifest, today: Manifest) -> list[ResumeDifference]:
    """Return the differences between a session and the manifest of its run."""
    result = [
        *_compare_values("", {"model": before.model}, {"model": today.model}, is_decisive=True)
    ]
    stored_exams, requested_exams = (
        [exam.name for exam in manifest.benchmarks] for manifest in (before, today)
    )
    if set(stored_exams) != set(requested_exams):
        result += _compare_values("", {"datasets": stored_exams}, {"datasets": requested_exams})
    result += _compare_values(
        "", _choosing_settings(before.config), _choosing_settings(today.config)
    )
    result += _compare_arms(before.config, today.config)
    result += [limit for limit in _compare_limits(before, today.config) if limit not in result]
    exams = {exam.name: exam for exam in before.benchmarks}
    for exam in today.benchmarks:
        if exam.name in exams:
            compared_names = {"protocol", "reader", "filters", *exam.settings}
            args = [_exam_args(exam.name, manifest, compared_names) for manifest in (before, today)]
            subsets = [exam_args.get("subset_list") for exam_args in args]
            has_other_subsets = subsets[0] != subsets[1]
            result += _compare_exam(
                exams[exam.name],
                exam,
                has_other_subsets=has_other_subsets,
                is_at_path=_is_at_path(exam.name, before),
            )
            result += _compare_values(f"{exam.name} ", *args)
    return result


def _choosing_settings(config: Mapping[str, Any]) -> dict[str, Any]:
    fields = TaskConfig.model_fields
    return {name: config.get(name, fields[name].default) for name in CHOOSING}


def _exam_args(exam: str, manifest: Manifest, compared_names: set[str]) -> dict[str, Any]:
    """Return the settings of an exam in a configuration, without those that are compared
    separately.

    The configuration may use another name for it, an alias or a path. The order is the same.
    """
    names, args = manifest.config.get("datasets", ()), manifest.config.get("dataset_args", {})
    exam_names = [stored_exam.name for stored_exam in manifest.benchmarks]
    config_name = names[exam_names.index(exam)] if len(names) == len(exam_names) else exam
    exam_args = args.get(exam) or args.get(config_name) or {}
    return {name: value for name, value in exam_args.items() if name not in compared_names}


def _compare_arms(
    before: Mapping[str, Any], today: Mapping[str, Any]
) -> Iterator[ResumeDifference]:
    """Yield differences of arms. Arms may be added, but an existing arm and the limits of episodes
    stay."""
    stored_arms, requested_arms = (
        {a.name: a for a in _parse_arms(config)} for config in (before, today)
    )
    if stored_arms.keys() != requested_arms.keys():
        yield from _compare_values("", {"arms": [*stored_arms]}, {"arms": [*requested_arms]})
    common = [name for name in stored_arms if name in requested_arms]
    for name in common:
        pair = (dict(_flatten(arm[name].identity())) for arm in (stored_arms, requested_arms))
        yield from islice(_compare_values(f"arm {name} ", *pair, is_decisive=True), 1)
    if any(stored_arms[name].acts for name in common):
        limits = (AgentLimits(**config.get("agent", {})).identity() for config in (before, today))
        yield from _compare_values("agent.", *limits, is_decisive=True)


def _compare_limits(before: Manifest, today: Mapping[str, Any]) -> Iterator[ResumeDifference]:
    """Yield differences in the limits of questions without tools. Version 1.0 stored none."""
    stored_limits = [arm[LIMITS] for arm in (before.arms or {}).values() if LIMITS in arm]
    agent = AgentLimits(**today.get("agent", {}))
    for limits in stored_limits[:1]:
        requested_limits = {name: getattr(agent, name) for name in limits}
        yield from _compare_values("agent.", limits, requested_limits, is_decisive=True)


def _flatten(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the single values in nested settings with their paths: ``servers.0.args.1``."""
    if not isinstance(value, dict | list):
        yield path, value
        return
    for key, nested in value.items() if isinstance(value, dict) else enumerate(value):
        yield from _flatten(nested, f"{path}.{key}" if path else str(key))


def _parse_arms(config: Mapping[str, Any]) -> list[Arm]:
    return [Arm(**arm) for arm in config.get("arms", ())]


def _compare_exam(
    before: StoredExam, today: StoredExam, *, has_other_subsets: bool, is_at_path: bool
) -> Iterator[ResumeDifference]:
    name = f"{today.name} "
    protocols = [{"protocol": exam.protocol.name} for exam in (before, today)]
    yield from _compare_values(name, *protocols, is_decisive=True)
    if protocols[0] != protocols[1]:
        return  # all other differences follow from that
    sampling = (_DEFAULT_SAMPLING | exam.sampling for exam in (before, today))
    yield from _compare_values(name, *sampling, is_decisive=True)
    files = before.data.files.keys() & today.data.files.keys()  # new subsets bring new files
    digests = (
        {file: exam.data.files[file][:_DIGEST] for file in sorted(files)}
        for exam in (before, today)
    )
    yield from _compare_values(f"{name}data ", *digests, is_decisive=True)
    if is_at_path:  # it reads all files of its folder, for any subsets
        yield from _compare_values(
            f"{name}data ", *_drop_common_files(before.data.files, today.data.files)
        )
    settings = (before.settings, today.settings)
    if has_other_subsets:
        settings = drop_agreeing(*settings)
    yield from _compare_values(name, *settings)


def _drop_common_files(
    before: Mapping[str, str], today: Mapping[str, str]
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the files that only one of the two has, with the start of their digests."""
    removed_files = {name: digest[:_DIGEST] for name, digest in before.items() if name not in today}
    added_files = {name: digest[:_DIGEST] for name, digest in today.items() if name not in before}
    return removed_files, added_files


def agree_by_subset(left_value: Any, right_value: Any) -> bool:
    """Whether two values that are given for each subset agree on the common subsets."""
    if not (isinstance(left_value, Mapping) and isinstance(right_value, Mapping)):
        return False
    return left_value.keys() != right_value.keys() and all(
        left_value[subset] == right_value[subset]
        for subset in left_value.keys() & right_value.keys()
    )


def drop_agreeing(
    left_settings: Mapping[str, Any], right_settings: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the settings of two runs with different subsets, without those that agree on the
    common ones."""
    agreeing_names = {
        name
        for name in left_settings
        if agree_by_subset(left_settings[name], right_settings.get(name))
    }
    left_rest, right_rest = (
        {k: v for k, v in settings.items() if k not in agreeing_names}
        for settings in (left_settings, right_settings)
    )
    return left_rest, right_rest


def _compare_values(
    prefix: str,
    stored: Mapping[str, Any],
    requested: Mapping[str, Any],
    *,
    is_decisive: bool = False,
) -> Iterator[ResumeDifference]:
    stored, requested = (
        mask_secrets(stored),
        mask_secrets(requested),
    )  # version 1.0 stored keys in extra_body
    for key in dict.fromkeys([*stored, *requested]):
        before, today = stored.get(key), requested.get(key)
        if before != today:
            yield ResumeDifference(prefix + key, _shorten(before), _shorten(today), is_decisive)


def _shorten(value: Any) -> str:
    """Return a value as short text: ``0.7``, ``Q: {question}…``, or ``none`` for None."""
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    text = "none" if value is None else text
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def refuse_imported(run: str, before: Manifest) -> None:
    """Raise UsageError for a run whose replies another tool requested."""
    if before.imported is True:
        origin = before.origin or {}
        tool = f"{origin.get('tool', '')} {origin.get('version', '')}".strip() or "another tool"
        raise UsageError("run_imported", run=run, tool=tool)


def refuse_other_run(run: str, found_differences: list[ResumeDifference], unused: int) -> None:
    """Raise UsageError if a session belongs to another run. `unused` stored replies would not
    count."""
    decisive = [difference for difference in found_differences if difference.is_decisive]
    if decisive or (found_differences and unused):
        listed = join_hints(
            "joined_by_semicolon", [difference.hint for difference in decisive or found_differences]
        )
        code = "run_is_another" if decisive else "run_would_lose"
        raise UsageError(code, run=run, differences=listed, replies=unused)


def version_notices(before: Manifest, today: list[StoredExam]) -> list[Notice]:
    """Return a notice if protocols or readers have other versions than when a run was made."""
    changes = []
    stored_exams = {exam.name: exam for exam in before.benchmarks}
    for exam in today:
        stored_exam = stored_exams.get(exam.name)
        if stored_exam is None:
            continue
        pairs = [
            ("protocol", exam.protocol.name, stored_exam.protocol.version, exam.protocol.version)
        ]
        pairs += [("order of judgement", "", stored_exam.grading, exam.grading)]
        pairs += [
            ("reader", name, stored_exam.readers.get(name, version), version)
            for name, version in exam.readers.items()
        ]
        changes += [
            f"{exam.name} {kind} {name}@{new_version} (stored: @{old_version})"
            for kind, name, old_version, new_version in pairs
            if str(old_version) != str(new_version)
        ]
    return [Notice("other_versions", {"versions": ", ".join(changes)})] if changes else []


def find_changed_files(before: Manifest, today: list[StoredExam]) -> list[str]:
    """Return the data files that have changed since the run was made.

    An exam at a path reads all files of its folder, so a file that was added, removed or renamed is
    a change as well. Other exams read only the files of their subsets.
    """
    stored_files = {exam.name: exam.data.files for exam in before.benchmarks}
    changed: list[str] = []
    for exam in today:
        old_files, new_files = stored_files.get(exam.name), exam.data.files
        if old_files is None:
            continue
        common = old_files.keys() & new_files.keys()
        changed += [
            name for name in new_files if name in common and old_files[name] != new_files[name]
        ]
        if _is_at_path(exam.name, before):
            changed += sorted(old_files.keys() ^ new_files.keys())
    return changed


def _is_at_path(exam: str, manifest: Manifest) -> bool:
    """Whether a run names this exam by its path."""
    return is_path(resolve_name(exam, manifest.config.get("datasets") or ()) or "")
