"""Runs that are parts of one run: which they are, and the run that they make.

A batch system runs parts of one exam as jobs of their own, each with a journal of its own:

    part 1   questions 1, 4, 7, …     ┐
    part 2   questions 2, 5, 8, …     ├──>  one run: all lines of all journals, all sessions
    part 3   questions 3, 6, 9, …     ┘

They must be the same in all that decides a reply: model, protocol, sampling, data and weights.
They may differ in which questions they have, by `shard`, `ids` or `datasets`, and in what does not
matter: addresses, limits, readers. Where two parts answer the same question, the rule in
`keju.runs.run` says which record counts, as everywhere.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, NoReturn

from msgspec import UNSET

from keju.benchmarks.samples import DigestTable, hash_digest
from keju.bounds import LONGEST_RECORD
from keju.errors import Hint, Notice, UsageError, joined
from keju.files import take_lock
from keju.messages import first_of
from keju.runs.journal import FILE, RECEIPT, VERDICTS, Records, as_written, open_journal
from keju.runs.manifest import FIXED_FACTS, MANIFEST, TOOLS_HASH, Manifest, StoredJudge
from keju.runs.run import GRADES, REPORT, RESULTS, Run
from keju.runs.sameness import Difference, differences, refuse_imported

PARTS = ("shard", "ids", "datasets")
"""Settings by which parts differ."""
OWN = ("shard", "ids", "run_id", "work_dir", "budget", "failed_of", "use_cache")
"""Settings that are a part's own, and say nothing of the whole."""
WRITTEN = frozenset({FILE, VERDICTS, GRADES, MANIFEST, RESULTS, REPORT, RECEIPT})
"""Files of a run that the whole has anew."""
SHOWN = 8
"""Parts that are named where some are missing."""


def merged_manifest(parts: Sequence[Run]) -> Manifest:
    """The manifest of the run that some parts make; UsageError says which is no part of it."""
    first = parts[0]
    if len({part.folder.resolve() for part in parts}) < max(2, len(parts)):
        raise UsageError("merge_two")
    for part in parts:
        refuse_imported(part.id, part.manifest)
        if part.manifest.stopped:
            raise UsageError("merge_stopped", run=part.id)
        refuse_other(first, part)
    manifests = [part.manifest for part in parts]
    judges: dict[str, StoredJudge] = {}
    for manifest in manifests:
        for name, judge in (manifest.judges or {}).items():
            known = judges.setdefault(name, StoredJudge(judge.endpoint))
            known.sessions = [*known.sessions, *judge.sessions]
    arms = {name: arm for manifest in manifests for name, arm in (manifest.arms or {}).items()}
    sessions = [session for manifest in manifests for session in manifest.sessions]
    graded_by = [manifest.graded_by for manifest in manifests]
    return Manifest(
        model=first.manifest.model,
        created=min(manifest.created for manifest in manifests),
        config=merged_config([manifest.config for manifest in manifests]),
        benchmarks=first.manifest.benchmarks,
        endpoint=first.manifest.endpoint,
        environment=first.manifest.environment,
        sessions=sorted(sessions, key=lambda session: session.started),
        arms=arms or UNSET,
        judges=judges or UNSET,
        graded_by=graded_by[0] if all(each == graded_by[0] for each in graded_by) else UNSET,
    )


def refuse_other(first: Run, other: Run) -> None:
    """UsageError where a run is not a part of the same run as the first."""

    def refuse(found: Iterable[Difference]) -> NoReturn:
        parts = [
            Hint("merge_difference", field=each.field, first=each.stored, other=each.asked)
            for each in found
        ]
        listed = joined("joined_by_semicolon", parts)
        raise UsageError("merge_other", first=first.id, other=other.id, differences=listed)

    before, today = first.manifest, other.manifest
    if found := [each for each in differences(before, today) if each.field not in PARTS]:
        refuse(found)
    facts = before.endpoint, today.endpoint
    pairs: list[tuple[Notice, Any, Any]] = [
        (words, facts[0].get(fact), facts[1].get(fact)) for fact, words in FIXED_FACTS.items()
    ]
    stored, asked = before.arms or {}, today.arms or {}
    for arm in stored.keys() & asked.keys():
        hashes = stored[arm].get(TOOLS_HASH), asked[arm].get(TOOLS_HASH)
        pairs.append((Notice("fact_tools_of_arm", {"arm": arm}), *hashes))
    unlike = [words for words, here, there in pairs if None not in (here, there) and here != there]
    if unlike:
        told = Notice("differs_in", {"fields": unlike})
        raise UsageError("merge_other", first=first.id, other=other.id, differences=told)


def merged_config(configs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The settings of the whole: those of the first part, with the questions of all."""
    whole = {name: value for name, value in configs[0].items() if name not in OWN}
    whole["datasets"] = list(dict.fromkeys(name for each in configs for name in each["datasets"]))
    args: dict[str, Any] = {}
    for config in configs:
        args = config.get("dataset_args", {}) | args
    if args:
        whole["dataset_args"] = args
    chosen = [config.get("ids") for config in configs]
    if all(ids is not None for ids in chosen):
        whole["ids"] = list(dict.fromkeys(one for ids in chosen for one in ids or ()))
    return whole


@contextmanager
def at_rest(parts: Sequence[Run]) -> Iterator[None]:
    """While it is open, nobody writes to these runs; UsageError where somebody does."""
    held: list[BinaryIO] = []
    try:
        for part in parts:
            try:
                held.append(open_journal(part.records.path))
            except FileNotFoundError:
                continue  # a part that never began
            if not take_lock(held[-1].fileno(), part.records.path, shared=True):
                raise UsageError("run_in_use", name=part.id)
        yield
    finally:
        for journal in held:
            journal.close()


def part_notices(parts: Sequence[Run], doubled: int) -> list[Notice]:
    """What is to be said of the parts of a run: which are not there, and what was asked twice."""
    notices = []
    shards = [str(part.manifest.config.get("shard", "")).partition("/") for part in parts]
    sizes = {size for _, _, size in shards}
    if len(sizes) == 1 and "" not in sizes:
        there, size = {int(part) for part, _, _ in shards}, int(sizes.pop())
        if missing := [str(part) for part in range(1, size + 1) if part not in there]:
            shown = first_of(missing, SHOWN)
            named = ", ".join(shown) + (", …" if len(missing) > len(shown) else "")
            values = {"n": len(missing), "parts": size, "missing": named}
            notices.append(Notice("merge_missing", values))
    return notices + ([Notice("merge_doubled", {"n": doubled})] if doubled else [])


class Joined(NamedTuple):
    """What was found in the journals of parts."""

    damaged: int
    """Lines that could not be read; they are left out."""
    doubled: int
    """Replies to questions that an earlier part answers too."""


def join(parts: Sequence[Run], folder: Path) -> Joined:
    """Write the journals of the parts as those of the run in `folder`.

    Lines are taken as they are. What else a part has, such as the notebooks of its episodes, is
    taken along.
    """
    damaged = doubled = 0
    answered = DigestTable()
    for name in (FILE, VERDICTS):
        journals = [Records(part.folder, name) for part in parts]
        journals = [each for each in journals if each.path.is_file()]
        if not journals and name != FILE:
            continue
        with (folder / name).open("wb") as whole:
            for records in journals:
                with open_journal(records.path) as lines:
                    for start, record in records.placed():
                        lines.seek(start)
                        whole.write(as_written(lines.readline(LONGEST_RECORD)))
                        if name == FILE and record.reply.error is None:
                            known = len(answered)
                            answered.add(hash_digest(record.hash))
                            doubled += len(answered) == known
                damaged += records.damaged
            whole.flush()
            os.fsync(whole.fileno())
    for part in parts:
        for path in part.folder.iterdir():
            if path.name in _not_files(str(part.folder), [path.name]):
                continue
            if path.is_dir():
                target = folder / path.name
                shutil.copytree(path, target, dirs_exist_ok=True, ignore=_not_files)
            elif path.name not in WRITTEN and not (folder / path.name).exists():
                shutil.copy2(path, folder / path.name)
    return Joined(damaged, doubled)


def _not_files(folder: str, names: list[str]) -> list[str]:
    """Return the names that are not taken along: links, which lead out of a run, and pipes."""
    kinds = {name: Path(folder, name).lstat().st_mode for name in names}
    return [n for n, mode in kinds.items() if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))]
