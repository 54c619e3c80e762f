"""How many runs a bisection takes, and how often it is right, by simulation; peers beside it in the same run.

``python -m benchmarks.search`` prints its seed and the tables of docs/method.md. git_bayesect (a package of that name)
takes part if it is installed. Nobody is told the error rate; all start from one run of each end or two.

The bound log2 N / (1 - H(p)) speaks of runs inside the range; runs of the ends are counted apart, beside it.
"""

import argparse
import random
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from math import ceil, exp, log, log2, pi, sqrt
from statistics import NormalDist, mean

from lossbisect.bisect import posterior
from lossbisect.bisect.noisy import look_ahead
from lossbisect.bisect.posterior import Evidence, Reading
from lossbisect.bisect.search import narrow
from lossbisect.bisect.types import CommitVerdict

SIZES = (10, 64, 340, 735)
RATES = (0.0, 0.05, 0.1, 0.2, 0.3)
CONFIDENCE = 0.95
MOST = 600
GATE_WIDTHS = 3.0
MANY_ENDS = 30


@dataclass(frozen=True, slots=True)
class Outcome:
    """One search: the commits it left (empty: no change), and what it took."""

    named: Sequence[int]
    inner: int
    ends: int
    rounds: int


class History:
    """A range with one change (or none: ``first_bad`` = size) whose runs are wrong, or noisy, or impossible."""

    def __init__(self, size: int, first_bad: int, rng: random.Random, *, rate: float = 0.0) -> None:
        self.size, self.first_bad, self.rng, self.rate = size, first_bad, rng, rate
        self.skips: frozenset[int] = frozenset()
        self.inner = self.ends = 0

    def count(self, index: int) -> None:
        """Note a run."""
        is_end = index in (-1, self.size - 1)
        self.ends += is_end
        self.inner += not is_end

    def is_bad(self, index: int) -> bool:
        """A verdict, wrong at the rate."""
        self.count(index)
        return (index >= self.first_bad) ^ (self.rng.random() < self.rate)

    def score(self, index: int, widths: float) -> float:
        """A score, the ends so many noise widths apart."""
        self.count(index)
        return self.rng.gauss(widths if index >= self.first_bad else 0.0, 1.0)


def reader(history: History, evidence: Evidence, widths: float = 1.0) -> Callable[[int], float]:
    """What reads a run of the history: its score, the ends so many noise widths apart, or its verdict."""
    if evidence is Evidence.SCORE:
        return lambda index: history.score(index, widths)
    return lambda index: float(history.is_bad(index))


def exact(history: History, jobs: int = 1) -> Outcome:
    """Ours where runs repeat themselves."""
    verdicts: dict[int, CommitVerdict] = {}
    rounds = 0
    for index in (-1, history.size - 1):
        history.count(index)
    while not (bracket := narrow(history.size, verdicts, jobs=jobs)).is_over:
        rounds += 1
        for index in bracket.wanted:
            history.count(index)
            is_bad = index >= history.first_bad
            verdict = CommitVerdict.BAD if is_bad else CommitVerdict.GOOD
            verdicts[index] = CommitVerdict.SKIP if index in history.skips else verdict
    return Outcome(bracket.candidates, history.inner, history.ends, rounds)


def ours(
    history: History, read: Callable[[int], float], evidence: Evidence, jobs: int = 1, each_end: int = 2
) -> Outcome:
    """Ours under noise, from so many runs of each end on."""
    readings = [Reading(index=index, value=read(index)) for index in (-1, history.size - 1) for _ in range(each_end)]
    rounds = 0
    while True:
        outlook = look_ahead(history.size, readings, evidence, confidence=CONFIDENCE, free=jobs, most=MOST, confirm=1)
        if outlook.is_over:
            return Outcome(
                range(0) if outlook.is_unchanged else outlook.candidates, history.inner, history.ends, rounds
            )
        rounds += 1
        readings += [Reading(index=index, value=read(index)) for index in outlook.wanted]


@contextmanager
def told(*known: float) -> Iterator[None]:
    """Ours told that the error rate is one of these, which nobody is: with one, what is left is the search's own."""
    rates = posterior._RATES  # noqa: SLF001  # the only way in: the tool takes no rate from anybody
    posterior._RATES = tuple((rate, 1 / len(known)) for rate in known)  # noqa: SLF001
    try:
        yield
    finally:
        posterior._RATES = rates  # noqa: SLF001


def cut_at_the_middle(history: History, widths: float) -> Callable[[int], float]:
    """Pass or fail from the same scores: cut half way between the means of two runs of each end."""
    last = history.size - 1
    ends = {index: [history.score(index, widths) for _ in range(2)] for index in (-1, last)}
    middle = mean(mean(scores) for scores in ends.values())

    def read(index: int) -> float:
        value = ends[index].pop() if ends.get(index) else history.score(index, widths)
        return float(value > middle)

    return read


def half_way(history: History, widths: float) -> Callable[[int], float]:
    """Pass or fail from the same scores: cut exactly half way, which nobody knows beforehand."""
    return lambda index: float(history.score(index, widths) > widths / 2)


def gated(history: History, widths: float) -> Callable[[int], float]:
    """Pass or fail by a fixed gate, as it is done today: failed if three noise widths above the good end."""
    return lambda index: float(history.score(index, widths) > GATE_WIDTHS)


def least_for_nothing(widths: float, named: float, missed: float) -> float:
    """Runs that any test needs at least in the mean where nothing has changed (Wald 1945), ends in turn.

    Args:
        widths: Distance of the ends if there is a change; both it and the noise width are taken as known.
        named: Share of changes seen where there is none.
        missed: Share of changes of that size not seen.
    """
    ratio = (1 - named) * log((1 - named) / missed) + named * log(named / (1 - missed))
    return ratio / (widths**2 / 8)


def capacity(widths: float) -> float:
    """Bits that a score tells at most about its side, both means and the width known (two equally likely sides)."""
    step, bits = 0.01, 0.0
    for place in range(-1000, 1001 + round(widths / step)):
        x = place * step
        good, bad = exp(-(x**2) / 2), exp(-((x - widths) ** 2) / 2)
        both = (good + bad) / 2
        bits += sum(0.5 * side * log2(side / both) for side in (good, bad) if side > 0) * step / sqrt(2 * pi)
    return bits


def plain(history: History, repeats: int = 1) -> Outcome:
    """Git's bisect with the majority of some runs a step; both ends are believed."""
    good, bad = -1, history.size - 1
    while bad - good > 1:
        middle = (good + bad) // 2
        if sum(history.is_bad(middle) for _ in range(repeats)) * 2 > repeats:
            bad = middle
        else:
            good = middle
    return Outcome(range(bad, bad + 1), history.inner, history.ends, history.inner)


def bayesect(history: History) -> Outcome:
    """git_bayesect's core, stopped at the same confidence. Its index 0 is the bad end, its last one the good end."""
    from git_bayesect import Bisector  # type: ignore[import-untyped]

    size = history.size
    search = Bisector([1.0] * (size + 1))
    for _ in range(MOST):
        if search.distribution.max() >= CONFIDENCE:
            break
        index = search.select()
        search.record(index, history.is_bad(size - 1 - index))
    best = size - 1 - int(search.distribution.argmax())
    return Outcome(range(best, best + 1), history.inner, history.ends, 0)


def entropy(rate: float) -> float:
    """Bits in a verdict's being right or wrong."""
    return 0.0 if rate in (0, 1) else -rate * log2(rate) - (1 - rate) * log2(1 - rate)


def shown(outcomes: Iterable[tuple[Outcome, int]]) -> tuple[float, float, float]:
    """Mean runs inside and at the ends, and the share of right names."""
    found = list(outcomes)
    right = [outcome.named == range(first, first + 1) for outcome, first in found]
    return mean(o.inner for o, _ in found), mean(o.ends for o, _ in found), mean(right)


def trials(number: int, size: int, seed: int, **options: float) -> Iterable[tuple[History, int]]:
    """Histories whose change is anywhere, the same ones for every method."""
    for trial in range(number):
        rng = random.Random(f"{seed} {size} {trial} {options}")
        first_bad = rng.randrange(size)
        yield History(size, first_bad, rng, **options), first_bad


def verdict_table(number: int, seed: int) -> None:
    """Runs against the bound, and the peers."""
    try:
        import git_bayesect  # noqa: F401

        has_peer = True
    except ImportError:
        has_peer = False
    print(
        "\n| N | p | bound | ours: runs inside (x bound) + ends, right | ours, told p | git_bayesect | plain | best of "
        "3 | best of 5 |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for size in SIZES:
        for rate in RATES:
            bound = log2(size) / (1 - entropy(rate))
            ideal = "the same"
            if rate == 0:
                inner, ends, right = shown((exact(h), f) for h, f in trials(number, size, seed, rate=rate))
            else:
                with told(rate):
                    runs = shown(
                        (ours(h, reader(h, Evidence.VERDICT), Evidence.VERDICT), f)
                        for h, f in trials(number, size, seed, rate=rate)
                    )
                ideal = f"{runs[0]:.1f} ({runs[0] / bound:.2f}) + {runs[1]:.1f}, {runs[2]:.2f}"
                inner, ends, right = shown(
                    (ours(h, reader(h, Evidence.VERDICT), Evidence.VERDICT), f)
                    for h, f in trials(number, size, seed, rate=rate)
                )
            peer = "not installed"
            if has_peer:
                runs = shown((bayesect(h), f) for h, f in trials(max(10, number // 4), size, seed, rate=rate))
                peer = f"{runs[0] + runs[1]:.1f}, {runs[2]:.2f}"
            others = []
            for repeats in (1, 3, 5):
                runs = shown((plain(h, repeats), f) for h, f in trials(number, size, seed, rate=rate))
                others.append(f"{runs[0]:.1f}, {runs[2]:.2f}")
            print(
                f"| {size} | {rate:g} | {bound:.1f} | {inner:.1f} ({inner / bound:.2f}) + {ends:.1f}, {right:.2f} "
                f"| {ideal} | {peer} | {' | '.join(others)} |",
                flush=True,
            )


def score_table(number: int, seed: int) -> None:
    """Graded evidence against pass or fail from the same scores, all runs counted, and what theory allows."""
    print(
        "\n| noise widths | scores: runs, right | pass/fail, cut between the ends' means | saved | at most, all known "
        "| pass/fail, gate at 3 widths | pass/fail, cut exactly half way |"
    )
    print("|---|---|---|---|---|---|---|")
    for widths in (1.0, 1.5, 2.0, 3.0, 4.0):
        graded, *others = (
            shown((ours(h, read(h, widths), evidence), f) for h, f in trials(number, 64, seed))
            for read, evidence in (
                (lambda h, w: reader(h, Evidence.SCORE, w), Evidence.SCORE),
                (cut_at_the_middle, Evidence.VERDICT),
                (gated, Evidence.VERDICT),
                (half_way, Evidence.VERDICT),
            )
        )
        saved = 1 - (graded[0] + graded[1]) / (others[0][0] + others[0][1])
        most = 1 - (1 - entropy(NormalDist().cdf(-widths / 2))) / capacity(widths)
        cells = [f"{inner + ends:.1f}, {right:.2f}" for inner, ends, right in (graded, *others)]
        print(
            f"| {widths:g} | {cells[0]} | {cells[1]} | {saved:.0%} | {most:.0%} | {cells[2]} | {cells[3]} |", flush=True
        )


def ignorance_table(number: int, seed: int) -> None:
    """What it costs that the error rate isn't given: the same search told more and more of it."""
    print(
        f"\n| N | p | told p: x bound, right | told that p is one of the four | not told | not told, {2 * MANY_ENDS} "
        "runs of the ends |"
    )
    print("|---|---|---|---|---|---|")
    rates = RATES[1:]
    for size in (10, 64):
        for rate in rates:
            cells = []
            for known, each_end in (((rate,), 2), (rates, 2), ((), 2), ((), MANY_ENDS)):
                with told(*known) if known else nullcontext():
                    inner, _, right = shown(
                        (ours(h, reader(h, Evidence.VERDICT), Evidence.VERDICT, each_end=each_end), f)
                        for h, f in trials(number, size, seed, rate=rate)
                    )
                cells.append(f"{inner / log2(size) * (1 - entropy(rate)):.2f}, {right:.2f}")
            print(f"| {size} | {rate:g} | {' | '.join(cells)} |", flush=True)


def other_tables(number: int, seed: int) -> None:
    """No change at all, untestable blocks, several runs at once, the driver's own time."""
    print("\nNo change between the ends (N = 64):")
    for name, evidence, rate in (("scores", Evidence.SCORE, 0.0), ("p = 0.1", Evidence.VERDICT, 0.1)):
        found = []
        for trial in range(number):
            history = History(64, 64, random.Random(f"{seed} none {trial}"), rate=rate)
            found.append(ours(history, reader(history, evidence), evidence))
        silent = mean(not outcome.named for outcome in found)
        took = sorted(outcome.inner + outcome.ends for outcome in found)
        print(f"- {name}: 'no change' {silent:.1%}, runs mean {mean(took):.1f}, median {took[len(took) // 2]}")
    least = ", ".join(f"{least_for_nothing(widths, 0.05, 0.02):.1f} ({widths:g} widths)" for widths in (1.5, 2.0, 3.0))
    print(f"- at least, by Wald, to name 5 % and miss 2 % of the changes, all known: {least}")
    print("\n22 % untestable, one block anywhere, runs repeat themselves:")
    for size in (64, 340):
        named, wrong = 0, 0
        left: list[int] = []
        taken: list[int] = []
        for history, first in trials(number, size, seed):
            block = round(0.22 * size)
            start = history.rng.randrange(size - block)
            history.skips = frozenset(range(start, start + block)) - {size - 1}
            outcome = exact(history)
            named += len(outcome.named) == 1
            wrong += first not in outcome.named
            left.append(len(outcome.named))
            taken.append(outcome.inner)
        print(
            f"- N = {size}: one name {named / number:.0%}, truth not among the candidates {wrong}, candidates "
            f"{mean(left):.1f}, runs {mean(taken):.1f}"
        )
    print("\n| N | p | k = 1: rounds/runs | k = 3 | k = 7 | k = 3: rounds saved, runs |")
    print("|---|---|---|---|---|---|")
    for size, rate in ((10, 0.0), (64, 0.0), (340, 0.0), (735, 0.0), (64, 0.1), (64, 0.2)):
        cells, figures = [], {}
        for jobs in (1, 3, 7):
            found = [
                exact(h, jobs) if rate == 0 else ours(h, reader(h, Evidence.VERDICT), Evidence.VERDICT, jobs)
                for h, _ in trials(max(10, number // 2), size, seed, rate=rate)
            ]
            rounds, runs = mean(o.rounds for o in found), mean(o.inner + o.ends for o in found)
            ends = 3 if rate == 0 else 4
            # In all: the ends' first three or four runs, the search, and two confirmations.
            whole = rounds + ceil(ends / jobs) + ceil(2 / jobs)
            figures[jobs] = (whole, runs)
            cells.append(f"{rounds:.1f}/{runs:.0f}")
        saved, more = figures[1][0] / figures[3][0], figures[3][1] / figures[1][1]
        print(f"| {size} | {rate:g} | {' | '.join(cells)} | {saved:.2f} x faster, {more:.2f} x runs |", flush=True)
    started = time.perf_counter()
    narrow(100_000, {}, jobs=7)
    print(f"\nA decision among 100,000 commits with 7 slots takes {(time.perf_counter() - started) * 1000:.0f} ms.")


def main() -> None:
    """Print all tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--seed", type=int, default=20260822)
    options = parser.parse_args()
    print(f"seed {options.seed}, {options.trials} searches a cell, confidence {CONFIDENCE}")
    verdict_table(options.trials, options.seed)
    ignorance_table(options.trials, options.seed)
    score_table(options.trials, options.seed)
    other_tables(options.trials, options.seed)


if __name__ == "__main__":
    main()
