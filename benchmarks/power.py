"""How often compare is wrong, by simulation: false alarms, power, and the date of the onset.

Beside it, on the same curves, the checks of Megatron-LM, Megatron Bridge and torchtitan. Run it from the checkout's
root: ``python -m benchmarks.power [--seed N] [--pairs N]``.
"""

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lossbisect.compare import PRESETS, Judgement, Repeats, Verdict, compare_logs
from lossbisect.compare.effect import null_curves, row_widths, shift_effect
from lossbisect.compare.onset import onset_rows
from lossbisect.compare.presets import apply_preset
from lossbisect.compare.sequential import first_alarm
from lossbisect.compare.wording import counted
from tests.compare.logs import make_log
from tests.compare.simulate import heavy_noise, printed

RULES = ("lossbisect", *PRESETS)
SHIFTS = (1e-4, 3e-4, 1e-3, 3e-3, 3e-2, 5e-2)
PEEKED_ROWS = 1000
WHOLE = 40
"""Pairs of a set-up that go through the whole comparison."""
WIDTH = 4e-4
"""Noise width of a pair's rows. The median over 50 rows then scatters as Megatron-LM's golden histories do: 1 % lie
beyond 3.6e-4 to 7.5e-4."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Noise:
    """A set-up's noise and how it is measured."""

    name: str
    rows: int
    repeats: int
    width: float
    correlation: float = 0.7
    is_hidden: bool = False
    """The correlated part is seen through as much white noise again."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """What was drawn: a baseline, its repeats, and a candidate moved from an iteration on."""

    baseline: list[float]
    repeats: list[list[float]]
    candidate: list[float]
    onset: int


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=20260822)
    parser.add_argument("--pairs", type=int, default=1000, help="pairs without a difference; a fifth of them a shift")
    parser.add_argument("--only", type=int, action="append", help="number of a set-up, from 0 on; more than once")
    options = parser.parse_args()
    print(f"seed {options.seed}, {options.pairs} equal pairs and {options.pairs // 5} of each shift a set-up")
    set_ups = (
        Noise(name="bit-identical repeats", rows=50, repeats=1, width=0.0),
        Noise(name="heavy-tailed, correlation 0.7", rows=200, repeats=3, width=WIDTH),
        Noise(name="heavy-tailed, correlation 0.7", rows=50, repeats=5, width=WIDTH),
        Noise(name="heavy-tailed, correlation 0.7", rows=50, repeats=3, width=WIDTH),
        Noise(name="heavy-tailed, correlation 0.7", rows=200, repeats=1, width=WIDTH),
        Noise(name="heavy-tailed, correlation 0.7", rows=50, repeats=1, width=WIDTH),
        Noise(name="heavy-tailed, correlation 0.9", rows=200, repeats=3, width=WIDTH, correlation=0.9),
        Noise(name="heavy-tailed, correlation 0.9", rows=50, repeats=3, width=WIDTH, correlation=0.9),
        Noise(
            name="correlation 0.9 under white noise", rows=200, repeats=3, width=WIDTH, correlation=0.9, is_hidden=True
        ),
        Noise(name="heavy-tailed, uncorrelated", rows=200, repeats=3, width=WIDTH, correlation=0.0),
    )
    wanted = range(len(set_ups) + 1) if options.only is None else options.only
    for number, noise in enumerate(set_ups):
        if number not in wanted:
            continue
        report(noise, np.random.default_rng([options.seed, number]), options.pairs)
    if len(set_ups) in wanted:
        peeking(np.random.default_rng([options.seed, len(set_ups)]), options.pairs // 4)


def report(noise: Noise, rng: np.random.Generator, pairs: int) -> None:
    """Print one set-up's figures."""
    began = time.perf_counter()
    size = f"{noise.rows} rows, {counted(noise.repeats, 'repeat')}"
    width = f", noise width {noise.width:g}" if noise.width else ""
    print(f"\n{noise.name}: {size}{width}\n  {'':16}" + "".join(f"{rule:>13}" for rule in RULES))
    print(f"  {'false alarms':16}" + _percent(flagged(noise, rng, pairs, 0.0)))
    for shift in SHIFTS:
        print(f"  shift {shift:<10g}" + _percent(flagged(noise, rng, pairs // 5, shift)))
    step = 3 * noise.width or 1e-3
    near, held, found = dated(noise, rng, pairs // 5, step)
    print(f"  step of {step:g}: found {found:.1%}; onset within 1: {near:.1%}; its interval holds it: {held:.1%}")
    cases = [drawn(noise, rng, shift) for shift in (0.0, 1e-3) for _ in range(WHOLE // 2)]
    agree = sum((judged(case).verdict is Verdict.DIVERGED) == found_by_test(case)[0] for case in cases)
    print(
        f"  the whole comparison, logs and all, says the same in {agree} of {WHOLE}"
        f" ({time.perf_counter() - began:.0f} s)"
    )


def flagged(noise: Noise, rng: np.random.Generator, pairs: int, shift: float) -> list[float]:
    """Share of pairs that each rule calls different; the shift begins in the first half."""
    counts = dict.fromkeys(RULES, 0)
    for _ in range(pairs):
        case = drawn(noise, rng, shift)
        counts["lossbisect"] += found_by_test(case)[0]
        curves = [dict(enumerate(side, start=1)) for side in (case.baseline, case.candidate)]
        for preset in PRESETS:
            counts[preset] += not apply_preset(preset, "lm_loss", *curves).passes
    return [counts[rule] / pairs for rule in RULES]


def dated(noise: Noise, rng: np.random.Generator, pairs: int, step: float) -> tuple[float, float, float]:
    """Of the alarms, the share dated within one iteration, and whose interval holds the onset; share of alarms."""
    near = held = found = 0
    for _ in range(pairs):
        case = drawn(noise, rng, step)
        is_found, (low, onset, high) = found_by_test(case)
        found += is_found
        near += is_found and abs(onset - case.onset) <= 1
        held += is_found and low <= case.onset <= high
    return near / max(found, 1), held / max(found, 1), found / pairs


def found_by_test(case: Case) -> tuple[bool, tuple[int, int, int]]:
    """Whether the test against repeats finds a difference, and its onset with both ends of the interval, 1-based."""
    baseline, candidate = np.array([case.baseline, *case.repeats]), np.array([case.candidate])
    if (baseline == baseline[0]).all():  # repeats equal in every digit: any difference is real
        apart = np.flatnonzero(candidate[0] != baseline[0])
        first = int(apart[0]) + 1 if apart.size else 0
        return apart.size > 0, (first, first, first)
    scale = baseline.mean(axis=0)
    baseline, candidate = baseline / scale, candidate / scale
    nulls = null_curves(baseline, candidate)
    difference = candidate[0] - baseline.mean(axis=0)
    quantum = np.full(scale.size, 1e-6)
    if not shift_effect(difference, nulls, quantum, len(case.repeats)).is_alarm:
        return False, (0, 0, 0)
    widths = row_widths(nulls, quantum)
    low, onset, high = onset_rows(difference / widths, nulls / widths, len(case.repeats))
    return True, (low + 1, onset + 1, high + 1)


def drawn(noise: Noise, rng: np.random.Generator, shift: float) -> Case:
    """One baseline, its repeats and a candidate, as a console prints them."""
    curve = 10.4 - 3.0 * np.arange(noise.rows) / noise.rows + 0.05 * rng.standard_normal(noise.rows)
    runs = noise.repeats + 2
    if noise.is_hidden:
        part = noise.width / np.sqrt(2)
        relative = heavy_noise(rng, runs, noise.rows, width=part, correlation=noise.correlation)
        relative = relative + heavy_noise(rng, runs, noise.rows, width=part, correlation=0.0)
    elif noise.width:
        relative = heavy_noise(rng, runs, noise.rows, width=noise.width, correlation=noise.correlation)
    else:
        relative = np.zeros((runs, noise.rows))
    onset = int(rng.integers(0, noise.rows // 2))
    relative[-1, onset:] += shift
    sides = [printed(curve * (1 + row)) for row in relative]
    return Case(baseline=sides[0], repeats=sides[1:-1], candidate=sides[-1], onset=onset + 1)


def peeking(rng: np.random.Generator, runs: int) -> None:
    """Print how often an equal run of 1,000 rows is stopped by the test that looks after each of them."""
    stopped = 0
    for _ in range(runs):
        noise = heavy_noise(rng, 5, PEEKED_ROWS, width=WIDTH)
        nulls = null_curves(noise[:-1], noise[-1:])
        widths = row_widths(nulls, np.zeros(PEEKED_ROWS))
        stopped += first_alarm((noise[-1] - noise[:-1].mean(0)) / widths, nulls / widths, 3) is not None
    print(f"\nlooking after each of {PEEKED_ROWS} rows: {stopped} of {runs} equal runs stopped ({stopped / runs:.1%})")


def judged(case: Case) -> Judgement:
    """What compare says, given the repeats."""
    repeats = Repeats(baseline=tuple(make_log(side) for side in case.repeats))
    return compare_logs(make_log(case.baseline), make_log(case.candidate), repeats=repeats)


def _percent(shares: Sequence[float]) -> str:
    return "".join(f"{share:>12.1%} " for share in shares)


if __name__ == "__main__":
    main()
