"""A log that cannot be imported is told in one line."""

from __future__ import annotations

import json
import shutil
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Keju
from tests.interop.imports.conftest import DATA, FIXTURES

pytestmark = pytest.mark.slow

Break = Callable[[Path], None]


def two_models(folder: Path) -> None:
    """A second model's predictions beside the first's."""
    second_model = folder / "predictions" / "other"
    shutil.copytree(folder / "predictions" / "tiny-chat", second_model)
    for file in second_model.glob("*.jsonl"):
        file.write_text(file.read_text().replace('"model": "tiny-chat"', '"model": "other"'))


def two_runs(folder: Path) -> None:
    """A second run of the same task in the same folder."""
    samples = next(folder.glob("samples_*boolean*"))
    shutil.copy(samples, folder / "samples_bbh_cot_fewshot_boolean_expressions_2027-01-01T0.jsonl")


def two_runs_of_opencompass(folder: Path) -> None:
    """The same dataset under a second time."""
    shutil.copytree(next(folder.glob("2*")), folder / "20270101_000000")


def two_models_of_opencompass(folder: Path) -> None:
    """A second model's predictions beside the first's."""
    predictions = next(folder.glob("*/predictions"))
    shutil.copytree(predictions / "tiny-chat", predictions / "other")


def no_prediction(folder: Path) -> None:
    """An entry without a prediction."""
    file = next(folder.glob("*/predictions/*/ceval-law.json"))
    file.write_text(file.read_text().replace('"prediction"', '"said"', 1))


def two_tools(folder: Path) -> None:
    """The log of another tool below the folder."""
    shutil.copytree(FIXTURES / "verifiers-0.3", folder / "more")


def torn(folder: Path) -> None:
    """The last line is cut off."""
    samples = next(folder.glob("samples_*boolean*"))
    samples.write_bytes(samples.read_bytes()[:-40])


def no_sample(folder: Path) -> None:
    """A line that is no sample of the tool."""
    samples = next(folder.glob("samples_*boolean*"))
    samples.write_text(samples.read_text() + '{"doc_id": 9}\n')


def other_task(folder: Path) -> None:
    """A task that Keju does not have."""
    for samples in list(folder.glob("samples_*")):
        samples.rename(samples.with_name(samples.name.replace("bbh_cot_fewshot", "gsm8k")))


def other_questions(folder: Path) -> None:
    """No question of the log is in the data."""
    for samples in folder.glob("samples_*"):
        rows = [json.loads(line) for line in samples.read_text().splitlines()]
        for row in rows:
            row["doc"]["input"] = f"unknown {row['doc_id']}"
        samples.write_text("".join(json.dumps(row) + "\n" for row in rows))


def unfinished(folder: Path) -> None:
    """An archive without its header."""
    for log in folder.iterdir():
        log.unlink()
    with zipfile.ZipFile(folder / "x.eval", "w") as archive:
        archive.writestr("_journal/start.json", "{}")


def no_archive(folder: Path) -> None:
    """A file of that name which is no archive."""
    (folder / "bbh.eval").write_text("nothing")


@pytest.mark.parametrize(
    ("path", "change", "flags", "message"),
    [
        ("evalscope", two_models, (), "holds several models: other, tiny-chat"),
        ("lm-eval/bbh", two_runs, (), "are both of task 'bbh_cot_fewshot_boolean_expressions'"),
        ("lm-eval/bbh", two_tools, (), "holds logs of several tools (lm-eval, verifiers): choose"),
        ("opencompass/chat", two_models_of_opencompass, (), "several models: other, tiny-chat; g"),
        ("opencompass/chat", two_runs_of_opencompass, (), "holds several runs of bbh-boolean_expr"),
        ("opencompass/chat", no_prediction, (), "law.json, entry 0: no prediction of opencompass"),
        ("lm-eval/bbh", torn, (), "line 6: "),
        ("lm-eval/bbh", no_sample, (), "line 7: no sample of lm-eval"),
        ("lm-eval/bbh", other_task, (), "which Keju does not know: name its exam with --da"),
        ("lm-eval/bbh", other_questions, (), "no row of the log answers a question of the data"),
        ("lm-eval/bbh", None, ("--from", "inspect"), "holds no log of inspect"),
        ("lm-eval/bbh", None, ("--from", "promptfoo"), "--from"),
        ("lm-eval/bbh", None, ("--datasets", "bhb"), "unknown benchmark 'bhb'"),
        ("lm-eval/bbh", None, ("--datasets", "ceval"), "which Keju does not know"),
        ("lm-eval/bbh", None, ("--protocol", "papr"), "bbh has no protocol 'papr'"),
        ("lm-eval/bbh", None, ("--reader", "papr"), "bbh has no reader 'papr'"),
        ("lm-eval/bbh", None, ("--run-id", "../up"), "run_id: "),
        ("lm-eval/bbh", None, ("--data-dir", "absent"), "absent"),
        ("data", None, (), "holds no log of a known tool; known are evalscope, lm-eval"),
        ("inspect", unfinished, (), "the evaluation did not finish"),
        ("inspect", no_archive, (), "bbh.eval is not a whole zip file"),
    ],
)
def test_a_log_that_cannot_be_imported_is_told_in_one_line(
    path: str,
    change: Break | None,
    flags: tuple[str, ...],
    message: str,
    keju: Keju,
    log: Callable[[str], Path],
    tmp_path: Path,
) -> None:
    folder = log(path)
    if change is not None:
        change(folder)
    data = () if "--data-dir" in flags else ("--data-dir", str(DATA))
    ran = keju("import", str(folder), *data, *flags)
    assert message in ran.err
    assert ran.err.startswith("keju: error: ")
    assert len(ran.err.splitlines()) == 1
    assert "internal error" not in ran.err
    assert (ran.code, ran.out) == (2, "")
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (("import",), "LOG is missing"),
        (("import", "absent"), "file or folder absent does not exist"),
        (("import", "x", "--from"), "--from needs a value"),
        (("import", "x", "--modle"), "unknown option --modle"),
    ],
)
def test_wrong_arguments_are_told_in_one_line(
    argv: tuple[str, ...], message: str, keju: Keju
) -> None:
    ran = keju(*argv)
    assert message in ran.err
    assert len(ran.err.splitlines()) == 1
    assert (ran.code, ran.out) == (2, "")


def test_a_refusal_is_told_in_the_language_of_the_terminal(
    keju: Keju, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEJU_LANGUAGE", "zh")
    assert "没有可导入的文件或文件夹 absent" in keju("import", "absent").err


def test_a_missing_unpacker_names_what_to_install(
    keju: Keju, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "zstandard", None)
    ran = keju("import", str(FIXTURES / "inspect" / "bbh.eval"), "--data-dir", str(DATA))
    assert "pip install 'keju[logs]'" in ran.err
    assert len(ran.err.splitlines()) == 1
    assert ran.code == 2


@pytest.mark.parametrize(
    ("path", "rows"),
    [
        ("evalscope/predictions/tiny-chat/bbh_date_understanding.jsonl", 6),
        ("evalscope/predictions", 29),
        ("opencompass/chat/*", 29),
        ("opencompass/chat/*/predictions/tiny-chat", 29),
        ("opencompass/chat/*/predictions/tiny-chat/mmlu_pro_math.json", 5),
        ("opencompass/base/*/predictions/tiny-base/ceval-logic.json", 5),
        ("lm-eval/bbh/samples_*date_understanding*", 6),
        ("lm-eval/bbh/results_*", 12),
        ("verifiers-0.3/results.jsonl", 8),
        ("verifiers-0.4/traces.jsonl", 8),
    ],
)
def test_a_part_of_a_log_can_be_named(path: str, rows: int, keju: Keju) -> None:
    log = next(FIXTURES.glob(path))
    ran = keju("import", str(log), "--data-dir", str(DATA), "--json")
    assert ran.code == 0, ran.err
    assert sum(exam["matched"] for exam in ran.json["benchmarks"]) == rows
    assert all(exam["reported"] for exam in ran.json["benchmarks"])
