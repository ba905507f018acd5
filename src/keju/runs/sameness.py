"""One run is one thing: what a session may change of a run, and what makes it another run.

    a reply answers one request             model, protocol, sampling and data are those of the run
    what was asked stays asked              limit, subsets, repeats, exams and arms grow, and never
                                            shrink; an arm stays what it was
    what is read can always be read anew    readers, filters and judges may change

So a session is refused where the run was made with another model, protocol, sampling or data, and
where stored replies would no longer count: since their questions are not asked any more, or since
another setting gives their questions another prompt.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple

import msgspec

from keju.config import Agent, Arm, TaskConfig
from keju.config.exams import is_path, meant
from keju.errors import Hint, Notice, UsageError, joined
from keju.redaction import masked
from keju.runs.manifest import LIMITS, Manifest, StoredExam
from keju.types import Sampling

CHOOSING = ("limit", "total", "ids", "sample", "shard", "repeats", "rotate_options", "seed")
"""Settings of a task that choose the questions, or the order of what they show."""
_DEFAULT_SAMPLING: dict[str, Any] = msgspec.to_builtins(Sampling())
_SHOWN = 60
_DIGEST = 12


class Difference(NamedTuple):
    """Something that an earlier session of a run had otherwise."""

    field: str
    stored: str
    asked: str
    decisive: bool
    """Whether it makes another run in any case, or only where stored replies no longer count."""

    @property
    def told(self) -> str:
        """It in words, which can be said in every language."""
        return Hint("run_difference", field=self.field, stored=self.stored, asked=self.asked)


def differences(before: Manifest, today: Manifest) -> list[Difference]:
    """In what a session differs from what the manifest of its run says."""
    found = [*_changed("", {"model": before.model}, {"model": today.model}, decisive=True)]
    stored, asked = ([exam.name for exam in each.benchmarks] for each in (before, today))
    if set(stored) != set(asked):
        found += _changed("", {"datasets": stored}, {"datasets": asked})
    found += _changed("", _choosing(before.config), _choosing(today.config))
    found += _of_arms(before.config, today.config)
    found += [limit for limit in _of_limits(before, today.config) if limit not in found]
    exams = {exam.name: exam for exam in before.benchmarks}
    for exam in today.benchmarks:
        if exam.name in exams:
            known = {"protocol", "reader", "filters", *exam.settings}
            args = [_args_of(exam.name, each, known) for each in (before, today)]
            subsets = [own.get("subset_list") for own in args]
            chosen_otherwise = subsets[0] != subsets[1]
            found += _of_exam(
                exams[exam.name],
                exam,
                chosen_otherwise=chosen_otherwise,
                is_at_path=_is_at_path(exam.name, before),
            )
            found += _changed(f"{exam.name} ", *args)
    return found


def _choosing(config: Mapping[str, Any]) -> dict[str, Any]:
    fields = TaskConfig.model_fields
    return {name: config.get(name, fields[name].default) for name in CHOOSING}


def _args_of(exam: str, manifest: Manifest, known: set[str]) -> dict[str, Any]:
    """The settings of an exam in a configuration, without those that are compared elsewhere.

    The configuration may call it otherwise, by an alias or a path; the order is the same.
    """
    names, args = manifest.config.get("datasets", ()), manifest.config.get("dataset_args", {})
    sat = [each.name for each in manifest.benchmarks]
    called = names[sat.index(exam)] if len(names) == len(sat) else exam
    own = args.get(exam) or args.get(called) or {}
    return {name: value for name, value in own.items() if name not in known}


def _of_arms(before: Mapping[str, Any], today: Mapping[str, Any]) -> Iterator[Difference]:
    """Arms may be added; one that was there stays what it was, and so do the limits of episodes."""
    stored, asked = ({a.name: a for a in _arms(config)} for config in (before, today))
    if stored.keys() != asked.keys():
        yield from _changed("", {"arms": [*stored]}, {"arms": [*asked]})
    common = [name for name in stored if name in asked]
    for name in common:
        pair = (dict(_flat(arm[name].identity())) for arm in (stored, asked))
        yield from islice(_changed(f"arm {name} ", *pair, decisive=True), 1)
    if any(stored[name].acts for name in common):
        limits = (Agent(**config.get("agent", {})).identity() for config in (before, today))
        yield from _changed("agent.", *limits, decisive=True)


def _of_limits(before: Manifest, today: Mapping[str, Any]) -> Iterator[Difference]:
    """The limits of questions without tools stay what they were; version 1.0 stored none."""
    stored = [arm[LIMITS] for arm in (before.arms or {}).values() if LIMITS in arm]
    agent = Agent(**today.get("agent", {}))
    for limits in stored[:1]:
        asked = {name: getattr(agent, name) for name in limits}
        yield from _changed("agent.", limits, asked, decisive=True)


def _flat(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """The single values in nested settings: ``servers.0.args.1`` and what stands there."""
    if not isinstance(value, dict | list):
        yield path, value
        return
    for key, below in value.items() if isinstance(value, dict) else enumerate(value):
        yield from _flat(below, f"{path}.{key}" if path else str(key))


def _arms(config: Mapping[str, Any]) -> list[Arm]:
    return [Arm(**arm) for arm in config.get("arms", ())]


def _of_exam(
    before: StoredExam, today: StoredExam, *, chosen_otherwise: bool, is_at_path: bool
) -> Iterator[Difference]:
    name = f"{today.name} "
    protocols = [{"protocol": exam.protocol.name} for exam in (before, today)]
    yield from _changed(name, *protocols, decisive=True)
    if protocols[0] != protocols[1]:
        return  # all else follows from that
    sampling = (_DEFAULT_SAMPLING | exam.sampling for exam in (before, today))
    yield from _changed(name, *sampling, decisive=True)
    files = before.data.files.keys() & today.data.files.keys()  # new subsets bring new files
    digests = ({f: exam.data.files[f][:_DIGEST] for f in sorted(files)} for exam in (before, today))
    yield from _changed(f"{name}data ", *digests, decisive=True)
    if is_at_path:  # it reads all files of its folder, whichever subsets are asked
        yield from _changed(f"{name}data ", *_without_common(before.data.files, today.data.files))
    settings = (before.settings, today.settings)
    if chosen_otherwise:
        settings = without_agreeing(*settings)
    yield from _changed(name, *settings)


def _without_common(
    before: Mapping[str, str], today: Mapping[str, str]
) -> tuple[dict[str, str], dict[str, str]]:
    """The files, with the start of their digests, that only one of the two has."""
    first = {name: digest[:_DIGEST] for name, digest in before.items() if name not in today}
    second = {name: digest[:_DIGEST] for name, digest in today.items() if name not in before}
    return first, second


def agree_by_subset(one: Any, other: Any) -> bool:
    """Whether two values that are given for each subset are alike for the subsets of both."""
    if not (isinstance(one, Mapping) and isinstance(other, Mapping)):
        return False
    return one.keys() != other.keys() and all(
        one[subset] == other[subset] for subset in one.keys() & other.keys()
    )


def without_agreeing(
    one: Mapping[str, Any], other: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Settings of two runs that ask other subsets, without those that agree on the common ones."""
    same = {name for name in one if agree_by_subset(one[name], other.get(name))}
    first, second = ({k: v for k, v in own.items() if k not in same} for own in (one, other))
    return first, second


def _changed(
    prefix: str, stored: Mapping[str, Any], asked: Mapping[str, Any], *, decisive: bool = False
) -> Iterator[Difference]:
    stored, asked = masked(stored), masked(asked)  # version 1.0 stored keys in extra_body
    for key in dict.fromkeys([*stored, *asked]):
        before, today = stored.get(key), asked.get(key)
        if before != today:
            yield Difference(prefix + key, _shown(before), _shown(today), decisive)


def _shown(value: Any) -> str:
    """A value in a few words: ``0.7``, ``Q: {question}…``, or ``none`` where there is none."""
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    text = "none" if value is None else text
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def refuse_imported(run: str, before: Manifest) -> None:
    """UsageError for a run whose replies another tool asked for."""
    if before.imported is True:
        origin = before.origin or {}
        tool = f"{origin.get('tool', '')} {origin.get('version', '')}".strip() or "another tool"
        raise UsageError("run_imported", run=run, tool=tool)


def refuse_another(run: str, found: list[Difference], unused: int) -> None:
    """UsageError where a session is of another run; `unused` stored replies would not count."""
    decisive = [each for each in found if each.decisive]
    if decisive or (found and unused):
        listed = joined("joined_by_semicolon", [each.told for each in decisive or found])
        code = "run_is_another" if decisive else "run_would_lose"
        raise UsageError(code, run=run, differences=listed, replies=unused)


def other_versions(before: Manifest, today: list[StoredExam]) -> list[Notice]:
    """The notice that protocols or readers have other versions than when a run was made."""
    told = []
    stored = {exam.name: exam for exam in before.benchmarks}
    for exam in today:
        own = stored.get(exam.name)
        if own is None:
            continue
        pairs = [("protocol", exam.protocol.name, own.protocol.version, exam.protocol.version)]
        pairs += [("order of judgement", "", own.grading, exam.grading)]
        pairs += [
            ("reader", name, own.readers.get(name, version), version)
            for name, version in exam.readers.items()
        ]
        told += [
            f"{exam.name} {kind} {name}@{now} (stored: @{then})"
            for kind, name, then, now in pairs
            if str(then) != str(now)
        ]
    return [Notice("other_versions", {"versions": ", ".join(told)})] if told else []


def changed_files(before: Manifest, today: list[StoredExam]) -> list[str]:
    """The data files that are not what they were when the run was made.

    An exam at a path reads all files of its folder, so a file that was added, removed or renamed is
    a change as well. Other exams read only the files of the subsets that are asked.
    """
    stored = {exam.name: exam.data.files for exam in before.benchmarks}
    changed: list[str] = []
    for exam in today:
        earlier, present = stored.get(exam.name), exam.data.files
        if earlier is None:
            continue
        common = earlier.keys() & present.keys()
        changed += [name for name in present if name in common and earlier[name] != present[name]]
        if _is_at_path(exam.name, before):
            changed += sorted(earlier.keys() ^ present.keys())
    return changed


def _is_at_path(exam: str, manifest: Manifest) -> bool:
    """Whether a run names this exam by its path."""
    return is_path(meant(exam, manifest.config.get("datasets") or ()) or "")
