"""Describe the judge of the answers and how reliable its verdicts are."""

from __future__ import annotations

from collections.abc import Iterator

from keju.reporting.format import Labels, count, money, percent
from keju.results.schema import JudgeAgreement, JudgeReport


def describe_judge(judge: JudgeReport | None, labels: Labels) -> str:
    """Describe the judge's work and reliability in one line; empty without a judge."""
    if judge is None:
        return ""
    counts = {"judged": count(judge.judged), "ungraded": count(judge.ungraded)}
    line = labels("judge_line", model=judge.model, **counts)
    if judge.cost is not None:
        line += labels("judge_cost", cost=money(judge.cost))
    if judge.doubts:
        line += labels("judge_doubts", doubts=count(judge.doubts))
    if judge.ties:
        line += labels("judge_ties_share", ties=count(judge.ties))
    agreement = judge.agreement or JudgeAgreement()
    if isinstance(agreement.self_consistency, float):
        line += labels("judge_repeats", share=percent(agreement.self_consistency))
    if (second_judge := agreement.second) is not None and second_judge.kappa is not None:
        line += labels("judge_second", model=second_judge.model, kappa=f"{second_judge.kappa:.2f}")
    return line


def judge_rows(judge: JudgeReport, labels: Labels) -> Iterator[tuple[str, str]]:
    """Yield the same facts for a page: how often verdicts agree, and how often they are right."""
    yield labels("judge.model"), judge.model
    counts = {"judged": count(judge.judged), "ungraded": count(judge.ungraded)}
    yield labels("judge.judged"), labels("judge.judged_of", **counts)
    if judge.verdicts:
        listed = (f"{verdict} {count(n)}" for verdict, n in judge.verdicts.items())
        yield labels("judge.verdicts"), labels("list_separator").join(listed)
    agreement = judge.agreement or JudgeAgreement()
    if isinstance(agreement.self_consistency, float):
        values = {"share": percent(agreement.self_consistency), "repeats": judge.repeats}
        values |= {"ties": count(judge.ties)}
        yield labels("judge.repeats"), labels("judge.repeats_of", **values)
    if (second_judge := agreement.second) is not None:
        kappa = "–" if second_judge.kappa is None else f"{second_judge.kappa:.2f}"
        values = {
            "kappa": kappa,
            "n": count(second_judge.n),
            "share": percent(second_judge.observed),
        }
        differ = count(second_judge.disagreements)
        yield (
            labels("judge.second", model=second_judge.model),
            labels("judge.second_of", **values, differ=differ),
        )
    if (quality := judge.quality) is not None:
        values = {"sensitivity": percent(quality.sensitivity), "positives": quality.positives}
        values |= {"specificity": percent(quality.specificity), "negatives": quality.negatives}
        yield labels("judge.quality"), labels("judge.quality_of", **values)
    if judge.doubts:
        yield labels("judge.doubts"), count(judge.doubts)
    if judge.cost is not None:
        yield labels("judge.cost"), money(judge.cost)
