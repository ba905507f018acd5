"""Report which limit cut the replies of an exam, in notices that name the setting to change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from msgspec.structs import replace

from keju.errors import Notice
from keju.scores.exam_scores import ExamScores
from keju.scores.question_limits import SETTINGS, CutCause
from keju.scores.tally import CODE, Tally

CUT_REPLIES: Final = "cut_replies"
_CODES: Final[dict[CutCause, str]] = {
    "time": "cut_replies_time",
    "tokens": "cut_replies_tokens",
    "cost": "cut_replies_cost",
    "turns": "cut_replies_turns",
    "context": "cut_replies_full",
}


def cut_notices(job: ExamScores, tally: Tally, notice: Notice) -> Iterator[Notice]:
    """Yield the notice of replies that were cut off, once for each cause."""
    part, total = notice.values["part"], notice.values["whole"]
    cut = CODE["truncated"]
    causes = Counter(cause for unit, cause in job.cuts.items() if tally.outcomes[unit] == cut)
    for cause, code in _CODES.items():
        values = {"part": causes[cause], "whole": total, "share": causes[cause] / total}
        if cause in SETTINGS:
            values["most"] = _limit(job, cause)
        if causes[cause] and values.get("most") != 0:
            part -= causes[cause]
            yield Notice(code, values)
    if part:
        values = {"part": part, "whole": total, "share": part / total}
        yield _at_max_tokens(job, replace(notice, values=values))


def _limit(job: ExamScores, cause: CutCause) -> float:
    """Return the value of a limit of the job's questions; 0 if it is not known."""
    for name in SETTINGS:
        if name == cause and job.limits is not None:
            return job.limits.amount_of(name) or 0
    return 0


def _at_max_tokens(job: ExamScores, notice: Notice) -> Notice:
    """Return the notice about replies that reached the token limit of a single reply."""
    limit = job.token_limit
    if limit is None:
        return replace(notice, code="cut_replies_unbounded")
    if 2 * len(job.short_of_limit) > notice.values["part"]:
        values = {**notice.values, "most": limit, "short": len(job.short_of_limit)}
        return replace(notice, code="cut_replies_context", values=values)
    return notice


def ignored_limit_notices(job: ExamScores) -> Iterator[Notice]:
    """Yield a notice for each limit that replies exceed without being cut."""
    total = job.tallies[0].done
    for name, part in Counter(job.ignored_limits.values()).items():
        setting, limit = f"agent.{SETTINGS[name]}", _limit(job, name)
        values = {"part": part, "whole": total, "share": part / total}
        yield Notice("limits_ignored", {**values, "setting": setting, "most": limit})
