"""Messages about custom exams in English and Chinese."""

from __future__ import annotations

from keju import messages

ENGLISH = {
    "custom.answer_neither": "{where}: the answer '{answer}' is neither a letter from A to "
    "{last} nor the text of an option",
    "custom.answer_both": "{where}: the answer '{answer}' is a letter and the text of option "
    "{option}; write the letter of the right one in all rows, and other texts",
    "custom.answer_of_several": "{where}: the answer '{answer}' is the text of several options",
    "custom.several_answers": "{where}: several answers; a question with options has one",
    "custom.empty_numbered": "{where}: option {number} is empty",
    "custom.choices": "{where}: 'choices' should be a list (in CSV: a JSON list, or columns A, "
    "B, …)",
    "custom.empty_option": "{where}: option {label} is empty",
    "custom.no_text": "{where}: '{name}' should be a text",
    "custom.truth_value": "{where}: '{name}' is a truth value; write it in quotes, as a text",
    "custom.no_question": "{where}: 'question' is missing",
    "custom.no_question_field": "{where}: 'question' is missing; found: {found}{hint}",
    "custom.rename": " (is '{name}' meant? call it 'question')",
    "custom.misnamed": "{where}: nothing reads the {n:column|columns} {columns}: call {n:it|them} "
    "{names}; a column that holds neither an option nor the answer needs another name",
    "custom.mixed_answers": "{exam}: {numbers} of {whole} right answers ({share:.2 %}) are "
    "numbers, the others are words, and 'robust' takes whole lines: '2 + 2 = 4' does not count as "
    "4. Put the questions with numbers into a folder of their own, where 'number' stands beside "
    "it, and name both: docs/custom-exams.md#numbers-and-words",
    "custom.repeated_questions": "{exam}: {n} {n:question repeats|questions repeat} another word "
    "for word, and {n:is|are} asked and counted again; the first is {where}, the same as {other}",
    "custom.unknown_ending": "{path}: no questions are read from a file of this name; it should "
    "end in {endings}",
    "custom.no_list": "{where} holds no list of rows",
    "custom.shot_answer": "{where}: a worked example needs an 'answer'",
    "custom.no_rows": "{path} holds no rows",
    "custom.id_twice": "{where}: id '{id}' is that of {other}",
    "custom.same_name": "{path}: {other} and {name} have the same name; say in exam.yaml which "
    "of them holds the 'questions'",
    "custom.no_questions": "{path} holds no questions: expected a CSV, JSON Lines, JSON, YAML "
    "or Parquet file",
    "custom.no_table": "{path} holds no table '{name}'{hint}",
    "custom.nothing_to_draw": "{name}: few_shot_random: there are no worked examples to draw",
    "custom.no_shot_file": "{name}: {asked} {asked:worked example|worked examples} asked for, and "
    "the exam has none: put them into a file few_shot.jsonl or few_shot.csv in its folder",
    "custom.reader_form": "reader: expected letter, robust, exact or number, or a mapping with "
    "'marker' or 'regex'{hint}",
    "custom.few_shot_form": "few_shot: expected a number of worked examples, or the name of their "
    "file",
    "custom.two_templates": "prompt_template has no effect beside few_shot_prompt_template, "
    "which is the whole prompt: give one of them",
    "custom.no_shots": "few_shot_prompt_template has no effect without worked examples",
    "custom.shuffle_choices": "shuffle_choices: the questions have no options",
    "custom.local_path": "local_path has no effect: a custom exam is named by its path",
    "custom.in_file": "{path}: {problem}",
    "custom.name_taken": "{path}: '{name}' is a benchmark already; set another name in exam.yaml",
    "custom.no_exam": "no exam at {path}: expected a folder or a file of questions",
    "custom.has_options_unlike": "{where} has options, and {first} has none: an exam has questions "
    "of one kind. Put each kind into a folder of its own, and name both: --datasets ./A ./B",
    "custom.has_no_options_unlike": "{where} has no options ('choices', or columns A, B, …), and "
    "{first} has: an exam has questions of one kind. Put each kind into a folder of its own, and "
    "name both: --datasets ./A ./B",
    "custom.has_options": "{where} has options: the exam is of kind '{kind}'",
    "custom.has_no_options": "{where} has no options ('choices', or columns A, B, …): the exam is "
    "of kind '{kind}'",
    "custom.reader_of_choice": "reader '{name}' is not for questions with options (valid: {valid})",
    "custom.reader_of_free": "reader '{name}' is not for questions without options (valid: "
    "{valid})",
    "custom.about_reader_letter": "the rule of robust for options: the letter in any clear "
    "wording, never a guess",
    "custom.about_reader_marker": "what follows the exam's own marker, the last one",
    "custom.about_reader_regex": "what the exam's own pattern finds last",
    "custom.about_reader_exact": "the whole reply, letter for letter",
    "custom.about_reader_number": "the number that is announced or ends the reply, by value",
}
CHINESE = {
    "custom.answer_neither": "{where}：答案“{answer}”既不是 A 到 {last} 的字母，也不是某个选项的"
    "文本",
    "custom.answer_both": "{where}：答案“{answer}”既是字母又是选项 {option} 的文本；请在所有行写"
    "正确选项的字母，并使用别的文本",
    "custom.answer_of_several": "{where}：答案“{answer}”是多个选项的文本",
    "custom.several_answers": "{where}：有多个答案；带选项的题只有一个",
    "custom.empty_numbered": "{where}：第 {number} 个选项为空",
    "custom.choices": "{where}：“choices”应当是列表（在 CSV 中：JSON 列表，或 A、B、…… 各列）",
    "custom.empty_option": "{where}：选项 {label} 为空",
    "custom.no_text": "{where}：“{name}”应当是文本",
    "custom.truth_value": "{where}：“{name}”是真值；请加引号写成文本",
    "custom.no_question": "{where}：缺少“question”",
    "custom.no_question_field": "{where}：缺少“question”；已有：{found}{hint}",
    "custom.rename": "（是否指“{name}”？请改名为“question”）",
    "custom.misnamed": "{where}：以下 {n} 列不会被读取：{columns}；请依次改名为：{names}。既不是"
    "选项也不是答案的列，请另取名称",
    "custom.mixed_answers": "{exam}：{whole} 个标准答案中有 {numbers} 个（{share:.2 %}）是数字，"
    "其余是词语，而“robust”取整行：“2 + 2 = 4”不算 4。请把答案为数字的题放进单独的文件夹（那里"
    "“number”列在旁边），并列出两者：docs/custom-exams.zh-CN.md#numbers-and-words",
    "custom.repeated_questions": "{exam}：有 {n} 道题与另一道题逐字相同，会重复提问并重复计分；"
    "第一处是 {where}，与 {other} 相同",
    "custom.unknown_ending": "{path}：不从这种名称的文件读取题目；文件名应以下列之一结尾："
    "{endings}",
    "custom.no_list": "{where} 中没有行的列表",
    "custom.shot_answer": "{where}：示例需要“answer”",
    "custom.no_rows": "{path} 中没有行",
    "custom.id_twice": "{where}：id “{id}”与 {other} 的相同",
    "custom.same_name": "{path}：{other} 与 {name} 同名；请在 exam.yaml 中说明哪一个是“questions”",
    "custom.no_questions": "{path} 中没有题目：应有 CSV、JSON Lines、JSON、YAML 或 Parquet 文件",
    "custom.no_table": "{path} 中没有表“{name}”{hint}",
    "custom.nothing_to_draw": "{name}：few_shot_random：没有可抽取的示例",
    "custom.no_shot_file": "{name}：要求 {asked} 个示例，但这门考试没有示例：请把示例放进考试文件夹"
    "中的 few_shot.jsonl 或 few_shot.csv",
    "custom.reader_form": "reader：应为 letter、robust、exact 或 number，或带“marker”或“regex”"
    "的映射{hint}",
    "custom.few_shot_form": "few_shot：应为示例的个数，或示例文件的名称",
    "custom.two_templates": "有 few_shot_prompt_template（它就是整个提示）时 prompt_template 不"
    "起作用：只给其中一个",
    "custom.no_shots": "没有示例时 few_shot_prompt_template 不起作用",
    "custom.shuffle_choices": "shuffle_choices：题目没有选项",
    "custom.local_path": "local_path 不起作用：自定义考试以其路径命名",
    "custom.in_file": "{path}：{problem}",
    "custom.name_taken": "{path}：“{name}”已经是一门考试；请在 exam.yaml 中另取名字",
    "custom.no_exam": "{path} 处没有考试：应为文件夹或题目文件",
    "custom.has_options_unlike": "{where} 有选项，而 {first} 没有：一门考试的题目只能是一种。"
    "请把每一种放进单独的文件夹，并列出两者：--datasets ./A ./B",
    "custom.has_no_options_unlike": "{where} 没有选项（“choices”，或 A、B、…… 各列），而 "
    "{first} 有：一门考试的题目只能是一种。请把每一种放进单独的文件夹，并列出两者："
    "--datasets ./A ./B",
    "custom.has_options": "{where} 有选项：但考试的种类是“{kind}”",
    "custom.has_no_options": "{where} 没有选项（“choices”，或 A、B、…… 各列）：但考试的种类是"
    "“{kind}”",
    "custom.reader_of_choice": "读取器“{name}”不适用于带选项的题（可用：{valid}）",
    "custom.reader_of_free": "读取器“{name}”不适用于不带选项的题（可用：{valid}）",
    "custom.about_reader_letter": "robust 对选项的规则：任何清楚说法中的字母，从不猜测",
    "custom.about_reader_marker": "考试自己的标记之后的内容，取最后一处",
    "custom.about_reader_regex": "考试自己的模式最后找到的内容",
    "custom.about_reader_exact": "整个回复，逐字比较",
    "custom.about_reader_number": "宣布的或结尾的数字，按数值比较",
}
messages.add("en", ENGLISH)
messages.add("zh", CHINESE)
