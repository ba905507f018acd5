"""What a custom exam asks, how it reads, and that every setting has its effect."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from keju.benchmarks import registry
from keju.benchmarks.prepare import choose_readers
from keju.config import TaskConfig
from keju.errors import ConfigError
from keju.models.scripted import ScriptedModel
from keju.task import run_exams
from keju.types import Reply, Request
from tests.benchmarks.custom.conftest import CAPITALS, SHOTS, Lay, lines, prepare

BOTH = {"capitals.csv": CAPITALS, "few_shot.jsonl": SHOTS}


def test_the_plain_prompt(write_quiz: Lay) -> None:
    exam = prepare(write_quiz({"capitals.csv": CAPITALS}))
    assert exam.render(exam.samples[0]).text == (
        "Capital of France?\n\nA) Paris\nB) Rome\nC) Bonn\n\n"
        "Think it through, then end with a line 'ANSWER: X'; X is one of A, B, C."
    )


def test_worked_examples_are_those_of_the_subset_and_one_shared_prefix(write_quiz: Lay) -> None:
    exam = prepare(write_quiz(BOTH))
    spain, france, cuba = (exam.render(sample) for sample in exam.samples)
    assert spain.prefix is france.prefix is not cuba.prefix
    assert spain.prefix.lead == (
        "Capital of Spain?\n\nA) Madrid\nB) Lisbon\n\nLisbon is in Portugal.\nANSWER: A\n\n"
        "Capital of Malta?\n\nA) Rome\nB) Valletta\n\nANSWER: B\n\n"
    )
    assert cuba.prefix.lead == "Capital of Cuba?\n\nA) Havana\nB) Lima\n\nANSWER: A\n\n"
    assert spain.tail.startswith("Capital of France?")


def lead(folder: Path, **args: Any) -> str:
    exam = prepare(folder, args)
    return exam.render(exam.samples[0]).prefix.lead


def test_few_shot_settings(write_quiz: Lay) -> None:
    folder = write_quiz(BOTH)
    assert lead(folder, few_shot_num=0) == ""
    one_shot = {"subset_list": ["europe"], "few_shot_num": 1}
    assert lead(folder, **one_shot).startswith("Capital of Spain?")
    random_leads = {lead(folder, **one_shot, few_shot_random=True) for _ in range(3)}
    assert len(random_leads) == 1
    with pytest.raises(ConfigError, match=r"2 worked examples asked for, .* has 1 of 'america'"):
        prepare(folder, {"few_shot_num": 2})
    with pytest.raises(ConfigError, match="no worked examples to draw"):
        prepare(folder, {"few_shot_num": 0, "few_shot_random": True})
    assert lead(write_quiz({"exam.yaml": "few_shot: 1"})).count("Capital") == 1


def test_the_exam_file_words_the_prompts(write_quiz: Lay) -> None:
    yaml = """\
name: geo
template: "{subset}, {country}: {question} ({letters})\\n{choices}\\nAnswer:"
shot_template: "{question} -> {answer} ({explanation})"
few_shot_template: "Examples:\\n{examples}\\nNow {question}\\n{choices}"
system_prompt: You are a geographer.
few_shot: shots.jsonl
"""
    rows = [
        {"question": "Capital?", "country": c, "choices": ["x", "y"], "answer": "A"}
        for c in ("France", "Peru")
    ]
    shot = {"question": "Sea?", "choices": ["x", "y"], "answer": "B", "explanation": "so"}
    folder = write_quiz({"q.jsonl": lines(*rows), "exam.yaml": yaml, "shots.jsonl": lines(shot)})
    exam = prepare(folder)
    prompt = exam.render(exam.samples[0])
    assert [m.content for m in prompt.messages] == [
        "You are a geographer.",
        "Examples:\nSea? -> B (so)\nNow Capital?\nA) x\nB) y",
    ]
    plain = prepare(folder, {"few_shot_num": 0, "system_prompt": ""})
    assert [m.content for m in plain.render(plain.samples[1]).messages] == [
        "all, Peru: Capital? (A, B)\nA) x\nB) y\nAnswer:"
    ]
    assert exam.benchmark == "geo"
    assert "exam.yaml" in exam.data.files


def test_the_users_templates_come_before_the_exams(write_quiz: Lay) -> None:
    folder = write_quiz(
        {**BOTH, "exam.yaml": "few_shot_template: '{examples} {question} {choices}'"}
    )
    exam = prepare(folder, {"prompt_template": "Mine: {question} {choices}"})
    assert "\n\nMine: Capital" in exam.render(exam.samples[0]).text
    args = {"few_shot_prompt_template": "All {examples} of {question} {choices}"}
    exam = prepare(folder, args)
    assert exam.render(exam.samples[0]).text.startswith("All Capital of Spain?")


REFUSED = {
    "prompt_template": ("{question}", "template: the placeholder {choices} is missing"),
    "few_shot_prompt_template": ("{question} {choices}", "the placeholder {examples} is missing"),
    "local_path": ("x", "local_path has no effect"),
    "subset_list": (["asia"], "quiz has no subset 'asia'"),
    "extra_params": ({"x": 1}, "unknown key 'extra_params.x'"),
    "protocol": ("letter", "quiz has no protocol 'letter' (did you mean 'letters'?)"),
}


@pytest.mark.parametrize("setting", REFUSED)
def test_settings_that_cannot_be_honoured_are_refused(write_quiz: Lay, setting: str) -> None:
    value, message = REFUSED[setting]
    with pytest.raises(ConfigError) as error:
        prepare(write_quiz(BOTH), {setting: value})
    assert message in str(error.value)


def test_templates_that_contradict_each_other_are_refused(write_quiz: Lay) -> None:
    few_shot_template = "{examples} {question} {choices}"
    with pytest.raises(ConfigError, match="has no effect without worked examples"):
        prepare(
            write_quiz(BOTH), {"few_shot_num": 0, "few_shot_prompt_template": few_shot_template}
        )
    both_templates = {
        "prompt_template": "{question} {choices}",
        "few_shot_prompt_template": few_shot_template,
    }
    with pytest.raises(ConfigError, match="has no effect together with few_shot_prompt_template"):
        prepare(write_quiz(BOTH), both_templates)
    with pytest.raises(ConfigError, match=r"unknown placeholder '\{cuntry\}'"):
        prepare(write_quiz(BOTH), {"prompt_template": "{question} {choices} {cuntry}"})


def test_options_are_shuffled_with_the_seed_and_never_in_the_examples(write_quiz: Lay) -> None:
    folder = write_quiz(BOTH)
    orders = {
        tuple(s.order for s in prepare(folder, {"shuffle_choices": True}, seed=seed).samples)
        for seed in range(6)
    }
    assert len(orders) > 1
    exam = prepare(folder, {"shuffle_choices": True}, seed=3)
    for sample in exam.samples:
        right = sample.choices[sample.labels.index(sample.target)]
        assert right in ("Paris", "Lima", "Rome")
    assert exam.render(exam.samples[0]).prefix.lead == lead(folder)
    free = write_quiz({"capitals.csv": "question,answer\nq?,x\n", "few_shot.jsonl": lines()})
    with pytest.raises(ConfigError, match="the questions have no options"):
        prepare(free, {"shuffle_choices": True})


def test_letters_are_chosen_by_probability(write_quiz: Lay) -> None:
    exam = prepare(write_quiz({"capitals.csv": CAPITALS}), {"protocol": "letters"})
    assert exam.protocol.decode == "labels"
    assert exam.render(exam.samples[0]).text.endswith(
        "Answer with one of A, B, C and nothing else."
    )


def outcome(folder: Path, text: str, reader: str | None = None, row: int = 0) -> tuple[Any, str]:
    exam = prepare(folder)
    chosen_reader = exam.readers[reader or exam.protocol.reader]
    reading = exam.grade(Reply(text=text, finish="stop"), exam.samples[row], chosen_reader)
    return reading.answer.value, reading.score.outcome


@pytest.mark.parametrize(
    ("yaml", "text", "expected"),
    [
        ("", "I think so.\nANSWER: A", ("A", "correct")),
        ("", "**Answer:** (B)", ("B", "incorrect")),
        ("", "I have no idea, sorry. USA", (None, "unparsed")),
        ("language: zh", "答案：A", ("A", "correct")),
        ("reader: {marker: 'Choice ='}", "Choice = (A) Paris", ("A", "correct")),
        ("reader: {marker: 'Choice ='}", "ANSWER: A", (None, "unparsed")),
        ("reader: {regex: 'pick ([A-D])'}", "pick B, no, pick A", ("A", "correct")),
        ("reader: {regex: 'pick ([A-Z])'}", "pick Z", (None, "unparsed")),
    ],
)
def test_reading_letters(write_quiz: Lay, yaml: str, text: str, expected: tuple[Any, str]) -> None:
    files = {"capitals.csv": CAPITALS} | ({"exam.yaml": yaml} if yaml else {})
    assert outcome(write_quiz(files), text) == expected


FREE = lines(
    {"question": "6 x 7?", "answer": 42},
    {"question": "Author?", "answer": ["Shakespeare", "William Shakespeare"]},
    {"question": "Half?", "answer": "0.5"},
)


@pytest.mark.parametrize(
    ("yaml", "row", "text", "expected"),
    [
        ("", 0, "It is plain.\nANSWER: 42.0", ("42.0", "correct")),
        ("", 0, "The answer is **42**.", ("42", "correct")),
        ("", 0, "ANSWER: 142", ("142", "incorrect")),
        ("", 1, "ANSWER: william  SHAKESPEARE.", ("william  SHAKESPEARE", "correct")),
        ("", 1, "Marlowe", ("Marlowe", "incorrect")),
        ("", 0, "", (None, "unparsed")),
        ("", 0, "I do not know.", (None, "unparsed")),
        ("", 0, "Hard to say.\nANSWER: I don't know", (None, "unparsed")),
        ("", 0, "我不知道。", (None, "unparsed")),
        ("", 0, "6 times 7 is 42.\n#### 42", ("42", "correct")),
        ("reader: number", 0, "6 * 7 = <<6*7=42>>42\n#### 42", ("42", "correct")),
        ("reader: exact", 1, " Shakespeare\n", ("Shakespeare", "correct")),
        ("reader: exact", 1, "shakespeare", ("shakespeare", "incorrect")),
        ("reader: number", 0, "First 7, then 6.\nThat makes 42 apples.", ("42", "correct")),
        ("reader: number", 2, "The answer is 5e-1", ("5e-1", "correct")),
        ("reader: number", 0, "no figure at all", (None, "unparsed")),
        ("reader: {marker: '=>'}", 0, "7 => 8\n=> 42", ("42", "correct")),
        ("reader: {regex: '<a>(.*?)</a>'}", 0, "<a>41</a><a>42</a>", ("42", "correct")),
    ],
)
def test_reading_texts(
    write_quiz: Lay, yaml: str, row: int, text: str, expected: tuple[Any, str]
) -> None:
    files = {"q.jsonl": FREE} | ({"exam.yaml": yaml} if yaml else {})
    assert outcome(write_quiz(files), text, row=row) == expected


@pytest.mark.parametrize(
    ("rows", "readers"),
    [
        (({"question": "2 + 3?", "answer": 5}, {"question": "1/2?", "answer": "-0.5"}), "number"),
        (({"question": "2 + 3?", "answer": 5}, {"question": "Who?", "answer": "Ann"}), ""),
    ],
)
def test_where_all_answers_are_numbers_a_reader_of_numbers_stands_beside(
    write_quiz: Lay, rows: tuple[dict[str, Any], ...], readers: str
) -> None:
    """So that ``2 + 3 = 5``, of which `robust` takes the whole line, is not wrong in silence."""
    exam = prepare(write_quiz({"q.jsonl": lines(*rows)}))
    chosen = [reader.name for reader in choose_readers(exam, None)]
    assert chosen == ["robust", *readers.split()]
    assert next(reader.name for reader in choose_readers(exam, ["number"])) == "number"


@pytest.mark.parametrize("yaml", ["", "reader: number"])
def test_a_worked_solution_as_answer_is_told_from_its_outcome(write_quiz: Lay, yaml: str) -> None:
    """Rows of GSM8K hold both: the target is what stands after ``####``."""
    rows = lines({"question": "Eggs?", "answer": "She sells 9 * 10 = 90 eggs.\n#### 90"})
    folder = write_quiz({"q.jsonl": rows} | ({"exam.yaml": yaml} if yaml else {}))
    assert prepare(folder).samples[0].target == "90"
    assert outcome(folder, "She sells 90 eggs.\nANSWER: 90", row=0) == ("90", "correct")


@pytest.mark.parametrize(
    ("yaml", "closing"),
    [
        ("", "then end with a line 'ANSWER: ' followed by the answer alone."),
        ("reader: exact", "Reply with the answer and nothing else."),
        ("reader: {marker: '=>'}", "end with a line '=>' followed by the answer alone."),
        ("reader: {regex: '.+'}", "6 x 7?"),
        ("language: zh", "最后一行写“答案：”，后面只写答案。"),
    ],
)
def test_the_prompt_asks_for_what_the_reader_reads(
    write_quiz: Lay, yaml: str, closing: str
) -> None:
    exam = prepare(write_quiz({"q.jsonl": FREE} | ({"exam.yaml": yaml} if yaml else {})))
    assert exam.render(exam.samples[0]).text.endswith(closing)


def test_a_whole_run_by_path_with_settings_under_the_same_name(
    write_quiz: Lay, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_quiz({"capitals.csv": CAPITALS})
    name = f"custom:{folder}"
    prompts: list[str] = []

    def answer(request: Request) -> str:
        prompts.append(request.prompt.text)
        return "ANSWER: A"

    monkeypatch.setattr("keju.task.make_model", lambda _: ScriptedModel(script=answer))
    task = TaskConfig(
        model="scripted",
        datasets=[name],
        dataset_args={name: {"subset_list": ["europe"], "prompt_template": "{question}{choices}!"}},
        work_dir=str(tmp_path),
        run_id="r",
    )
    entry = run_exams(task, report=False).document["benchmarks"][0]
    assert entry["name"] == "quiz"
    assert entry["outcomes"]["correct"] == 1
    assert entry["n"] == 2
    assert all(prompt.endswith("!") for prompt in prompts)


def test_two_exams_of_one_name_are_refused(write_quiz: Lay, tmp_path: Path) -> None:
    folder = write_quiz({"capitals.csv": CAPITALS})
    task = TaskConfig(model="scripted", datasets=[str(folder), f"custom:{folder}"])
    with pytest.raises(ConfigError, match="'quiz' is named twice"):
        run_exams(task)


def test_names_and_paths_are_told_apart(
    write_quiz: Lay, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_quiz({"capitals.csv": CAPITALS})
    monkeypatch.chdir(tmp_path)
    assert registry.get("./quiz").name == "quiz"
    assert registry.get("custom:quiz").name == "quiz"
    assert registry.get("bbh").name == "bbh"
    with pytest.raises(ConfigError, match=r"for the exam at that path write \./quiz"):
        registry.get("quiz")


def test_recorded_outputs_find_their_questions(write_quiz: Lay) -> None:
    exam = prepare(write_quiz({"capitals.csv": CAPITALS}))
    assert exam.locate({"subset": "america", "index": 0}) == "quiz_america_0"
    assert exam.locate({"id": "quiz_europe_1"}) == "quiz_europe_1"
    numbered = prepare(write_quiz({"capitals.csv": "id,question,answer\n5,q?,x\n"}))
    assert numbered.locate({"id": 5}) == numbered.locate({"subset": "all", "index": 0}) == "5"


def test_subsets_are_named_in_any_case(write_quiz: Lay) -> None:
    exam = prepare(write_quiz({"capitals.csv": CAPITALS}), {"subset_list": ["Europe"]})
    assert [subset.name for subset in exam.subsets] == ["europe"]


def test_the_reader_of_letters_reports_its_own_name(write_quiz: Lay) -> None:
    exam = prepare(write_quiz({"capitals.csv": CAPITALS}))
    for name in ("letter", "robust"):
        reader, *_ = choose_readers(exam, [name])
        reading = exam.grade(Reply("ANSWER: A"), exam.samples[0], reader)
        assert (reading.reader, reading.score.outcome) == (name, "correct")
    assert [reader.name for reader in choose_readers(exam, None)] == ["letter"]
