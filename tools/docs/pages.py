"""All that is made from the code, by file."""

from __future__ import annotations

from pathlib import Path

from tools.docs import causes, commands, names, navigation, results, settings
from tools.docs.markdown import LANGUAGES, SUFFIXES

ROOT = Path(__file__).parent.parent.parent
MAKERS = {
    "reference-cli": commands.page,
    "reference-configuration": settings.page,
    "reference-results": results.page,
    "reference-python": names.page,
    causes.NAME: causes.page,
}


def written() -> dict[Path, str]:
    """The text of every file that the code makes."""
    files = {
        ROOT / "docs" / f"{name}{SUFFIXES[language]}": make(language)
        for name, make in MAKERS.items()
        for language in LANGUAGES
    }
    return {**files, ROOT / "llms.txt": navigation.llms_text(ROOT)}
