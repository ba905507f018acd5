"""The settings of BixBench: the verifiers environment's settings, and Keju's own.

Keju accepts every argument of the environment. An argument that would have no effect must have its
default value, so users can pass on full lists of defaults.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, StrictBool, StrictInt, StrictStr, field_validator, model_validator

from keju.benchmarks.bixbench.relaxations import DEFAULT_RELAXATIONS, RELAXATIONS, Relaxation
from keju.config import DatasetArgs, JudgeArrangement, JudgeConfig, variable_name
from keju.config.address import parse_address
from keju.errors import ConfigError

VERIFIED = "verified-50"
JUDGE_SETTINGS = (
    "llm_judge_model", "llm_judge_base_url", "llm_judge_api_key_var", "continuous_scoring",
)  # fmt: skip
SPLIT = "train"
"""The name of the only split in the environment."""
AGENTIC_SETTINGS = (
    "max_turns", "enable_agentic_docker", "docker_image", "docker_timeout", "capsule_dir", "images",
    "rerun_all", "language", "notebook",
)  # fmt: skip
NOTEBOOK_SETTINGS = tuple(
    name for name in AGENTIC_SETTINGS if name not in ("max_turns", "notebook")
)
"""Settings of the agentic mode that have no effect without tools."""
OPTION_SETTINGS = ("shuffle_options", "with_refusal", "compat_shuffle")
FEW_SHOT_SETTINGS = ("few_shot_random", "few_shot_prompt_template")


class BixBenchArgs(DatasetArgs):
    """Settings of BixBench."""

    asking: ClassVar[frozenset[str]] = DatasetArgs.asking | {*JUDGE_SETTINGS, "add_tf_legend"}

    mode: Literal["zero_shot", "agentic"] = "zero_shot"
    """How the model works: one reply, or turns with tools."""
    answer_mode: Literal["mcq", "open"] = "mcq"
    """Choose among options, or answer freely."""
    question_source: Literal["mcq", "hypothesis"] = "mcq"
    """The questions of the capsules, or each capsule's hypothesis as true or false."""
    add_tf_legend: StrictBool = False
    """Hypothesis with options: say which letter means True, after shuffling."""
    max_episodes: StrictInt | None = Field(default=None, ge=1)
    """Only the first N questions."""
    seed: StrictInt = 42
    """With the question's id it decides the order of the options; the task's unless it is given."""
    shuffle_options: StrictBool = True
    """Shuffle the options; the permutation is recorded."""
    with_refusal: StrictBool = False
    """Offer not to know as a further option; it is the last one in the environment's prompts."""
    use_think: StrictBool = False
    """Also cut reasoning in tags other than ``<think>``, which is always cut."""
    llm_judge_model: StrictStr = Field(default="gpt-4.1-mini", min_length=1)
    """The model that judges open answers."""
    llm_judge_base_url: StrictStr = Field(default="https://api.openai.com/v1", min_length=1)
    """The endpoint of the judge."""
    llm_judge_api_key_var: StrictStr = "OPENAI_API_KEY"
    """Name of the environment variable that holds the judge's key."""
    continuous_scoring: StrictBool = False
    """The judge gives a number in [0, 1] instead of a verdict."""
    max_turns: StrictInt = Field(default=10, ge=1)
    """Agentic: the most turns of the assistant."""
    enable_agentic_docker: StrictBool = False
    """Agentic: work in a container instead of the local sandbox."""
    docker_image: StrictStr = Field(
        default="futurehouse/bixbench:aviary-notebook-env", min_length=1
    )
    """Agentic: the image of that container."""
    docker_timeout: StrictInt = Field(default=300, ge=1)
    """Agentic: seconds for the execution of one cell."""
    capsule_dir: StrictStr | None = None
    """Agentic: the folder of the capsules; by default ``capsules`` next to the questions."""
    notebook: StrictBool = True
    """Agentic: work in a notebook. False asks for ``max_turns`` replies in a row without tools, as
    the environment does."""
    images: StrictBool = False
    """Agentic: show the model the pictures that its cells draw."""
    rerun_all: StrictBool = False
    """Agentic: run the whole notebook after each edit, as the authors do, not one cell."""
    language: Literal["python", "r"] = "python"
    """Agentic: the language of the notebook's kernel."""

    all_questions: StrictBool = False
    """Version 1.0: ask all questions of a capsule, not only its first."""
    compat_shuffle: StrictBool = False
    """Permute as the environment does: one order for all questions of version 1.0."""
    no_judge: Literal["exact", "ungraded"] = "exact"
    """Open answers that no rule decides, without a judge: compare exactly, or leave them out."""
    data_version: Literal["1.5", "1.0", "verified-50"] | None = None
    """Which version to take where a folder holds several; 1.5 by default. ``verified-50`` is
    BixBench-Verified-50, with the keys of your file."""
    relaxations: list[Relaxation] | Literal["all"] | None = None
    """Open answers: what the reader ``tolerant`` accepts beyond version 1.5's rules, or ``all``; by
    default ``rounding`` and ``percent``."""

    @field_validator("data_version", mode="before")
    @classmethod
    def _version_as_text(cls, value: Any) -> Any:
        if not isinstance(value, float | str):
            return value
        name = str(value).strip().lower().replace("_", "-")
        return name if name == VERIFIED else name.removeprefix("v")

    @field_validator("llm_judge_base_url")
    @classmethod
    def _is_an_address(cls, value: str) -> str:
        try:
            parse_address(value)
        except ConfigError as error:
            raise ConfigError(str(error).replace("api_url", "llm_judge_base_url", 1)) from None
        return value

    @field_validator("llm_judge_api_key_var")
    @classmethod
    def _names_a_variable(cls, value: str) -> str:
        return variable_name(value, "llm_judge_api_key_var")

    @model_validator(mode="after")
    def _has_effect(self) -> Self:
        if self.mode != "agentic":
            self._refuse(AGENTIC_SETTINGS, "bixbench.only_agentic")
        elif not self.notebook:
            self._refuse(NOTEBOOK_SETTINGS, "bixbench.only_notebook")
        elif not self.enable_agentic_docker:
            self._refuse(("docker_image",), "bixbench.only_docker")
        self._refuse(FEW_SHOT_SETTINGS, "bixbench.refused_shots")
        if self.few_shot_num:
            raise ConfigError("bixbench.no_shots")
        self._refuse(("shuffle_choices",), "bixbench.refused_shuffle")
        if self.answer_mode == "open":
            self._refuse(OPTION_SETTINGS, "bixbench.only_mcq")
        if self.compat_shuffle and not self.shuffle_options:
            raise ConfigError("bixbench.compat_shuffle")
        if self.answer_mode == "open" or self.question_source != "hypothesis":
            self._refuse(
                ("add_tf_legend",),
                "bixbench.only_hypothesis_mcq",
            )
        if self.question_source == "hypothesis":
            self._refuse(("all_questions", "relaxations"), "bixbench.not_hypothesis")
        if not self.judged:
            self._refuse(
                (*JUDGE_SETTINGS, "no_judge", "relaxations"),
                "bixbench.only_open_mcq",
            )
        if self._wants_exact:
            self._refuse(
                JUDGE_SETTINGS,
                "bixbench.not_exact",
            )
        return self

    @property
    def _wants_exact(self) -> bool:
        """Whether the settings ask for exact comparison explicitly, not by default."""
        return "no_judge" in self.model_fields_set and self.no_judge == "exact"

    @property
    def judged(self) -> bool:
        """Whether a judge may have to decide some answers."""
        return self.answer_mode == "open"

    @property
    def names_a_judge(self) -> bool:
        """Whether these settings ask for a judge explicitly, not by default."""
        judge_settings = self.model_fields_set & set(JUDGE_SETTINGS)
        return self.judged and bool(judge_settings)

    def judge(self) -> JudgeConfig:
        """Return the judge in these settings, with a key variable only if they name one."""
        names_key_variable = "llm_judge_api_key_var" in self.model_fields_set
        return JudgeConfig(
            model=self.llm_judge_model,
            api_url=self.llm_judge_base_url,
            api_key_var=self.llm_judge_api_key_var if names_key_variable else None,
            continuous=self.continuous_scoring,
        )

    @property
    def exact(self) -> bool:
        """Whether open answers that no rule decides are compared with the target's text."""
        is_question = self.judged and self.question_source == "mcq"
        return is_question and self.no_judge == "exact" and not self.names_a_judge

    @property
    def leaves_to_judge(self) -> bool:
        """Whether open answers that no rule decides wait for a judge."""
        return self.judged and (self.no_judge == "ungraded" or self.names_a_judge)

    @property
    def uses_notebook(self) -> bool:
        """Whether the model works in a notebook."""
        return self.mode == "agentic" and self.notebook

    @property
    def tolerated(self) -> tuple[str, ...]:
        """The names of the relaxations that the reader ``tolerant`` allows."""
        if self.relaxations == "all":
            return RELAXATIONS
        return DEFAULT_RELAXATIONS if self.relaxations is None else tuple(self.relaxations)

    @property
    def implied_protocol(self) -> str | None:
        return "agentic" if self.uses_notebook else None

    def without_own_judge(self) -> Self:
        kept_settings = self.model_fields_set - {*JUDGE_SETTINGS, "no_judge"}
        settings = type(self)(**{name: getattr(self, name) for name in kept_settings})
        return settings.model_copy(update={"no_judge": "ungraded"} if self.judged else {})

    def settings_without_tools(
        self, exam_settings: Mapping[str, Any], error: ConfigError
    ) -> dict[str, Any] | None:
        if error.code != "bixbench.no_capsules" or "notebook" in self.model_fields_set:
            return None
        kept_settings = {k: v for k, v in exam_settings.items() if k not in NOTEBOOK_SETTINGS}
        return kept_settings | {"notebook": False}

    def arrange_judge(
        self,
        exam_settings: Mapping[str, Any],
        environ: Mapping[str, str],
        *,
        ask_default: bool = False,
    ) -> JudgeArrangement:
        settings = dict(exam_settings)
        if not self.judged or self._wants_exact:
            return JudgeArrangement(None, settings)
        for name in JUDGE_SETTINGS:
            settings.pop(name, None)
        variable = self.llm_judge_api_key_var
        if environ.get(variable) and self.names_a_judge:
            return JudgeArrangement(self.judge(), settings | {"no_judge": "ungraded"})
        if environ.get(variable) and ask_default and self.no_judge == "exact":
            address = environ.get("OPENAI_BASE_URL") or self.llm_judge_base_url
            judge = self.judge().model_copy(update={"api_url": address, "api_key_var": variable})
            return JudgeArrangement(judge, settings | {"no_judge": "ungraded"})
        consequence = "are compared with the target by strict exact match"
        if self.question_source == "hypothesis":
            consequence = "stay unread"
        if settings.setdefault("no_judge", "exact") == "ungraded":
            consequence = "stay ungraded"
        reason = f"{variable} is not set, so there is no judge"
        if environ.get(variable):
            reason = (
                "no judge is named and none is asked (llm_judge_model names one, such as "
                f"{self.llm_judge_model} at {self.llm_judge_base_url} with the key of {variable})"
            )
        return JudgeArrangement(
            None, settings, f"{reason}: open answers that no rule decides {consequence}"
        )

    @property
    def labels(self) -> dict[str, str]:
        return {"split": SPLIT, "mode": self.mode, "answer_mode": self.answer_mode}

    def _refuse(self, names: tuple[str, ...], code: str) -> None:
        for name in names:
            if getattr(self, name) != type(self).model_fields[name].default:
                raise ConfigError(code, name=name)
