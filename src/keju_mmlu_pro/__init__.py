"""MMLU-Pro as an environment of verifiers; see `keju.integrations.verifiers`."""

from keju.integrations.verifiers import has_tasksets

if has_tasksets():
    from keju.integrations.verifiers.harness import KejuHarness
    from keju.integrations.verifiers.tasksets import ExamEnv, MMLUProTaskset

    __all__ = ["ExamEnv", "KejuHarness", "MMLUProTaskset"]
else:
    from keju.integrations.verifiers.legacy import loader

    load_environment = loader("mmlu_pro")

    __all__ = ["load_environment"]
