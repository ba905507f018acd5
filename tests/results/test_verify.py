"""Recorded outputs give the scores that are known for them, and a difference is found."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from keju.benchmarks import registry
from keju.errors import DataError
from keju.results.verify import VerifiedSet, find_sets, verify_all
from tests.cli.conftest import Keju, keju

pytestmark = pytest.mark.slow

__all__ = ["keju"]

SETS = {
    "bbh/code-davinci-002_answer_only",
    "bbh/code-davinci-002_cot",
    "bixbench/v1.0_gpt-4o_mcq-refusal-False",
    "bixbench/v1.5_gpt-4o_mcq-refusal-False",
    "ceval/minimind_val",
    "gsm8k/openai-175b_verification",
    "gsm8k/openai-6b_finetuning",
    "gsm8k/zeroeval-Llama-3.1-405B-Inst_at_sambanova",
    "gsm8k/zeroeval-Llama-3.1-405B-Instruct-Turbo",
    "gsm8k/zeroeval-Meta-Llama-3.1-8B-Instruct",
    "gsm8k/zeroeval-gemma-2-2b-it",
    "gsm8k/zeroeval-gpt-4o-mini-2024-07-18",
    "humaneval/qwen2.5-coder-1.5b-base",
    "ifeval/gpt-4",
    "math_500/qwen2.5-math",
    "mbpp_plus/qwen2.5-coder-1.5b-base",
    "mmlu_pro/Meta-Llama-3_1-8B-Instruct",
    "mmlu_pro/Mistral-7B-v0.1",
}
Lay = Callable[..., Path]


@pytest.fixture(scope="module")
def verified(data_dir: Path) -> dict[str, VerifiedSet]:
    return {verification.recorded.label: verification for verification in verify_all(data_dir)}


def test_every_recorded_set_is_found_and_as_known(verified: dict[str, VerifiedSet]) -> None:
    assert set(verified) == SETS
    failed_checks = [(name, c) for name, v in verified.items() for c in v.checks if not c.ok]
    assert failed_checks == []


FIGURES = {
    "bbh/code-davinci-002_cot": {"correct": 4816, "penguins_in_a_table, correct": 116},
    "bbh/code-davinci-002_answer_only": {"correct": 3408},
    "ceval/minimind_val": {"correct": 330, "hard, correct": 38, "marxism, correct": 6},
    "mmlu_pro/Mistral-7B-v0.1": {
        "recorded gold, l1 correct": 3582,
        "recorded gold, l2 none": 946,
        "recorded gold, math, l2 correct": 278,
        "seed 12345, l1 correct": 3723,
        "seed 12345, l2 correct": 3711,
    },
    "mmlu_pro/Meta-Llama-3_1-8B-Instruct": {
        "recorded gold, l1 none": 1048,
        "recorded gold, l2 correct": 5244,
        "seed 12345, l2 correct": 5323,
    },
    "bixbench/v1.0_gpt-4o_mcq-refusal-False": {"correct": 95, "rows": 296},
    "math_500/qwen2.5-math": {"correct": 351, "replies with another verdict": 0},
    "gsm8k/openai-6b_finetuning": {
        "flexible-extract correct": 286,
        "rows with another verdict": 0,
        "strict-match correct": 0,
    },
    "gsm8k/openai-175b_verification": {
        "flexible-extract correct": 742,
        "rows with another verdict": 0,
        "strict-match correct": 0,
    },
    "bixbench/v1.5_gpt-4o_mcq-refusal-False": {"correct": 74, "without a letter": 4},
}


@pytest.mark.parametrize("name", FIGURES)
def test_the_figures_compared_are_the_published_ones(
    verified: dict[str, VerifiedSet], name: str
) -> None:
    actual = {check.label: check.actual for check in verified[name].checks}
    assert {figure: actual[figure] for figure in FIGURES[name]} == FIGURES[name]


def test_a_set_has_a_figure_for_each_of_its_subsets(verified: dict[str, VerifiedSet]) -> None:
    parts = {name: sum(c.is_of_subset for c in v.checks) for name, v in verified.items()}
    assert parts["bbh/code-davinci-002_cot"] == 2 * 27
    assert parts["ceval/minimind_val"] == 2 * 52
    assert parts["mmlu_pro/Mistral-7B-v0.1"] == 2 * 14 * 7


@pytest.fixture
def lay(data_dir: Path, tmp_path: Path) -> Lay:
    """Lay out a data folder with some recorded sets, under other names if asked."""

    def copy_set(
        benchmark: str, name: str, golden: dict[str, Any] | None = None, to: str = ""
    ) -> Path:
        folder = tmp_path / "data" / "golden" / benchmark
        folder.mkdir(parents=True, exist_ok=True)
        source = data_dir / "golden" / benchmark
        for path in source.glob(f"{name}_*"):
            shutil.copyfile(path, folder / path.name.replace(name, to or name, 1))
        link = tmp_path / "data" / benchmark
        if not link.exists():
            link.symlink_to(data_dir / benchmark)
        if golden is not None:
            (folder / f"{to or name}_golden.json").write_text(json.dumps(golden))
        return tmp_path / "data"

    return copy_set


def golden_document(data_dir: Path, benchmark: str, name: str) -> dict[str, Any]:
    path = data_dir / "golden" / benchmark / f"{name}_golden.json"
    golden: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return golden


ANSWER_ONLY = "code-davinci-002_answer_only"


def test_a_difference_is_one_line_and_exit_code_1(lay: Lay, data_dir: Path, keju: Keju) -> None:
    golden = golden_document(data_dir, "bbh", ANSWER_ONLY)
    golden["subsets"]["snarks"]["correct"] += 1
    folder = lay("bbh", ANSWER_ONLY, golden)
    ran = keju("verify", "--data-dir", str(folder))
    assert ran.code == 1
    different = [line for line in ran.out.splitlines() if line.endswith("DIFFERENT")]
    correct = golden["subsets"]["snarks"]["correct"]
    line = f"bbh/{ANSWER_ONLY}  snarks, correct  expected {correct}  got {correct - 1}  DIFFERENT"
    assert different == [line, "1 set, 34 figures, 1 DIFFERENT"]


def test_another_models_pair_is_verified_by_its_name(lay: Lay, data_dir: Path, keju: Keju) -> None:
    folder = lay("ceval", "minimind_val", to="other_val")
    ran = keju("verify", "--data-dir", str(folder), "--json")
    assert ran.code == 0
    (only,) = ran.json["sets"]
    assert (only["set"], only["ok"], ran.json["ok"]) == ("ceval/other_val", True, True)
    assert {"what": "correct", "expected": 330, "got": 330, "ok": True} in only["checks"]


def test_all_figures_are_listed_on_request(lay: Lay, keju: Keju) -> None:
    folder = lay("bbh", ANSWER_ONLY)
    lines = keju("verify", "--data-dir", str(folder)).out.splitlines()
    assert (len(lines), lines[-1]) == (9, "1 set, 34 figures, all as recorded")
    assert len(keju("verify", "--data-dir", str(folder), "--all").out.splitlines()) == 35


@pytest.mark.parametrize("missing_suffix", ["_golden.json", "_predictions.jsonl.gz"])
def test_half_a_set_is_refused(lay: Lay, keju: Keju, missing_suffix: str) -> None:
    folder = lay("bbh", ANSWER_ONLY)
    (folder / "golden" / "bbh" / f"{ANSWER_ONLY}{missing_suffix}").unlink()
    ran = keju("verify", "--data-dir", str(folder))
    assert ran.code == 2
    assert len(ran.err.splitlines()) == 1
    assert f"has no matching {ANSWER_ONLY}_" in ran.err


def test_recorded_outputs_without_known_scores_are_skipped(lay: Lay, data_dir: Path) -> None:
    folder = lay("ceval", "minimind_val")
    (folder / "recorded").symlink_to(folder / "golden")
    other = folder / "golden" / "ceval" / "other_predictions.jsonl"
    other.write_text("{}\n")
    with pytest.raises(DataError, match="has no matching other_golden"):
        find_sets(folder)
    (folder / "recorded").unlink()
    (folder / "golden").rename(folder / "recorded")
    (only,) = find_sets(folder)
    assert only.label == "ceval/minimind_val"


def test_nothing_to_verify_is_refused(tmp_path: Path, keju: Keju) -> None:
    for place, message in ((tmp_path, "has no folder 'golden'"), (tmp_path, "no recorded outputs")):
        ran = keju("verify", "--data-dir", str(place))
        assert (ran.code, message in ran.err) == (2, True)
        (tmp_path / "golden").mkdir(exist_ok=True)
    assert "give the folder" in keju("verify").err


def test_files_of_another_shape_are_refused(tmp_path: Path) -> None:
    for benchmark, message in (("bbh", "not the shape"), ("bhb", "did you mean 'bbh'")):
        folder = tmp_path / benchmark / "golden" / benchmark
        folder.mkdir(parents=True)
        (folder / "x_golden.json").write_text("{}")
        (folder / "x_predictions.jsonl").write_text("{}\n")
        with pytest.raises(DataError, match=message):
            list(verify_all(tmp_path / benchmark))


def test_every_checker_is_there(data_dir: Path) -> None:
    assert {recorded_set.benchmark for recorded_set in find_sets(data_dir)} == {
        name for name in registry.names() if registry.get(name).golden
    }


def test_score_adds_the_official_guesses_where_both_levels_are_asked_for(
    data_dir: Path, keju: Keju
) -> None:
    file = data_dir / "golden" / "mmlu_pro" / "Mistral-7B-v0.1_predictions.jsonl.gz"
    ran = keju(
        "score", "--datasets", "mmlu_pro", "--predictions", str(file), "--gold", "recorded",
        "--reader", "l1,l2", "--data-dir", str(data_dir), "--json",
    )  # fmt: skip
    name = "accuracy_official_seed_12345"
    shares = {e["reader"]: e["metrics"][name]["value"] for e in ran.json["benchmarks"]}
    assert shares == {"l1": 3723 / 12032, "l2": 3711 / 12032}
    one_level = keju(
        "score", "--datasets", "mmlu_pro", "--predictions", str(file), "--reader", "l1",
        "--data-dir", str(data_dir), "--json",
    )  # fmt: skip
    assert name not in one_level.json["benchmarks"][0]["metrics"]
