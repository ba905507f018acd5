"""Parts of a run as files: their settings, locks and journals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from keju.errors import UsageError
from keju.files import write_json
from keju.runs.journal import FILE, Journal, Records
from keju.runs.manifest import MANIFEST, Manifest, StoredExam, StoredSession
from keju.runs.merge import join, lock_parts, merge_configs, merge_manifests, part_notices
from keju.runs.run import Run
from keju.types import Fault, Record, Reply


def make_part(
    folder: Path, config: dict[str, Any], replies: dict[str, str | Fault], model: str = "m"
) -> Run:
    """A part with one record for each hash in `replies`."""
    with Journal(folder) as journal:
        for name, text in replies.items():
            error = text if isinstance(text, Fault) else None
            reply = Reply("" if isinstance(text, Fault) else text, error=error)
            journal.append([Record(bench="demo", id=name, hash=name * 32, reply=reply)])
    manifest = Manifest(
        run=folder.name,
        model=model,
        config={"datasets": ["demo"], **config},
        benchmarks=[StoredExam(name="demo")],
        sessions=[StoredSession(requests=len(replies))],
    )
    write_json(folder / MANIFEST, manifest)
    return Run(folder)


@pytest.fixture
def parts(tmp_path: Path) -> list[Run]:
    for name in ("one", "two", "whole"):
        (tmp_path / name).mkdir()
    first = make_part(tmp_path / "one", {"shard": "1/3"}, {"a": "A", "b": Fault("server", "500")})
    return [first, make_part(tmp_path / "two", {"shard": "2/3"}, {"a": "B", "b": "B"})]


def test_settings_of_one_part_are_not_those_of_the_run() -> None:
    configs: list[dict[str, Any]] = [
        {"datasets": ["demo"], "shard": "1/2", "ids": ["x"], "dataset_args": {"demo": {"n": 1}}},
        {"datasets": ["demo", "fresh"], "shard": "2/2", "ids": ["y", "x"]},
    ]
    assert merge_configs(configs) == {
        "datasets": ["demo", "fresh"],
        "dataset_args": {"demo": {"n": 1}},
        "ids": ["x", "y"],
    }
    assert "ids" not in merge_configs([configs[0], {"datasets": ["demo"]}])


def test_lines_are_copied_and_repeated_replies_counted(parts: list[Run], tmp_path: Path) -> None:
    (parts[0].folder / "notebooks").mkdir()
    (parts[0].folder / "notebooks" / "a.ipynb").write_text("{}")
    joined = join(parts, tmp_path / "whole")
    assert (joined.damaged, joined.duplicates) == (0, 1)
    lines = [(parts[n].folder / FILE).read_bytes() for n in (0, 1)]
    assert (tmp_path / "whole" / FILE).read_bytes() == b"".join(lines)
    assert [record.id for record in Records(tmp_path / "whole")] == ["a", "b", "a", "b"]
    assert (tmp_path / "whole" / "notebooks" / "a.ipynb").is_file()
    assert not (tmp_path / "whole" / MANIFEST).exists()


def test_links_out_of_a_part_are_not_followed(parts: list[Run], tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("x")
    (parts[0].folder / "linked").symlink_to(tmp_path / "secret")
    join(parts, tmp_path / "whole")
    assert not (tmp_path / "whole" / "linked").exists()


def test_missing_parts_and_repeated_questions_are_reported(parts: list[Run]) -> None:
    missing, doubled = part_notices(parts, duplicates=2)
    assert (missing.code, missing.values["missing"], missing.values["parts"]) == (
        "merge_missing",
        "3",
        3,
    )
    assert (doubled.code, doubled.values) == ("merge_doubled", {"n": 2})


def test_a_part_that_is_written_to_is_refused(parts: list[Run]) -> None:
    with lock_parts(parts):
        pass
    with Journal(parts[1].folder), pytest.raises(UsageError) as used, lock_parts(parts):
        pass
    assert used.value.code == "run_in_use"


def test_sessions_are_joined_and_other_models_refused(parts: list[Run], tmp_path: Path) -> None:
    assert sum(session.requests for session in merge_manifests(parts).sessions) == 4
    with pytest.raises(UsageError) as single:
        merge_manifests([parts[0], parts[0]])
    assert single.value.code == "merge_two"
    (tmp_path / "other").mkdir()
    other = make_part(tmp_path / "other", {"shard": "3/3"}, {}, model="another")
    with pytest.raises(UsageError, match="another") as unrelated:
        merge_manifests([parts[0], other])
    assert unrelated.value.code == "merge_other"
