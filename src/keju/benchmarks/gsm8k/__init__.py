"""GSM8K: grade-school word problems with whole numbers as answers (Cobbe et al. 2021)."""

from keju.benchmarks.gsm8k.exam import GSM8K

__all__ = ["GSM8K"]
