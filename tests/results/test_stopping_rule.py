"""The rules of ``--until-ci`` and ``--until-decided`` on jobs made of structs."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from keju.config import TaskConfig
from keju.errors import ConfigError
from keju.results.stopping_rule import PrecisionRule, headline_of, make_rule
from keju.runs.manifest import Manifest
from tests.results.fake_exam import make_job


@pytest.mark.parametrize(("half_width", "met"), [(0.4, True), (0.02, False)])
def test_precision_is_met_when_the_interval_is_narrow(half_width: float, met: bool) -> None:
    job = make_job("10" * 50)
    state = PrecisionRule(half_width, 42).evaluate(job, range(100), 100, looks=3)
    assert state.met is met
    assert (state.asked, state.whole, state.looks, state.value) == (100, 100, 3, 0.5)


def test_few_questions_are_never_enough() -> None:
    job = make_job("1" * 100)
    assert not PrecisionRule(0.49, 42).evaluate(job, range(3), 100, looks=1).met


def test_the_headline_counts_only_the_questions_so_far() -> None:
    job = make_job("1111" + "." * 4)
    _, metric = headline_of(job.exam, job.tallies[0].restrict_to(range(4)))
    assert (metric.value, metric.n) == (1.0, 4)


def test_a_rule_needs_gold_answers_and_no_judge() -> None:
    job, config = make_job("1"), TaskConfig(model="scripted", datasets=["demo"], until_ci=0.1)
    assert isinstance(make_rule(config, [job], Manifest(), None), PrecisionRule)
    with pytest.raises(ConfigError) as judged:
        make_rule(config, [job], Manifest(), object())  # type: ignore[arg-type]
    assert judged.value.code == "until_with_judge"
    job.exam.samples = [replace(sample, target="") for sample in job.exam.samples]
    with pytest.raises(ConfigError) as blind:
        make_rule(config, [job], Manifest(), None)
    assert blind.value.code == "until_without_gold"
