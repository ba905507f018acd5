"""What becomes of a reply, as users see it: errors, refusals, cut replies, and what is read."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from starlette.testclient import TestClient

from keju.messages import Language
from keju.models.base import Redactor
from keju.models.openai.wire import normalise
from keju.types import Record, Reply
from keju.viewer.app import make_app
from keju.viewer.run_index import RunIndex
from tests.cli.conftest import Keju
from tests.models.helpers import request_of
from tests.results.fake_exam import entry_of, make_exam, make_tally
from tests.runs01.cases import HERE
from tests.support.endpoint import FaultyEndpoint
from tests.support.recorded_replies import KNOCK
from tests.support.replies import EndpointRequest, Plan, draw

pytestmark = pytest.mark.slow

DATA = str(HERE / "data")
WRONG, RIGHT = "(A)", "(E)"
"""Answers to the first question of `snarks` in the data of the tests."""


def scored(
    keju: Keju, *rows: dict[str, Any], exam: str = "bbh", flags: tuple[str, ...] = ()
) -> Any:
    """The first entry of ``keju score`` for some predictions."""
    Path("p.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    argv = ("--datasets", exam, "--predictions", "p.jsonl", "--data-dir", DATA, *flags)
    ran = keju("score", *argv, "--json")
    assert ran.code in (0, 3), ran.err
    return ran.json["benchmarks"][0]


def snark(output: str | None, finish: str = "length", **fields: Any) -> dict[str, Any]:
    return {"subset": "snarks", "index": 0, "output": output, "finish_reason": finish} | fields


def run_exam(
    keju: Keju, answers: Callable[[EndpointRequest], Any], *flags: str, exam: str = "mmlu_pro"
) -> tuple[Any, list[Record]]:
    """The first entry of ``keju eval`` at an endpoint, and the journal."""
    with FaultyEndpoint(Plan(answers=answers)) as endpoint:
        ran = keju(
            *("eval", "--model", "m", "--api-url", endpoint.url, "--datasets", exam, "--json"),
            *("--data-dir", DATA, "--run-id", "r", "--limit", "1", "--error-limit", "1", "-q"),
            *("--retry-interval", "0.001", *flags),
        )
    lines = Path("runs/r/records.jsonl").read_bytes().splitlines()
    return ran.json["benchmarks"][0], [msgspec.json.decode(line, type=Record) for line in lines]


# Replies that were cut off


@pytest.mark.parametrize("reader", ["evalscope", "answer-only", "mcpbr", "paper", "robust"])
def test_a_reply_that_was_cut_off_is_truncated_under_every_reader(keju: Keju, reader: str) -> None:
    entry = scored(keju, snark("Let us think"), flags=("--reader", reader))
    assert entry["outcomes"]["truncated"] == 1
    assert sum(entry["outcomes"].values()) == 1
    assert entry["metrics"]["accuracy"]["value"] == 0
    assert [notice["code"] for notice in entry["notices"]].count("cut_replies") == 1


@pytest.mark.parametrize(
    ("limit", "code", "message"),
    [
        ((), "cut_replies_unbounded", "no max_tokens is set"),
        (("--generation-config", "max_tokens=1"), "cut_replies", "raise max_tokens"),
        (("--generation-config", "max_tokens=50"), "cut_replies_context", "context was full"),
    ],
)
def test_what_cut_a_reply_off_is_said_and_nothing_else(
    keju: Keju, limit: tuple[str, ...], code: str, message: str
) -> None:
    """A reply of one token that the endpoint calls cut off, for a smaller or a greater limit."""
    cut = {"message": {"content": "Let us think"}, "finish_reason": "length"}
    entry, _ = run_exam(keju, lambda _: cut, *limit, exam="bbh")
    rescored = keju("score", "r", "--data-dir", DATA, "--json").json["benchmarks"][0]
    for exam_entry in (entry, rescored):
        (warning,) = [line for line in exam_entry["warnings"] if "cut off" in line]
        assert message in warning
        assert ("raise max_tokens" in warning) == (code == "cut_replies")
        assert ("keju audit r" in warning) == (code != "cut_replies")
        assert code in [notice["code"] for notice in exam_entry["notices"]]


@pytest.mark.parametrize("reader", ["l2", "evalscope", "robust"])
def test_the_pronoun_of_a_cut_reply_is_no_answer(keju: Keju, reader: str) -> None:
    row = {"question_id": 1024, "output": "Let me see what I", "finish_reason": "length"}
    entry = scored(keju, row, exam="mmlu_pro", flags=("--reader", reader))
    assert entry["outcomes"]["truncated"] == 1


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        (f"So the answer is {RIGHT}", "correct"),
        (f"So the answer is {RIGHT}.", "correct"),
        (f"So the answer is {RIGHT}.\n\nQ: What is", "correct"),
        (f"So the answer is {WRONG}. That is", "incorrect"),
        ("So the answer is (", "truncated"),
        (f"I think {RIGHT}", "truncated"),
    ],
)
def test_the_protocols_marker_with_a_whole_answer_counts_in_a_cut_reply(
    keju: Keju, text: str, outcome: str
) -> None:
    assert scored(keju, snark(text))["outcomes"][outcome] == 1
    assert scored(keju, snark(text), flags=("--reader", "robust"))["outcomes"][outcome] == 1


@pytest.mark.parametrize(
    ("text", "outcome"),
    [("So the answer is 1", "truncated"), ("So the answer is 1.", "incorrect")],
)
def test_a_number_may_have_gone_on(keju: Keju, text: str, outcome: str) -> None:
    row = {"subset": "object_counting", "index": 0, "output": text, "finish_reason": "length"}
    for protocol in ("evalscope", "paper"):
        assert scored(keju, row, flags=("--protocol", protocol))["outcomes"][outcome] == 1


def test_a_published_reader_keeps_its_score_of_a_cut_reply_and_robust_has_none(keju: Keju) -> None:
    rows = [snark(f"{RIGHT} is what I would say, since"), snark(WRONG, "stop", index=1)]
    entry = scored(keju, *rows, flags=("--reader", "evalscope,robust"))
    assert entry["outcomes"]["truncated"] == 1
    assert entry["outcomes"]["correct"] == 0
    assert entry["metrics"]["accuracy"]["value"] == 0.5
    assert entry["metrics"]["accuracy_cut_as_wrong"]["value"] == 0
    robust_entry = scored(keju, *rows, flags=("--reader", "robust"))
    assert robust_entry["outcomes"]["truncated"] == 1
    assert robust_entry["metrics"]["accuracy"]["value"] == 0
    assert "accuracy_cut_as_wrong" not in robust_entry["metrics"]


@pytest.mark.parametrize(
    ("language", "line", "cell"),
    [
        ("en", "{} truncated (cut off; {} of them counted as right)", "{} ({} right)"),
        ("zh", "被截断 {}（其中 {} 个计为正确）", "{}（{} 个正确）"),
    ],
)
def test_counts_add_up_to_the_score_where_a_cut_reply_is_right(
    keju: Keju, monkeypatch: pytest.MonkeyPatch, language: Language, line: str, cell: str
) -> None:
    """Under a published reader: terminal, report, viewer and `keju show` say how many are right."""
    cut = {"message": {"content": f"{RIGHT} is what I would say, since"}, "finish_reason": "length"}
    entry, records = run_exam(
        keju, lambda _: cut, "--generation-config", "max_tokens=50", exam="bbh"
    )
    n, right = len(records), int(sum(record.readings[0].score.value for record in records))
    assert 0 < right < n
    assert (entry["outcomes"]["correct"], entry["outcomes"]["truncated"]) == (0, n)
    assert entry["cut_right"] == right == sum(row.get("cut_right", 0) for row in entry["subsets"])
    monkeypatch.setenv("KEJU_LANGUAGE", language)
    score_output = keju("score", "r", "--data-dir", DATA).out
    assert keju("report", "r", "--language", language).code == 0
    report = Path("runs/r/report.html").read_text("utf-8")
    for page in (score_output, keju("show", "r").out, report):
        assert line.format(n, right) in " ".join(page.split())
    with TestClient(
        make_app(RunIndex(Path("runs")), language=language), "http://127.0.0.1"
    ) as client:
        viewed = client.get("/runs/r").text
    assert cell.format(n, right) in viewed
    for page in (score_output, report, viewed):
        assert cell.format(1, 1) in page
        assert "before an answer" not in page


def test_the_score_of_a_cut_reply_counts_in_every_mean(keju: Keju) -> None:
    flags = ("--repeats", "2", "--generation-config", "temperature=0.7")
    cut = {"message": {"content": "E"}, "finish_reason": "length"}
    wordy = {"message": {"content": "E it is, I"}, "finish_reason": "length"}
    entry, records = run_exam(
        keju, lambda request: wordy if request.body.get("seed") else cut, *flags, exam="bbh"
    )
    values = [record.readings[0].score.value for record in records]
    assert 0 < sum(values) < len(values)
    assert entry["metrics"]["accuracy"]["value"] == pytest.approx(sum(values) / len(values))
    assert entry["metrics"]["pass@1"]["value"] == pytest.approx(sum(values) / len(values))
    assert entry["outcomes"]["truncated"] == len(values)


# Refusals that the endpoint tells


@pytest.mark.parametrize(
    "message",
    [
        {"content": None, "refusal": "I cannot help with that."},
        {"content": [{"type": "refusal", "refusal": "I cannot help with that."}]},
        {"content": "A", "refusal": "I cannot help with that."},
    ],
)
def test_a_refusal_of_the_endpoint_is_refused_and_never_read(
    keju: Keju, message: dict[str, Any]
) -> None:
    entry, records = run_exam(keju, lambda _: message)
    assert entry["outcomes"]["refused"] == entry["n"] == sum(entry["outcomes"].values())
    assert {record.reply.refusal for record in records} == {"I cannot help with that."}
    text = "A" if message["content"] == "A" else ""
    assert {record.reply.text for record in records} == {text}
    rescored = keju("score", "runs/r", "--json").json["benchmarks"][0]
    assert rescored["outcomes"] == entry["outcomes"]


def test_a_stop_reason_that_says_refusal_is_one(keju: Keju) -> None:
    refusal_reply = {"message": {"content": "ANSWER: A"}, "finish_reason": "refusal"}
    entry, _ = run_exam(keju, lambda _: refusal_reply)
    assert entry["outcomes"]["refused"] == entry["n"]


def test_records_of_0_1_have_no_refusal_and_stay_readable() -> None:
    line = b'{"bench": "b", "id": "1", "hash": "00", "reply": {"text": "I cannot"}}'
    assert msgspec.json.decode(line, type=Record).reply.refused is False


# Servers that fail under status 200


@pytest.mark.parametrize(
    "choice",
    [
        {"message": {"content": "ANSWER: A"}, "finish_reason": "abort"},
        {"message": {"content": "ANSWER: A"}, "finish_reason": "ERROR"},
        {"message": {"content": "ANSWER: A"}, "error": {"message": "upstream died", "code": 502}},
    ],
)
def test_a_server_that_gives_up_is_an_error_and_asked_again(
    keju: Keju, choice: dict[str, Any]
) -> None:
    keys: list[str] = []

    def answers(request: EndpointRequest) -> Any:
        """The first question never gets an answer, every other one at its second attempt."""
        keys.append(request.key)
        never = request.key == next((key for key in keys if key != keys[0]), "")
        fails = request.text != KNOCK and (never or keys.count(request.key) == 1)
        return choice if fails else {"content": "ANSWER: A"}

    entry, records = run_exam(keju, answers, "--attempts", "2")
    assert entry["outcomes"]["error"] == 1
    assert all(record.faults for record in records)
    assert {fault.kind for record in records for fault in record.faults} == {"server"}


def test_an_error_beside_choices_is_no_answer() -> None:
    error = {"message": "overloaded", "code": 503}
    body = {"choices": [{"message": {"content": "B"}}], "error": error}
    reply = normalise(msgspec.json.encode(body), request_of(), 0.0, Redactor([]))
    assert reply.error is not None
    assert (reply.error.kind, reply.error.status, reply.text) == ("rate_limit", 503, "")


def test_the_choice_is_taken_by_its_index() -> None:
    choices = [{"index": n, "message": {"content": "BA"[n]}} for n in (1, 0)]
    body = msgspec.json.encode({"choices": choices})
    assert normalise(body, request_of(), 0.0, Redactor([])).text == "B"


def test_what_0_1_took_for_an_answer_is_an_error_and_asked_again(keju: Keju) -> None:
    run_exam(keju, lambda _: {"message": {"content": "ANSWER: A"}, "finish_reason": "stop"})
    path = Path("runs/r/records.jsonl")
    records = [msgspec.json.decode(line, type=Record) for line in path.read_bytes().splitlines()]
    broken = msgspec.structs.replace(records[0], reply=Reply("ANSWER: A", finish="abort"))
    path.write_bytes(
        b"".join(msgspec.json.encode(record) + b"\n" for record in (broken, *records[1:]))
    )
    entry = keju("score", "runs/r", "--json").json["benchmarks"][0]
    assert entry["outcomes"]["error"] == 1
    entry, after = run_exam(keju, lambda _: "ANSWER: A", "--resume")
    assert (entry["outcomes"]["error"], len(after)) == (0, len(records) + 1)


# The headline is never a selection


def failing(share: float) -> Callable[[EndpointRequest], Any]:
    """Answers A, except that a share of the questions of `demo` is too long for the endpoint."""
    return lambda request: (
        {"message": {"content": ""}, "finish_reason": "content_filter"}
        if request.text != KNOCK and draw(request.text) < share
        else "So the answer is (A)."
    )


@pytest.mark.parametrize(
    ("share", "code", "has_value"), [(0.1, 0, True), (0.4, 0, False), (0.8, 3, False)]
)
def test_replies_without_a_grade_leave_a_range(
    keju: Keju, share: float, code: int, has_value: bool
) -> None:
    flags = ("--datasets", "demo", "--dataset-args", '{"demo": {"size": 20}}', "--run-id", "r")
    with FaultyEndpoint(Plan(answers=failing(share))) as endpoint:
        ran = keju(
            *("eval", "--model", "m", "--api-url", endpoint.url, "--error-limit", "1", *flags),
        )
    assert ran.code == code
    assert ("inconclusive" in ran.err) is (code == 3)
    scored_again = keju("score", "runs/r", "--json")
    assert scored_again.code == code
    entry = scored_again.json["benchmarks"][0]
    counts, total = entry["outcomes"], sum(entry["outcomes"].values())
    accuracy, error_count = entry["metrics"]["accuracy"], counts["error"]
    assert error_count
    assert accuracy["bounds"] == pytest.approx(
        [counts["correct"] / total, (counts["correct"] + error_count) / total]
    )
    assert (accuracy["value"] is not None) is (accuracy["ci95"] is not None) is has_value
    assert (entry["metrics"]["macro_accuracy"]["value"] is not None) is has_value
    low, high = (f"{100 * end:.2f}" for end in accuracy["bounds"])
    page = Path("runs/r/report.html").read_text("utf-8")
    figure = f'<span class="figure">{low}–{high} %</span>'
    assert (figure in page) is not has_value
    range_text = f"from all wrong to all right: {error_count} of {total} replies have no grade"
    if has_value:
        range_text = f"{low}–{high} %, depending on the {error_count} without a grade"
    headline = ran.out.splitlines()[1]
    assert f"{low}–{high} %" in headline
    assert range_text in headline
    assert range_text in page


def test_the_threshold_is_a_fifth_of_the_replies() -> None:
    entry = entry_of(make_exam({"a": 10}), make_tally("11110000ee"))
    assert entry["metrics"]["accuracy"]["value"] == 0.5
    assert entry["metrics"]["accuracy"]["bounds"] == pytest.approx([0.4, 0.6])
    entry = entry_of(make_exam({"a": 10}), make_tally("1111000eeg"))
    assert entry["metrics"]["accuracy"]["value"] is None
    assert [row["bounds"] for row in entry["subsets"]] == [pytest.approx([0.4, 0.7])]


def test_every_reply_graded_has_no_bounds() -> None:
    entry = entry_of(make_exam({"a": 4}), make_tally("11tu"))
    assert "bounds" not in entry["metrics"]["accuracy"]


def test_questions_without_labels_have_no_score_and_no_ungraded_replies(
    keju: Keju, tmp_path: Path
) -> None:
    data = tmp_path / "data" / "ceval"
    shutil.copytree(HERE / "data" / "ceval", data)
    for path in (data / "val").rglob("*_val.csv"):
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        test = data / "test" / path.name.replace("_val", "_test")
        test.parent.mkdir(exist_ok=True)
        with test.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(
                file, ["id", "question", "A", "B", "C", "D"], extrasaction="ignore"
            )
            writer.writeheader()
            writer.writerows(rows)
    subjects = sorted(path.stem.removesuffix("_val") for path in (data / "val").rglob("*_val.csv"))
    args = {"ceval": {"split": "test", "subset_list": subjects}}
    with FaultyEndpoint(Plan(answers="答案：A")) as endpoint:
        ran = keju(
            *("eval", "--model", "m", "--api-url", endpoint.url, "--datasets", "ceval"),
            *("--data-dir", str(tmp_path / "data"), "--dataset-args", json.dumps(args)),
            *("--run-id", "r", "-q"),
        )
    assert ran.code == 0, ran.err
    assert "no score: no labels" in ran.out
    assert "no score: no labels (keju export r --format submission --partial)" in ran.out
    rescored = keju("score", "runs/r", "--json")
    entry = rescored.json["benchmarks"][0]
    assert (rescored.code, entry["outcomes"]["ungraded"]) == (0, 0)
    assert entry["outcomes"]["unlabelled"] == entry["n"]
    assert all(metric["value"] is None for metric in entry["metrics"].values())
    assert "no score: no labels" in Path("runs/r/report.html").read_text("utf-8")


# Open answers without a judge


@pytest.mark.parametrize("command", ["eval", "vf-eval", "score", "score RUN"])
def test_open_answers_without_a_judge_are_a_lower_bound_in_every_command(
    keju: Keju, command: str
) -> None:
    args = {"answer_mode": "open"}
    with FaultyEndpoint(Plan(answers="It depends on the tissue.")) as endpoint:
        model = ("-m", "m", "-b", endpoint.url) if command == "vf-eval" else ()
        model = model or ("--model", "m", "--api-url", endpoint.url)
        run_flags = ("--data-dir", DATA, "--run-id", "r")
        if command == "vf-eval":
            ran = keju("vf-eval", "bixbench", "-a", json.dumps(args), "-r", "1", *model, *run_flags)
        else:
            exam_flags = ("--dataset-args", json.dumps({"bixbench": args}))
            ran = keju("eval", "--datasets", "bixbench", *exam_flags, *model, *run_flags, "-q")
    if command == "score":
        rows = [
            msgspec.json.decode(r)
            for r in Path("runs/r/records.jsonl").read_bytes().split(b"\n")
            if r
        ]
        entry = scored(
            keju,
            *({"id": row["id"], "output": row["reply"]["text"]} for row in rows),
            exam="bixbench",
            flags=exam_flags,
        )
    else:
        if command == "score RUN":
            ran = keju("score", "runs/r")
        assert ran.code == 0, ran.err
        assert (
            "exact match 0.00 % (a lower bound; up to 100.00 % with a judge: keju judge r)"
            in ran.out
        )
        entry = keju("score", "runs/r", "--json").json["benchmarks"][0]
    assert entry["grader"] == "exact"
    assert entry["outcomes"]["ungraded"] == 0
    assert entry["outcomes"]["incorrect"] == entry["n"]
    assert entry["metrics"]["accuracy"]["value"] == 0
    assert entry["metrics"]["accuracy"]["bounds"] == [0, 1]


def test_a_judge_later_decides_what_exact_match_only_bounded(keju: Keju) -> None:
    def answers(request: EndpointRequest) -> str:
        judges = request.body["model"] == "judge"
        return "<grade>correct</grade>" if judges else "It depends on the tissue."

    args = json.dumps({"bixbench": {"answer_mode": "open"}})
    with FaultyEndpoint(Plan(answers=answers)) as endpoint:
        model = ("--model", "m", "--api-url", endpoint.url, "--data-dir", DATA, "--run-id", "r")
        ran = keju("eval", "--datasets", "bixbench", "--dataset-args", args, *model, "-q")
        assert ran.code == 0, ran.err
        judged = keju("judge", "r", "--model", "judge", "--json", "-q")
    assert judged.code == 0, judged.err
    entry = judged.json["benchmarks"][0]
    assert entry["judge"]["judged"] == entry["n"] == entry["outcomes"]["correct"]
    assert "grader" not in entry


# Letters whose options are not recorded


def test_letters_of_an_unknown_order_are_compared_with_their_own_target(keju: Keju) -> None:
    lines = (HERE / "bixbench" / "run" / "records.jsonl").read_bytes().splitlines()
    ids = [msgspec.json.decode(line)["id"] for line in lines]
    for key, value in (("output", "B"), ("predicted", "B"), ("output", "<answer> B </answer>")):
        rows = [
            {"id": name, key: value, "target": "AB"[number % 2]} for number, name in enumerate(ids)
        ]
        entry = scored(keju, *rows, exam="bixbench")
        assert entry["outcomes"]["correct"] == len(ids) // 2
        assert entry["gold"] == "recorded"
    ran = keju(
        *("score", "--datasets", "bixbench", "--predictions", "p.jsonl"),
        *("--data-dir", DATA, "--gold", "current"),
    )
    assert (ran.code, "unknown order" in ran.err) == (2, True)


def test_the_official_letters_of_version_1_5_give_the_published_accuracy(
    keju: Keju, data_dir: Path
) -> None:
    path = data_dir / "golden/bixbench/v1.5_gpt-4o_mcq-refusal-False_predictions.jsonl"
    argv = ("--datasets", "bixbench", "--predictions", str(path), "--data-dir", str(data_dir))
    entry = keju("score", *argv, "--json").json["benchmarks"][0]
    assert entry["metrics"]["accuracy"]["value"] == 74 / 205
    assert (entry["outcomes"]["correct"], entry["outcomes"]["unparsed"]) == (74, 4)


def test_what_a_filter_broke_off_is_no_answer_of_any_reader(keju: Keju, data_dir: Path) -> None:
    """The pronoun of `I cannot help` is option I of MMLU-Pro."""
    row = {"question_id": 70, "output": "I cannot help.", "finish_reason": "content_filter"}
    Path("p.jsonl").write_text(json.dumps(row) + "\n")
    argv = ("score", "--datasets", "mmlu_pro", "--predictions", "p.jsonl", "--json")
    for word in ("content_filter", "SAFETY"):
        Path("p.jsonl").write_text(json.dumps(row | {"finish_reason": word}) + "\n")
        (entry,) = keju(*argv, "--data-dir", str(data_dir)).json["benchmarks"]
        assert entry["outcomes"]["error"] == 1
        assert entry["outcomes"]["correct"] == 0


@pytest.mark.parametrize("word", ["max_tokens", "model_length", "MAX_TOKENS"])
def test_other_words_for_a_cut_count_in_a_file_too(keju: Keju, data_dir: Path, word: str) -> None:
    row = {"subset": "snarks", "index": 0, "output": "Let us think", "finish_reason": word}
    Path("p.jsonl").write_text(json.dumps(row) + "\n")
    argv = ("score", "--datasets", "bbh", "--predictions", "p.jsonl", "--json")
    (entry,) = keju(*argv, "--data-dir", str(data_dir)).json["benchmarks"]
    assert entry["outcomes"]["truncated"] == 1
