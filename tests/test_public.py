"""The public names: all there, sorted, and free until they are used."""

from __future__ import annotations

import subprocess
import sys
import typing

import pytest

import keju


def test_exported_list_is_what_is_visible() -> None:
    assert keju.__all__ == sorted(keju.__all__)
    assert dir(keju) == sorted(keju.__all__)
    for name in keju.__all__:
        assert getattr(keju, name) is not None


def test_star_import_brings_exactly_the_list() -> None:
    names: dict[str, typing.Any] = {}
    exec("from keju import *", names)
    assert set(names) - {"__builtins__"} == set(keju.__all__)


def test_unknown_name_is_an_attribute_error() -> None:
    assert not hasattr(keju, "run_tasks")


def test_import_is_light() -> None:
    code = "import sys, keju; print(sorted(m for m in sys.modules if m.startswith('keju')))"
    code += "; assert not {'pydantic', 'msgspec', 'typer', 'rich', 'yaml'} & set(sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "['keju']"


def test_document_example_imports() -> None:
    from keju import run_task
    from keju.config import TaskConfig

    assert callable(run_task)
    assert TaskConfig is keju.TaskConfig


def test_names_of_version_1_0_still_work_and_warn() -> None:
    with pytest.warns(DeprecationWarning, match="use keju.run_matrix"):
        assert keju.run_plan is keju.run_matrix
    with pytest.warns(DeprecationWarning, match="use KejuError.message"):
        assert keju.UsageError("No such run.").said == "No such run."


@pytest.mark.parametrize(
    ("old", "new"), [("Sandbox", "SandboxSettings"), ("Server", "ServerSettings")]
)
def test_settings_of_arms_have_their_old_names(old: str, new: str) -> None:
    from keju.config import arms

    with pytest.warns(DeprecationWarning, match=f"is now keju.config.arms.{new}"):
        assert getattr(arms, old) is getattr(arms, new)
    with pytest.raises(AttributeError):
        arms.Nothing  # noqa: B018
