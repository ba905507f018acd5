"""What mkdocs is told beyond ``mkdocs.yml``: hooks that fit the repository's pages to the site.

A page of the repository links to its other language in its third line, and to files beside docs/.
On the site the theme has a link to the other language, and there is nothing beside the pages.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

from tools.docs.navigation import llms_text

ROOT = Path(__file__).parent.parent.parent

# The line ``[中文](exams.zh-CN.md)`` or ``[English](exams.md)`` below the title.
_OTHER_LANGUAGE = re.compile(r"^\[(?:中文|English)\]\([^)]*\)\n", re.MULTILINE)
# ``[CONTRIBUTING.md](../CONTRIBUTING.md)``: a file of the repository that is no page.
_OUTSIDE = re.compile(r"\[([^]]+)\]\(\.\./[^)]*\)")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """A page without what the site has no use for."""
    return _OUTSIDE.sub(r"\1", _OTHER_LANGUAGE.sub("", markdown, count=1))


def on_post_build(config: Any) -> None:
    """Put ``llms.txt`` beside the pages, and the Markdown that it leads to."""
    site = Path(config["site_dir"])
    for page in (ROOT / "docs").glob("*.md"):
        shutil.copyfile(page, site / page.name)
    (site / "llms.txt").write_text(llms_text(ROOT, folder=""), "utf-8")
