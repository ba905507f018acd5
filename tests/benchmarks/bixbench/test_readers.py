"""Reading letters: the rules of the environment, the official ones, and Keju's own."""

from __future__ import annotations

import pytest

from keju.benchmarks.bixbench.readers import make_readers
from keju.types import Reply, Sample
from tests.benchmarks.bixbench.conftest import Prepare, sample

READERS = make_readers()
WORDS = sample("Canonical glycolysis", "Axon guidance", "Muscle contraction", "Imaging")
NUMBERS = sample("0.0002", "0.0003", "-0.5", "0.5")
REFUSAL = sample("Cells", "Tissue", "Blood", "Bone", "I don't know", refusal="E")


def read(reader: str, text: str, question: Sample = WORDS) -> str | None:
    return READERS[reader].read(text, question).value


@pytest.mark.parametrize("reader", ["environment", "robust"])
@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("B", "B"),
        ("b", "B"),
        ("(B)", "B"),
        ("[B]", "B"),
        ("B.", "B"),
        ("**B**", "B"),
        (" B\n", "B"),
        ("Ｂ", "B"),
        ("B. Axon guidance", "B"),
        ("B) Axon guidance because of the data", "B"),
        ("Option C", "C"),
        ("I choose Option C.", "C"),
        ("The answer is D", "D"),
        ("Answer: D", "D"),
        ("Answer: A\nOn reflection, answer: D", "D"),
        ("The answer is **D**.", "D"),
        (r"\boxed{C}", "C"),
        ("The answer is C, since option B is too small.", "C"),
        ("B, but I'm not sure", "B"),
        ("B, not C", "B"),
        ("axon guidance", "B"),
        ("Axon guidance.", "B"),
        ("axon-guidance!", "B"),
        ("C\n\nThe other options are wrong.", "C"),
        ("C because the data say so", "C"),
    ],
)
def test_answers(reader: str, text: str, label: str) -> None:
    assert read(reader, text) == label


@pytest.mark.parametrize("reader", ["environment", "robust"])
@pytest.mark.parametrize(
    "text",
    [
        "Because the data are missing, nothing can be said.",
        "As an AI I cannot say.",
        "A large effect was seen.",
        "E. coli grows well.",
        "C. elegans is a worm.",
        "D-dimer is elevated.",
        "E",
        "Option F",
        "Z.",
        "A or B",
        "Both A and B",
        "ANSWER: B or even A",
        "The answer is (B) vs (A)",
        r"The answer is \boxed{A} or \boxed{B}",
        "I choose Option B or Option C.",
        "Option B is wrong.",
        "B is not correct.",
        "It is not the case that the answer is B.",
        "The answer is B. Imaging",
        "I am not sure",
        "",
        "Something else entirely",
    ],
)
def test_no_letter_out_of_prose_and_no_label_that_is_not_shown(reader: str, text: str) -> None:
    letter_counts = reader == "robust" and text == "The answer is B. Imaging"
    assert read(reader, text) == ("B" if letter_counts else None)


def test_likeness_is_a_fallback_for_short_replies_and_words_only() -> None:
    reader = READERS["environment"]
    answer = reader.read("Canonical glycolisis", WORDS)
    assert (answer.value, answer.tier) == ("A", "fallback")
    assert read("robust", "Canonical glycolisis") is None
    assert read("environment", "Canonical glycolisis" + " and more" * 30) is None
    names = sample("CD14", "CD4", "CD8", "CD19")
    assert read("environment", "CD1", names) is None
    similar_options = sample("Increase in cells", "Increase in cellz", "x", "y")
    assert read("environment", "Increase in cell", similar_options) is None


@pytest.mark.parametrize(
    ("text", "option"),
    [
        ("Not Up-regulated genes", "Up-regulated genes"),
        ("A significant change", "No significant change"),
        ("Non-significant changes", "Significant changes"),
        ("Insignificant change", "Significant change"),
        ("unchanged expression", "Changed expression"),
        ("The genes aren't enriched", "The genes are enriched"),
        ("Down-regulated ribosomal genes", "Up-regulated ribosomal genes"),
        ("Cells with no treatment at all", "Cells with treatment at all"),
    ],
)
def test_likeness_never_turns_an_answer_into_its_opposite(text: str, option: str) -> None:
    question = sample(option, "Axon guidance", "Muscle contraction", "Imaging")
    assert read("environment", text, question) is None
    assert read("environment", option[:-1] + "z", question) == "A"


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("0.0002", "A"),
        ("2e-4", "A"),
        ("2 x 10^-4", "A"),
        ("0.00030", "B"),
        ("-0.5", "C"),
        ("\u22120.5", "C"),
        ("0.5", "D"),
        (".5", "D"),
        ("0.00025", None),
        ("0.5%", None),
        ("The answer is 0.0003", "B"),
    ],
)
def test_numbers_match_by_value_only(text: str, label: str | None) -> None:
    assert read("environment", text, NUMBERS) == label


def test_ranges_match_by_value_and_signs_count() -> None:
    ranges = sample("(-0.45, -0.35)", "(0.35, 0.45)", "(40-50)", "(40,50)")
    assert read("environment", "(0.35,0.45)", ranges) == "B"
    assert read("environment", "(-0.35,-0.45)", ranges) == "A"
    assert read("environment", "(40-50)", ranges) == "C"
    assert read("environment", "(40, 50)", ranges) == "D"


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("E", "E"),
        ("E. I don't know", "E"),
        ("I don’t know", "E"),
        ("I don't know.", "E"),
        ("B, but I don't know", "B"),
        ("B, but I'm not sure", "B"),
        ("I do not know", None),
        ("Not sure", None),
        ("I don't know whether it is B", None),
    ],
)
def test_a_refusal_is_its_label_or_nothing_but_its_text(text: str, label: str | None) -> None:
    assert read("environment", text, REFUSAL) == label


@pytest.mark.parametrize(
    ("text", "label", "reason"),
    [
        ("<answer> A </answer>", "A", ""),
        ("<answer>(b).</answer>", "B", ""),
        ("<answer>A</answer> no: <answer> C </answer>", "C", ""),
        ("<answer>A</answer> and <answer>C", "A", ""),
        ("<answer>A</answer></answer>", "A", ""),
        ("A", None, "no_marker"),
        ("Sorry, I can't determine the correct option.", None, "no_marker"),
        ("<answer></answer>", None, "empty"),
        ("<answer> E </answer>", None, "invalid_label"),
        ("<answer> A. text </answer>", None, "invalid_label"),
    ],
)
def test_official(text: str, label: str | None, reason: str) -> None:
    answer = READERS["official"].read(text, WORDS)
    assert (answer.value, answer.reason) == (label, reason)


def test_robust_reads_tags_and_prose_alike() -> None:
    assert read("robust", "<answer> B </answer>") == "B"
    assert read("robust", "<ANSWER>B. Axon guidance</ANSWER>") == "B"
    assert read("robust", "<answer>Muscle contraction</answer>") == "C"
    assert read("robust", "Let me think.\nA seems weak.\nSo the final answer is: D") == "D"


@pytest.mark.parametrize("name", ["environment", "official", "robust"])
@pytest.mark.parametrize("piece", ["answer is ", "Option ", "<answer>", "</answer>", "B or ", "(A"])
def test_looping_replies_are_read(name: str, piece: str) -> None:
    READERS[name].read(piece * (100_000 // len(piece)), WORDS)


def test_thinking_in_unusual_tags_is_cut_only_with_use_think(prepare: Prepare) -> None:
    text = "<thinking>The answer is A</thinking>\nB"
    plain, forced = prepare(), prepare(use_think=True)
    question = plain.samples[0]
    reader = plain.readers["environment"]
    assert plain.grade(Reply(text=text), question, reader).answer.value == "A"
    assert forced.grade(Reply(text=text), question, reader).answer.value == "B"
    bare = forced.grade(Reply(text="B"), question, reader)
    assert bare.answer.value == "B"
    cut = Reply(text="<thinking>The answer is A", finish="length")
    assert forced.grade(cut, question, reader).score.outcome == "truncated"
