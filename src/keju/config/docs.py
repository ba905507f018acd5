"""The strings below the fields of a class: the meaning of settings and of keys of results.

``keju schema`` and the reference pages use them.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from functools import cache


@cache
def field_docs(kind: type) -> dict[str, str]:
    """Return the string below each field of a class and of its parents in the same package."""
    docs: dict[str, str] = {}
    for parent in reversed(kind.__mro__):
        if parent.__module__.partition(".")[0] in ("keju", kind.__module__.partition(".")[0]):
            docs |= _class_docs(parent)
    return docs


def _class_docs(kind: type) -> dict[str, str]:
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(kind)))
    except (OSError, TypeError, SyntaxError):  # a generated class has no source file
        return {}
    bodies = [node.body for node in tree.body if isinstance(node, ast.ClassDef)]
    docs = {}
    for body in bodies[:1]:
        for node, next_node in zip(body, [*body[1:], None], strict=True):
            if not isinstance(node, ast.AnnAssign) or not isinstance(node.target, ast.Name):
                continue
            docs[node.target.id] = ""
            if isinstance(next_node, ast.Expr) and isinstance(next_node.value, ast.Constant):
                docs[node.target.id] = " ".join(str(next_node.value.value).split())
    return docs
