"""From scores to numbers: tallies, aggregates, exports."""
