"""The generated demo exam as an environment of verifiers; see `keju.integrations.verifiers`."""

from keju.integrations.verifiers import has_tasksets

if has_tasksets():
    from keju.integrations.verifiers.harness import KejuHarness
    from keju.integrations.verifiers.tasksets import DemoTaskset, ExamEnv

    __all__ = ["DemoTaskset", "ExamEnv", "KejuHarness"]
else:
    from keju.integrations.verifiers.legacy import loader

    load_environment = loader("demo")

    __all__ = ["load_environment"]
