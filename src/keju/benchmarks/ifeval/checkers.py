"""The 25 checks of IFEval (Zhou et al. 2023), as the published program decides them.

A check is a function of a reply and the arguments of its instruction. Oddities of the published
checks are kept, because published numbers contain them:

- Keywords are patterns: ``.`` in a keyword matches any character, and ``cat`` matches ``category``.
- The bullets of a list start with ``-`` or one ``*``, and a divider ``---`` counts as a bullet.
- A highlighted section of two asterisks counts as two sections if it is not empty.
- The number of paragraphs ignores only an empty first and last one.
- Text in which no language can be detected follows every instruction about languages.
- Each letter of a keyword argument counts, and an argument that is not a letter too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from keju.benchmarks.ifeval.languages import detect_language
from keju.benchmarks.ifeval.sentences import split_sentences, split_words

Arguments = Mapping[str, Any]
Check = Callable[[str, Arguments], bool]

ANSWERS = ("My answer is yes.", "My answer is no.", "My answer is maybe.")
FENCES = ("```json", "```Json", "```JSON", "```")
ENDS_OF_WORD = frozenset(".,?!'\"")
SECTION_SIGNS = {"P.P.S": r"\s*p\.\s?p\.\s?s.*$", "P.S.": r"\s*p\.\s?s\..*$"}
"""Patterns of the two usual postscripts in lower case: ``p.s. more``."""


def satisfies(count: int, limit: int, relation: str) -> bool:
    """Whether a count is ``less than`` or ``at least`` a limit."""
    return count < limit if relation == "less than" else count >= limit


def has_keywords(reply: str, arguments: Arguments) -> bool:
    return all(re.search(word, reply, re.IGNORECASE) for word in arguments["keywords"])


def has_keyword_count(reply: str, arguments: Arguments) -> bool:
    count = len(re.findall(arguments["keyword"].strip(), reply, re.IGNORECASE))
    return satisfies(count, arguments["frequency"], arguments["relation"])


def has_no_forbidden_word(reply: str, arguments: Arguments) -> bool:
    words = arguments["forbidden_words"]
    return not any(re.search(rf"\b{word}\b", reply, re.IGNORECASE) for word in words)


def has_letter_count(reply: str, arguments: Arguments) -> bool:
    letter = arguments["letter"].strip().lower()
    count = reply.lower().count(letter)
    return satisfies(count, arguments["let_frequency"], arguments["let_relation"])


def is_in_language(reply: str, arguments: Arguments) -> bool:
    language = detect_language(reply)
    return language is None or language == arguments["language"]


def has_sentence_count(reply: str, arguments: Arguments) -> bool:
    count = len(split_sentences(reply))
    return satisfies(count, arguments["num_sentences"], arguments["relation"])


def has_paragraph_count(reply: str, arguments: Arguments) -> bool:
    paragraphs = re.split(r"\s?\*\*\*\s?", reply)  # `***`
    empty = [number for number, text in enumerate(paragraphs) if not text.strip()]
    if not set(empty) <= {0, len(paragraphs) - 1}:
        return False
    return bool(len(paragraphs) - len(empty) == arguments["num_paragraphs"])


def has_word_count(reply: str, arguments: Arguments) -> bool:
    count = len(re.findall(r"\w+", reply))  # `word`
    return satisfies(count, arguments["num_words"], arguments["relation"])


def has_first_word(reply: str, arguments: Arguments) -> bool:
    """Whether the n-th paragraph starts with a word, and the number of paragraphs is right."""
    paragraphs = reply.split("\n\n")
    count = sum(bool(text.strip()) for text in paragraphs)
    place = arguments["nth_paragraph"]
    if place > count or not paragraphs[place - 1].strip():
        return False
    word = paragraphs[place - 1].split()[0].lstrip("'").lstrip('"')
    end = next((n for n, letter in enumerate(word) if letter in ENDS_OF_WORD), len(word))
    first_word = "".join(map(str.lower, word[:end]))
    return bool(
        count == arguments["num_paragraphs"] and first_word == arguments["first_word"].lower()
    )


def has_placeholders(reply: str, arguments: Arguments) -> bool:
    count = len(re.findall(r"\[.*?\]", reply))  # `[name]`
    return bool(count >= arguments["num_placeholders"])


def has_postscript(reply: str, arguments: Arguments) -> bool:
    marker = arguments["postscript_marker"].strip()
    pattern = SECTION_SIGNS.get(marker, rf"\s*{marker.lower()}.*$")
    return re.search(pattern, reply.lower(), re.MULTILINE) is not None


def has_bullet_count(reply: str, arguments: Arguments) -> bool:
    stars = re.findall(r"^\s*\*[^\*].*$", reply, re.MULTILINE)  # `* point`
    dashes = re.findall(r"^\s*-.*$", reply, re.MULTILINE)  # `- point`
    return bool(len(stars) + len(dashes) == arguments["num_bullets"])


def has_fixed_answer(reply: str, _: Arguments) -> bool:
    return any(answer in reply for answer in ANSWERS)


def has_highlights(reply: str, arguments: Arguments) -> bool:
    single = re.findall(r"\*[^\n\*]*\*", reply)  # `*section*`
    double = re.findall(r"\*\*[^\n\*]*\*\*", reply)  # `**section**`
    count = sum(bool(text.strip("*").strip()) for text in single)
    count += sum(bool(text.removeprefix("**").removesuffix("**").strip()) for text in double)
    return bool(count >= arguments["num_highlights"])


def has_sections(reply: str, arguments: Arguments) -> bool:
    pattern = rf"\s?{arguments['section_spliter'].strip()}\s?\d+\s?"  # `Section 1`
    return bool(len(re.split(pattern, reply)) > arguments["num_sections"])


def is_json(reply: str, _: Arguments) -> bool:
    text = reply.strip()
    for fence in FENCES:
        text = text.removeprefix(fence)
    try:
        json.loads(text.removesuffix("```").strip())
    except (ValueError, RecursionError):
        return False
    return True


def has_title(reply: str, _: Arguments) -> bool:
    titles = re.findall(r"<<[^\n]+>>", reply)  # `<<title>>`
    return any(title.lstrip("<").rstrip(">").strip() for title in titles)


def has_two_responses(reply: str, _: Arguments) -> bool:
    parts = reply.split("******")
    responses = [part.strip() for part in parts if part.strip()]
    if any(not part.strip() for part in parts[1:-1]):
        return False
    return len(responses) == 2 and responses[0] != responses[1]


def repeats_prompt(reply: str, arguments: Arguments) -> bool:
    prompt = arguments["prompt_to_repeat"].strip().lower()
    return reply.strip().lower().startswith(prompt)


def has_end(reply: str, arguments: Arguments) -> bool:
    end = arguments["end_phrase"].strip().lower()
    return reply.strip().strip('"').lower().endswith(end)


def has_capital_words(reply: str, arguments: Arguments) -> bool:
    count = sum(word.isupper() for word in split_words(reply))
    return satisfies(count, arguments["capital_frequency"], arguments["capital_relation"])


def is_english_capital(reply: str, _: Arguments) -> bool:
    return reply.isupper() and detect_language(reply) in (None, "en")


def is_english_lowercase(reply: str, _: Arguments) -> bool:
    return reply.islower() and detect_language(reply) in (None, "en")


def has_no_comma(reply: str, _: Arguments) -> bool:
    return "," not in reply


def is_quoted(reply: str, _: Arguments) -> bool:
    text = reply.strip()
    return len(text) > 1 and text[0] == text[-1] == '"'


CHECKS: dict[str, Check] = {
    "keywords:existence": has_keywords,
    "keywords:frequency": has_keyword_count,
    "keywords:forbidden_words": has_no_forbidden_word,
    "keywords:letter_frequency": has_letter_count,
    "language:response_language": is_in_language,
    "length_constraints:number_sentences": has_sentence_count,
    "length_constraints:number_paragraphs": has_paragraph_count,
    "length_constraints:number_words": has_word_count,
    "length_constraints:nth_paragraph_first_word": has_first_word,
    "detectable_content:number_placeholders": has_placeholders,
    "detectable_content:postscript": has_postscript,
    "detectable_format:number_bullet_lists": has_bullet_count,
    "detectable_format:constrained_response": has_fixed_answer,
    "detectable_format:number_highlighted_sections": has_highlights,
    "detectable_format:multiple_sections": has_sections,
    "detectable_format:json_format": is_json,
    "detectable_format:title": has_title,
    "combination:two_responses": has_two_responses,
    "combination:repeat_prompt": repeats_prompt,
    "startend:end_checker": has_end,
    "change_case:capital_word_frequency": has_capital_words,
    "change_case:english_capital": is_english_capital,
    "change_case:english_lowercase": is_english_lowercase,
    "punctuation:no_comma": has_no_comma,
    "startend:quotation": is_quoted,
}
"""By the name of the instruction in the data."""


def check_strictly(name: str, arguments: Arguments, reply: str) -> bool:
    """Whether a reply follows an instruction as it is."""
    return bool(reply.strip()) and CHECKS[name](reply, arguments)


def check_loosely(name: str, arguments: Arguments, reply: str) -> bool:
    """Whether a reply follows an instruction without its first or last line or asterisks."""
    lines = reply.split("\n")
    parts = (lines[1:], lines[:-1], lines[1:-1])
    variants = [reply, *("\n".join(part).strip() for part in parts)]
    variants += [variant.replace("*", "") for variant in variants]
    return any(check_strictly(name, arguments, variant) for variant in variants)
