"""The readers: every row of the published tables, run-on, odd input, long loops."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keju.benchmarks.base import Reader
from keju.benchmarks.ceval.protocols import PROTOCOLS
from keju.benchmarks.ceval.readers import OFFICIAL_ZERO_SHOT, make_readers
from keju.benchmarks.grading import grade
from keju.types import Answer, Reply, Sample

SAMPLE = Sample(
    id="ceval_logic_val_0",
    subset="logic",
    index=0,
    text="雨后____？",
    target="B",
    choices=("天晴", "下雪", "刮风", "打雷（大）"),
)

SETTINGS = {
    "evalscope": PROTOCOLS["evalscope"].fix(mode=None, form=None, decode="auto", shots=None),
    "tutorial base": PROTOCOLS["tutorial"].fix(
        mode="answer-only", form="base", decode="generate", shots=5
    ),
    "tutorial base cot": PROTOCOLS["tutorial"].fix(mode="cot", form="base", decode="auto", shots=5),
    "tutorial chat": PROTOCOLS["tutorial"].fix(
        mode="answer-only", form="chat", decode="generate", shots=5
    ),
    "tutorial chat cot": PROTOCOLS["tutorial"].fix(mode="cot", form="chat", decode="auto", shots=5),
    "official chat": PROTOCOLS["official"].fix(
        mode="answer-only", form="chat", decode="generate", shots=5
    ),
    "official zero": PROTOCOLS["official"].fix(
        mode="answer-only", form="chat", decode="generate", shots=0
    ),
    "official cot": PROTOCOLS["official"].fix(mode="cot", form="chat", decode="auto", shots=0),
    "opencompass base": PROTOCOLS["opencompass"].fix(
        mode=None, form="base", decode="generate", shots=5
    ),
}


def reader(name: str, setting: str = "evalscope") -> Reader:
    return make_readers(SETTINGS[setting])[name]


def read(name: str, text: str, setting: str = "evalscope") -> Answer:
    return reader(name, setting).read(text, SAMPLE)


TABLE = [
    ("答案: B", "B", "B"),
    ("**答案：B**", "B", "B"),
    ("答案：(B)", "B", "B"),
    ("答案：b", None, "B"),
    ("答案：Ｂ", None, "B"),
    ("答案：A、B", None, None),
    ("A选项错误，C选项错误，所以选B，D也错误", "D", "B"),
    ("应选 B 选项，因为 DNA", "A", "B"),
    ("正确答案为 B 选项。", "B", "B"),
    ("故选：B", "B", "B"),
    ("所以答案是B。", "B", "B"),
    ("我无法确定，仅供参考 DNA", "A", None),
]


@pytest.mark.parametrize(("text", "evalscope", "robust"), TABLE)
def test_the_published_table(text: str, evalscope: str | None, robust: str | None) -> None:
    assert read("evalscope", text).value == evalscope
    assert read("robust", text).value == robust


@pytest.mark.parametrize("text", ["答案：[LETTER]", "不选A"])
def test_robust_reads_neither_placeholders_nor_negations(text: str) -> None:
    assert read("robust", text).value is None


@pytest.mark.parametrize(
    ("text", "tier"),
    [
        ("答案：B", "strict"),
        ("所以答案是B。", "strict"),
        ("正确答案为B", "tolerant"),
        ("因此，选B", "tolerant"),
        ("选B", "tolerant"),
        ("答案是下雪", "tolerant"),
        ("B", "fallback"),
        ("B. 下雪", "fallback"),
        ("B、下雪", "fallback"),
        ("分析如下。\n下雪", "fallback"),
    ],
)
def test_robust_records_how_far_it_had_to_go(text: str, tier: str) -> None:
    answer = read("robust", text)
    assert (answer.value, answer.tier) == ("B", tier)


@pytest.mark.parametrize(
    "text",
    [
        "答案：A和B", "答案：A与B", "答案：A及B", "答案是A或B", "答案：A/B", "答案：A，B",
        "故选A、D", "答案：B，D都正确", "答案：B 或者 A", "答案：B还是A", "答案：B，也可能是A", "答案：(A、B)",
        "答案：B；A", "The answer is B or even A", "答案：\\boxed{A}或\\boxed{B}",
    ],
)  # fmt: skip
def test_joined_labels_are_ambiguous(text: str) -> None:
    assert read("robust", text) == Answer(reason="ambiguous")


@pytest.mark.parametrize(
    "text",
    [
        "我不认为答案是A", "并非答案是A", "答案：不是A", "答案并不是A", "I doubt that the answer is A", "不正确答案是A", "不正确的答案是A", "错误答案是A", "答案不是A", "不应选A", "非正确的选项是A", "不选择A", "误选择A",
        "如果选择A", "如果我选A", "我不选A", "不应该选择A", "不应当选A", "不会选择A", "没选择A", "综上所述，不选A",
        "不正确的是A", "答案显然不是A", "答案：ABCD", "A股上涨", "选择题", "C位出道",
    ],
)  # fmt: skip
def test_robust_takes_no_label_out_of_prose(text: str) -> None:
    assert read("robust", text).value is None


@pytest.mark.parametrize(
    "text",
    [
        "综上所述，选B", "综上所述，应当选B", "应当选B", "此题选B", "这道题选B", "该题应选B", "我选B", "我会选择B",
        "答案就是B", "答案显然是B", "答案应该就是B", "正确的是B", "正确的是: B项", "答案是B不是C", "答案是B，不是C",
        "答案是B而不是C", "答案：B不是选项C", "选B不选C", "所以选B，不选C", "选B而不是C。",
    ],
)  # fmt: skip
def test_robust_reads_everyday_wordings(text: str) -> None:
    assert read("robust", f"先看各项。\n{text}").value == "B"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("选项B是正确的。", "B"),
        ("B选项正确", "B"),
        ("B项正确。", "B"),
        ("A选项错误。\n所以，只有B选项正确。", "B"),
        ("A选项正确。B选项正确。", None),
        ("A选项正确。B选项错误。C选项正确。", None),
        ("A选项正确。\nB选项错误。", "A"),
        ("如果天冷，B选项正确。", None),
        ("A、B选项正确", None),
        ("选项B是不正确的。", None),
        ("选项B是正确的吗？", None),
        ("B选项正确。但是还要再想想。", None),
    ],
)
def test_the_only_verdict_counts_as_a_whole_last_sentence(text: str, value: str | None) -> None:
    answer = read("robust", text)
    assert (answer.value, answer.tier) == (value, "tolerant" if value else "")


@pytest.mark.parametrize(
    ("text", "value"),
    [("答案：B?", "B"), ("答案：(B)？", "B"), ("答案是B?", None), ("所以答案是B？", None), ("答案：B? C?", None)],
)  # fmt: skip
def test_a_question_mark_is_no_doubt_in_the_form_that_was_asked_for(
    text: str, value: str | None
) -> None:
    assert read("robust", text).value == value


def test_a_choice_between_two_labels_is_ambiguous() -> None:
    assert read("robust", "答案是B还是C?") == Answer(reason="ambiguous")


def test_a_choice_that_is_ruled_out_is_not_the_first_answer() -> None:
    answer = read("robust", "不应该选择A，因为不合题意。\n应该选择B")
    assert (answer.value, answer.other) == ("B", None)


def test_a_label_that_the_row_does_not_have_is_invalid() -> None:
    assert read("robust", "答案：E").reason == "invalid_label"


def test_the_last_marker_wins_and_the_first_is_kept() -> None:
    answer = read("robust", "答案：A\n再想想。\n答案：B")
    assert (answer.value, answer.other) == ("B", "A")


def test_options_with_full_width_signs_are_recognised() -> None:
    assert read("robust", "D. 打雷（大）").value == "D"
    assert read("robust", "打雷(大)").value == "D"


RUN_ON = "\n\n太阳是____。\nA: 星\nB: 月\nC: 云\nD: 雨\n答案：C\n\n月亮是____。"


@pytest.mark.parametrize("name", ["tutorial", "robust"])
def test_a_base_models_run_on_is_cut_at_the_empty_line(name: str) -> None:
    for text in ("B", " B", "B\n", "B. 下雪"):
        answer = read(name, text + RUN_ON, "tutorial base")
        assert (answer.value, answer.cut) == ("B", True)
    plain = read(name, "B\n", "tutorial base")
    assert (plain.value, plain.tier, plain.cut) == ("B", "strict", False)
    thought = read(name, "1. 先看。\n\n2. 再看。\n答案：B" + RUN_ON, "tutorial base cot")
    assert (thought.value, thought.cut) == ("B", True)
    chat = read(name, "答案：A\n\n更正。\n答案：B", "tutorial chat")
    assert (chat.value, chat.first or chat.other, chat.cut) == ("B", "A", False)


def test_run_on_of_the_evalscope_form_is_cut_at_a_new_question() -> None:
    answer = read("robust", "解析：略。\n答案：B\n\n问题：太阳是____。\n答案：C")
    assert (answer.value, answer.cut) == ("B", True)


def test_a_label_on_the_line_after_opencompasss_cue_is_read() -> None:
    answer = read("robust", "\nB\n\n\n以下是中国关于逻辑学考试的题\n答案: \nC", "opencompass base")
    assert (answer.value, answer.cut) == ("B", True)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("B", "B"),
        ("B。因为DNA", "B"),
        ("答案：B", "B"),
        ("B\n因为天冷", "B"),
        ("A选项错误，所以选B", "B"),
        ("B. 下雪\n\n因为天冷。", "B"),
        ("B．下雪", "B"),
        ("D. 打雷（", "D"),
        ("A. 天晴：错误。\nB. 下雪：正确。\n所以选B", "B"),
        ("A. 天晴：错误。\nB. 下雪：正确。", "B"),
        ("A、B", None),
        ("A股", None),
    ],
)
def test_a_chat_reply_completes_the_official_cue(text: str, value: str | None) -> None:
    assert read("robust", text, "official chat").value == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("答案：B", "B"),
        ("推理。\n答案：B", "B"),
        ("答案：A\n答案：B", "B"),
        ("答案: B", None),
        ("答案是B", None),
        ("B", None),
        ("答案：Bernoulli", None),
    ],
)
def test_the_tutorials_reader_knows_its_own_form_only(text: str, value: str | None) -> None:
    assert read("tutorial", text, "tutorial chat cot").value == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("B", "B"), ("Ｂ", "B"), ("(B)", "B"), ("**B**", "B"), ("B. 上海", "B"), ("B、下雪", "B"), ("B选项", "B"),
        ("答案:B", "B"), ("答案: B", "B"), ("答案：Ｂ", "B"), ("答案：（B）", "B"), ("B\n更正。\n答案：C", "C"),
        ("A、B", None), ("A或B", None), ("A股上涨", None), ("A 不对", None), ("C++", None), ("答案：Bernoulli", None), ("我不知道", None),
    ],
)  # fmt: skip
def test_the_tutorials_reader_takes_a_label_where_only_the_answer_was_asked_for(
    text: str, value: str | None
) -> None:
    assert read("tutorial", text, "tutorial chat").value == value


@pytest.mark.parametrize("text", ["B", "Ｂ", "(B)", "**B**", "答案:B", "B. 上海"])
def test_a_base_model_completes_the_tutorials_cue_in_any_form(text: str) -> None:
    answer = read("tutorial", text + RUN_ON, "tutorial base")
    assert (answer.value, answer.tier, answer.cut) == ("B", "strict", True)


def test_label_log_probabilities_decide_without_any_text() -> None:
    reply = Reply(label_logprobs={"A": -2.0, "B": -0.5})
    for name in make_readers(SETTINGS["evalscope"]):
        reading = grade(reply, SAMPLE, reader(name, "tutorial chat"))
        assert (reading.answer.value, reading.answer.tier) == ("B", "labels")
        assert reading.score.outcome == "correct"
    without_labels = grade(Reply(label_logprobs={}), SAMPLE, reader("tutorial", "tutorial chat"))
    assert without_labels.answer.reason == "labels_not_in_top_logprobs"
    assert without_labels.score.outcome == "unparsed"


# --- official --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value"),
    [("B", "B"), (" b. ", "B"), ("(B)", "B"), ("B。", None), ("答案：B", None), ("B B", None)],
)
def test_official_few_shot_needs_the_bare_letter(text: str, value: str | None) -> None:
    assert read("official", text, "official chat").value == value


SEVENTEEN = [
    "选B", "选项B", "答案是B", "答案为 选项 B", "答案应为B", "答案选B", "答案是:B", "答案应该是:B",
    "正确的一项是 B", "答案为:B", "答案应为:B", "答案:B", "答案是：B", "答案应该是：B", "答案为：B",
    "答案应为：B", "答案：B",
]  # fmt: skip


def test_official_zero_shot_has_seventeen_patterns_in_order() -> None:
    assert len(OFFICIAL_ZERO_SHOT) == len(SEVENTEEN) == 17
    for text, pattern in zip(SEVENTEEN, OFFICIAL_ZERO_SHOT, strict=True):
        assert pattern.findall(text) == ["B"]
        assert read("official", text, "official zero").value == "B"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("B是对的", "B"),
        ("Because of this", "B"),
        ("答案：A，不，答案是B", "B"),
        ("答案是B，答案：A", "B"),
        ("答案是A，后来答案是B", "B"),
        ("我选B", None),
        ("答案：Ｂ", None),
    ],
)
def test_official_zero_shot_takes_the_first_pattern_and_its_last_match(
    text: str, value: str | None
) -> None:
    assert read("official", text, "official zero").value == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("所以答案是B。", "B"),
        ("答案是A。不，答案是(b)。", "B"),
        ("答案为B。", "B"),
        ("选项B是正确的。", "B"),
        ("答案是A。答案为B。", "A"),
        ("答案是A或B。", None),
        ("答案是B", None),
        ("答案是\nB。", None),
        ("答案是。。", None),
        ("答案是什么。选项B是正确的。", None),
    ],
)
def test_official_chain_of_thought(text: str, value: str | None) -> None:
    assert read("official", text, "official cot").value == value


@pytest.mark.parametrize(
    ("text", "value"),
    [("B", "B"), ("答案: B。A不对", "B"), ("Let's see: B", None), ("没有", None), ("b", None)],
)
def test_first_capital(text: str, value: str | None) -> None:
    assert read("first-capital", text).value == value


# --- anything at all -------------------------------------------------------------------------

PIECES = st.sampled_from(
    ["答案", "：", ":", "是", "选", "故", "A", "B", "Ｃ", "d", "E", "、", "和", "，", "。", "\n", "\r\n",
     " ", "**", "(", ")", "[", "\\boxed{", "}", "不", "问题：", "正确的选项是", "所以", "DNA", "下雪", "$"]
)  # fmt: skip
TEXTS = st.one_of(st.text(max_size=60), st.lists(PIECES, max_size=25).map("".join))


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(text=TEXTS)
@pytest.mark.parametrize("setting", SETTINGS)
def test_every_reader_reads_labels_or_nothing(setting: str, text: str) -> None:
    for one_reader in make_readers(SETTINGS[setting]).values():
        answer = one_reader.read(text, SAMPLE)
        assert answer.value is None or answer.value in tuple("ABCD")
        assert (answer.value is None) == bool(answer.reason)


LOOPS = [
    "答案：",
    "答案是",
    "不选A，",
    "所以选",
    "答案：A、",
    "选A\n",
    "\n \n",
    "[",
    "答案 ** ",
    "B选项错误，",
    "B选项正确。",
    "不应该选择A，",
    "我",
]


@pytest.mark.slow
@pytest.mark.parametrize("loop", LOOPS)
def test_long_loops_are_read_right(loop: str) -> None:
    text = loop * (100_000 // len(loop)) + "\n因此得出结论。\n答案：B"
    for setting in ("evalscope", "tutorial chat", "official chat"):
        assert read("robust", text, setting).value == "B"
    assert read("tutorial", text, "tutorial chat").value == "B"
    assert read("evalscope", text).value == "B"
    assert read("official", text + "\n所以答案是B。", "official cot").value == "B"
    for one_reader in make_readers(SETTINGS["tutorial base cot"]).values():
        one_reader.read(text, SAMPLE)
