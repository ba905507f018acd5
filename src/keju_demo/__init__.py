"""The generated demo exam as an environment of verifiers; see `keju.interop.verifiers`."""

from keju.interop.verifiers import has_tasksets

if has_tasksets():
    from keju.interop.verifiers.harness import KejuHarness
    from keju.interop.verifiers.tasksets import ExamEnv, exam_taskset

    DemoTaskset = exam_taskset("demo")

    __all__ = ["DemoTaskset", "ExamEnv", "KejuHarness"]
else:
    from keju.interop.verifiers.legacy import loader

    load_environment = loader("demo")

    __all__ = ["load_environment"]
