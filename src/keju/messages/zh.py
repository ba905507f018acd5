"""The Chinese catalogue (mainland)."""

from __future__ import annotations

TEXTS: dict[str, str] = {
    "damaged_lines": "运行记录中有 {lines} 行无法读取，按未作答处理",
    "missing_extra": "{what}需要可选组件：pip install 'keju[{extra}]'",
    # What a reader of results must know.
    "no_gold": "没有标准答案，不评分",
    "no_gold_submission": "没有标准答案，不评分："
    "用 keju export RUN --format submission 导出提交文件",
    "nothing_graded": "没有任何评分：全部 {whole} 个回复均出错或未评分",
    "ungraded_replies": "{whole} 个回复中有 {part} 个（{share:.1%}）没有评分，不计入得分",
    "cut_replies": "{whole} 个回复中有 {part} 个（{share:.1%}）在给出答案前被截断："
    "请增大 max_tokens",
    "unread_replies": "{whole} 个回复中有 {part} 个（{share:.1%}）读不出答案：请对照不同读取器",
    "one_cluster": "所有题目共用同一上下文：无法给出区间",
    "few_clusters": "只有 {clusters} 个聚类：区间本身并不可靠",
    "repeats_at_temperature_0": "温度为 0 时的重复衡量的是接口的噪声，而不是模型的离散程度",
    "missing_predictions": "{whole} 题中有 {missing} 题没有预测",
    "data_changed": "数据在运行之后有改动（{file}）：不再对应的回复不计入",
    "imported": "从 {origin} 导入：提示词为该工具自带",
    "unmatched_rows": "日志中有 {rows} 行在数据中找不到对应的题目",
    # Exams.
    "not_published_rows": "行数与公布的数据不符，得分不可比较：{rows}",
    "not_published_rows_more": "行数与公布的数据不符，得分不可比较：{rows}，另有 {more} 处",
    "repeated_orders": "{questions} 题的选项少于 {rotations} 个：部分轮换会重复同一顺序",
    "judge_of_task": "任务指定的评委取代了考试自身的设置：{settings}",
    # Judges.
    "judge_is_candidate": "评委就是考生本身：其裁决会偏向自己的答案",
    "second_judge_is_candidate": "第二评委就是考生本身：其裁决会偏向自己的答案",
    "judge_is_namesake": "评委与考生同名，但接口不同：若为同一模型，其裁决会偏向自己的答案",
    "second_judge_is_namesake": "第二评委与考生同名，但接口不同："
    "若为同一模型，其裁决会偏向自己的答案",
    "judge_without_key": "评委的 api_key_var 指定的变量 {variable} 未设置：未发送密钥",
    "judge_with_candidates_key": "评委的 api_key_var 指定的变量 {variable} 未设置："
    "发送的是考生的密钥",
    "judge_without_verdict": "评委对 {whole} 个答案中的 {missing} 个没有裁决：对本次运行执行 "
    "keju judge 可再次询问",
    "second_judge_without_verdict": "第二评委对 {whole} 个答案中的 {missing} 个没有裁决：一致性"
    "不包含这些答案",
    "judge_repeats_at_temperature_0": "温度为 0 时评委的重复衡量的是其接口的噪声，而不是评委的把握",
    "judge_not_corrected": "准确率未按评委的误差更正：{reason}",
    # What a run says while it goes on.
    "other_settings": "本次运行以不同的设置继续（{differences}）",
    "damaged_lines_asked_again": "运行记录中有 {lines} 行无法读取，将重新提问",
    "stopping": "正在停止：等待 {requests} 个进行中的请求完成并保存；再按一次 Ctrl-C 立即停止",
    # config and command line
    "cli_args_not_mapping": "--dataset-args：“{name}”的设置必须是映射",
    "cli_args_of_other": "--dataset-args 提到了没有要求的“{name}”{hint}",
    "cli_bad_benchmark_name": (
        "“{name}”不能作为基准的名字：应由小写字母和数字组成，各部分用 - 或 _ 连接"
    ),
    "cli_benchmark_exists": "已有名为“{name}”的基准：请另选名字",
    "cli_benchmark_flag": "--benchmark 用于 protocols 和 readers，不用于 {what}",
    "cli_cannot_reach": "无法连接 {url}（{problem}）：请检查 --api-url",
    "cli_cannot_record": "无法在 {place} 中记录提交：{problem}",
    "cli_cannot_write": "无法写入 {place}：{problem}",
    "cli_command_expected": "“{flag}”之前应有命令，例如“keju {example} {flag}”",
    "cli_command_missing": "缺少子命令；参见“keju {command} --help”",
    "cli_endpoint_answers": "{url} 返回 {status}：{problem}；请检查 --api-url",
    "cli_examples": "-n 必须不小于 1，或用 {all} 表示全部，而不是 {examples}",
    "cli_file_exists": "{path} 已存在；请用 -o FILE 另选位置",
    "cli_flag_twice": "{flag} 给出了两次，但只接受一个值；参见“keju {command} --help”",
    "cli_folder_not_empty": "{folder} 已存在且不为空；请用 --dir 另选",
    "cli_internal_error": "内部错误：{summary}；详情见 {file}",
    "cli_interrupted": "已中断",
    "cli_json_needs_file": "--json 报告所写的文件：请用 -o FILE 给出",
    "cli_key_refused": "{url} 拒绝了密钥（{status}）：请设置 --api-key",
    "cli_key_variable": "{problem}；-k：变量 {variable} 没有设置",
    "cli_modes_differ": "这两次运行不能比较：{name} 在前者中是 {first!r}，在后者中是 {second!r}",
    "cli_modes_no_exam": "运行“{run}”没有考有两种模式的考试",
    "cli_modes_order": (
        "运行“{run}”以 {mode} 模式考了 {benchmark}，而不是 {wanted}；先给出直接作答的运行，"
        "再给出带思维链的运行"
    ),
    "cli_modes_other_exam": "运行“{run}”没有考 {benchmark}",
    "cli_no_data": "没有找到任何基准的数据：请用 keju data pull NAME 或 --data-dir DIR",
    "cli_no_data_folder": "{benchmark} 没有文件夹：其题目来自 {origin}",
    "cli_no_question": "“{subset}”没有第 {index} 题：--index 的范围是 0 到 {last}",
    "cli_no_subset": "{benchmark} 没有子集“{name}”{hint}",
    "cli_not_with_run": "{flag} 用于预测文件；RUN 自带这些信息",
    "cli_nothing_to_score": "请给出 RUN，或同时给出 --datasets NAME 与 --predictions FILE",
    "cli_one_or_all": "请指定一个基准，或用 --all",
    "cli_only_submission": "{flag} 用于 --format submission，不用于 {form}",
    "cli_parquet_needs_file": "Parquet 不是文本：请用 -o FILE 给出要写的文件",
    "cli_submission_full_text": "--full-text 不能用于提交文件：其中只有字母",
    "cli_unknown_benchmark": "未知的基准“{name}”{hint}",
    "cli_unknown_command": "未知的命令“{command}”{hint}",
    "cli_unknown_option": "未知的选项 {option}；参见“keju {command} --help”",
    "cli_unknown_option_near": (
        "未知的选项 {option}（是否想用“{near}”？）；参见“keju {command} --help”"
    ),
    "cli_usage": "{problem}；参见“keju {command} --help”",
    "cli_value_missing": "{flag} 需要一个值",
    "cli_verify_needs_data": "请用 --data-dir 给出存放已记录输出的文件夹",
    "config_args_not_run": "dataset_args 提到了没有运行的“{name}”{hint}",
    "config_cost_without_price": "{path} 需要价格：请用 --price 给出每百万词元的价格",
    "config_empty": "{path}，第 1 行：为空；应为映射，例如“model: NAME”",
    "config_field_has_setting": "不能设置“{name}”：请用 generation_config.{known} 给出",
    "config_field_of_keju": "不能设置“{name}”：Keju 会为每个请求设置它",
    "config_file_not_json": "{path}，第 {line} 行：不是有效的 JSON：{problem}",
    "config_flag_not_json": "{flag} 不是有效的 JSON：{problem}，在第 {position} 个字符处",
    "config_flag_not_object": "{flag} 必须是 JSON 对象，例如 '{{\"key\": 1}}'，而不是 {text}",
    "config_flag_unusable": "{flag} 无法使用：{problem}",
    "config_from": "{origin}：{problem}",
    "config_invalid": "{path}：{problem}{more}",
    "config_invalid_whole": "{problem}{more}",
    "config_key_not_text": "键 {key!r} 不是文本：请加引号",
    "config_key_twice": "键“{key}”给出了两次",
    "config_limit": "必须是不小于 1 的整数，或 0 与 1 之间的比例",
    "config_missing": "{problem}：请用 --{flag}、文件中的“{field}:”或变量 {variable} 给出",
    "config_named_twice": "重复列出：{names}",
    "config_nested_repeat": (
        "重复之中又有重复，例如 '(a+)+'，遇到很长的回复可能永远匹配不完："
        "请给其中一个加上上限，或让内层成为占有型（'(a++)+'）"
    ),
    "config_no_extras": "未知的键“extra_params.{key}”（此基准没有自己的设置）",
    "config_not_finite": "必须是有限的数",
    "config_not_json_value": "{constant} 不是 JSON 值",
    "config_not_mapping": "{path}，第 1 行：内容的类型是 {kind}；应为映射，例如“model: NAME”",
    "config_not_number": "必须是数字，而不是 {value}",
    "config_not_pattern": "不是正则表达式：{problem}",
    "config_not_utf8": "{path}，第 {line} 行：不是 UTF-8 文本",
    "config_not_variable": (
        "{path} 是环境变量的名字，由字母、数字和下划线组成；密钥本身应放在该变量中"
    ),
    "config_not_yaml": "{where}：不是有效的 YAML：{problem}",
    "config_override_form": "-s {override}：应为 KEY=VALUE 或 KEY.SUB=VALUE",
    "config_pair_form": "{flag}：在第 {position} 个字符处应为 KEY=VALUE 或 JSON",
    "config_required": "缺少“{path}”{more}",
    "config_sample_without_limit": "sample：“{sample}”只有与 limit 一起才有作用：请给出 --limit N",
    "config_too_deep": "{path}，第 1 行：嵌套过深",
    "config_two_spellings": "{origin}“{path}”以两种拼写给出了两次",
    "config_unknown_extra": "未知的键“extra_params.{key}”{hint}",
    "config_unknown_key": "{origin}未知的键“{path}”{hint}{more}",
    "config_unknown_variable": "未知的环境变量 {variable}{hint}",
    "config_unreadable": "无法读取 {path}：{problem}",
    "config_url_form": (
        "api_url 必须以 http:// 或 https:// 开头并写明主机，例如 http://localhost:8000/v1"
    ),
    "config_url_unreadable": "api_url 不是 URL：无法读出主机或端口",
    "config_value_and_mapping": "{flag}：“{name}”既作为值又作为映射给出",
    "config_variable_mapping": "{variable}：“{field}”是一个映射，请在文件中或用对应的选项给出",
    "config_yaml_at": "{where}{line}：{problem}",
    "endpoint_wants_key": "{url} 需要密钥（{status}）：{advice}",
}
