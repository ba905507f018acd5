"""MMLU-Pro as an environment of verifiers; see `keju.interop.verifiers`."""

from keju.interop.verifiers import has_tasksets

if has_tasksets():
    from keju.interop.verifiers.harness import KejuHarness
    from keju.interop.verifiers.tasksets import ExamEnv, exam_taskset

    MMLUProTaskset = exam_taskset("mmlu_pro")

    __all__ = ["ExamEnv", "KejuHarness", "MMLUProTaskset"]
else:
    from keju.interop.verifiers.legacy import loader

    load_environment = loader("mmlu_pro")

    __all__ = ["load_environment"]
