"""``python -m tools.docs``: write the pages that are made from the code."""

from __future__ import annotations

from tools.docs.pages import ROOT, written


def main() -> None:
    """Write every page that has changed, and say which."""
    for path, text in written().items():
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")
            print(f"written: {path.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
