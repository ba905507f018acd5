"""Steps on the way, other people's picks, double denials and courtesies are no answers."""

from __future__ import annotations

import pytest

from keju.answers.kinds import AnswerKind, Choice
from keju.answers.robust import RobustReader
from keju.answers.wordings import ANSWER_IS
from keju.benchmarks.bbh.kinds import BOOL, VALID, YES_NO, ExpressionValue
from keju.types import Sample

ORGANELLES = ("Golgi apparatus", "Ribosome", "Lysosome", "Mitochondrion")
GASES = ("Methane", "Nitrous oxide", "Argon", "Water vapour")
DATES = ("02/24/2021", "02/25/2021", "03/10/2021")
VALUES = ("-1", "0", "1", "-2")


def read(
    kind: AnswerKind, reply: str, text: str = "?", choices: tuple[str, ...] = ()
) -> str | None:
    sample = Sample(id="x", subset="s", index=0, text=text, target="", choices=choices)
    return RobustReader(kind, strict=ANSWER_IS).read(reply, sample).value


@pytest.mark.parametrize(
    ("kind", "text", "reply", "value"),
    [
        (BOOL, "not True is", "The inner conjunction is False. Negating it flips it.", None),
        (BOOL, "not True is", "The left side is True, so the result is False.", "False"),
        (ExpressionValue(), "((1 + 2) * (4 - 9)) =", "First: 3. Second bracket: 4 - 9 = -5.", None),
        (ExpressionValue(), "((1 + 2) * (4 - 9)) =", "1 + 2 = 3\n4 - 9 = -5", None),
        (ExpressionValue(), "((1 + 2) * (4 - 9)) =", "The product: 3 * (-5) = -15", "-15"),
        (VALID, "Is it valid?", "To call this argument valid we would need the converse.", None),
        (YES_NO, "?", "It's hard to see how anyone could deny that she caused it.", None),
        (YES_NO, "?", "She (not paying attention) did not cause the crash.", "No"),
        (YES_NO, "?", "So Billy's action did not cause the motion detector to go off.", "No"),
        (YES_NO, "?", "After the move we are at (0, 3), which is not (0, 0).", "No"),
        (YES_NO, "?", "We were not at (0, 0). In the end we are at (0, 0) again.", "Yes"),
    ],
)
def test_a_part_or_a_supposition_is_not_the_verdict(
    kind: AnswerKind, text: str, reply: str, value: str | None
) -> None:
    assert read(kind, reply, text) == value


@pytest.mark.parametrize(
    ("text", "choices", "reply", "label"),
    [
        ("?", ORGANELLES, "Many students pick ribosome here because it has so much to do.", None),
        ("?", ORGANELLES, "It is the ribosome (option B).\n\nWould you like to know more?", "B"),
        ("Which is NOT a greenhouse gas?", GASES, "All of these except argon absorb heat.", "C"),
        ("Which is NOT a greenhouse gas?", GASES, "A is true. B is true. D is true.", "C"),
        ("Which is NOT a greenhouse gas?", GASES, "A is true. B is true.", None),
        ("下列说法错误的是____", ("光反应在类囊体薄膜上进行", "乙乙", "丙丙", "丁丁"), "光反应在类囊体薄膜上进行,A正确;B正确;C正确;D错误。", "D"),
        ("Today is 3 March 2021. Which day?", DATES, "So it was February 24th, 2021.", "A"),
        ("函数的最小值为____", VALUES, "抛物线开口向上,对称轴为x=1。", None),
        ("函数的最小值为____", VALUES, "所以函数的最小值=-1。", "A"),
        ("Which statement is sarcastic?", ("Oh, sure", "Oh, no"), "The first one is the sarcastic one.", "A"),
        ("Statement 1 | a", ("True, True", "True, False"), "The first statement is the known one.", None),
    ],
)  # fmt: skip
def test_an_option_counts_only_where_the_reply_chooses_it(
    text: str, choices: tuple[str, ...], reply: str, label: str | None
) -> None:
    assert read(Choice(), reply, text, choices) == label
