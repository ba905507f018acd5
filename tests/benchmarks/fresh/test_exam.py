"""The benchmark ``fresh_bbh``: its settings, its questions, its runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from keju.benchmarks.base import Exam
from keju.benchmarks.fresh import worked
from keju.benchmarks.fresh.making import VERSION
from keju.benchmarks.fresh.tasks import TASKS
from keju.benchmarks.prepare import prepare_exam
from keju.errors import ConfigError
from tests.cli.conftest import Keju, keju  # noqa: F401

BARE = {"few_shot_num": 0, "n": 5, "seed": 7, "subset_list": ["boolean_expressions"]}


DIGESTS: list[tuple[dict[str, Any], str]] = [
    ({}, "b91012335fdca03c"),
    ({"lang": "zh"}, "7c52c74d05c9c8a5"),
    ({"difficulty": 2.5, "seed": -1}, "96e0695f7b24ac81"),
]


def exam_of(**args: Any) -> Exam:
    exam, _ = prepare_exam("fresh_bbh", BARE | args)
    return exam


def texts(exam: Exam) -> list[str]:
    return [sample.text for sample in exam.samples]


def test_a_larger_exam_begins_with_the_smaller_one() -> None:
    assert texts(exam_of(n=20))[:5] == texts(exam_of())


@pytest.mark.parametrize(("args", "digest"), DIGESTS)
def test_the_same_settings_give_the_same_exam_everywhere(args: dict[str, Any], digest: str) -> None:
    """What stands in manifests; a change of the generators raises their version."""
    exam = exam_of(subset_list=None, **args)
    assert exam.data.version.startswith(f"generator {VERSION}, sha256 {digest}")


def test_seed_and_difficulty_give_other_questions() -> None:
    text_sets = [set(texts(exam_of(**args))) for args in ({}, {"seed": 8}, {"difficulty": 2})]
    assert not set.intersection(*text_sets)
    assert len(set.union(*text_sets)) == 15


def test_the_seed_of_the_task_counts_where_the_exam_names_none() -> None:
    explicit_exam, _ = prepare_exam("fresh_bbh", BARE)
    tasks, _ = prepare_exam("fresh_bbh", BARE | {"seed": None}, seed=7)
    assert texts(explicit_exam) == texts(tasks)


def test_ids_differ_by_difficulty_and_seed_and_not_by_language() -> None:
    ids = [
        [s.id for s in exam_of(**args).samples] for args in ({}, {"difficulty": 1.5}, {"seed": 8})
    ]
    assert ids[0][0] == "fresh_bbh_boolean_expressions_s7_d1_0"
    assert len({*ids[0], *ids[1], *ids[2]}) == 15
    assert [sample.id for sample in exam_of(lang="zh").samples] == ids[0]


def test_the_chinese_exam_has_the_same_questions_in_its_own_words() -> None:
    english, chinese = exam_of(), exam_of(lang="zh")
    words = str.maketrans({"真": "True", "假": "False"})
    assert [s.target.translate(words) for s in chinese.samples] == [
        s.target for s in english.samples
    ]
    prompt = chinese.render(chinese.samples[0]).text
    assert prompt.startswith("问：")
    assert "所以答案是" in prompt
    assert "answer" not in prompt
    assert chinese.protocol.version == "v1.1-zh1"


@pytest.mark.parametrize(
    ("args", "code"),
    [
        ({"difficulty": 0.1}, "fresh.difficulty"),
        ({"difficulty": 5}, "fresh.difficulty"),
        ({"difficulty": "hard"}, "fresh.difficulty"),
        ({"difficulty": True}, "fresh.difficulty"),
        ({"n": 3000}, "fresh.too_many"),
        ({"final_line": True}, "bbh.final_line"),
    ],
)
def test_what_cannot_be_carried_out_is_refused(args: dict[str, Any], code: str) -> None:
    with pytest.raises(ConfigError) as error:
        exam_of(**args)
    assert code == error.value.code or "must be a number from" in str(error.value)


@pytest.mark.parametrize(
    ("difficulty", "shown_value"), [("0.5", '"0.5"'), (None, "null"), ([], "[]")]
)
def test_what_is_no_difficulty_is_shown_as_it_was_written(
    difficulty: Any, shown_value: str
) -> None:
    with pytest.raises(ConfigError) as error:
        exam_of(difficulty=difficulty)
    assert str(error.value).endswith(f"not {shown_value}")


def test_a_refusal_names_the_size_of_the_space() -> None:
    with pytest.raises(ConfigError, match=r"boolean_expressions has only \d+ different"):
        exam_of(n=3000)


@pytest.mark.parametrize("args", [{"n": 0}, {"lang": "fr"}, {"subset_list": ["snarks"]}])
def test_values_outside_the_choices_are_refused(args: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        exam_of(**args)


WORKED = Path(worked.__file__).parent / "worked"
WITH_WORKED = {
    language: [name for name in TASKS if (WORKED / f"{name}.{language}.txt").is_file()]
    for language in ("en", "zh")
}
ENGLISH_ONLY = [name for name, task in TASKS.items() if "zh" not in task.languages]


@pytest.mark.skipif(not ENGLISH_ONLY, reason="every task is there in both languages")
def test_a_subset_that_a_language_lacks_is_refused_by_name() -> None:
    with pytest.raises(ConfigError, match=f"no '{ENGLISH_ONLY[0]}' in the language 'zh'"):
        exam_of(lang="zh", subset_list=[ENGLISH_ONLY[0]])
    chosen = exam_of(lang="zh", subset_list=None)
    assert not {subset.name for subset in chosen.subsets} & set(ENGLISH_ONLY)


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("protocol", ["evalscope", "paper", "answer-only", "mcpbr", "short"])
def test_right_answers_in_the_asked_form_are_right_under_every_reader(
    protocol: str, language: str
) -> None:
    """The oracle of each protocol: what its prompt asks for is what its readers read."""
    subsets = WITH_WORKED[language]
    if not subsets:
        pytest.skip("no worked examples yet")
    args = {"n": 3, "seed": 1, "lang": language, "protocol": protocol, "subset_list": subsets}
    exam, _ = prepare_exam("fresh_bbh", args)
    marker = {"en": "So the answer is {}.", "zh": "所以答案是 {}。"}[language]
    form = {"answer-only": "{}", "mcpbr": "{}", "short": " {}"}.get(protocol, marker)
    for sample in exam.samples:
        for name in (exam.protocol.reader, "robust"):
            reader = exam.readers[name]
            answer = reader.read(form.format(sample.target), sample)
            assert answer.value is not None, (sample.id, name)
            assert reader.matches(answer.value, sample), (sample.id, name)


def test_a_run_says_what_its_questions_were_made_of(keju: Keju, tmp_path: Path) -> None:  # noqa: F811
    args = json.dumps({"fresh_bbh": BARE})
    ran = keju(
        "eval", "-m", "scripted", "--datasets", "fresh_bbh", "--dataset-args", args,
        "--run-id", "one", "-q", "--json", "--limit", "3",
    )  # fmt: skip
    assert ran.code == 0, ran.err
    assert ran.json["benchmarks"][0]["n"] == 3
    manifest = json.loads((tmp_path / "runs/one/manifest.json").read_text())
    stored = manifest["benchmarks"][0]
    assert stored["settings"]["seed"] == 7
    assert stored["settings"]["generator"] == VERSION
    assert [*stored["data"]["files"]] == ["boolean_expressions, 5 of seed 7 at 1 in en"]
    assert stored["data"]["version"].startswith(f"generator {VERSION}, sha256 ")
    for command in ("score", "report", "audit"):
        assert keju(command, "one").code == 0


def test_more_questions_make_a_run_grow_and_another_seed_another_run(keju: Keju) -> None:  # noqa: F811
    def evaluate(**args: Any) -> Any:
        return keju(
            "eval", "-m", "scripted", "--datasets", "fresh_bbh", "--run-id", "one", "-q", "--json",
            "--dataset-args", json.dumps({"fresh_bbh": BARE | args}),
        )  # fmt: skip

    assert evaluate().code == 0
    grown = evaluate(n=8)
    assert (grown.code, grown.json["benchmarks"][0]["n"]) == (0, 8)
    assert grown.json["benchmarks"][0]["usage"]["requests"] == 8
    reseeded = evaluate(n=8, seed=8)
    assert reseeded.code == 2
    assert "seed" in reseeded.err


def test_examples_that_are_drawn_are_as_hard_as_the_questions_and_none_of_them() -> None:
    args = {"protocol": "short", "few_shot_num": 3, "subset_list": ["multistep_arithmetic_two"]}
    leads = {}
    for difficulty in (0.25, 2.0):
        exam = exam_of(**args, difficulty=difficulty, n=400)
        leads[difficulty] = exam.render(exam.samples[0]).prefix.lead
        assert not any(f"Q: {sample.text}\n" in leads[difficulty] for sample in exam.samples)
        assert leads[difficulty].count("Q: ") == 4  # with that of the question
    assert len(leads[2.0]) > 3 * len(leads[0.25])
    reseeded = exam_of(**args, difficulty=0.25, seed=8)
    assert reseeded.render(reseeded.samples[0]).prefix.lead == leads[0.25]
    with pytest.raises(ConfigError, match="too few questions for n"):
        exam_of(protocol="short", difficulty=0.5, n=20, few_shot_num=3)
