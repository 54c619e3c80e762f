"""The middle of a few numbers. `statistics` has it too, but takes longer to load than a log to read."""

from collections.abc import Iterable

__all__ = ["median", "spread"]


def median(values: Iterable[float]) -> float:
    """The median, of at least one number; of an even count the mean of the two in the middle."""
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def spread(values: Iterable[float]) -> float:
    """Median absolute deviation from the median."""
    held = list(values)
    middle = median(held)
    return median(abs(value - middle) for value in held)
