"""Verification tells unchanged, changed and missing data apart."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from keju.sources.fetch import load_receipts
from keju.sources.folder import DataFolder
from keju.sources.pull import pull
from keju.sources.verify import FileVerification, Verification, verify
from tests.sources.hub import LoopbackHub
from tests.sources.layouts import LAYOUTS, open_published


def verified(path: Path, benchmark: str) -> Verification:
    return verify(benchmark, DataFolder(path, LAYOUTS[benchmark]))


def by_name(result: Verification) -> dict[str, FileVerification]:
    return {item.name: item for item in result.items}


@pytest.mark.parametrize("benchmark", list(LAYOUTS))
def test_the_official_files_are_sound(data_dir: Path, benchmark: str) -> None:
    result = verify(benchmark, open_published(data_dir, benchmark))
    assert result.sound, result.summary.text()
    hashed = {item.name for item in result.items if item.sha256 == "known"}
    unhashed = {"mmlu_pro": {"test", "validation"}, "bixbench": {"v1.0"}}.get(benchmark, set())
    assert hashed == set(by_name(result)) - unhashed


def test_one_changed_byte_one_lost_row_and_one_lost_file_are_found(
    data_dir: Path, tmp_path: Path
) -> None:
    copy = shutil.copytree(data_dir / "bbh", tmp_path / "bbh")
    changed, lost = copy / "bbh/snarks.json", copy / "bbh/navigate.json"
    changed.write_bytes(changed.read_bytes() + b"\n")
    lost.unlink()
    prompt = copy / "cot-prompts/snarks.txt"
    prompt.write_text(prompt.read_text("utf-8").replace("Q:", "F:"), encoding="utf-8")
    (copy / "cot-prompts/navigate.txt").unlink()
    (copy / "bbh/web_of_lies.json").write_text("{")

    result = verified(copy, "bbh")
    items = by_name(result)
    assert not result.sound
    assert (items["snarks"].status, items["snarks"].rows) == ("changed", 178)
    assert items["navigate"].status == "missing"
    assert items["cot-prompts/snarks.txt"].status == "changed"
    assert items["cot-prompts/navigate.txt"].status == "missing"
    assert "not valid JSON" in items["web_of_lies"].detail
    assert sum(item.status != "ok" for item in result.items) == 5
    assert result.summary.text().startswith("bbh: 49 ok, 3 changed, 2 missing (")


def test_rows_are_counted_where_no_hash_is_known(data_dir: Path, tmp_path: Path) -> None:
    rows = (data_dir / "mmlu_pro/validation.jsonl").read_bytes().splitlines(keepends=True)
    (tmp_path / "validation.jsonl").write_bytes(b"".join(rows[:-1]))
    items = by_name(verified(tmp_path, "mmlu_pro"))
    assert (items["validation"].status, items["validation"].rows) == ("changed", 69)
    assert items["test"].status == "missing"


def test_the_hub_name_of_an_official_file_is_known(data_dir: Path, tmp_path: Path) -> None:
    shutil.copy(data_dir / "bixbench/BixBench_v1.5.jsonl", tmp_path / "BixBench.jsonl")
    result = verified(tmp_path, "bixbench")
    assert [(item.name, item.status, item.sha256) for item in result.items] == [
        ("v1.5", "ok", "known")
    ]


def test_pulled_files_are_compared_with_what_was_pulled(
    hub: LoopbackHub, environ: dict[str, str]
) -> None:
    rows = b"".join(b'{"question_id": %d}\n' % number for number in range(70))
    hub.repos["TIGER-Lab/MMLU-Pro"] = {"validation.jsonl": rows}
    receipt = pull(
        "mmlu_pro", LAYOUTS["mmlu_pro"], "modelscope", environ=environ, say=lambda _line: None
    )
    assert (
        by_name(verify("mmlu_pro", receipt.folder(LAYOUTS["mmlu_pro"])))["validation"].status
        == "ok"
    )
    (Path(receipt.path) / "validation.jsonl").write_bytes(rows.replace(b"69", b"96"))
    (kept,) = load_receipts("mmlu_pro", None, environ)
    assert (
        by_name(verify("mmlu_pro", kept.folder(LAYOUTS["mmlu_pro"])))["validation"].status
        == "changed"
    )
