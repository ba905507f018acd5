"""``keju fresh``: write an exam as a folder in BBH's layout, for any tool that reads BBH.

DIR/README.md                 a description, and how to use it
DIR/fresh.json                seed, size, difficulty, language, generator, hashes
DIR/bbh/SUBSET.json           {"canary": …, "examples": [{"input": …, "target": …}, …]}
DIR/cot-prompts/SUBSET.txt    canary, dashes, worked examples
DIR/answer_only_prompts.json  the same examples without reasoning, by subset
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import file_digest
from importlib import metadata
from pathlib import Path
from typing import Any

import msgspec

from keju.benchmarks.base import Exam, Subset
from keju.benchmarks.bbh.exam import FRESH_MANIFEST, FreshManifest
from keju.benchmarks.bbh.protocols import DASHES
from keju.benchmarks.fresh.exam import FreshArgs, make_exam
from keju.benchmarks.fresh.making import VERSION
from keju.benchmarks.fresh.worked import load_answer_only, load_worked
from keju.errors import DataError, UsageError
from keju.files import make_file_name, read_json, whole_file, write_json
from keju.sources.folder import NoFolder

README = """\
# Fresh questions of BBH's kinds

Drawn by Keju {keju} (generator {generator}) from seed {seed}: {n} of each subset at difficulty
{difficulty:g}, language `{lang}`. The answers are certain: a program computed them. None of the
questions is in the published BBH.

    {command}

`fresh.json` has the settings and the hashes. The same settings give the same files with the same
generator, everywhere. Please keep the questions out of training data; another seed gives another
exam. """
CANARY = "Fresh questions by Keju, seed {seed}: keep them out of training data."


def write_exam(args: FreshArgs, folder: Path) -> FreshManifest:
    """Write the exam that `args` describe to `folder`; return its manifest.

    UsageError if that would overwrite a file that this exam did not write.
    """
    assert args.seed is not None
    assert isinstance(args.difficulty, float)
    exam = make_exam(args, NoFolder("fresh"), args.seed)
    names = [subset.name for subset in exam.subsets]
    answer_only = load_answer_only(names, args.lang)
    canary = CANARY.format(seed=args.seed)
    texts = {
        f"cot-prompts/{name}.txt": f"{canary}\n{DASHES}\n{text}\n"
        for name, text in load_worked(names, args.lang).items()
    }
    files = [*(f"bbh/{name}.json" for name in names), *texts, "answer_only_prompts.json"]
    facts = FreshManifest(
        keju=metadata.version("keju"),
        generator=VERSION,
        seed=args.seed,
        n=args.n,
        difficulty=args.difficulty,
        lang=args.lang,
        subsets=names,
        sha256=exam.data.version.rpartition(" ")[2],
    )
    _check_foreign_files(folder, [*files, "README.md", FRESH_MANIFEST], facts)
    for subset in exam.subsets:
        with whole_file(folder / "bbh" / f"{make_file_name(subset.name)}.json") as stream:
            for piece in _encode_subset(exam, subset, canary):
                stream.write(piece)
    for name, text in texts.items():
        _write_text(folder / name, text)
    write_json(folder / "answer_only_prompts.json", answer_only)
    readme = README.format(**msgspec.to_builtins(facts), command=eval_command(facts, folder))
    _write_text(folder / "README.md", readme)
    facts.files = {name: _sha256(folder / name) for name in files}
    write_json(folder / FRESH_MANIFEST, facts)
    return facts


def eval_command(facts: FreshManifest, folder: Path) -> str:
    """Return the command that evaluates a model on the exam."""
    if facts.lang == "en":
        return f"keju eval --model NAME --api-url URL --datasets bbh --data-dir {folder}"
    fresh_settings = {name: getattr(facts, name) for name in ("seed", "n", "difficulty", "lang")}
    settings = msgspec.json.encode(
        {"fresh_bbh": fresh_settings | {"subset_list": facts.subsets}}
    ).decode()
    command = "keju eval --model NAME --api-url URL --datasets fresh_bbh"
    return f"{command} --dataset-args '{settings}'"


def _encode_subset(exam: Exam, subset: Subset, canary: str) -> Iterator[bytes]:
    """Yield the content of a subset's file in pieces."""
    encode: Any = msgspec.json.encode
    yield b'{\n  "canary": ' + encode(canary) + b',\n  "examples": ['
    separator = b"\n    "
    for position in range(subset.start, subset.stop):
        sample = exam.samples[position]
        yield separator + encode({"input": sample.text, "target": sample.target})
        separator = b",\n    "
    yield b"\n  ]\n}\n"


def _check_foreign_files(folder: Path, files: list[str], facts: FreshManifest) -> None:
    """Raise UsageError if one of the files exists, unless the same exam wrote it."""
    previous_facts = FreshManifest()
    try:
        previous_facts = msgspec.convert(read_json(folder / FRESH_MANIFEST), FreshManifest)
    except (DataError, msgspec.ValidationError):
        pass  # not a file of Keju's; rejected below
    known_hashes, previous_facts.files, previous_facts.keju = previous_facts.files, {}, facts.keju
    for name in files:
        if (folder / name).exists() and previous_facts != facts:
            raise UsageError("fresh.other_files", file=folder / name)
        if (
            name in known_hashes
            and (folder / name).is_file()
            and _sha256(folder / name) != known_hashes[name]
        ):
            raise UsageError("fresh.edited_file", file=folder / name)


def _write_text(path: Path, text: str) -> None:
    with whole_file(path) as stream:
        stream.write(text.encode())


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return file_digest(stream, "sha256").hexdigest()
