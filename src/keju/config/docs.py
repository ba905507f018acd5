"""The strings below the fields of a class: what settings and keys of results mean.

``keju schema`` and the reference pages are made of them.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from functools import cache


@cache
def field_docs(kind: type) -> dict[str, str]:
    """The string below each field of a class, those of its parents in this package included."""
    docs: dict[str, str] = {}
    for parent in reversed(kind.__mro__):
        if parent.__module__.partition(".")[0] in ("keju", kind.__module__.partition(".")[0]):
            docs |= _own_docs(parent)
    return docs


def _own_docs(kind: type) -> dict[str, str]:
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(kind)))
    except (OSError, TypeError, SyntaxError):  # made by a program, without a file of its own
        return {}
    bodies = [node.body for node in tree.body if isinstance(node, ast.ClassDef)]
    docs = {}
    for body in bodies[:1]:
        for node, after in zip(body, [*body[1:], None], strict=True):
            if not isinstance(node, ast.AnnAssign) or not isinstance(node.target, ast.Name):
                continue
            docs[node.target.id] = ""
            if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
                docs[node.target.id] = " ".join(str(after.value.value).split())
    return docs
