"""BixBench as an environment of verifiers; see `keju.integrations.verifiers`."""

from keju.integrations.verifiers import has_tasksets

if has_tasksets():
    from keju.integrations.verifiers.harness import KejuHarness
    from keju.integrations.verifiers.tasksets import BixBenchTaskset, ExamEnv

    __all__ = ["BixBenchTaskset", "ExamEnv", "KejuHarness"]
else:
    from keju.integrations.verifiers.legacy import loader

    load_environment = loader("bixbench")

    __all__ = ["load_environment"]
