"""How names and numbers are written for people, in one place."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lossbisect.compare.types import Performance

__all__ = ["change_text", "counted", "iteration_list", "metric_name", "p_text", "relative_text", "value_text"]


def metric_name(metric: str) -> str:
    """A column name as people write it: ``lm_loss`` is the lm loss."""
    return metric.replace("_", " ")


def change_text(item: "Performance") -> str:
    """A change of speed or memory, for better or worse: ``slower by 3.1 %``."""
    if item.change_rel == 0:
        return "equal"
    more, less = ("more", "less") if "mem" in item.metric or "alloc" in item.metric else ("slower", "faster")
    text = f"{more if item.loss_rel > 0 else less} by {abs(item.change_rel):.1%}"
    return text.replace("%", " %")


def relative_text(relative: float, *, is_signed: bool = False) -> str:
    """A relative difference with two digits: 0.00028 is 2.8e-4, and from a tenth on it is a percentage."""
    if relative == 0:
        return "0"
    if abs(relative) >= 0.1:
        return f"{relative * 100:{'+' if is_signed else ''}.0f} %"
    mantissa, exponent = f"{relative:+.1e}".split("e")
    return f"{mantissa if is_signed else mantissa.removeprefix('+')}e{int(exponent)}"


def p_text(p_value: float) -> str:
    """``p = 0.02``; below 1e-9 only that, since no model of noise holds so far out."""
    return "p < 1e-9" if p_value < 1e-9 else f"p = {p_value:.1g}"


def value_text(value: float | None) -> str:
    """A value with the seven digits of a console log; ``missing`` for None."""
    if value is None:
        return "missing"
    return "0" if value == 0 else f"{value:#.7g}".removesuffix(".")


def counted(number: int, noun: str) -> str:
    """A number with its noun: 1 row, 2 rows."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def iteration_list(iterations: list[int]) -> str:
    """Ascending iterations in short, consecutive ones as a range: iterations 1 to 3, 7."""
    ranges: list[list[int]] = []
    for iteration in iterations:
        if ranges and iteration == ranges[-1][1] + 1:
            ranges[-1][1] = iteration
        else:
            ranges.append([iteration, iteration])
    shown = [str(first) if first == last else f"{first} to {last}" for first, last in ranges[:3]]
    noun = "iteration" if len(iterations) == 1 else "iterations"
    return f"{noun} {', '.join(shown)}{' and more' if ranges[3:] else ''}"
