"""From scores to results: summaries, metrics, comparisons, exports."""
