"""The prompts of C-Eval, one small writer for each publication.

A writer turns a subject and its worked examples into the shared `Prefix`, and a question into the
tail. Sources: the C-Eval tutorial (Yao Fu), hkust-nlp/ceval, EvalScope, lm-evaluation-harness,
OpenCompass. The subject's name is the Chinese one throughout.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from keju.benchmarks.ceval.protocols import Mode, PromptForm, Setting
from keju.benchmarks.choices import LabelStyle, label_lines
from keju.benchmarks.wording import fill
from keju.types import Message, Prefix

EXAM_HEAD = "以下是中国关于{subject}考试的单项选择题，请选出其中的正确答案。"
PLAIN_HEAD = "以下是中国关于{subject}的单项选择题，请选出其中的正确答案。"
CUE = "答案："
STEPS = "让我们一步一步思考"

OFFICIAL_PERSONA = "你是一个中文人工智能助手，"
OFFICIAL_STEPS = STEPS + "，\n"
OFFICIAL_FIRST_STEP = "1."
OPENCOMPASS_CUE = "答案: "

EVALSCOPE_QUESTION = (
    PLAIN_HEAD + '你的回答的最后一行应该是这样的格式："答案：[LETTER]"（不带引号），'
    "其中 [LETTER] 是 {letters} 中的一个。\n\n问题：{question}\n选项：\n{choices}\n"
)
EVALSCOPE_EXAMPLES = "以下是一些示例问题：\n\n{fewshot}\n\n\n"
EVALSCOPE_SHOT = "问题：{question}\n选项：\n{choices}\n解析：{explanation}\n答案：{answer}"
LETTERS = "A、B、C、D"

QUESTION_FIELDS = ("subject", "question", "choices", "letters")
"""Placeholders of `prompt_template`."""
FEW_SHOT_FIELDS = ("fewshot", *QUESTION_FIELDS)
"""Placeholders of `few_shot_prompt_template`."""
_OWN_FIELDS = ("{question}", "{choices}")
"""What differs from question to question: all before the first of them is shared."""


class Question(NamedTuple):
    """What a prompt shows of a row."""

    text: str
    options: tuple[str, ...]
    answer: str = ""
    explanation: str = ""


class Turn(NamedTuple):
    """One worked example: what the user says and what the assistant answers."""

    user: str
    assistant: str


@dataclass(frozen=True)
class Voice:
    """Where the head goes in a chat."""

    system: str | None = None
    """Replaces the protocol's own system message; empty for none."""
    system_role: bool = True
    """Whether the model takes a system message; if not, it opens the first user message."""


class Writer(ABC):
    """Writes the prompts of one publication in one mode and form."""

    def __init__(self, mode: Mode, form: PromptForm, voice: Voice) -> None:
        self.mode = mode
        self.form = form
        self.voice = voice

    @abstractmethod
    def shot(self, subject: str, shot: Question) -> Turn:
        """A worked example; in base form the two parts are simply joined."""

    @abstractmethod
    def ask(self, subject: str, question: Question) -> str:
        """The question itself."""

    def head(self, subject: str) -> str:
        """The text before all examples: base form."""
        return ""

    def opening(self, subject: str) -> str:
        """What stands before the first user message in chat form, beside the system message."""
        return ""

    def system(self, subject: str) -> str:
        """The system message of the protocol; empty for none."""
        return ""

    def prefix(self, subject: str, shots: Sequence[Question]) -> Prefix:
        """The part of the prompt that all questions of `subject` share."""
        turns = [self.shot(subject, shot) for shot in shots]
        if self.form == "base":
            return Prefix(lead=self.head(subject) + "".join(t.user + t.assistant for t in turns))
        system, opening = self._voiced(subject)
        messages = [Message("system", system)] if system else []
        for turn in turns:
            messages.append(Message("user", opening + turn.user))
            messages.append(Message("assistant", turn.assistant))
            opening = ""
        return Prefix(tuple(messages), opening)

    def _voiced(self, subject: str) -> tuple[str, str]:
        """The system message and the opening of the first user message."""
        own = self.system(subject)
        opening = self.opening(subject)
        system = own if self.voice.system is None else self.voice.system
        if self.voice.system_role or not system:
            return system, opening
        if system == own and opening:
            return "", opening
        return "", f"{system}\n\n{opening}"


def block(question: Question, style: LabelStyle) -> str:
    """The question and its labelled options; nothing after them."""
    return f"{question.text}\n{label_lines(question.options, style)}"


class Tutorial(Writer):
    """Options `A: text`; the head is the system message of a chat."""

    def head(self, subject: str) -> str:
        return EXAM_HEAD.format(subject=subject) + "\n\n"

    def system(self, subject: str) -> str:
        return EXAM_HEAD.format(subject=subject)

    def shot(self, subject: str, shot: Question) -> Turn:
        answer = f"{CUE}{shot.answer}"
        if self.mode == "cot":
            answer = f"{shot.explanation}\n{answer}"
        user = self._user(shot)
        return Turn(user, answer) if self.form == "chat" else Turn(user + "\n", answer + "\n\n")

    def ask(self, subject: str, question: Question) -> str:
        user = self._user(question)
        if self.form == "chat":
            return user
        return user + "\n" + (CUE if self.mode == "answer-only" else "")

    def _user(self, question: Question) -> str:
        text = block(question, "A: text")
        return f"{text}\n{STEPS}" if self.mode == "cot" else text


class Official(Writer):
    """Options `A. text`, every user turn ends with the cue; a chat says the head twice."""

    def head(self, subject: str) -> str:
        return EXAM_HEAD.format(subject=subject) + "\n\n"

    opening = head

    def system(self, subject: str) -> str:
        return OFFICIAL_PERSONA + EXAM_HEAD.format(subject=subject)

    def shot(self, subject: str, shot: Question) -> Turn:
        answer = shot.answer
        if self.mode == "cot":
            answer = f"{OFFICIAL_STEPS}{shot.explanation}\n所以答案是{shot.answer}。"
        end = "\n\n" if self.form == "base" else ""
        return Turn(self._user(shot), answer + end)

    def ask(self, subject: str, question: Question) -> str:
        first_step = OFFICIAL_STEPS + OFFICIAL_FIRST_STEP
        continued = first_step if (self.mode, self.form) == ("cot", "base") else ""
        return self._user(question) + continued

    @staticmethod
    def _user(question: Question) -> str:
        return f"{block(question, 'A. text')}\n{CUE}"


class LmEval(Writer):
    """The head once, the question stripped, a space between the cue and the label."""

    def head(self, subject: str) -> str:
        return PLAIN_HEAD.format(subject=subject) + "\n\n"

    def shot(self, subject: str, shot: Question) -> Turn:
        return Turn(self.ask(subject, shot), f" {shot.answer}\n\n")

    def ask(self, subject: str, question: Question) -> str:
        return f"{block(question._replace(text=question.text.strip()), 'A. text')}\n{CUE}"


class OpenCompass(Writer):
    """The head in every example; in base form the label stands on its own line.

    Upstream compares four filled-in texts in base form, so a question whose label is to be chosen
    ends with that line break too; a generated one ends with the cue.
    """

    def __init__(self, mode: Mode, form: PromptForm, voice: Voice, *, choose: bool = False) -> None:
        super().__init__(mode, form, voice)
        self.choose = choose

    def shot(self, subject: str, shot: Question) -> Turn:
        user = self._user(subject, shot)
        if self.form == "chat":
            return Turn(user, shot.answer)
        return Turn(user, f"\n{shot.answer}\n\n\n")

    def ask(self, subject: str, question: Question) -> str:
        line_break = "\n" if self.form == "base" and self.choose else ""
        return self._user(subject, question) + line_break

    @staticmethod
    def _user(subject: str, question: Question) -> str:
        head = EXAM_HEAD.format(subject=subject)
        return f"{head}\n{block(question, 'A. text')}\n{OPENCOMPASS_CUE}"


class EvalScope(Writer):
    """One user message: examples with their explanations, then the question.

    `template` is the whole message; what stands before its first field that differs between
    questions is the shared part.
    """

    def __init__(self, voice: Voice, template: str) -> None:
        super().__init__("cot", "chat", voice)
        self.shared, self.own = _split(template)

    def prefix(self, subject: str, shots: Sequence[Question]) -> Prefix:
        examples = "\n\n".join(self.shot(subject, shot).user for shot in shots)
        values = {"subject": subject, "letters": LETTERS, "fewshot": examples}
        system, opening = self._voiced(subject)
        messages = (Message("system", system),) if system else ()
        return Prefix(messages, opening + fill(self.shared, values))

    def shot(self, subject: str, shot: Question) -> Turn:
        values = {
            "question": shot.text,
            "choices": label_lines(shot.options, "A. text"),
            "explanation": shot.explanation,
            "answer": shot.answer,
        }
        return Turn(fill(EVALSCOPE_SHOT, values), "")

    def ask(self, subject: str, question: Question) -> str:
        values = {
            "subject": subject,
            "letters": LETTERS,
            "question": question.text,
            "choices": label_lines(question.options, "A. text"),
        }
        return fill(self.own, values)


def _split(template: str) -> tuple[str, str]:
    first = min((at for at in map(template.find, _OWN_FIELDS) if at >= 0), default=len(template))
    return template[:first], template[first:]


def writer_for(setting: Setting, voice: Voice, template: str | None = None) -> Writer:
    """The writer of the chosen protocol; `template` replaces EvalScope's message."""
    if setting.protocol.name == "evalscope":
        examples = EVALSCOPE_EXAMPLES if setting.shots else ""
        return EvalScope(voice, template or examples + EVALSCOPE_QUESTION)
    if setting.protocol.name == "opencompass":
        return OpenCompass(setting.mode, setting.form, voice, choose=setting.decode == "labels")
    writers: dict[str, type[Writer]] = {
        "tutorial": Tutorial,
        "official": Official,
        "lm-eval": LmEval,
    }
    return writers[setting.protocol.name](setting.mode, setting.form, voice)
