"""Pulling from hubs, against a hub on loopback that speaks their real paths."""

from __future__ import annotations

import hashlib
import json
import socket
from itertools import chain, repeat
from pathlib import Path

import pytest

from keju import bounds
from keju.errors import DataError
from keju.sources import fetch
from keju.sources.fetch import load_receipts
from keju.sources.folder import HubName, Layout, locate
from keju.sources.pull import hub_repo, pull
from tests.sources.hub import COMMIT, TOKEN, FileFault, LoopbackHub
from tests.sources.layouts import BBH_SUBSETS, LAYOUTS
from tests.support.flood import flooding

pytestmark = pytest.mark.slow

HUBS: tuple[HubName, ...] = ("huggingface", "modelscope")
MMLU = "TIGER-Lab/MMLU-Pro"
ROWS = b'{"question_id": 1}\n{"question_id": 2}\n'
FILES = {
    "README.md": b"not wanted",
    "data/test.jsonl": ROWS,
    "data/validation.jsonl": b'{"question_id": 3}\n',
}


def quiet(line: str) -> None:
    """Progress is of no interest here."""


def cached_files(environ: dict[str, str]) -> list[Path]:
    places = [Path(environ["KEJU_CACHE_DIR"]), Path(environ["HF_HOME"])]
    return [file for place in places for file in place.rglob("*.jsonl") if file.exists()]


@pytest.mark.parametrize("name", HUBS)
@pytest.mark.parametrize("lfs", [True, False])
def test_what_is_pulled_is_found_afterwards_without_a_socket(
    hub: LoopbackHub,
    environ: dict[str, str],
    name: HubName,
    lfs: bool,
    request: pytest.FixtureRequest,
) -> None:
    hub.repos[MMLU] = FILES
    hub.lfs = lfs
    receipt = pull("mmlu_pro", LAYOUTS["mmlu_pro"], name, environ=environ, say=quiet)
    assert set(receipt.files) == {"data/test.jsonl", "data/validation.jsonl"}
    assert receipt.files["data/test.jsonl"].sha256 == hashlib.sha256(ROWS).hexdigest()

    request.getfixturevalue("no_socket")
    for asked in (name, None):
        folder = locate("mmlu_pro", LAYOUTS["mmlu_pro"], hub=asked, offline=True, environ=environ)
        assert [row["question_id"] for row in folder.rows("test")] == [1, 2]
        assert folder.origin == f"{name} {MMLU}@{receipt.commit[:12]}"
        assert any(receipt.commit in note for note in folder.notes)


def test_huggingface_resolves_the_branch_and_records_the_commit(
    hub: LoopbackHub, environ: dict[str, str]
) -> None:
    hub.repos[MMLU] = FILES
    receipt = pull("mmlu_pro", LAYOUTS["mmlu_pro"], "huggingface", environ=environ, say=quiet)
    assert (receipt.revision, receipt.commit) == ("main", COMMIT)
    assert not any("README" in asked for asked in hub.asked)


def test_bixbench_is_pinned() -> None:
    source = hub_repo("bixbench", LAYOUTS["bixbench"], "huggingface", None, None)
    assert source.repo == "futurehouse/BixBench"
    assert source.revision == "f8cc3bdcc6357c88b8c3648306522b9c422dc95a"
    assert hub_repo("bixbench", LAYOUTS["bixbench"], "huggingface", None, "main").revision == "main"
    assert (
        hub_repo("bixbench", LAYOUTS["bixbench"], "modelscope", "someone/BixBench", None).revision
        == "master"
    )


@pytest.mark.parametrize(
    ("benchmark", "name", "repo", "words"),
    [
        ("bixbench", "modelscope", None, "--from huggingface"),
        ("demo", "huggingface", None, "generated"),
        ("bbh", "huggingface", "a//b", "OWNER/NAME"),
        ("bbh", "huggingface", "bbh", "OWNER/NAME"),
        ("mine", "huggingface", None, "--data-dir"),
    ],
)
def test_what_cannot_be_pulled_says_why(
    benchmark: str, name: HubName, repo: str | None, words: str
) -> None:
    layout = None if benchmark == "demo" else LAYOUTS.get(benchmark, Layout())
    with pytest.raises(DataError, match=words):
        pull(benchmark, layout, name, repo=repo, environ={}, say=quiet)


@pytest.mark.parametrize("name", HUBS)
def test_a_repository_that_does_not_exist(
    hub: LoopbackHub, environ: dict[str, str], name: HubName
) -> None:
    with pytest.raises(DataError, match=f"data set {MMLU} does not exist") as error:
        pull("mmlu_pro", LAYOUTS["mmlu_pro"], name, environ=environ, say=quiet)
    assert "\n" not in str(error.value)
    assert load_receipts("mmlu_pro", None, environ) == []


@pytest.mark.parametrize("name", HUBS)
def test_a_revision_that_does_not_exist(
    hub: LoopbackHub, environ: dict[str, str], name: HubName
) -> None:
    hub.repos[MMLU] = FILES
    with pytest.raises(DataError, match="revision 'v9'"):
        pull("mmlu_pro", LAYOUTS["mmlu_pro"], name, revision="v9", environ=environ, say=quiet)


@pytest.mark.parametrize(
    ("name", "variable"), [("huggingface", "HF_TOKEN"), ("modelscope", "MODELSCOPE_API_TOKEN")]
)
def test_a_gated_repository_asks_for_terms_and_token(
    hub: LoopbackHub, environ: dict[str, str], name: HubName, variable: str
) -> None:
    hub.repos[MMLU] = FILES
    hub.gated.add(MMLU)
    with pytest.raises(DataError, match=f"accept its terms .*{variable}"):
        pull("mmlu_pro", LAYOUTS["mmlu_pro"], name, environ=environ, say=quiet)
    receipt = pull(
        "mmlu_pro", LAYOUTS["mmlu_pro"], name, environ={**environ, variable: TOKEN}, say=quiet
    )
    stored = [f for f in Path(environ["KEJU_CACHE_DIR"]).rglob("*") if f.is_file()]
    assert stored
    assert all(TOKEN.encode() not in file.read_bytes() for file in stored)
    assert TOKEN not in repr(receipt)


@pytest.mark.parametrize("name", HUBS)
def test_a_hub_that_is_down_is_one_line(
    environ: dict[str, str], name: HubName, closed_port: int
) -> None:
    address = f"http://user:{TOKEN}@127.0.0.1:{closed_port}"
    down = {**environ, "HF_ENDPOINT": address, "MODELSCOPE_ENDPOINT": address}
    with pytest.raises(DataError, match=r"cannot pull .*--data-dir") as error:
        pull("mmlu_pro", LAYOUTS["mmlu_pro"], name, environ=down, say=quiet)
    assert "\n" not in str(error.value)
    assert TOKEN not in str(error.value)


@pytest.mark.parametrize(
    ("name", "fault", "lfs"),
    [
        ("huggingface", "truncated", True),
        ("huggingface", "wrong", True),
        ("huggingface", "wrong", False),
        ("modelscope", "truncated", True),
        ("modelscope", "truncated", False),
        ("modelscope", "wrong", True),
    ],
)
def test_a_damaged_download_is_never_used(
    hub: LoopbackHub,
    environ: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    name: HubName,
    fault: FileFault,
    lfs: bool,
) -> None:
    monkeypatch.setattr("time.sleep", lambda _seconds: None)
    hub.repos[MMLU] = FILES
    hub.lfs = lfs
    hub.faults["data/test.jsonl"] = fault
    with pytest.raises(DataError, match=r"damaged|cannot pull"):
        pull("mmlu_pro", LAYOUTS["mmlu_pro"], name, environ=environ, say=quiet)
    assert not [file for file in cached_files(environ) if file.name == "test.jsonl"]
    with pytest.raises(DataError, match="keju data pull mmlu_pro"):
        locate("mmlu_pro", LAYOUTS["mmlu_pro"], environ=environ)

    hub.faults.clear()
    receipt = pull("mmlu_pro", LAYOUTS["mmlu_pro"], name, environ=environ, say=quiet)
    assert (Path(receipt.path) / "data/test.jsonl").read_bytes() == ROWS


@pytest.mark.parametrize("path", ["../../data/test.jsonl", "/data/test.jsonl", "a\\..\\b"])
def test_a_hub_cannot_choose_where_files_are_written(
    hub: LoopbackHub, environ: dict[str, str], path: str
) -> None:
    hub.repos[MMLU] = {path: ROWS, **FILES}
    with pytest.raises(DataError, match="leaves the folder"):
        pull("mmlu_pro", LAYOUTS["mmlu_pro"], "modelscope", environ=environ, say=quiet)


def test_a_hub_that_sends_without_an_end_is_given_up(
    environ: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounds, "LONGEST_LISTING", 1 << 20)
    monkeypatch.setattr(bounds, "MOST_UNPACKED", 1 << 20)
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    trailers = chain([head + b"2\r\n{}\r\n0\r\n"], repeat(b"x-a: b\r\n" * 1000))
    body = [b"HTTP/1.1 200 OK\r\n\r\n", *repeat(b"x" * 65536, 64)]
    for pieces in (trailers, body):
        with flooding(pieces) as url, pytest.raises(fetch.Unreachable):
            fetch.get(url, {})
    with flooding(body) as url, pytest.raises(fetch.DamagedDownload, match="more than"):
        fetch.download(url, tmp_path / "file", secrets={})
    assert not list(tmp_path.glob("*file*"))


def test_modelscope_pages_through_long_listings(hub: LoopbackHub, environ: dict[str, str]) -> None:
    others = {f"images/{number}.png": b"" for number in range(230)}
    hub.repos[MMLU] = {**others, **FILES}
    receipt = pull("mmlu_pro", LAYOUTS["mmlu_pro"], "modelscope", environ=environ, say=quiet)
    assert len(receipt.files) == 2
    assert sum("repo/tree" in asked for asked in hub.asked) == 3


def test_modelscope_falls_back_to_the_other_listing(
    hub: LoopbackHub, environ: dict[str, str]
) -> None:
    hub.repos[MMLU] = FILES
    hub.tree_listing = False
    assert (
        len(pull("mmlu_pro", LAYOUTS["mmlu_pro"], "modelscope", environ=environ, say=quiet).files)
        == 2
    )


def test_a_second_pull_brings_only_what_is_not_there(
    hub: LoopbackHub, environ: dict[str, str]
) -> None:
    hub.repos[MMLU] = FILES
    pull("mmlu_pro", LAYOUTS["mmlu_pro"], "modelscope", environ=environ, say=quiet)
    hub.asked.clear()
    pull("mmlu_pro", LAYOUTS["mmlu_pro"], "modelscope", environ=environ, say=quiet)
    assert not any("FilePath" in asked for asked in hub.asked)


def test_a_changed_branch_does_not_touch_what_was_pulled_before(
    hub: LoopbackHub, environ: dict[str, str]
) -> None:
    hub.repos[MMLU] = FILES
    before = pull("mmlu_pro", LAYOUTS["mmlu_pro"], "modelscope", environ=environ, say=quiet)
    hub.repos[MMLU] = {**FILES, "data/test.jsonl": b'{"question_id": 9}\n'}
    after = pull("mmlu_pro", LAYOUTS["mmlu_pro"], "modelscope", environ=environ, say=quiet)
    assert before.commit != after.commit
    assert (Path(before.path) / "data/test.jsonl").read_bytes() == ROWS


def test_pulled_data_that_was_deleted_or_cut_is_not_used(
    hub: LoopbackHub, environ: dict[str, str]
) -> None:
    hub.repos[MMLU] = FILES
    receipt = pull("mmlu_pro", LAYOUTS["mmlu_pro"], "modelscope", environ=environ, say=quiet)
    (Path(receipt.path) / "data/test.jsonl").write_bytes(ROWS[:-5])
    with pytest.raises(DataError, match=r"test\.jsonl has gone or changed"):
        locate("mmlu_pro", LAYOUTS["mmlu_pro"], environ=environ)


def test_a_hub_that_is_named_is_asked_and_offline_is_not(
    hub: LoopbackHub, environ: dict[str, str]
) -> None:
    hub.repos[MMLU] = FILES
    with pytest.raises(DataError, match="keju data pull mmlu_pro"):
        locate("mmlu_pro", LAYOUTS["mmlu_pro"], environ=environ)
    with pytest.raises(DataError, match="offline forbids"):
        locate("mmlu_pro", LAYOUTS["mmlu_pro"], hub="modelscope", offline=True, environ=environ)
    with pytest.raises(DataError, match="offline"):
        pull(
            "mmlu_pro", LAYOUTS["mmlu_pro"], "modelscope", offline=True, environ=environ, say=quiet
        )
    assert hub.asked == []
    folder = locate("mmlu_pro", LAYOUTS["mmlu_pro"], hub="modelscope", environ=environ)
    assert len(list(folder.rows("test"))) == 2
    assert (
        pull("mmlu_pro", LAYOUTS["mmlu_pro"], offline=True, environ=environ, say=quiet).hub
        == "modelscope"
    )


def test_a_repository_without_the_benchmark(hub: LoopbackHub, environ: dict[str, str]) -> None:
    hub.repos["some/thing"] = {"weights.bin": b"0"}
    for name in HUBS:
        with pytest.raises(DataError, match="holds none of mmlu_pro's files"):
            pull(
                "mmlu_pro", LAYOUTS["mmlu_pro"], name, repo="some/thing", environ=environ, say=quiet
            )


def bbh_on_hub() -> dict[str, bytes]:
    row = json.dumps({"input": "Q", "target": "(A)"}).encode() + b"\n"
    return {f"{subset}/test.jsonl": row for subset in BBH_SUBSETS}


def test_bbh_gets_its_worked_examples_from_the_official_repository(
    hub: LoopbackHub, environ: dict[str, str], data_dir: Path
) -> None:
    companions = LAYOUTS["bbh"].companions
    assert companions is not None
    base = f"/{companions.repo}/{companions.commit}"
    hub.repos["lukaemon/bbh"] = bbh_on_hub()
    hub.raw = {
        f"{base}/{name}": (data_dir / "bbh" / name).read_bytes() for name in companions.names
    }
    folder = pull("bbh", LAYOUTS["bbh"], environ=environ, say=quiet).folder(LAYOUTS["bbh"])
    assert "-----" in folder.text("cot-prompts/snarks.txt")
    assert [row["target"] for row in folder.rows("snarks")] == ["(A)"]
    assert any(companions.commit in note for note in folder.notes)


def test_bbh_without_the_official_repository_says_what_is_missing(
    hub: LoopbackHub, environ: dict[str, str]
) -> None:
    hub.repos["lukaemon/bbh"] = bbh_on_hub()
    companions = LAYOUTS["bbh"].companions
    assert companions is not None
    forged = f"/{companions.repo}/{companions.commit}/{companions.names[0]}"
    for raw, cause in (({}, "HTTP 404"), ({forged: b"other"}, "checksum")):
        hub.raw = raw
        lines: list[str] = []
        folder = pull("bbh", LAYOUTS["bbh"], environ=environ, say=lines.append).folder(
            LAYOUTS["bbh"]
        )
        assert cause in lines[-1]
        assert not folder.exists(companions.names[0])
        assert any("out of reach" in note for note in folder.notes)


@pytest.mark.parametrize("name", HUBS)
def test_a_cache_that_cannot_be_written_is_one_line(
    hub: LoopbackHub, environ: dict[str, str], tmp_path: Path, name: HubName
) -> None:
    hub.repos[MMLU] = FILES
    (tmp_path / "file").write_text("not a folder")
    blocked = {**environ, "KEJU_CACHE_DIR": str(tmp_path / "file/cache")}
    with pytest.raises(DataError, match=r"cannot write .*cache"):
        pull("mmlu_pro", LAYOUTS["mmlu_pro"], name, environ=blocked, say=quiet)


def test_credentials_stay_with_their_host(hub: LoopbackHub, environ: dict[str, str]) -> None:
    hub.repos[MMLU] = FILES
    with LoopbackHub() as elsewhere:
        elsewhere.raw = {"/stored": ROWS}
        hub.redirects["data/test.jsonl"] = f"{elsewhere.url}/stored"
        secret = {**environ, "MODELSCOPE_API_TOKEN": TOKEN}
        pull("mmlu_pro", LAYOUTS["mmlu_pro"], "modelscope", environ=secret, say=quiet)
        assert elsewhere.asked == ["GET /stored"]
        assert TOKEN not in str(elsewhere.headers)
    assert TOKEN in str(hub.headers)


@pytest.mark.parametrize(
    ("name", "variable"), [("huggingface", "HF_TOKEN"), ("modelscope", "MODELSCOPE_API_TOKEN")]
)
def test_a_token_that_cannot_be_sent_is_not_shown(
    hub: LoopbackHub, environ: dict[str, str], name: HubName, variable: str
) -> None:
    hub.repos[MMLU] = FILES
    with pytest.raises(DataError, match="cannot be sent") as error:
        pull(
            "mmlu_pro",
            LAYOUTS["mmlu_pro"],
            name,
            environ={**environ, variable: f"{TOKEN}\nsecond"},
            say=quiet,
        )
    assert TOKEN not in str(error.value)
    pull(
        "mmlu_pro",
        LAYOUTS["mmlu_pro"],
        name,
        environ={**environ, variable: f" {TOKEN}\n"},
        say=quiet,
    )


@pytest.mark.parametrize("name", HUBS)
def test_a_process_that_blocks_the_network_is_one_line(
    name: HubName, environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def blocked(*args: object, **kwargs: object) -> None:
        raise RuntimeError("no network here")

    monkeypatch.setattr(socket.socket, "connect", blocked)
    monkeypatch.setattr(socket, "create_connection", blocked)
    with pytest.raises(DataError, match=r"cannot pull .*no network here.*--data-dir"):
        pull("ceval", LAYOUTS["ceval"], name, environ=environ, say=quiet)
