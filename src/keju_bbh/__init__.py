"""BBH as an environment of verifiers; see `keju.integrations.verifiers`."""

from keju.integrations.verifiers import has_tasksets

if has_tasksets():
    from keju.integrations.verifiers.harness import KejuHarness
    from keju.integrations.verifiers.tasksets import BBHTaskset, ExamEnv

    __all__ = ["BBHTaskset", "ExamEnv", "KejuHarness"]
else:
    from keju.integrations.verifiers.legacy import loader

    load_environment = loader("bbh")

    __all__ = ["load_environment"]
