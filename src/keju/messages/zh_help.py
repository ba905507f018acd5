"""Help pages in Chinese (mainland): flags, commands, panels, the lines of ``keju --help``.

English stands where the thing is declared; the name of a text is the kind and the name of that:
``flag.api_url`` is the row ``api_url`` of `keju.cli.options`, ``command.eval`` the page of
``keju eval``, ``line.eval`` its line, ``panel.Model`` a title. Terms are those of the glossary in
CONTRIBUTING.md. A test fails where a flag or a command has no text here.
"""

from __future__ import annotations

HELP: dict[str, str] = {
    # Titles.
    "panel.Examine a model": "考核模型",
    "panel.Understand results": "理解结果",
    "panel.Look around": "查看与准备",
    "panel.Arguments": "参数",
    "panel.Options": "选项",
    "panel.Commands": "子命令",
    "panel.Model": "模型",
    "panel.Exams": "考试",
    "panel.Tools": "工具",
    "panel.Pace and limits": "速度与限额",
    "panel.Run": "运行",
    "panel.Data": "数据",
    "panel.Endpoint": "接口",
    "panel.Judge": "评分模型",
    "panel.Output": "输出",
    # The lines of `keju --help`.
    "line.eval": "让模型参加一门或多门考试",
    "line.run": "带与不带 MCP 服务器各考一遍，用法同 mcpbr",
    "line.vf-eval": "按 verifiers 的 vf-eval 方式考试",
    "line.score": "为已存的运行或预测文件评分",
    "line.merge": "把分成几个作业考完的各部分合成一次运行",
    "line.judge": "用模型评判已存运行的答案",
    "line.plan": "做出判断需要多少题，要花费多少",
    "line.fresh": "生成没有模型见过的新题",
    "line.import": "把其他工具的日志导入为 Keju 的运行",
    "line.report": "把一次运行的报告写成单个 HTML 文件",
    "line.compare": "逐题比较两次或更多次运行",
    "line.gate": "一次运行能否取代它的基线？",
    "line.diff": "逐项说明两个得分为何不可比较",
    "line.view": "在浏览器中查看已存的运行，进行中的实时更新",
    "line.watch": "在终端里实时查看进行中的运行",
    "line.plot": "把运行画成图：SVG、PNG 或 PDF",
    "line.audit": "回复为何没有读出，或读错",
    "line.modes": "直接作答与思维链两种方式并列",
    "line.export": "导出为 CSV、Parquet、Markdown、LaTeX 等",
    "line.list": "列出考试、子集、模型、协议、读取器、运行",
    "line.show": "查看模型收到的一道题，或已存的一条回复",
    "line.prompts": "把一门考试的提示词写成 JSON 文件",
    "line.stats": "题目数量与提示词长度",
    "line.data": "查找、核对、下载考试的数据",
    "line.model": "查找、下载内置模型的权重",
    "line.mcp": "启动并检查配置文件中的 MCP 服务器",
    "line.schema": "配置文件的 JSON Schema",
    "line.verify": "为得分已知的记录重新评分并核对",
    "line.init": "新建自己的考试、配置文件或工具的 A/B 测试",
    "line.rm": "删除已存的运行",
    "line.completion": "bash、zsh、fish 的命令补全",
    "line.doctor": "检查装了什么、缺什么",
    # Kinds of models.
    "weights.smollm2": "SmolLM2-135M-Instruct，每个权重 4 位",
    "kind.NAME": "OpenAI 兼容接口上的模型；请给出 --api-url",
    "kind.anthropic": "Anthropic Messages API 的模型，用编号或 sonnet、opus、haiku；密钥在 "
    "ANTHROPIC_API_KEY 中",
    "kind.scripted": "只是猜测，不用任何模型，写出的形式常常算不上答案，"
    "因此得分低于随机水平：供试用",
    "kind.replay": "一次运行已存的回复",
    "kind.embedded": "本进程内的小模型",
    "kind.gguf": "自己的 GGUF 文件",
    "kind.hf": "transformers 检查点，用数据站上的名字或文件夹",
    # What commands do.
    "command.eval": """让模型参加一门或多门考试。

    文件中写 models 而不写 model，就是一个计划：每个模型参加每门考试，每一对是一次单独的运行，
    由一份报告汇总。再次执行同一命令，只问新增的部分。

    设置依次取自命令行选项、-s、KEJU_<字段> 环境变量、配置文件，先者优先；映射逐键合并。
    提前停止的运行会保存下来，并打印续跑的命令。

    退出码：0 正常，2 用法错误，3 超过一半没有评分，4 未完成，5 接口问题，130 被中断。""",
    "command.run": """带与不带 MCP 服务器各考一遍，每个实验组问同样的题。

    文件可以是 mcpbr 的（mcp_server，或 mcp_server_a 与 mcp_server_b），也可以是 Keju 自己的、
    列出各实验组的配置。向模型提问之前，会先启动每个服务器并列出它的工具。只想查看服务器时，用
    keju mcp check。

    退出码：0 正常，2 用法错误，3 超过一半没有评分，4 未完成，5 接口问题，130 被中断。""",
    "command.vf-eval": """按 verifiers 的 vf-eval 方式考试：取若干例题，每题多次作答，给出平均奖励。

    不给 -m 和 -b 时，模型为 gpt-4.1-mini，接口取自 OPENAI_BASE_URL，没有设置则为 OpenAI。
    -a 指定了评分模型（llm_judge_model、llm_judge_base_url 或 llm_judge_api_key_var）
    且设置了密钥时，开放式答案由评分模型评判，否则逐字比较。""",
    "command.score": """为已存的运行或预测文件重新评分；不向模型提问。

    退出码：0 正常，2 用法错误，3 超过一半的回复没有评分。""",
    "command.merge": """把一次运行的各部分合成一次运行：模型、协议、采样和数据都须相同。

    各部分（例如“keju eval --shard 3/16”的结果）保持不变；会话与费用相加。仍然缺少的题，由
    它最后给出的命令补问：“keju eval --config runs/tuesday/manifest.json --resume”。

    退出码：0 正常，2 不是同一次运行的部分，4 还缺题。""",
    "command.judge": """用模型评判已存运行的答案；不再向考生提问。

    运行中已有的判定会保留。结果和报告会重新写出；已完成的旧结果保留到新的评判完成为止。

    退出码：0 正常，2 用法错误，3 超过一半没有评分，4 未完成，5 接口问题，130 被中断。""",
    "command.plan": """算出显示某个差异、用完预算或判定一个门槛需要多少题，以及花费多少。

    预测来自试跑：已存的运行（--pilot），或给出 --model 时现在随机问的 30 题。两者都没有时，
    只能按提示词的长度估计。给出 --baseline 与 --margin 时，
    试跑就是 keju gate 尚未判定的那次运行。""",
    "command.fresh": """生成答案确定的新题，文件布局与已发表的相同。

    同样的选项在任何地方都生成同样的文件。子集见 keju list subsets --benchmark fresh_bbh；
    要直接用这样的题考模型，请用考试 fresh_bbh。""",
    "command.import": """把 EvalScope、lm-eval、Inspect、OpenCompass 或 verifiers 的日志导入为运行。

    每条回复都用与该工具对应的读取器重新评分，并列出两者不一致的每一行。""",
    "command.report": """把一次运行的报告写成单个 HTML 文件，不需要网络。

    给出多次运行时，写的是它们的比较，与 keju compare -o 相同。""",
    "command.compare": """在共有的题目上比较各次运行；只给一次运行时，比较它的各实验组。

    首先看它们究竟能否比较：问了什么，怎样提问，怎样读取答案。若有不同，指出第一处不同的字段，
    得分只并列而不排名。可以比较时，给出配对差异及其置信区间、精确的 p 值、新答对与新答错的题、
    控制错误发现率的各子集结果，以及每题的用量。置信区间包含 0 的差异算作平局。

    用 --contamination 时，第一次运行是已发表的考试，第二次是同类新题：模型在可能见过的题上得分
    是否更高？此时题目不配对。

    退出码：0 正常，2 用法错误，3 不可比较，或没有共同的题。""",
    "command.gate": """判定一次运行是否没有比基线差过允许的幅度，或得分是否够高。

    每门考试在双方共有的题目上做水平为 0.05 的单侧检验（多门考试时用 Holm 校正的 p 值）：太差的
    运行被放过，或够好的运行被拦下，各自最多二十次中有一次。整体结论取其中最差的。两者究竟有没有
    差异是另一个问题：由“keju compare”回答，结论可能不同。

    退出码：0 通过，1 未通过，2 用法错误或不可比较，3 无法判定：需要更多的题。""",
    "command.diff": """逐项说明两次运行、日志或文件有何不同，最要紧的在前。

    使得分不可比较的字段会标出。不比较题目。

    退出码：0 正常（不可比较时也是 0），2 用法错误。""",
    "command.view": """在浏览器中查看已存的运行（只读），按 Ctrl-C 结束；进行中的运行实时更新。

    只有本机能打开这些页面。用 --host 换成别的地址时，需要网址中的令牌才能打开。""",
    "command.watch": """跟踪进行中的运行（只读）：一个计划、一次运行，或一个文件夹中的所有运行。

    它们可以属于任何进程。它们结束，它就结束；在此之前显示回答数、速率、得分及其置信区间、错误和剩余
    时间。用 --json 时打印最后一次看到的内容。

    退出码：0 正常，2 用法错误，4 有运行未完成就结束。""",
    "command.plot": """把一次或多次运行画成图。SVG 不需要别的组件；PNG 和 PDF 需要 keju[plot]。

    forest 画出各子集及其置信区间和随机水平，每次运行一个标记。difference 逐题比较两次运行，或一次
    运行的各实验组。curve 画出准确率随难度的变化，用于在多个难度下进行的考试。""",
    "command.audit": """用考试的全部读取器读一遍已存的运行，说明回复为何没有读好。

    给出每个读取器的得分、它们的分歧，以及每条值得查看的回复和可能的原因：被截断、拒答、复述选项、
    把行文中的字母当作答案、读取器不认得的格式。还给出读出的标签与标准答案的分布；用 --beside 时，
    给出多次运行都以同样答案答错的题，其标准答案可能有误。""",
    "command.modes": """靠知识还是靠推理？同一模型以一门考试的两种方式各考一次，按科目比较。

    思维链有帮助的科目靠推理，没有帮助的靠知识。两次运行除方式外必须相同。只逐题比较双方都有评分的
    题；置信区间不含 0 的差异会标出。旁边列出另一个读取器对同样回复的结果：如果它看不出差异，那么
    差异来自答案的格式，而不是能力。""",
    "command.export": """导出一次运行：每题每次作答一行，或它的结果，或考试官网的提交文件。

    结果可以写成 Markdown 或 LaTeX 表格、数据站上模型的 .eval_results 文件夹所用的 YAML，或写入 W&B
    （离线）和 MLflow（本地文件夹），后两者需要 keju[wandb] 或 keju[mlflow]。""",
    "command.list": """列出考试、子集、模型的种类、协议、读取器或已存的运行。

    单独使用时说明可以列出什么。表格各列的含义写在表格之下（标准错误输出）。""",
    "command.show": """查看一门考试的一道题：实际发送的提示词、选项、标准答案。

    对已存的运行：问了什么，回复的结果如何，以及一些题的编号，不对的在前。用 --sample 时：其中
    一题，它的提示词、回复，以及回复是怎样读取的。""",
    "command.prompts": """把每个子集的题目共有的部分写成 JSON：示例、说明、系统消息。

    文件“子集名.json”中有题目之前的各轮对话、题目所在一轮的开头，以及实际发送的第一题。""",
    "command.stats": """统计一门考试的题数和提示词的长度。

    提示词的长度指最后一条用户消息的字符数。""",
    "command.data pull": """从数据站下载一门考试的数据到缓存，所有命令都能找到。

    令牌和镜像取自各数据站自己的环境变量：HF_TOKEN、HF_ENDPOINT、HF_HOME、MODELSCOPE_API_TOKEN、
    MODELSCOPE_ENDPOINT。""",
    "command.data verify": """把一门考试的文件与公布的相核对：每个表的行数，已知的哈希。

    有改动或缺失时退出码为 2。""",
    "command.data path": "打印读取一门考试数据的文件夹。",
    "command.data list": "列出全部考试：数据在哪里找到，有多少文件和行。",
    "command.model pull": """下载一个模型的权重并校验；已有的直接使用。

    权重通过 pip 下载，因此 pip 的镜像和代理设置有效。已安装的软件包中的文件无需下载即可找到。""",
    "command.model list": "列出可以下载的模型，以及它们所在的位置。",
    "command.model path": "打印一个模型的文件路径。",
    "command.mcp check": """启动配置文件中的 MCP 服务器，列出工具及其在每次请求中的开销。

    用 --call 时还会以 JSON 参数调用一个工具。不向模型提问。无法启动的服务器算作错误，并显示它
    标准错误的最后几行。""",
    "command.schema": """打印配置文件的 JSON Schema，包括各门考试自己的设置。

    每项设置都带有说明，编辑器会显示。

    配置文件第一行写上 # yaml-language-server: $schema=keju.schema.json，编辑器就会按它检查。""",
    "command.verify": """为 DATA/golden 中的每组记录评分，并与已知的得分核对。

    单个子集的数字合并成一行，除非其中有不同。退出码：0 全部相符，1 有数字不同，2 没有可核对的。""",
    "command.init benchmark": "写出一个可用的插件包：一门考试、它的数据和测试。",
    "command.init arms": """写出一份带注释、可直接使用的工具 A/B 测试，以及它用的小型 MCP 服务器。

    同样的题目：没有工具、有该服务器的工具、安慰剂组。
    需要附加组件 mcp：pip install 'keju[mcp]'。""",
    "command.init config": "写出一份带注释、可直接使用的配置文件。",
    "command.rm": """删除若干次运行及其全部回复。会先询问一次，列出全部。

    其中有一次不存在或正在写入时，一次也不删除。""",
    "command.completion": """打印 bash、zsh 或 fish 的补全脚本，由现有命令生成。

    单独使用时打印各个 shell 要粘贴的一行。""",
    "command.doctor": "检查安装情况：版本、可选组件、GPU、数据、数据站、沙箱、接口。",
    # Arguments.
    "flag.run": "一次运行：它的文件夹或名字。",
    "flag.runs": "若干次运行：文件夹或名字。",
    "flag.report.runs": "一次运行，或要比较的多次运行。",
    "flag.score.run": "一次运行：它的文件夹或名字。",
    "flag.name": "一门考试；见 keju list benchmarks。",
    "flag.data verify.name": "一门考试；见 keju list benchmarks。",
    "flag.init benchmark.name": "考试的名字。",
    "flag.weights": "一个模型；见 keju model list。",
    "flag.env": "一门考试；见 keju list benchmarks。",
    "flag.log": "日志文件，或一次运行的文件夹。",
    "flag.what": "以下之一：benchmarks（考试）、models（模型）、protocols（协议）、"
    "readers（读取器）、runs（运行）、subsets（子集）。",
    "flag.show.name": "一门考试，或一次运行。",
    "flag.view.folder": "存放运行的文件夹，或一次运行（文件夹或名字）；默认为 --work-dir。",
    "flag.shell": "以下之一：bash、zsh、fish。",
    "flag.sources": "运行（文件夹或名字）、其他工具的日志、预测文件；第一个作为基线。",
    "flag.left_source": "一次运行、日志或预测文件。",
    "flag.right_source": "另一个。",
    "flag.answer_only": "直接作答的运行。",
    "flag.cot": "带思维链的运行。",
    # Options of single commands.
    "flag.mde": "要显示的差异，例如 0.03 表示三个百分点。",
    "flag.max_cost": "最多花费，按预测的上限计。",
    "flag.questions": "每个子集的题数：整数，或小于 1 的比例。",
    "flag.pilot": "这门考试的一次已存运行，用来推算回复的用量。",
    "flag.discordance": "两个模型中只有一个答对的题目比例：规模相近的模型为 0.28，量化后的副本为 "
    "0.05；默认 0.28。",
    "flag.contamination": "已发表的考试与同类新题：模型是否认得前者？",
    "flag.port": "页面的端口；0 表示任选空闲端口。",
    "flag.host": "监听的地址。",
    "flag.no_browser": "只打印网址，不打开浏览器。",
    "flag.wheel": "从这个 wheel 文件中取出，不下载。",
    "flag.baseline": "不应差于的运行；与 --margin 一起使用。",
    "flag.margin": "允许差多少，例如 0.01 表示一个百分点。",
    "flag.at_least": "最低得分，例如 0.7。",
    "flag.junit": "另外写出 JUnit XML。",
    "flag.markdown": "另外写出 Markdown，用于合并请求。",
    "flag.badge": "另外写出 SVG 徽章。",
    "flag.yes": "不询问。",
    "flag.call": "以这些参数调用一个工具。",
    "flag.everything": "找到的全部考试。",
    # Model.
    "flag.model": "接口上的模型名，或 anthropic:NAME（例如 anthropic:sonnet）、scripted、"
    "replay:RUN、embedded、gguf:PATH、hf:NAME。",
    "flag.api_url": "接口地址（或 OPENAI_BASE_URL、ANTHROPIC_BASE_URL）；给出多个时分担请求。",
    "flag.serve": "为本次运行启动这个服务，例如 'vllm serve NAME --port {port}'。",
    "flag.endpoints": "多个带设置的接口：url、weight、model 等。",
    "flag.api_key": "密钥（或 OPENAI_API_KEY、ANTHROPIC_API_KEY）；不会保存。",
    "flag.api": "auto（由协议决定）、chat 或 completions。",
    "flag.headers": "额外的请求头；不会保存。",
    "flag.ca_file": "信任的证书颁发机构，PEM 格式。",
    "flag.model_args": "本地模型的设置，例如 n_ctx=4096。",
    "flag.generation_config": "采样参数，例如 temperature=0.6, max_tokens=512。",
    "flag.doctor.model": "向这个模型提问一次。",
    "flag.doctor.api_url": "要连接的接口。",
    "flag.doctor.api_key": "密钥（或 OPENAI_API_KEY、ANTHROPIC_API_KEY）。",
    # Exams.
    "flag.datasets": "考试：写作 a b、a,b，或多次给出。",
    "flag.limit": "每个子集的题数：整数，或小于 1 的比例；不能与 --total 同用。",
    "flag.total": "每门考试的总题数；不能与 --limit 同用。",
    "flag.ids": "只问这些编号的题。",
    "flag.failed_of": "只问某次已存运行没有答对的题。",
    "flag.sample": "限制题数时取哪些题：first、random 或 stratified。",
    "flag.shard": "题目分成 N 份，只问第 K 份；见“keju merge”。",
    "flag.repeats": "每题问几次。",
    "flag.rotate_options": "以 K 种选项顺序提问。",
    "flag.until_ci": "得分确定到 ±HALF 以内时停止，例如 0.02。",
    "flag.until_decided": "能判定优于或劣于某次运行或文件时停止。",
    "flag.capsules": "作答时使用的数据所在的文件夹。",
    "flag.dataset_hub": "huggingface 或 modelscope：用于不在 --data-dir 中的数据。",
    "flag.offline": "除模型接口外不打开任何连接。",
    "flag.judge": "评判开放式答案的模型，例如 model=NAME。",
    # Tools.
    "flag.tools": "另加一组带 Keju 自带工具的：python，在沙箱中运行。",
    "flag.arms": "要比较的实验组：名称、服务器、工具。",
    "flag.agent": "一个回合的限制，例如 max_iterations=15。",
    "flag.sandbox": "模型的代码在哪里运行，例如 memory=4GiB。",
    "flag.unsafe_no_sandbox": "不用任何沙箱运行模型的代码；每个结果都会注明。",
    # Data.
    "flag.dataset_args": "按考试给出的设置，写成一个值："
    "'demo.subset_list=[word_sorting],demo.shuffle=true'。",
    "flag.protocol": "已发表的考法；见 keju list protocols。",
    "flag.reader": "评分所用的读取器；给出多个时并列。",
    "flag.followed": "计划、运行或存放运行的文件夹；默认是工作文件夹。",
    "flag.once": "只看一次就结束。",
    "flag.executor": "由谁提问：local（本进程）或 ray（集群中的 actor）。",
    "flag.ray": "集群：actors=N、cpus=N、gpus=N、patience=SECONDS。",
    "flag.ray_address": "Ray 集群：auto（已有的）、local（新建的）或 HOST:PORT。",
    "flag.order": "子集内的顺序：auto（最长的在前）或 random。",
    "flag.seed": "一切抽取所用的随机种子；默认 42。",
    "flag.data_dir": "每门考试一个文件夹的数据文件夹（或 KEJU_DATA_DIR）。",
    "flag.work_dir": "存放运行的文件夹（或 KEJU_WORK_DIR）；默认为 runs。",
    "flag.dataset": "预测文件所回答的考试；或一次运行中的一门考试。",
    "flag.exam": "预测文件所属的考试；运行有多门考试时取其中一门。",
    "flag.one_reader": "全部用这个读取器；默认各用自己的。",
    "flag.audit.one_reader": "主得分取自这个读取器；默认为协议自己的。",
    "flag.predictions": "JSON Lines（或 .gz）：题目的键和 output。",
    "flag.gold": "某行自带标准答案时，以哪个为准。",
    "flag.import.dataset": "考试，当该工具的任务用别的名字时。",
    "flag.import.reader": "评分所用的读取器；默认为与该工具对应的。",
    "flag.tool": "evalscope、lm-eval、inspect、opencompass 或 verifiers；默认自动识别。",
    "flag.benchmark": "只列出这门考试的协议、读取器或子集。",
    "flag.sample_id": "已存的回复：运行 NAME 中这个编号的题。",
    "flag.arm": "与 --sample 一起使用：只看这个实验组的回复。",
    "flag.subset": "默认为第一个。",
    "flag.fresh.subsets": "一个子集；可多次给出；默认为全部。",
    "flag.fresh.seed": "抽取题目的随机种子。",
    "flag.fresh.size": "每个子集的题数。",
    "flag.fresh.difficulty": "0.25 到 4；1 与已发表的题相当。",
    "flag.fresh.lang": "题目的语言。",
    "flag.index": "在公布的子集中的位置，从 0 开始。",
    "flag.hub": "数据站；默认为 huggingface。",
    "flag.revision": "分支、标签或提交；默认为固定的版本。",
    "flag.repo": "数据站上该数据集的另一份副本。",
    "flag.data pull.capsules": "连同作答时使用的数据（很大）。",
    "flag.data pull.offline": "不打开任何连接：只有已经下载过才成功。",
    "flag.local_path": "这门考试自己的文件夹。",
    # Pace and limits.
    "flag.eval_batch_size": "同时进行的请求数上限。",
    "flag.timeout": "每次尝试的时限。",
    "flag.attempts": "每个请求的尝试次数，包括第一次。",
    "flag.retry_interval": "第二次尝试前等待的时间；此后每次加倍。",
    "flag.rpm": "每分钟请求数。",
    "flag.tpm": "每分钟词元数，输入与输出合计。",
    "flag.give_up_after": "接口停止响应多久后放弃。",
    "flag.error_limit": "出错比例超过它时退出码为 4。",
    "flag.budget": "硬性限额：requests=N, tokens=N, cost=X, seconds=S。",
    "flag.price": "每百万词元的价格：input=X, output=Y。",
    # Run.
    "flag.merge.merged_run": "新的运行：它的文件夹，或它在 --work-dir 之下的名字。",
    "flag.run_id": "运行的名字；已存在则续跑，且只能扩大。",
    "flag.resume": "要求该运行已存在。",
    "flag.replace": "重新开始；同名的运行移到一旁。",
    "flag.use_cache": "沿用某次已存运行的回复。",
    "flag.events": "把运行中的事件以 JSON 行写入文件或管道。",
    "flag.metrics_port": "在本机的这个端口上向 Prometheus 提供指标。",
    "flag.otel": "按 OTEL_* 变量为每个请求发送一个 span。",
    "flag.config": "YAML 或 JSON 配置文件，或某次运行的 manifest。",
    "flag.overrides": "单项设置，例如 dataset_args.demo.shuffle=true；可多次给出。",
    "flag.dry_run": "检查一切，显示最前面的提示词和预测；不提问。",
    "flag.run.config": "mcpbr 的配置文件，或 Keju 的带 arms 的配置文件，YAML 或 JSON。",
    "flag.run.benchmark": "考试，取代文件中的。",
    "flag.size": "总题数，分布在各子集上；取代文件中的。",
    "flag.filter_category": "只考这个子集；可多次给出，取代文件中的。",
    "flag.task": "只问这个编号的题；可多次给出，取代文件中的。",
    "flag.sampling_strategy": "-n 取哪些题：mcpbr 的前几题，或从全部、从每个子集随机抽取；默认为"
    "每个子集的前几题。",
    "flag.run.seed": "一切抽取所用的随机种子。",
    "flag.mcp_only": "只考带工具的实验组。",
    "flag.baseline_only": "只考不带工具的实验组。",
    "flag.run.eval_batch_size": "同时进行的题数。",
    "flag.run.output": "另外以 mcpbr 的格式写出结果。",
    "flag.verbose": "每题打印一行。",
    "flag.env_args": "它的设置。",
    "flag.vf-eval.model": "模型。",
    "flag.vf-eval.api_url": "它的接口。",
    "flag.key_var": "存放密钥的环境变量；默认为 OPENAI_API_KEY。",
    "flag.examples": "每个子集的例题数，-1 表示全部；默认为 5，或 max_episodes 所给的数目。",
    "flag.rollouts": "每题作答次数。",
    "flag.concurrency": "同时进行的请求数。",
    "flag.temperature": "采样温度；默认由协议决定。",
    "flag.max_tokens": "回复的最大长度。",
    "flag.vf-eval.seed": "选项顺序及一切抽取所用的随机种子。",
    # Judge.
    "flag.judge.judge": "评分模型的设置，覆盖运行自己的；下面的选项优先。",
    "flag.judge.model": "评分模型。",
    "flag.judge.api_url": "它的接口；默认与考生相同。",
    "flag.judge.api_key_var": "存放它的密钥的变量。",
    "flag.judge.strategy": "rule 不询问，llm 询问全部，llm_recall 询问规则无法判定或判错的。",
    "flag.judge.repeats": "每个答案判定几次；以多数为准。",
    "flag.judge.second": "另一个评分模型，用来衡量一致性。",
    "flag.judge.labelled": "带评分的答案（JSON Lines），用来衡量评分模型。",
    # Output.
    "flag.output": "写到哪里；默认为运行文件夹中的 report.html。",
    "flag.compare.output": "另外把比较写成单个 HTML 页面，回复并列。",
    "flag.plot.output": "写到哪里：以 .svg、.png 或 .pdf 结尾的文件名。",
    "flag.kind": "子集与置信区间、配对差异、准确率随难度的变化、回复的用时或用量、回复的结果分类。",
    "flag.export.output": "写到哪里；默认为标准输出。",
    "flag.init config.output": "写到哪里。",
    "flag.init arms.output": "写到哪里；服务器写在它旁边。",
    "flag.folder": "写到哪里；默认为名为 NAME 的文件夹。",
    "flag.prompts.folder": "要写入的文件夹。",
    "flag.fresh.folder": "要写入的文件夹。",
    "flag.other_runs": "一并查看的另一次运行、日志或预测文件。",
    "flag.language": "终端和页面的语言；默认取 KEJU_LANGUAGE，其次为系统区域设置。",
    "flag.import.run_id": "新运行的名字。",
    "flag.form": "csv、jsonl、parquet、markdown、latex、hub-yaml、wandb、mlflow、submission、"
    "EXAM-csv 之一。默认由 -o 的后缀决定，否则为 csv。markdown、latex、hub-yaml：结果；wandb、"
    "mlflow：同样内容，写入 -o 文件夹，供实验跟踪工具使用。submission：考试官网接受的 JSON；"
    "EXAM-csv：考试自己的文件加上一列预测，写入 -o 文件夹，仅限有这类文件的考试。",
    "flag.full_text": "连同题目和回复的原文，默认不含。",
    "flag.fill": "submission：没有读出答案的题所填的字母。",
    "flag.partial": "submission：没有问完全部题目时也写出。",
    "flag.show_all": "每个数字一行，包括单个子集的。",
    "flag.save": "打印平均奖励。运行总会保存。",
    "flag.no_report": "不写 report.html。",
    "flag.quiet": "不显示进度。",
    "flag.as_json": "在标准输出上打印一个 JSON 文档。",
}
