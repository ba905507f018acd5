"""Riddles about numbers, made when they are asked for: as many as the user wants."""

import random

from keju import (
    ANSWER_COLON,
    Benchmark,
    Number,
    Protocol,
    Question,
    RobustReader,
    Wording,
    by_name,
)

QUESTIONS = 50


def riddles(setup):
    draw = random.Random(setup.seed)
    for _ in range(QUESTIONS):
        number, factor = draw.randint(3, 40), draw.randint(2, 9)
        text = f"I am a number. {factor} times me, less {factor}, is {factor * (number - 1)}."
        yield Question(f"{text} Who am I?", str(number), subset=f"times_{factor}")


RIDDLES = Benchmark(
    name="riddles",
    title="Riddles",
    about="riddles about numbers",
    questions=riddles,
    readers=by_name(RobustReader(Number(), strict=ANSWER_COLON)),
    protocols=by_name(
        Protocol(
            name="plain",
            version="1",
            about="zero-shot, the number at the end",
            reader="robust",
            wording=Wording(question="{question} End with a line 'ANSWER: NUMBER'."),
        )
    ),
)
