"""Runs that are parts of one run, and how they become that run.

A batch system runs parts of one exam as separate jobs, each with its own journal:

    part 1   questions 1, 4, 7, …     ┐
    part 2   questions 2, 5, 8, …     ├──>  one run: all lines of all journals, all sessions
    part 3   questions 3, 6, 9, …     ┘

They must have the same settings that decide a reply: model, protocol, sampling, data and weights.
They may have different questions, by `shard`, `ids` or `datasets`. They may also differ in settings
that do not matter: addresses, limits, readers. Where two parts answer the same question, the rule
in `keju.runs.run` decides which record counts.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, NoReturn

from msgspec import UNSET

from keju.benchmarks.samples import DigestTable, hash_digest
from keju.bounds import LONGEST_RECORD
from keju.errors import Notice, TranslatableText, UsageError, join_hints
from keju.files import take_lock
from keju.messages import first_of
from keju.runs.journal import FILE, RECEIPT, VERDICTS, Records, open_journal, restore_line
from keju.runs.manifest import FIXED_FACTS, MANIFEST, TOOLS_HASH, Manifest, StoredJudge
from keju.runs.resume_compat import ResumeDifference, find_differences, refuse_imported
from keju.runs.run import GRADES, REPORT, RESULTS, Run

PART_SETTINGS = ("shard", "ids", "datasets")
"""Settings by which parts may differ."""
UNSHARED_SETTINGS = ("shard", "ids", "run_id", "work_dir", "budget", "failed_of", "use_cache")
"""Settings of a single part. The merged run does not have them."""
REWRITTEN_FILES = frozenset({FILE, VERDICTS, GRADES, MANIFEST, RESULTS, REPORT, RECEIPT})
"""Files of a run that are written again for the merged run."""
MAX_LISTED = 8
"""The most missing parts that a notice lists."""


def merge_manifests(parts: Sequence[Run]) -> Manifest:
    """Return the manifest of the run that some parts make. Raise UsageError if one is not a part of
    it."""
    first_part = parts[0]
    if len({part.folder.resolve() for part in parts}) < max(2, len(parts)):
        raise UsageError("merge_two")
    for part in parts:
        refuse_imported(part.id, part.manifest)
        if part.manifest.stopped:
            raise UsageError("merge_stopped", run=part.id)
        refuse_unrelated(first_part, part)
    manifests = [part.manifest for part in parts]
    arms = {name: arm for manifest in manifests for name, arm in (manifest.arms or {}).items()}
    sessions = [session for manifest in manifests for session in manifest.sessions]
    graders = [manifest.graded_by for manifest in manifests]
    return Manifest(
        model=first_part.manifest.model,
        created=min(manifest.created for manifest in manifests),
        config=merge_configs([manifest.config for manifest in manifests]),
        benchmarks=first_part.manifest.benchmarks,
        endpoint=first_part.manifest.endpoint,
        environment=first_part.manifest.environment,
        sessions=sorted(sessions, key=lambda session: session.started),
        arms=arms or UNSET,
        judges=_merge_judges(manifests) or UNSET,
        graded_by=graders[0] if all(grader == graders[0] for grader in graders) else UNSET,
    )


def _merge_judges(manifests: Sequence[Manifest]) -> dict[str, StoredJudge]:
    """Return the judges of all parts with their sessions."""
    judges: dict[str, StoredJudge] = {}
    for manifest in manifests:
        for name, judge in (manifest.judges or {}).items():
            merged_judge = judges.setdefault(name, StoredJudge(judge.endpoint))
            merged_judge.sessions = [*merged_judge.sessions, *judge.sessions]
    return judges


def refuse_unrelated(first_part: Run, part: Run) -> None:
    """Raise UsageError if a run is not a part of the same run as the first."""

    def refuse(differing: Iterable[ResumeDifference]) -> NoReturn:
        hints = [
            TranslatableText(
                "merge_difference",
                field=difference.field,
                first=difference.stored,
                other=difference.requested,
            )
            for difference in differing
        ]
        listed = join_hints("joined_by_semicolon", hints)
        raise UsageError("merge_other", first=first_part.id, other=part.id, differences=listed)

    first_manifest, part_manifest = first_part.manifest, part.manifest
    if differing := [
        difference
        for difference in find_differences(first_manifest, part_manifest)
        if difference.field not in PART_SETTINGS
    ]:
        refuse(differing)
    facts = first_manifest.endpoint, part_manifest.endpoint
    pairs: list[tuple[Notice, Any, Any]] = [
        (words, facts[0].get(fact), facts[1].get(fact)) for fact, words in FIXED_FACTS.items()
    ]
    first_arms, part_arms = first_manifest.arms or {}, part_manifest.arms or {}
    for arm in first_arms.keys() & part_arms.keys():
        hashes = first_arms[arm].get(TOOLS_HASH), part_arms[arm].get(TOOLS_HASH)
        pairs.append((Notice("fact_tools_of_arm", {"arm": arm}), *hashes))
    mismatches = [
        words
        for words, first_value, part_value in pairs
        if None not in (first_value, part_value) and first_value != part_value
    ]
    if mismatches:
        notice = Notice("differs_in", {"fields": mismatches})
        raise UsageError("merge_other", first=first_part.id, other=part.id, differences=notice)


def merge_configs(configs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the settings of the merged run: the first part's, with the questions of all."""
    merged = {name: value for name, value in configs[0].items() if name not in UNSHARED_SETTINGS}
    merged["datasets"] = list(
        dict.fromkeys(name for config in configs for name in config["datasets"])
    )
    args: dict[str, Any] = {}
    for config in configs:
        args = config.get("dataset_args", {}) | args
    if args:
        merged["dataset_args"] = args
    id_lists = [config["ids"] for config in configs if config.get("ids") is not None]
    if len(id_lists) == len(configs):
        merged["ids"] = list(dict.fromkeys(chain.from_iterable(id_lists)))
    return merged


@contextmanager
def lock_parts(parts: Sequence[Run]) -> Iterator[None]:
    """Lock these runs against writers. Raise UsageError if a process writes to one."""
    open_journals: list[BinaryIO] = []
    try:
        for part in parts:
            try:
                open_journals.append(open_journal(part.records.path))
            except FileNotFoundError:
                continue  # a part that never began
            if not take_lock(open_journals[-1].fileno(), part.records.path, shared=True):
                raise UsageError("run_in_use", name=part.id)
        yield
    finally:
        for journal in open_journals:
            journal.close()


def part_notices(parts: Sequence[Run], duplicates: int) -> list[Notice]:
    """Return notices about missing parts and about questions that were asked twice."""
    notices = []
    shards = [str(part.manifest.config.get("shard", "")).partition("/") for part in parts]
    sizes = {size for _, _, size in shards}
    if len(sizes) == 1 and "" not in sizes:
        present, size = {int(part) for part, _, _ in shards}, int(sizes.pop())
        if missing := [str(part) for part in range(1, size + 1) if part not in present]:
            listed = first_of(missing, MAX_LISTED)
            listed_text = ", ".join(listed) + (", …" if len(missing) > len(listed) else "")
            values = {"n": len(missing), "parts": size, "missing": listed_text}
            notices.append(Notice("merge_missing", values))
    return notices + ([Notice("merge_doubled", {"n": duplicates})] if duplicates else [])


class MergedParts(NamedTuple):
    """Counts from the journals of parts."""

    damaged: int
    """Lines that could not be read. They are left out."""
    duplicates: int
    """Replies to questions that an earlier part answers too."""


def join(parts: Sequence[Run], folder: Path) -> MergedParts:
    """Write the journals of the parts as the journals of the run in `folder`.

    Lines are copied unchanged. Other files of a part, such as the notebooks of its episodes, are
    copied too.
    """
    merged = MergedParts(0, 0)
    for name in (FILE, VERDICTS):
        journals = [Records(part.folder, name) for part in parts]
        journals = [records for records in journals if records.path.is_file()]
        if journals or name == FILE:
            counts = _join_journals(journals, folder / name)
            merged = MergedParts(
                merged.damaged + counts.damaged,
                counts.duplicates if name == FILE else merged.duplicates,
            )
    for part in parts:
        _copy_other_files(part, folder)
    return merged


def _join_journals(journals: Sequence[Records], path: Path) -> MergedParts:
    """Write the lines of journals to one file. Count replies to the same request once."""
    damaged = duplicates = 0
    answered = DigestTable()
    with path.open("wb") as merged_file:
        for records in journals:
            with open_journal(records.path) as lines:
                for start, record in records.iter_with_positions():
                    lines.seek(start)
                    merged_file.write(restore_line(lines.readline(LONGEST_RECORD)))
                    if record.reply.error is None:
                        answered_before = len(answered)
                        answered.add(hash_digest(record.hash))
                        duplicates += len(answered) == answered_before
            damaged += records.damaged
        merged_file.flush()
        os.fsync(merged_file.fileno())
    return MergedParts(damaged, duplicates)


def _copy_other_files(part: Run, folder: Path) -> None:
    """Copy the files of a part that are not written again, such as notebooks of episodes."""
    for path in part.folder.iterdir():
        if path.name in _names_to_skip(str(part.folder), [path.name]):
            continue
        if path.is_dir():
            target = folder / path.name
            shutil.copytree(path, target, dirs_exist_ok=True, ignore=_names_to_skip)
        elif path.name not in REWRITTEN_FILES and not (folder / path.name).exists():
            shutil.copy2(path, folder / path.name)


def _names_to_skip(folder: str, names: list[str]) -> list[str]:
    """Return the names that are not copied: pipes, and links, which may lead out of a run."""
    kinds = {name: Path(folder, name).lstat().st_mode for name in names}
    return [name for name, mode in kinds.items() if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))]
