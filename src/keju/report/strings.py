"""Every label of the reports, in the language of its reader."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal

from keju.report.texts_en import ENGLISH
from keju.report.texts_zh import CHINESE

Language = Literal["en", "zh"]

HTML_LANG: dict[Language, str] = {"en": "en", "zh": "zh-CN"}

CATALOGUES: Mapping[Language, Mapping[str, str]] = {"en": ENGLISH, "zh": CHINESE}


_WARNINGS_ZH: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), template)
    for pattern, template in (
        (
            r"nothing was graded: all (?P<n>\S+) replies are errors or have no grade",
            "没有任何评分：全部 {n} 个回复均出错或未评分",
        ),
        (
            r"no gold answers: nothing is scored; .*",
            "没有标准答案，不评分：用 keju export RUN --format submission 导出提交文件",
        ),
        (r"no gold answers: nothing is scored", "没有标准答案，不评分"),
        (
            r"(?P<n>\S+) of (?P<of>\S+) replies \((?P<share>\S+)\) have no grade.*",
            "{of} 个回复中有 {n} 个（{share}）没有评分，不计入得分",
        ),
        (
            r"(?P<n>\S+) of (?P<of>\S+) replies \((?P<share>\S+)\) were cut off.*",
            "{of} 个回复中有 {n} 个（{share}）在给出答案前被截断：请增大 max_tokens",
        ),
        (
            r"(?P<n>\S+) of (?P<of>\S+) replies \((?P<share>\S+)\) hold no answer.*",
            "{of} 个回复中有 {n} 个（{share}）读不出答案：请对照不同读取器",
        ),
        (r"all questions share one context.*", "所有题目共用同一上下文：无法给出区间"),
        (r"only (?P<n>\S+) clusters.*", "只有 {n} 个聚类：区间本身并不可靠"),
        (
            r"repeats at temperature 0 .*",
            "温度为 0 时的重复衡量的是接口的噪声，而不是模型的离散程度",
        ),
        (
            r"repeats of the judge at temperature 0 .*",
            "温度为 0 时评委的重复衡量的是其接口的噪声，而不是评委的把握",
        ),
        (
            r"the (?P<second>second )?judge is the candidate itself: .*",
            "有评委就是考生本身：其裁决会偏向自己的答案",
        ),
        (
            r"the (?P<second>second )?judge has the candidate's name at another endpoint: .*",
            "有评委与考生同名，但接口不同：若为同一模型，其裁决会偏向自己的答案",
        ),
        (
            r"the judge's api_key_var names (?P<name>\w+), which is not set: no key was sent",
            "评委的 api_key_var 指定的变量 {name} 未设置：未发送密钥",
        ),
        (
            r"the judge's api_key_var names (?P<name>\w+), which is not set: the candidate's .*",
            "评委的 api_key_var 指定的变量 {name} 未设置：发送的是考生的密钥",
        ),
        (
            r"the judge has no verdict on (?P<n>\S+) of (?P<of>\S+) answers; .*",
            "评委对 {of} 个答案中的 {n} 个没有裁决：对本次运行执行 keju judge 可再次询问",
        ),
        (
            r"the second judge has no verdict on (?P<n>\S+) of (?P<of>\S+) answers: .*",
            "第二评委对 {of} 个答案中的 {n} 个没有裁决：一致性不包含这些答案",
        ),
        (
            r"the judge of the task takes the place of (?P<which>.*)",
            "任务指定的评委取代了考试自身的设置：{which}",
        ),
        (
            r"no judge: open answers that no rule decides .*",
            "没有评委：规则无法判定的开放题答案仅在与标准答案逐字相同时算对",
        ),
        (
            r"not the published rows, .*: (?P<which>.*)",
            "行数与公布的数据不符，得分不可比较：{which}",
        ),
        (
            r"(?P<n>\S+) of (?P<of>\S+) questions have no prediction",
            "{of} 题中有 {n} 题没有预测",
        ),
    )
)
"""Warnings of the results in Chinese; the results document itself is always English."""


_COUNTED = re.compile(r"(?P<stem>.+[@^])(?P<k>\d+)")
"""A metric of so many attempts, e.g. ``pass@5``."""


class Strings:
    """The labels of one language; a call fills the placeholders of one of them."""

    def __init__(self, language: Language = "en") -> None:
        self.language = language
        self._texts = CATALOGUES[language]

    def __call__(self, key: str, **values: Any) -> str:
        """The label `key` with its placeholders filled; an unknown key is a programming error."""
        return self._texts[key].format(**values) if values else self._texts[key]

    def known(self, key: str, otherwise: str) -> str:
        """The label `key` if the catalogue has it, else `otherwise`."""
        return self._texts.get(key, otherwise)

    def metric(self, name: str, given: str) -> str:
        """What kind of mean a metric is: its own title in English, ours in other languages."""
        if given and self.language == "en":
            return given
        counted = _COUNTED.fullmatch(name)
        key = f"{counted['stem']}k" if counted else name
        text = self._texts.get(f"metric.{key}")
        if text is None:
            return given or name.replace("_", " ")
        return text.format(k=counted["k"]) if counted else text

    def warning(self, text: str) -> str:
        """A warning of the results in this language, where its wording is known."""
        if self.language == "zh":
            for pattern, template in _WARNINGS_ZH:
                found = pattern.fullmatch(text)
                if found:
                    return template.format(**found.groupdict())
        return text
