"""Faults of an endpoint that make a score doubtful."""

from __future__ import annotations

from keju.results.doubts import declared_names, doubts_of, several_models
from keju.runs.manifest import Manifest, StoredEndpoint, StoredSession
from tests.results.fake_exam import make_job


def test_a_job_with_one_model_has_no_doubts() -> None:
    job = make_job("11")
    job.reported_names.update({"m": 2})
    assert doubts_of(job) == []


def test_several_reported_models_are_listed_by_their_number() -> None:
    job = make_job("111")
    job.reported_names.update({"small": 1, "large": 2, "gone": 0})
    (notice,) = several_models(job, ())
    assert notice.values == {"models": 2, "counts": "large (2), small (1)"}
    assert [notice.code for notice in doubts_of(job)] == ["reported_models"]


def test_names_that_the_settings_declare_are_expected() -> None:
    endpoint = StoredEndpoint(address="a", declared=["small"])
    manifest = Manifest(sessions=[StoredSession(endpoints=[endpoint]), StoredSession()])
    assert declared_names(manifest) == {"small"}
    job = make_job("11")
    job.reported_names.update({"small": 1, "large": 1})
    assert not list(several_models(job, declared_names(manifest)))
