"""Undressing an answer: LaTeX wrappers, markdown, quotes and the final full stop."""

from __future__ import annotations

import re

DRESSING = " \t\r\n\f\v\u00a0\u3000*_`$\"'“”‘’«»「」『』"
"""What may stand around an answer without being part of it."""

_LATEX = re.compile(
    r"\\(?:boxed|fbox|text|textbf|textit|textrm|mathrm|mathbf|mathit|mathsf|operatorname) ?\{"
    r"|\\[(){}\[\],;:! ]|[{}]"
)


def clean_segment(segment: str) -> str:
    r"""Return the bare answer inside `segment`.

    Unwraps ``\boxed{}``, ``\text{}`` and their like, ``\(…\)`` and ``$``; strips white space,
    ``*``, ``_``, backticks and quotes; drops one final full stop.
    """
    if segment.isalnum():
        return segment
    bare = segment.strip(DRESSING)
    if "\\" in bare:
        bare = unwrap_latex(bare).strip(DRESSING)
    if bare.endswith((".", "。")):
        bare = bare[:-1].rstrip(DRESSING)
    return bare


def unwrap_latex(segment: str) -> str:
    r"""Remove the commands that only dress an answer; braces of other commands stay.

    One pass with a stack, so that nesting costs nothing: ``\boxed{\text{B}}`` is ``B``.
    """
    parts: list[str] = []
    wrappers: list[bool] = []
    position = 0
    for match in _LATEX.finditer(segment):
        parts.append(segment[position : match.start()])
        position = match.end()
        token = match[0]
        if token == "{":
            wrappers.append(False)
            parts.append(token)
        elif token == "}":
            if not (wrappers and wrappers.pop()):
                parts.append(token)
        elif token.endswith("{") and token != r"\{":
            wrappers.append(True)
        elif token in (r"\{", r"\}", r"\ "):
            parts.append(token[1])
    parts.append(segment[position:])
    return "".join(parts)
