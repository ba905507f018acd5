"""One rule for where data is found, and no socket unless a hub is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from keju.errors import DataError
from keju.sources.folder import DataFolder, Layout, NoFolder, locate
from tests.sources.layouts import LAYOUTS

ROW = '{"question_id": 1}\n'


@pytest.fixture
def offline(tmp_path: Path, no_socket: None) -> dict[str, str]:
    """An environment with an empty cache, in which sockets are forbidden."""
    return {"KEJU_CACHE_DIR": str(tmp_path / "cache")}


def mmlu_at(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / "test.jsonl").write_text(ROW)
    return folder


def test_local_path_wins(tmp_path: Path, offline: dict[str, str]) -> None:
    own = mmlu_at(tmp_path / "anything")
    mmlu_at(tmp_path / "data/mmlu_pro")
    data_dir = str(tmp_path / "data")
    folder = locate(
        "mmlu_pro", LAYOUTS["mmlu_pro"], local_path=str(own), data_dir=data_dir, environ=offline
    )
    assert (folder.path, folder.origin) == (own, "folder")
    assert locate("mmlu_pro", LAYOUTS["mmlu_pro"], data_dir=data_dir, environ=offline).path != own


@pytest.mark.parametrize("path", ["TIGER-Lab/MMLU-Pro", "/no/such/place"])
def test_a_path_that_does_not_exist_is_an_error_at_once(
    path: str, tmp_path: Path, offline: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match=r"local_path: .* does not exist"):
        locate("mmlu_pro", LAYOUTS["mmlu_pro"], local_path=path, hub="huggingface", environ=offline)
    with pytest.raises(DataError, match=r"--data-dir: .* is not a folder"):
        locate("mmlu_pro", LAYOUTS["mmlu_pro"], data_dir=path, hub="huggingface", environ=offline)
    with pytest.raises(DataError, match=r"KEJU_DATA_DIR: .* is not a folder"):
        locate("mmlu_pro", LAYOUTS["mmlu_pro"], environ={**offline, "KEJU_DATA_DIR": path})


@pytest.mark.parametrize("name", ["mmlu_pro", "MMLU-Pro"])
def test_a_data_dir_holds_one_folder_a_benchmark(
    name: str, tmp_path: Path, offline: dict[str, str]
) -> None:
    own = mmlu_at(tmp_path / "data" / name)
    by_flag = locate(
        "mmlu_pro", LAYOUTS["mmlu_pro"], data_dir=str(tmp_path / "data"), environ=offline
    )
    by_variable = locate(
        "mmlu_pro",
        LAYOUTS["mmlu_pro"],
        environ={**offline, "KEJU_DATA_DIR": str(tmp_path / "data")},
    )
    assert by_flag.path == by_variable.path == own


def test_a_folder_without_the_benchmark_is_refused(tmp_path: Path, offline: dict[str, str]) -> None:
    (tmp_path / "bbh").mkdir()
    with pytest.raises(DataError, match="holds no data of bbh"):
        locate("bbh", LAYOUTS["bbh"], data_dir=str(tmp_path), environ=offline)
    with pytest.raises(DataError, match="is not a folder"):
        locate("bbh", LAYOUTS["bbh"], local_path=__file__, environ=offline)


def test_the_error_says_what_was_tried_and_what_to_do(
    tmp_path: Path, offline: dict[str, str]
) -> None:
    (tmp_path / "data").mkdir()
    with pytest.raises(DataError) as error:
        locate("bbh", LAYOUTS["bbh"], data_dir=str(tmp_path / "data"), environ=offline)
    message = str(error.value)
    assert f"no folder 'bbh' in {tmp_path / 'data'}" in message
    assert "nothing pulled" in message
    assert "keju data pull bbh" in message
    assert "--data-dir" in message
    assert "\n" not in message


def test_offline_opens_no_socket(offline: dict[str, str]) -> None:
    with pytest.raises(DataError, match="offline forbids to ask huggingface"):
        locate("bixbench", LAYOUTS["bixbench"], hub="huggingface", offline=True, environ=offline)


def test_built_in_data_needs_no_folder(offline: dict[str, str]) -> None:
    assert locate("demo", None, environ=offline).origin == "built in"
    assert isinstance(locate("a_plug_in", Layout(), environ=offline), NoFolder)


def test_a_plug_in_finds_its_own_folder(tmp_path: Path, offline: dict[str, str]) -> None:
    (tmp_path / "a_plug_in").mkdir()
    (tmp_path / "a_plug_in/questions.jsonl").write_text(ROW)
    folder = locate("a_plug_in", Layout(), data_dir=str(tmp_path), environ=offline)
    assert list(folder.rows("questions")) == [{"question_id": 1}]


def state(folder: Path) -> dict[str, tuple[int, bytes]]:
    files = (file for file in folder.rglob("*") if file.is_file())
    return {str(f): (f.stat().st_mtime_ns, f.read_bytes()) for f in files}


def test_nothing_is_written_to_the_users_folder(tmp_path: Path, offline: dict[str, str]) -> None:
    own = mmlu_at(tmp_path / "mine")
    (own / "dataset_infos.json").write_text("{}")
    before = state(own)
    folder = locate("mmlu_pro", LAYOUTS["mmlu_pro"], local_path=str(own), environ=offline)
    assert len(list(folder.rows("test"))) == 1
    assert state(own) == before
    assert not Path(offline["KEJU_CACHE_DIR"]).exists()


def test_edited_data_is_read_as_it_is_now(tmp_path: Path, offline: dict[str, str]) -> None:
    own = mmlu_at(tmp_path / "mine")

    def read() -> DataFolder:
        folder = locate("mmlu_pro", LAYOUTS["mmlu_pro"], local_path=str(own), environ=offline)
        list(folder.rows("test"))
        return folder

    first = read()
    (own / "test.jsonl").write_text(ROW.replace("1", "2"))
    assert read().hashes != first.hashes


def test_the_folder_of_the_benchmark_itself_is_told_from_the_one_above(
    tmp_path: Path, offline: dict[str, str]
) -> None:
    own = mmlu_at(tmp_path / "mmlu_pro")
    with pytest.raises(DataError, match=r"give the folder above it, or '.*' as dataset_args"):
        locate("mmlu_pro", LAYOUTS["mmlu_pro"], data_dir=str(own), environ=offline)
    other = mmlu_at(tmp_path / "files")
    with pytest.raises(DataError, match=r"themselves: give '.*' as dataset_args.mmlu_pro.local"):
        locate("mmlu_pro", LAYOUTS["mmlu_pro"], data_dir=str(other), environ=offline)


def test_a_data_set_in_a_hub_cache_is_read_at_its_snapshot(
    tmp_path: Path, offline: dict[str, str]
) -> None:
    root = tmp_path / "hub" / "datasets--TIGER-Lab--MMLU-Pro"
    first = mmlu_at(root / "snapshots" / "aaa")
    for given in ({"local_path": root}, {"data_dir": root}, {"data_dir": root.parent}):
        asked = {name: str(path) for name, path in given.items()}
        assert locate("mmlu_pro", LAYOUTS["mmlu_pro"], **asked, environ=offline).path == first  # type: ignore[arg-type]
    second = mmlu_at(root / "snapshots" / "bbb")
    with pytest.raises(DataError, match="holds 2 snapshots and refs/main names none"):
        locate("mmlu_pro", LAYOUTS["mmlu_pro"], local_path=str(root), environ=offline)
    (root / "refs").mkdir()
    (root / "refs" / "main").write_text("bbb\n")
    assert (
        locate("mmlu_pro", LAYOUTS["mmlu_pro"], local_path=str(root), environ=offline).path
        == second
    )
