"""MMLU-Pro: harder MMLU with up to ten options (Wang et al. 2024)."""

from keju.benchmarks.mmlu_pro.exam import MMLU_PRO
from keju.benchmarks.mmlu_pro.metadata import official_guess_accuracy, official_guess_correct

__all__ = ["MMLU_PRO", "official_guess_accuracy", "official_guess_correct"]
