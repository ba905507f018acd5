"""Set the check of the job: its exit code says whether the pull request passes."""

from __future__ import annotations

import os
import sys

LINES = {
    "pass": "passed",
    "fail": "it is shown that the candidate is not good enough",
    "inconclusive": "neither pass nor fail is shown: more questions would decide",
    "incomplete": "the run did not end: some questions have no answer",
    "endpoint": "the endpoint did not answer, or refused the key",
    "error": "Keju could not run the command",
    "skipped": "nothing was asked, because there is no key",
}
CODES = {"pass": 0, "fail": 1, "inconclusive": 3, "incomplete": 4, "endpoint": 5, "skipped": 0}


def main() -> int:
    """Return the exit code of the verdict; 2 if there is none."""
    verdict = os.environ.get("CHECK_VERDICT", "")
    code = CODES.get(verdict, 2)
    if verdict == "inconclusive" and os.environ.get("CHECK_INCONCLUSIVE") == "pass":
        code = 0
    if verdict == "skipped" and os.environ.get("CHECK_WITHOUT_KEY") == "fail":
        code = 1
    kind = "error" if code else "notice"
    print(f"::{kind} title=Keju::{verdict or 'no verdict'}: {LINES.get(verdict, LINES['error'])}")
    return code


if __name__ == "__main__":
    sys.exit(main())
