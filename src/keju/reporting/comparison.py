"""Write a comparison as one page: the difference, the subsets, and pairs of replies.

The page follows the rules of a run's report: no scripts, no network, all text escaped, two
languages.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from keju.files import whole_file
from keju.messages import Language
from keju.reporting import format as fmt
from keju.reporting.diffing import diff_words
from keju.reporting.format import Labels
from keju.reporting.gallery import TextExcerpt, excerpt, is_private
from keju.reporting.pages import HTML_LANG, BilingualLabels, make_environment
from keju.reporting.pair_contexts import pairs_context
from keju.reporting.pairs import answers
from keju.results.compare import Compared, compare
from keju.results.schema import ChangedQuestion, Comparison
from keju.results.scored_exam import Source
from keju.types import LABELS

QUESTIONS_SHOWN = 40
"""The number of gains and of losses whose replies a page shows; fewer for several pairs."""
QUESTIONS_SHOWN_OF_MANY = 8
MOST_PAIRS = 12
"""The largest number of pairs for which the page shows replies."""
TEXT = 3_000
"""The number of characters of a question or of a reply."""
CASES_IN_SIGHT = 5
"""The number of questions of a pair that are listed before the others are unfolded."""
PAGE = "compare.html"
"""The default file name of a comparison."""
_ANSWER = 60


def texts_for(sources: int) -> int:
    """Return the number of gains and of losses whose texts a report of these sources needs."""
    pairs = sources * (sources - 1) // 2
    return QUESTIONS_SHOWN if pairs <= 1 else QUESTIONS_SHOWN_OF_MANY if pairs <= MOST_PAIRS else 0


def write_comparison(compared_runs: Compared, output: Path, *, language: Language = "en") -> None:
    """Write the page of a comparison to `output`, completely or not at all.

    The page shows the replies whose texts `compared_runs` contains (see `texts_for`).
    """
    primary_labels, secondary_labels = Labels(language), Labels("zh" if language == "en" else "en")
    tongues = BilingualLabels(primary_labels, secondary_labels)
    texts = [list(_reply_pieces(pair)) for pair in compared_runs.comparisons]
    contexts = (_context(compared_runs, texts, labels) for labels in tongues.all_labels)
    context = tongues.merge_contexts(*contexts) | {"t": tongues, "lang": HTML_LANG[language]}
    with whole_file(output) as file:
        for part in make_environment().get_template("comparison.html.j2").generate(context):
            file.write(part.encode("utf-8", "replace"))


def report_comparison(
    sources: Sequence[Source], output: str | Path | None = None, *, language: Language = "en",
    **how: Any,
) -> Path:  # fmt: skip
    """Compare sources with the settings of `compare`, write the page, and return its path."""
    compared_runs = compare(*sources, **how, texts=texts_for(len(sources)))
    path = Path(output) if output else Path(PAGE)
    write_comparison(compared_runs, path, language=language)
    return path


def _context(compared_runs: Compared, texts: Sequence[list[Any]], labels: Labels) -> dict[str, Any]:
    """Return the template context in one language."""
    context = pairs_context(compared_runs.comparisons, labels, is_static=True)
    for pair_context, pair_texts in zip(context["pairs"], texts, strict=True):
        _add_cases(pair_context, pair_texts, labels)
    shown_pairs = [pair_context["pair"] for pair_context in context["pairs"]]
    names = list(dict.fromkeys(name for p in shown_pairs for name in (p.base, p.arm)))
    title = labels("compare.title_several", names=labels("list_separator").join(names))
    if len(names) == 2:
        title = labels("arms.against", base=names[0], arm=names[1])
    return context | {
        "languages": [
            (HTML_LANG[language], Labels(language)("language_name")) for language in ("en", "zh")
        ],
        "title": fmt.printable(title, one_line=True),
        "notices": [notice.text(labels.language) for notice in compared_runs.notices],
        "cases_in_sight": CASES_IN_SIGHT,
        "version": metadata.version("keju"),
    }


def _add_cases(pair_context: dict[str, Any], pair_texts: list[Any], labels: Labels) -> None:
    """Add the questions with both replies to the context of a pair, and link subsets to them."""
    pair, number = pair_context["pair"], pair_context["number"]
    subsets = list(dict.fromkeys(flip.subset for flip, _ in pair_texts))
    anchors: dict[str, str] = {}
    cases = []
    for place, (flip, sides) in enumerate(pair_texts):
        anchor = "" if flip.subset in anchors else f"flip-{number}-{place}"
        anchors.setdefault(flip.subset, f"#{anchor}")
        case = _case(flip, (pair.base, pair.arm), sides, labels)
        cases.append(case | {"anchor": anchor, "number": subsets.index(flip.subset)})
    for row in pair_context["subsets"]:
        row["href"] = anchors.get(row["name"], "")
    pair_context |= {"cases": cases, "subset_options": subsets}


def _reply_pieces(pair: Comparison) -> Iterator[tuple[ChangedQuestion, Any]]:
    """Yield the flips that have texts, with both replies in pieces."""
    for flip in pair.flips:
        if is_private(pair.exam):
            flip = replace(flip, question="", choices=())
        if flip.question or flip.base_reply or flip.arm_reply:
            replies = (
                _join_excerpt(excerpt(text, TEXT)) for text in (flip.base_reply, flip.arm_reply)
            )
            yield flip, diff_words(*replies)


def _join_excerpt(text: TextExcerpt) -> str:
    return f"{text.head}\n[… {text.left_out:,} …]\n{text.tail}" if text.left_out else text.head


def _case(
    flip: ChangedQuestion, names: Sequence[str], sides: Any, labels: Labels
) -> dict[str, Any]:
    """Return the context of a question with two different scores."""
    target = flip.target.strip().strip("()")
    answer_texts = (
        fmt.shorten(fmt.without_canary(text), _ANSWER) for text in answers(flip, labels)
    )
    outcomes = (flip.base_outcome, flip.arm_outcome)
    return {
        "id": fmt.printable(flip.id, one_line=True),
        "subset": flip.subset,
        "change": "gained" if flip.arm > flip.base else "lost",
        "target": fmt.shorten(fmt.without_canary(flip.target), _ANSWER),
        "question": _join_excerpt(excerpt(flip.question, TEXT)),
        "choices": [
            (label, _join_excerpt(excerpt(choice, TEXT)), label == target)
            for label, choice in zip(LABELS, flip.choices, strict=False)
        ],
        "sides": [
            {"name": name, "outcome": outcome, "read": answer, "pieces": pieces}
            for name, outcome, answer, pieces in zip(
                names, outcomes, answer_texts, sides, strict=True
            )
        ],
    }
