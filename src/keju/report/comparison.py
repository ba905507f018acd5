"""The report of a comparison as one page: the difference, the subsets, and replies side by side.

It is a page like that of a run: no scripts, no network, everything escaped, two languages.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from keju.files import whole_file
from keju.messages import Language
from keju.report import format as fmt
from keju.report.diffing import differing
from keju.report.format import Labels
from keju.report.gallery import Excerpt, excerpt
from keju.report.pages import HTML_LANG, Tongues, make_environment
from keju.report.pairs import answers, shown_pairs
from keju.results.compare import Compared, compare
from keju.results.schema import Comparison, Flip
from keju.results.sittings import Source
from keju.types import LABELS

TOLD = 40
"""Questions each way whose replies a page shows; fewer of each pair where there are several."""
TOLD_OF_MANY = 8
MOST_PAIRS = 12
"""Pairs whose replies are shown at all."""
TEXT = 3_000
"""Characters of a question or of a reply."""
PAGE = "compare.html"
"""The page of a comparison, where no other name is given."""
_ANSWER = 60


def texts_for(sources: int) -> int:
    """How many questions each way need their texts, for the report of so many sources."""
    pairs = sources * (sources - 1) // 2
    return TOLD if pairs <= 1 else TOLD_OF_MANY if pairs <= MOST_PAIRS else 0


def write_comparison(found: Compared, output: Path, *, language: Language = "en") -> None:
    """Write the page of a comparison to `output`, whole or not at all.

    Replies stand on it as far as `found` has their texts (see `texts_for`).
    """
    own, other = Labels(language), Labels("zh" if language == "en" else "en")
    tongues = Tongues(own, other)
    texts = [list(_sides(pair)) for pair in found.comparisons]
    contexts = (_context(found, texts, labels) for labels in tongues.both)
    context = tongues.merged(*contexts) | {"t": tongues, "lang": HTML_LANG[language]}
    with whole_file(output) as file:
        for part in make_environment().get_template("comparison.html.j2").generate(context):
            file.write(part.encode("utf-8", "replace"))


def report_comparison(
    sources: Sequence[Source], output: str | Path | None = None, *, language: Language = "en",
    **how: Any,
) -> Path:  # fmt: skip
    """Compare sources, settings as those of `compare`, and write the page; return where it is."""
    found = compare(*sources, **how, texts=texts_for(len(sources)))
    path = Path(output) if output else Path(PAGE)
    write_comparison(found, path, language=language)
    return path


def _context(found: Compared, texts: Sequence[list[Any]], labels: Labels) -> dict[str, Any]:
    """What the template needs in one language."""
    shown = shown_pairs(found.comparisons, labels)
    for each, told in zip(shown["pairs"], texts, strict=True):
        pair, number = each["pair"], each["number"]
        subsets = list(dict.fromkeys(flip.subset for flip, _ in told))
        anchors: dict[str, str] = {}
        cases = []
        for place, (flip, sides) in enumerate(told):
            anchor = "" if flip.subset in anchors else f"flip-{number}-{place}"
            anchors.setdefault(flip.subset, f"#{anchor}")
            case = _case(flip, (pair.base, pair.arm), sides, labels)
            cases.append(case | {"anchor": anchor, "number": subsets.index(flip.subset)})
        for row in each["subsets"]:
            row["href"] = anchors.get(row["name"], "")
        each |= {"cases": cases, "subset_options": subsets}
    names = list(dict.fromkeys(name for p in found.comparisons for name in (p.base, p.arm)))
    title = labels("compare.title_several", names=labels("list_separator").join(names))
    if len(names) == 2:
        title = labels("arms.against", base=names[0], arm=names[1])
    return shown | {
        "languages": [(HTML_LANG[own], Labels(own)("language_name")) for own in ("en", "zh")],
        "title": fmt.printable(title, one_line=True),
        "notices": [notice.text(labels.language) for notice in found.notices],
        "version": metadata.version("keju"),
    }


def _sides(pair: Comparison) -> Iterator[tuple[Flip, Any]]:
    """The flips that have texts, with both replies in pieces."""
    for flip in pair.flips:
        if flip.question or flip.base_reply or flip.arm_reply:
            both = (_joined(excerpt(text, TEXT)) for text in (flip.base_reply, flip.arm_reply))
            yield flip, differing(*both)


def _joined(text: Excerpt) -> str:
    return f"{text.head}\n[… {text.left_out:,} …]\n{text.tail}" if text.left_out else text.head


def _case(flip: Flip, names: Sequence[str], sides: Any, labels: Labels) -> dict[str, Any]:
    """A question that scores otherwise, made ready for the template."""
    target = flip.target.strip().strip("()")
    read = (fmt.shorten(fmt.without_canary(text), _ANSWER) for text in answers(flip, labels))
    outcomes = (flip.base_outcome, flip.arm_outcome)
    return {
        "id": fmt.printable(flip.id, one_line=True),
        "subset": flip.subset,
        "change": "gained" if flip.arm > flip.base else "lost",
        "target": fmt.shorten(fmt.without_canary(flip.target), _ANSWER),
        "question": _joined(excerpt(flip.question, TEXT)),
        "choices": [
            (label, _joined(excerpt(choice, TEXT)), label == target)
            for label, choice in zip(LABELS, flip.choices, strict=False)
        ],
        "sides": [
            {"name": name, "outcome": outcome, "read": own, "pieces": pieces}
            for name, outcome, own, pieces in zip(names, outcomes, read, sides, strict=True)
        ],
    }
