"""Traits of replies: each sentence has the trait, and one that looks like it does not."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from keju.results import reply_traits as traits


@pytest.mark.parametrize(
    ("trait", "with_it", "without_it"),
    [
        (traits.refuses, "I'm sorry, but I can't help with that.", "The patient refused help."),
        (traits.refuses, "抱歉，我无法回答这个问题。", "他不能解释这个现象。"),
        (traits.gives_up, "It is impossible to say.", "It is impossible that B holds. So (A)."),
        (traits.no_option_fits, "None of the options is right.", "One of the options is right."),
        (traits.leaves_placeholder, "ANSWER: [LETTER]", "ANSWER: B"),
        (traits.hedges, "It may be (B), but I'm not sure.", "Make sure to choose (B)."),
        (traits.leaks_tokens, "The answer is B<|im_end|>", "The answer is B"),
        (traits.is_json, '{"answer": "B"}', "answer: {B}"),
        (traits.announces, "So the answer is (B).", "Option (B) has four legs."),
        (traits.denies, "It is not the case that the answer is (B).", "The answer is (B)."),
        (traits.breaks_off, "Let us look at every option, so the", "The answer is (B)."),
    ],
)
def test_a_trait_is_found_and_what_resembles_it_is_not(
    trait: Callable[[str], bool], with_it: str, without_it: str
) -> None:
    assert trait(with_it)
    assert not trait(without_it)


def test_a_loop_repeats_itself_often_and_at_length() -> None:
    sentence = "We check the first option again and find nothing new. "
    assert traits.loops("Let us begin. " + 6 * sentence)
    assert not traits.loops("Let us begin. " + 2 * sentence)
    assert not traits.loops("ha " * 5)


def test_labels_are_letters_that_no_sentence_begins_with() -> None:
    assert traits.lone_label("It is (B).", "B")
    assert not traits.lone_label("Because of it", "B")
    assert not traits.lone_label("A dog barks", "A")
    assert traits.lone_letter("A dog barks", "A")
    assert traits.names_several("It is (A) or (C).", "ABCD")
    assert not traits.names_several("It is (C).", "ABCD")


def test_the_form_of_an_answer_is_named_by_what_makes_it_readable() -> None:
    def reads(text: str) -> bool:
        return "ANSWER: B" in text

    assert traits.form_traits("ANSWER: b", "B", "ANSWER: {}", reads) == ("lower_case",)
    assert traits.form_traits("ANSWER: **B**", "B", "ANSWER: {}", reads) == ("bold",)
    assert traits.form_traits("no answer", "B", "ANSWER: {}", reads) == ()


def test_places_and_words_stand_for_letters() -> None:
    assert traits.names_a_place("It is the second option.", 4)
    assert not traits.names_a_place("It is a good option.", 4)
    assert traits.says_in_words("It is the dog.", "B")
    assert not traits.says_in_words("It is option b, the dog.", "B")
    assert traits.wording_of("Thus, the final answer is (B).").endswith("answer is")
