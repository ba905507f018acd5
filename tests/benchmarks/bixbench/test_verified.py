"""BixBench-Verified-50: the user's file, its ids and its keys."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from keju import ConfigError, DataError, prepare_exam
from keju.benchmarks.bixbench.data import ERRATA, QUESTION_IDS, VERIFIED, VERIFIED_IDS
from keju.benchmarks.kit import fingerprint
from tests.benchmarks.bixbench.conftest import FLAT, NESTED, flat, write

OPEN: dict[str, Any] = {"answer_mode": "open", "data_version": VERIFIED}


def make_rows(names: tuple[str, ...] = VERIFIED_IDS, **fields: Any) -> list[dict[str, Any]]:
    return [flat(name, f"key of {name}", ["a", "b", "c"], **fields) for name in names]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    place = tmp_path / "bixbench" / "BixBench-Verified-50.jsonl"
    place.parent.mkdir()
    write(place, make_rows())
    return place


def test_the_fifty_ids_are_questions_of_version_1_5() -> None:
    assert (len(QUESTION_IDS), len(VERIFIED_IDS)) == (205, 50)
    assert set(VERIFIED_IDS) < set(QUESTION_IDS)


def test_it_is_read_next_to_the_other_versions(file: Path, tmp_path: Path) -> None:
    write(file.with_name("BixBench_v1.5.jsonl"), FLAT)
    exam, _ = prepare_exam("bixbench", OPEN, data_dir=str(tmp_path))
    assert (len(exam.samples), exam.subsets[0].name, exam.data.version) == (50, VERIFIED, VERIFIED)
    assert [warning.code for warning in exam.warnings] == ["bixbench.exact"]
    exam, _ = prepare_exam("bixbench", {"answer_mode": "open"}, data_dir=str(tmp_path))
    assert exam.subsets[0].name == "v1.5"


@pytest.mark.parametrize("spelling", ["verified-50", "Verified_50"])
def test_keys_come_from_the_file_of_any_name(spelling: str, file: Path, tmp_path: Path) -> None:
    mine = file.rename(tmp_path / "mine.jsonl")
    rows = make_rows()
    rows[0] = rows[0] | {"ideal": "(0.7, 0.8)", "eval_mode": "range_verifier"}
    del rows[1]["short_id"]
    write(mine, rows)
    args = OPEN | {"data_version": spelling, "local_path": str(mine)}
    exam, _ = prepare_exam("bixbench", args)
    assert exam.samples[0].target == "(0.7, 0.8)"
    assert exam.samples[1].group == VERIFIED_IDS[1].rpartition("-")[0]


def test_its_own_name_and_folder_find_it(file: Path, tmp_path: Path) -> None:
    file.parent.rename(tmp_path / "BixBench-Verified-50")
    (tmp_path / "bixbench").mkdir()
    write(tmp_path / "bixbench" / "BixBench_v1.5.jsonl", FLAT)
    exam, _ = prepare_exam("bixbench_verified_50", {}, data_dir=str(tmp_path))
    assert (exam.benchmark, len(exam.samples)) == ("bixbench", 50)


def test_an_id_that_version_1_5_lacks_is_an_error(file: Path, tmp_path: Path) -> None:
    write(file, make_rows((*VERIFIED_IDS[:49], "bix-999-q1")))
    with pytest.raises(DataError, match="has no question bix-999-q1"):
        prepare_exam("bixbench", OPEN, data_dir=str(tmp_path))


def test_other_questions_than_the_fifty_are_a_warning(file: Path, tmp_path: Path) -> None:
    other = next(name for name in QUESTION_IDS if name not in VERIFIED_IDS)
    write(file, make_rows((*VERIFIED_IDS[:49], other)))
    exam, _ = prepare_exam("bixbench", OPEN, data_dir=str(tmp_path))
    (notice,) = [n for n in exam.warnings if n.code == "bixbench.verified_other"]
    assert notice.values == {"missing": 1, "other": 1}
    assert any(VERIFIED_IDS[49] in note for note in exam.data.notes)


def test_rows_of_version_1_0_are_refused(file: Path, tmp_path: Path) -> None:
    write(file, NESTED)
    with pytest.raises(DataError, match="one question a row"):
        prepare_exam("bixbench", OPEN, data_dir=str(tmp_path))


def test_an_erratum_counts_only_where_the_row_is_unchanged(file: Path, tmp_path: Path) -> None:
    text, key = "What is the ratio?", "2.68"
    name = "bix-61-q5"
    assert ERRATA[VERIFIED][name] == ERRATA["1.5"][name]
    assert fingerprint(text, key) != ERRATA["1.5"][name].row
    exam, _ = prepare_exam("bixbench", OPEN, data_dir=str(tmp_path))
    assert exam.errata == {}


def test_an_unknown_relaxation_is_refused() -> None:
    with pytest.raises(ConfigError, match="relaxations"):
        prepare_exam("bixbench", OPEN | {"relaxations": ["lenient"]})
    with pytest.raises(ConfigError, match="relaxations"):
        prepare_exam("bixbench", {"relaxations": ["rounding"]})
