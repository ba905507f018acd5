"""The notation of mathematical answers as tokens: LaTeX, plain text and Unicode signs."""

from __future__ import annotations

import re

MOST_CHARACTERS = 1500
"""The longest answer that is parsed. Longer ones are equal only if their texts are."""

_SIGNS = str.maketrans(
    {
        "−": "-", "–": "-", "×": "\\times ", "·": "\\cdot ", "⋅": "\\cdot ", "∗": "*",
        "÷": "\\div ",
        "π": "\\pi ", "∞": "\\infty ", "√": "\\sqrt ", "≤": "\\le ", "≥": "\\ge ", "≠": "\\ne ",
        "°": "^\\circ ", "∪": "\\cup ", "∩": "\\cap ", "∈": "\\in ", "±": "\\pm ",
        "∅": "\\emptyset ",
        "ℝ": "\\mathbb{R}", "²": "^{2}", "³": "^{3}", "½": "\\frac12 ", "¼": "\\frac14 ",
        "¾": "\\frac34 ", "⅓": "\\frac13 ", "⅔": "\\frac23 ", "θ": "\\theta ", "α": "\\alpha ",
        "β": "\\beta ", "λ": "\\lambda ", "（": "(", "）": ")", "，": ",", "。": ".", "：": ":",
        "％": "%", "\u00a0": " ", "\u202f": " ", "\u2009": " ", "′": "'",
    }
)  # fmt: skip

# `\left(`, `\displaystyle`, `\,`, `$`, `\(`: marks of layout without a meaning.
_LAYOUT = re.compile(
    r"\\(?:left|right|bigg?|Bigg?|bigl|bigr|Bigl|Bigr|displaystyle|textstyle|limits|mathstrut"
    r"|quad|qquad|hspace\{[^{}]{0,20}\}|phantom\{[^{}]{0,20}\})(?![A-Za-z])\s?"
    r"|(?<!\\)\\[!;:(\[\])]|\\\$|\$|~"
)
# `\,` and `\ `: small blanks; not the line break `\\` before a blank.
_SMALL_BLANK = re.compile(r"(?<!\\)\\[, ]")
# `0.1\overline{6}`: a number with repeating digits.
_REPEATING = re.compile(r"(\d{0,20})\.(\d{0,20})\\overline\{(\d{1,20})\}")
# `1{,}234`, `1,\!234`, `1\,234`: marks of thousands in LaTeX.
_TEX_THOUSANDS = re.compile(r"(?<=\d)(?:\{,\}|,\\!|\\,)(?=\d{3}(?!\d))")
# `12,345`, `1 234 567`: groups of three digits.
_THOUSANDS = re.compile(r"(?<![\d.,])\d{1,3}(?:,\d{3})+(?![\d])|(?<![\d.])\d{1,3}(?: \d{3})+(?!\d)")
_BRACKET = re.compile(r"[(\[]|\\\{|\\l?brace|\\langle")
# `\dfrac`, `\tfrac`, `\cfrac`, `\neq`, `\leqslant`: other names of commands.
_SYNONYMS = {
    "\\dfrac": "\\frac", "\\tfrac": "\\frac", "\\cfrac": "\\frac", "\\dbinom": "\\binom",
    "\\tbinom": "\\binom", "\\neq": "\\ne", "\\leq": "\\le", "\\geq": "\\ge", "\\leqslant": "\\le",
    "\\geqslant": "\\ge", "\\lt": "<", "\\gt": ">", "\\ast": "*", "\\lbrace": "\\{",
    "\\rbrace": "\\}", "\\lvert": "|", "\\rvert": "|", "\\vert": "|", "\\mid": "|",
    "\\varnothing": "\\emptyset", "\\degree": "\\circ", "\\Reals": "\\R", "\\lbrack": "[",
    "\\rbrack": "]", "\\colon": ":", "\\land": ",", "\\lor": ",", "\\implies": "\\Rightarrow",
    "\\dots": "\\ldots", "\\cdots": "\\ldots",
}  # fmt: skip
# `\frac`, `\{`, `12.5`, `.5`, `cm`, `+`: one token.
_TOKEN = re.compile(r"\\[A-Za-z]+|\\[^A-Za-z]|\d+(?:\.\d+)?|\.\d+|[A-Za-z]+|\S")


def clean(text: str, *, split_commas: bool = False) -> str:
    """Return an answer without marks of layout. With `split_commas` every comma separates."""
    text = text.strip().translate(_SIGNS)
    text = _TEX_THOUSANDS.sub("", text)
    text = _SMALL_BLANK.sub(" ", _LAYOUT.sub("", text))
    text = _REPEATING.sub(_as_fraction, text)
    if not split_commas and not _BRACKET.search(text):
        text = _THOUSANDS.sub(lambda match: match[0].replace(",", "").replace(" ", ""), text)
    return text.strip()


def _as_fraction(match: re.Match[str]) -> str:
    """Return a number with repeating digits as a fraction: ``0.1\\overline{6}`` is 15/90."""
    integer, fixed, repeated = match.groups()
    numerator = int(integer + fixed + repeated) - int(integer + fixed or "0")
    denominator = (10 ** len(repeated) - 1) * 10 ** len(fixed)
    return f"(\\frac{{{numerator}}}{{{denominator}}})"


def tokenize(text: str) -> list[str]:
    """Return the tokens of a clean text; other names of commands are replaced."""
    tokens = _TOKEN.findall(text)
    return [_SYNONYMS.get(token, token) if token[0] == "\\" else token for token in tokens]


# `\text{ dollars }`, `\mathrm{cm}`: the commands of text in formulas, with the text in group 1.
TEXT_COMMAND = re.compile(
    r"\\(?:text(?:bf|it|rm|sf|tt|normal)?|mathrm|mathbf|mathit|mathsf|mbox"
    r"|hbox|operatorname|emph)\s*\{([^{}]*)\}"
)
_BLANKS = re.compile(r"\s+")


def plain_text(text: str) -> str:
    """Return an answer for comparison as a text: no commands of text, no blanks, lower case."""
    bare = TEXT_COMMAND.sub(r"\1", clean(text)).strip().removesuffix(".")
    return _BLANKS.sub("", bare.replace("\\", "").replace("{", "").replace("}", "")).casefold()
