"""Messages about fresh exams in English and Chinese."""

from __future__ import annotations

from keju import messages
from keju.benchmarks.bbh.sentences import PROTOCOLS as BBH_PROTOCOLS
from keju.benchmarks.bbh.sentences import SUBSETS

ENGLISH = {
    "about_exam_fresh_bbh": "new questions of BBH's kinds, drawn from a seed, with certain "
    "answers; needs no data",
    "fresh.too_many": "fresh_bbh: n is {n}, but at difficulty {difficulty} {subset} has only "
    "{most} different questions: take a smaller n, a larger difficulty, or leave the subset out",
    "fresh.no_language": "fresh_bbh: there is no '{subset}' in the language '{lang}'; it has "
    "{subsets}",
    "fresh.difficulty": "must be a number from {least} to {most}, not {value}",
    "fresh.difficulty_twice": "the same difficulty stands there twice: {values}",
    "fresh.one_difficulty": "fresh_bbh: several difficulties are several exams: name one of them "
    "here",
    "fresh.too_few_shots": "fresh_bbh: at difficulty {difficulty} {subset} has too few questions "
    "for n {n} and {shots} worked {shots:example|examples} beside them",
    "fresh.no_worked": "fresh_bbh: there are no worked examples for '{subset}' in the language "
    "'{lang}' (few_shot_num 0 does without)",
    "fresh.other_files": "{file} is there already and belongs to something else: choose another "
    "folder",
    "fresh.edited_file": "{file} was changed since Keju wrote it: choose another folder",
    "fresh.wrote": "wrote {n} {n:question|questions} of {subsets} {subsets:subset|subsets} to "
    "{folder}",
    "fresh.next": "next: {command}",
}
CHINESE = {
    "about_exam_fresh_bbh": "BBH 各类题目的新题，由种子生成，答案确定；不需要数据",
    "fresh.too_many": "fresh_bbh：n 为 {n}，但难度为 {difficulty} 时 {subset} 只有 {most} 道不同的"
    "题目：请减小 n、提高难度，或去掉这个子集",
    "fresh.no_language": "fresh_bbh：“{subset}”没有语言“{lang}”的题目；该语言有 {subsets}",
    "fresh.difficulty": "必须是 {least} 到 {most} 之间的数，不能是 {value}",
    "fresh.difficulty_twice": "同一难度出现了两次：{values}",
    "fresh.one_difficulty": "fresh_bbh：多个难度就是多场考试：这里请只写一个",
    "fresh.too_few_shots": "fresh_bbh：难度为 {difficulty} 时 {subset} 的题目不够：除 {n} 道题之外"
    "还要 {shots} 个示例",
    "fresh.no_worked": "fresh_bbh：“{subset}”没有语言“{lang}”的示例（few_shot_num 为 0 时不需要）",
    "fresh.other_files": "{file} 已经存在，属于别的内容：请选择另一个文件夹",
    "fresh.edited_file": "{file} 在 Keju 写出之后被改动过：请选择另一个文件夹",
    "fresh.wrote": "已将 {subsets} 个子集的 {n} 道题写入 {folder}",
    "fresh.next": "下一步：{command}",
}
PROTOCOLS = {
    "evalscope": BBH_PROTOCOLS["evalscope"],
    "paper": "Suzgun 等 2022：3 个示例的思维链，精确匹配，各子集的平均",
    "answer-only": "Suzgun 等 2022：3 个示例，不写推理，精确匹配，各子集的平均",
    "mcpbr": BBH_PROTOCOLS["mcpbr"],
    "short": "5 个示例，不写推理，示例与题目一样难；适合小模型",
}
DESCRIBED = {f"protocol.fresh_bbh.{name}": text for name, text in PROTOCOLS.items()} | {
    f"subset.fresh_bbh.{name}": text for name, text in SUBSETS.items()
}
"""Chinese for what the exam declares in English."""
messages.add("en", ENGLISH)
messages.add("zh", CHINESE)
messages.add_help(DESCRIBED)
