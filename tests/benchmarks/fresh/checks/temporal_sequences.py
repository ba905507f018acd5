"""Every minute of the day is marked as it is told; the answer is the time that stays unmarked."""

from __future__ import annotations


def answer(text: str) -> str:
    """The label of the option whose minutes are just those in which a visit was possible."""
    possible = [False] * (24 * 60)
    lines = text.splitlines()
    wake = next(line for line in lines if "woke up at" in line).rstrip(".").split()[-1]
    close = next(line for line in lines if "was closed after" in line).rstrip(".").split()[-1]
    for at in range(minute(wake), minute(close)):
        possible[at] = True
    for line in lines:
        words = line.rstrip(".").split()
        if "saw" in words:
            for at in range(minute(words[-3]), minute(words[-1])):
                possible[at] = False
    free = [at for at, is_free in enumerate(possible) if is_free]
    right = []
    for line in lines[lines.index("Options:") + 1 :]:
        label, start, _, end = line.split()
        if list(range(minute(start), minute(end))) == free:
            right.append(label)
    (label,) = right
    return label


def minute(clock: str) -> int:
    """Minutes since midnight: of ``12:15am`` they are 15."""
    digits, half = clock[:-2], clock[-2:]
    hour, _, past = digits.partition(":")
    hours = 0 if hour == "12" else int(hour)
    return (hours + (12 if half == "pm" else 0)) * 60 + int(past or "0")
