"""Faults of endpoints and of own exams that no single reply shows: each is on the result."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from keju.errors import Notice
from keju.scores.reply_checks import is_same_model
from tests.cli.conftest import Keju, Ran
from tests.support.endpoint import FaultyEndpoint
from tests.support.replies import EndpointRequest, Plan

Rows = Sequence[dict[str, Any]]
SIZE = 60
LABELS = "ABCD"


def question(number: int) -> dict[str, Any]:
    """A question with four options; longer prompts for higher numbers."""
    passage = f"Number {number} of a series of questions. " * (4 + number)
    options = [f"{word} {number}" for word in ("red", "green", "blue", "white")]
    answer = random.Random(number).choice(LABELS)
    return {"question": f"{passage}Which one?", "choices": options, "answer": answer}


@pytest.fixture
def exam(tmp_path: Path) -> Path:
    """An exam of our own."""
    return write_exam(tmp_path / "exam", [question(number) for number in range(SIZE)])


def write_exam(folder: Path, rows: Rows, shots: Rows = ()) -> Path:
    folder.mkdir()
    for name, row_list in (("questions", rows), ("shots", shots)):
        if row_list:
            (folder / f"{name}.jsonl").write_text(
                "".join(json.dumps(row) + "\n" for row in row_list)
            )
    return folder


def right_letter(request: EndpointRequest) -> str:
    """The right answer to the question that a prompt asks; none to the preflight's."""
    _, separator, remainder = request.text.rpartition("Number ")
    return str(question(int(remainder.split()[0]))["answer"]) if separator else "A"


def well_reasoned(request: EndpointRequest) -> str:
    return f"This is about prompt {request.key}. The answer is {right_letter(request)}."


def at_length(request: EndpointRequest) -> str:
    return 20 * "I think. " + well_reasoned(request)


def half_right(request: EndpointRequest) -> str:
    """Replies that are right for every other question, and short."""
    letter = right_letter(request)
    return letter if int(request.key, 16) % 2 else LABELS[LABELS.index(letter) - 1]


def evaluate(keju: Keju, plan: Plan, exam: Path | str, *flags: str, run: str = "r") -> Ran:
    with FaultyEndpoint(plan) as endpoint:
        words = ("--model", "m", "--api-url", endpoint.url, "--datasets", str(exam))
        return keju("eval", *words, "--run-id", run, "--quiet", "--no-report", *flags)


def codes(document: Any) -> set[str]:
    return {notice["code"] for notice in document["benchmarks"][0]["notices"]} - USUAL


def stored(tmp_path: Path) -> Any:
    return json.loads((tmp_path / "runs" / "r" / "results.json").read_text())


USUAL = {"unread_replies", "few_questions", "repeats_at_temperature_0", "cut_replies_unbounded"}
"""Notices of version 1.0 that may come along."""


def shifted() -> Callable[[EndpointRequest], str]:
    """Each question gets the reply to the one before."""
    waiting = ["The answer is A."]

    def answer(request: EndpointRequest) -> str:
        waiting.append(well_reasoned(request))
        return waiting.pop(0)

    return answer


def message(**fields: Any) -> Callable[[EndpointRequest], dict[str, Any]]:
    return lambda _: {"content": None, **fields}


CALL = {"id": "1", "type": "function", "function": {"name": "answer", "arguments": "{}"}}
SAMPLED = ("--repeats", "3", "--generation-config", "temperature=0.8")


@pytest.mark.parametrize(
    ("plan", "flags", "code"),
    [
        (Plan(answers="The sky is blue, so the answer is B."), (), "same_reply"),
        (Plan(answers="B"), (), "same_reply"),
        (Plan(answers=shifted()), (), "replies_shifted"),
        (Plan(answers=shifted()), ("--eval-batch-size", "1"), "replies_shifted"),
        (
            Plan(answers=well_reasoned, usage={"prompt_tokens": 512, "completion_tokens": 9}),
            (),
            "prompt_tokens_capped",
        ),
        (Plan(answers=well_reasoned, prompt_cap=300), (), "prompt_tokens_capped"),
        (Plan(answers=well_reasoned, model_name="another"), (), "other_model"),
        (Plan(answers=well_reasoned, choices=3), (), "several_choices"),
        (Plan(answers=message(reasoning_content="It is B.")), (), "replies_in_reasoning"),
        (Plan(answers=message(tool_calls=[CALL])), (), "replies_in_tool_calls"),
        (Plan(answers=at_length), SAMPLED, "equal_repeats"),
        (Plan(answers=half_right), SAMPLED, "equal_repeats"),
        (Plan(answers=well_reasoned, default_max_tokens=8), (), "server_token_limit"),
    ],
)
def test_a_fault_is_on_the_result(
    plan: Plan, flags: tuple[str, ...], code: str, keju: Keju, exam: Path, tmp_path: Path
) -> None:
    ran = evaluate(keju, plan, exam, *flags)
    assert ran.code == 0, ran.err
    document = stored(tmp_path)
    assert codes(document) == {code}
    entry = document["benchmarks"][0]
    text = next(
        w for w, n in zip(entry["warnings"], entry["notices"], strict=True) if n["code"] == code
    )
    assert text[:30] in " ".join(ran.out.split())
    rescored = keju("score", "r", "--json")
    assert (rescored.code, codes(rescored.json)) == (0, {code})


@pytest.mark.parametrize(
    ("usage", "expected"),
    [({"prompt_tokens": 512, "completion_tokens": 9}, {"prompt_tokens_capped"}), (None, set())],
)
def test_a_constant_count_of_tokens_is_reported_where_prompts_differ_by_little(
    usage: dict[str, int] | None, expected: set[str], keju: Keju, tmp_path: Path
) -> None:
    passage = "All questions begin with this passage. " * 100
    rows = [
        question(number) | {"question": f"{passage}Number {number} " + number % 12 * "is longer "}
        for number in range(SIZE)
    ]
    exam = write_exam(tmp_path / "exam", rows)
    assert evaluate(keju, Plan(answers=well_reasoned, usage=usage), exam).code == 0
    assert codes(stored(tmp_path)) == expected


def test_a_run_that_was_resumed_or_merged_has_the_notice_of_all_its_replies(
    keju: Keju, exam: Path, tmp_path: Path
) -> None:
    plan = Plan(answers="The sky is blue, so the answer is B.", choices=2)
    halved = evaluate(keju, plan, exam, "--budget", "requests=20")
    assert halved.code == 4
    assert evaluate(keju, plan, exam).code == 0
    parts = []
    with FaultyEndpoint(plan) as endpoint:
        for shard in ("1/2", "2/2"):
            parts.append(f"part{shard[0]}")
            model_flags = ("--model", "m", "--api-url", endpoint.url, "--datasets", str(exam))
            shard_flags = ("--shard", shard, "--run-id", parts[-1], "--quiet", "--no-report")
            assert keju("eval", *model_flags, *shard_flags).code == 0
    merged = keju("merge", *parts, "-o", "whole", "--json", "--no-report")
    for document in (stored(tmp_path), merged.json):
        notices = {
            notice["code"]: notice["values"] for notice in document["benchmarks"][0]["notices"]
        }
        assert notices["same_reply"]["part"] == notices["same_reply"]["whole"] == SIZE
        assert notices["several_choices"] == {"part": SIZE, "whole": SIZE, "most": 2}


@pytest.mark.parametrize(
    ("plan", "code"),
    [
        (Plan(answers="The sky is blue, so the answer is B."), "same_reply"),
        (Plan(answers=shifted()), "replies_shifted"),
        (Plan(answers=well_reasoned, prompt_cap=300), "prompt_tokens_capped"),
        (Plan(answers=well_reasoned, model_name="another"), "other_model"),
        (Plan(answers=message(reasoning_content="It is B.")), "replies_in_reasoning"),
    ],
)
def test_commands_that_use_the_number_of_a_run_repeat_its_faults(
    plan: Plan, code: str, keju: Keju, exam: Path, tmp_path: Path
) -> None:
    assert evaluate(keju, plan, exam).code == 0
    assert evaluate(keju, Plan(answers=well_reasoned), exam, run="sound").code == 0
    (fault,) = [n for n in stored(tmp_path)["benchmarks"][0]["notices"] if n["code"] == code]
    repeated = {"run": "r", "exam": "exam", "notice": fault}
    gates = (
        ("gate", "r", "--baseline", "sound", "--margin", "0.1"),
        ("gate", "sound", "--baseline", "r", "--margin", "0.1", "--at-least", "0.1"),
        ("gate", "r", "--at-least", "0.1"),
    )
    for words in (("compare", "sound", "r"), *gates):
        printed = keju(*words)
        assert f"warning: r (exam): {Notice(**fault).text()}" in " ".join(printed.out.split())
        document = keju(*words, "--json").json
        if words[0] == "compare":
            (document,) = document["comparisons"]
        doubts = [
            notice["values"] for notice in document["notices"] if notice["code"] == "compare_doubt"
        ]
        assert doubts == [repeated]
    (audited,) = keju("audit", "r", "--json").json["exams"]
    assert audited["notices"][0] == fault
    audit_output = " ".join(keju("audit", "r").out.split())
    assert audited["warnings"][0] in audit_output
    assert ("no text, only reasoning: … It is B." in audit_output) == (
        code == "replies_in_reasoning"
    )
    for sound in (("gate", "sound", "--at-least", "0.1"), ("audit", "sound")):
        assert code not in keju(*sound, "--json").out


def test_predictions_that_lost_a_row_are_found(keju: Keju, exam: Path, tmp_path: Path) -> None:
    letters = [question(number)["answer"] for number in range(SIZE)]
    for name, lost_rows, expected in (("whole", 0, set()), ("lost", 1, {"replies_shifted"})):
        rows = [
            {"subset": "all", "index": index, "output": f"The answer is {letter}."}
            for index, letter in enumerate(letters[lost_rows:])
        ]
        file = tmp_path / f"{name}.jsonl"
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
        ran = keju("score", "--datasets", str(exam), "--predictions", str(file), "--json")
        assert ran.code == 0, ran.err
        assert codes(ran.json) & NEW == expected


@pytest.mark.parametrize(
    ("tokens", "code"),
    [
        ({"A": float("nan"), "B": -1.0, "C": -2.0}, "logprobs_nan"),
        ({"A": 0.7, "B": -1.0, "C": -2.0}, "logprobs_positive"),
        ({"A": -1.0, "B": -1.0, "C": -2.0}, "logprobs_tied"),
    ],
)
def test_log_probabilities_that_cannot_be_right(
    tokens: dict[str, float], code: str, keju: Keju, exam: Path, tmp_path: Path
) -> None:
    def differing(request: EndpointRequest) -> dict[str, float]:
        return tokens | {"D": -3.0 - int(request.key, 16) % 1000 / 1000}

    ran = evaluate(keju, Plan(tokens=differing), exam, "--protocol", "letters")
    assert ran.code == 0, ran.err
    assert codes(stored(tmp_path)) == {code}
    assert codes(keju("score", "r", "--json").json) == {code}


@pytest.mark.parametrize(
    ("plan", "flags"),
    [
        (Plan(answers=well_reasoned), ()),
        (Plan(answers=right_letter), SAMPLED),
        (Plan(answers=right_letter, model_name="org/m-2024-08-06"), ()),
        (Plan(answers=well_reasoned, usage={}), ()),
        (Plan(), ("--protocol", "letters")),
    ],
)
def test_a_sound_endpoint_gets_no_notice(
    plan: Plan, flags: tuple[str, ...], keju: Keju, exam: Path, tmp_path: Path
) -> None:
    ran = evaluate(keju, plan, exam, *flags)
    assert (ran.code, codes(stored(tmp_path)), ran.err) == (0, set(), "")


@pytest.mark.parametrize(
    ("plan", "flags", "words"),
    [
        (Plan(answers=well_reasoned, model_name="another"), (), "answers as 'another'"),
        (Plan(answers=well_reasoned, choices=3), (), "returns 3 choices for one request"),
        (
            Plan(tokens=lambda _: {"A": 0.7, "B": -1.0}),
            ("--protocol", "letters"),
            "returns log-probabilities above 0",
        ),
        (
            Plan(answers=message(reasoning_content="It is B.")),
            (),
            "the reply to the first call has no text: what the model wrote is in the field for",
        ),
        (
            Plan(answers=well_reasoned, prompt_cap=2),
            (),
            "it counted 2 tokens for a first prompt of 31 bytes",
        ),
    ],
)
def test_the_preflight_reports_what_its_reply_shows(
    plan: Plan, flags: tuple[str, ...], words: str, keju: Keju, exam: Path
) -> None:
    with FaultyEndpoint(plan) as endpoint:
        model_flags = ("--model", "m", "--api-url", endpoint.url, "--datasets", str(exam))
        ran = keju("eval", *model_flags, "--no-report", *flags)
    before = ran.err.partition("60/60")[0]
    assert words in " ".join(before.split())


def test_a_fault_is_reported_while_there_is_something_left_to_pay(keju: Keju, exam: Path) -> None:
    plan = Plan(answers=message(reasoning_content="It is B."), latency=0.15)
    with FaultyEndpoint(plan) as endpoint:
        model_flags = ("--model", "m", "--api-url", endpoint.url, "--datasets", str(exam))
        ran = keju("eval", *model_flags, "--no-report", "--eval-batch-size", "10")
    assert "have no text: what the model wrote is in the field for reasoning" in " ".join(
        ran.err.split()
    )


def test_a_default_limit_of_the_server_is_replaced_before_the_first_question(
    keju: Keju, exam: Path, tmp_path: Path
) -> None:
    plan = Plan(answers=at_length, default_max_tokens=16)
    with FaultyEndpoint(plan) as endpoint:
        model_flags = ("--model", "m", "--api-url", endpoint.url, "--api", "completions")
        ran = keju("eval", *model_flags, "--datasets", str(exam), "--run-id", "r", "--no-report")
        assert endpoint.last_body["max_tokens"] == 1024
    assert "the server cuts replies at 16 tokens where no limit is sent" in " ".join(
        ran.err.split()
    )
    entry = stored(tmp_path)["benchmarks"][0]
    assert entry["outcomes"]["correct"] == SIZE
    assert codes(stored(tmp_path)) == set()


def test_a_server_without_a_default_limit_is_sent_none(keju: Keju, exam: Path) -> None:
    with FaultyEndpoint(Plan(answers=well_reasoned)) as endpoint:
        model_flags = ("--model", "m", "--api-url", endpoint.url, "--api", "completions")
        assert keju("eval", *model_flags, "--datasets", str(exam), "--no-report").code == 0
        assert "max_tokens" not in endpoint.last_body


TWINS = question(1) | {"choices": ["red", "green", "red", "white"], "answer": "C"}
OTHERWISE = question(2) | {"answer": LABELS[LABELS.index(question(2)["answer"]) - 1]}


@pytest.mark.parametrize(
    ("rows", "shots", "code"),
    [
        ([question(2), OTHERWISE], [], "two_right_answers"),
        ([question(2), TWINS], [], "right_option_twice"),
        ([question(2), question(3)], [question(3), question(4)], "shots_are_questions"),
    ],
)
def test_a_fault_of_the_questions_is_reported_before_and_after(
    rows: Rows,
    shots: Rows,
    code: str,
    keju: Keju,
    tmp_path: Path,
) -> None:
    folder = write_exam(tmp_path / "faulty", rows, shots)
    with FaultyEndpoint(Plan(answers=well_reasoned)) as endpoint:
        model_flags = ("--model", "m", "--api-url", endpoint.url, "--datasets", str(folder))
        planned = keju("eval", *model_flags, "--dry-run")
        ran = keju("eval", *model_flags, "--run-id", "r", "--no-report")
    assert (planned.code, ran.code) == (0, 0), ran.err
    assert codes(stored(tmp_path)) == {code}
    text = stored(tmp_path)["benchmarks"][0]["warnings"]
    (sentence,) = [line for line in text if line.startswith("faulty:")]
    for output in (planned.out + planned.err, ran.err, ran.out):
        assert sentence[:40] in " ".join(output.split())
    all_output = " ".join((planned.out + planned.err + ran.err).split())
    assert "word for word" not in all_output  # one notice for one pair


def test_free_answers_that_share_a_right_one_do_not_contradict(keju: Keju, tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"question": "How many?", "answer": ["5", "five"]},
        {"question": "How many?", "answer": "five"},
        {"question": "How many more?", "answer": "5"},
        {"question": "How many more?", "answer": "six"},
    ]
    evaluate(keju, Plan(answers="5"), write_exam(tmp_path / "free", rows))
    (notice,) = [
        two_answers
        for two_answers in stored(tmp_path)["benchmarks"][0]["notices"]
        if two_answers["code"] == "two_right_answers"
    ]
    assert notice["values"]["n"] == 1


@pytest.mark.parametrize(
    ("requested", "reported", "is_same"),
    [
        ("gpt-4o", "gpt-4o-2024-08-06", True),
        ("openai/gpt-4o", "gpt-4o", True),
        ("claude-3-5-sonnet-latest", "claude-3-5-sonnet-20241022", True),
        ("Qwen/Qwen2.5-7B-Instruct", "/models/qwen2.5-7b-instruct", True),
        ("llama3", "llama3:latest", True),
        ("m.gguf", "/srv/m.gguf", True),
        ("gemini-1.5-pro", "models/gemini-1.5-pro-002", True),
        ("gpt-4o", "gpt-4o-mini", False),
        ("gpt-4o", "gpt-4", False),
        ("Qwen2.5-7B", "Qwen2.5-72B", False),
        ("llama-3.1-8b", "llama-3.2-8b", False),
    ],
)
def test_names_of_models(requested: str, reported: str, is_same: bool) -> None:
    assert is_same_model(requested, reported) is is_same


def recordings(data_dir: Path) -> Iterator[tuple[str, Path]]:
    """Every recording of an exam that Keju has."""
    for folder in ("golden", "recorded"):
        for name in ("bbh", "mmlu_pro", "ceval", "bixbench"):
            for path in sorted((data_dir / folder / name).glob("*_predictions.jsonl*")):
                yield name, path


NEW = {
    "same_reply", "replies_shifted", "prompt_tokens_capped", "server_token_limit",
    "replies_in_reasoning", "replies_in_tool_calls", "several_choices", "logprobs_nan",
    "logprobs_positive", "logprobs_tied", "equal_repeats", "other_model", "two_right_answers",
    "right_option_twice", "shots_are_questions",
}  # fmt: skip


QUICK_READERS = {"bbh": "paper,evalscope", "mmlu_pro": "l1,l2"}
"""Published readers, which take less time than `robust`."""


def test_no_recording_of_a_real_model_gets_a_notice(keju: Keju, data_dir: Path) -> None:
    raised: dict[str, set[str]] = {}
    for name, path in recordings(data_dir):
        words = ["--datasets", name, "--predictions", str(path), "--data-dir", str(data_dir)]
        if name in QUICK_READERS:
            words += ["--reader", QUICK_READERS[name]]
        if name == "bixbench":
            version = path.name[1:4]
            all_questions = ",bixbench.all_questions=true" if version == "1.0" else ""
            words += ["--dataset-args", f"bixbench.data_version={version}{all_questions}"]
        ran = keju("score", *words, "--json")
        assert ran.code in (0, 3), (path, ran.err)
        raised[path.name] = codes(ran.json) & NEW
    assert len(raised) >= 9
    assert {name: notice_codes for name, notice_codes in raised.items() if notice_codes} == {}
