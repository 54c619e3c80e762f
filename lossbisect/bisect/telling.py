"""What a bisection says while it goes on, and what a reader of its answer should know. Pure."""

from collections.abc import Sequence
from math import ceil, log

from lossbisect.bisect.figures import FIGURES
from lossbisect.bisect.known import wavering
from lossbisect.bisect.noisy import Outlook
from lossbisect.bisect.options import Regress
from lossbisect.bisect.search import Bracket
from lossbisect.bisect.terms import Terms
from lossbisect.bisect.types import BisectStep, CommitRange, CommitVerdict, Role
from lossbisect.compare.wording import counted

__all__ = ["narrowed_text", "outlook_text", "plan_text", "warnings_about", "wavering_texts"]

_MANY_OTHERS = 3


def plan_text(count: int, jobs: int, *, revert: bool = False, regress: Regress = Regress.LOSS) -> str:
    """Rounds and runs of a search in which every commit can be tested and runs repeat themselves.

    Args:
        count: Commits after the good end.
        jobs: Runs at once.
        revert: The bad end is run without the culprit in the end.
        regress: What is hunted.
    """
    if regress in FIGURES:
        return (
            f"{counted(count, 'commit')}: both ends run at least twice, then the commits in between, again and again, "
            "until one is likely enough."
        )
    twice = " Each run is two trainings." if regress is Regress.REPEATABILITY else ""
    rounds = ceil(log(count, jobs + 1) - 1e-9) if count > 1 else 0
    ends = ceil(3 / jobs)
    repeats = ceil(2 / jobs)
    runs = 3 + rounds * jobs + 2 + revert
    at_once = f", {jobs} runs at once" if jobs > 1 else ""
    return (
        f"{counted(count, 'commit')}{at_once}: about {ends + rounds + repeats + revert} rounds, at most {runs} runs "
        f"(3 at the ends, {rounds * jobs} in between, 2 to confirm{', 1 without the culprit' if revert else ''})."
        f"{twice}"
    )


def narrowed_text(commits: CommitRange, before: Bracket, after: Bracket, jobs: int) -> str:
    """How the range shrank, and about what is left."""

    def name(bracket: Bracket) -> str:
        return f"[{commits.at(bracket.good).short}, {commits.at(bracket.bad).short}]"

    if before.candidates == after.candidates:
        found = f"Still {name(after)} ({len(after.candidates)} commits, {len(after.skipped)} untestable)"
    else:
        was, now = len(before.candidates), len(after.candidates)
        found = f"Narrowed from {name(before)} ({was} commits) to {name(after)} ({now})"
    left = counted(after.rounds_left(jobs), "run" if jobs == 1 else "round")
    return f"{found}, about {left} left and 2 {'runs ' if jobs > 1 else ''}to confirm"


def outlook_text(commits: CommitRange, outlook: Outlook) -> str:
    """What is believed in a search under noise."""
    belief, held = outlook.belief, outlook.candidates
    if outlook.is_unchanged:
        return f"No change: {belief.no_change:.0%} likely"
    first, last = commits.at(held[0] - 1).short, commits.at(held[-1]).short
    among = held[-1] - held[0] + 1
    number = counted(among, "commit") if len(held) == among else f"{len(held)} of {among} commits"
    apart = f", the ends {belief.separation:.1f} noise widths apart" if belief.separation is not None else ""
    return (
        f"[{first}, {last}] ({number}) holds it with {outlook.probability:.0%}, no change {belief.no_change:.0%}{apart}"
    )


def wavering_texts(steps: Sequence[BisectStep], commits: CommitRange) -> list[str]:
    """Which commits failed once and ran another time, one sentence each."""
    return [
        f"{commits.at(step.index).short} failed once ({step.reason}) and ran the next time: it isn't determined."
        for step in wavering(steps)
    ]


def warnings_about(
    steps: Sequence[BisectStep], commits: CommitRange, bad: int, terms: Terms, *, is_every_change: bool = False
) -> tuple[str, ...]:
    """What a reader should know before believing the answer, one sentence each.

    Args:
        steps: All finished runs.
        commits: The range.
        bad: Index of the first bad commit of the answer.
        terms: What both sides are called.
        is_every_change: Every change was looked for, so that more than one is no surprise.
    """
    warnings = wavering_texts(steps, commits)
    searched = [step for step in steps if step.role in (Role.SEARCH, Role.PROBE)]
    if is_every_change:
        return tuple(warnings)
    others = [step for step in searched if step.verdict is CommitVerdict.OTHER]
    if others:
        has = "matches neither end" if len(others) == 1 else "match neither end"
        names = ", ".join(commits.at(step.index).short for step in others[:3])
        warnings.append(
            f"{counted(len(others), 'commit')} {has} ({names}): another change lies in the range. "
            "Find every change with --all."
        )
    smaller = [step for step in searched if step.verdict is CommitVerdict.GOOD and step.is_bad_curve is False]
    if smaller:
        warnings.append(
            f"{counted(len(smaller), f'{terms.old} commit')}, first {commits.at(min(s.index for s in smaller)).short}, "
            f"differ from the {terms.old_end} by less than a tenth of the {terms.new_end}'s difference: a smaller "
            "change lies in the range too. Find every change with --all."
        )
    own = [step for step in searched if step.verdict is CommitVerdict.BAD and step.is_bad_curve is False]
    whole = [step for step in searched if step.verdict is CommitVerdict.BAD]
    if own:
        has = "has a curve of its own" if len(own) == 1 else "have a curve of their own"
        warnings.append(
            f"{len(own)} of {counted(len(whole), f'{terms.new} commit')} {has}, not the {terms.new_end}'s to the last "
            "digit: more than one change lies in the range. Find every change with --all."
        )
    judged = [step for step in searched if step.verdict is not CommitVerdict.SKIP]
    if len(others) >= _MANY_OTHERS and len(others) == len(judged):
        warnings.append("No commit in between gave either end's curve: perhaps nothing here repeats itself.")
    earlier = sorted({step.index for step in whole if step.index < bad})
    if earlier:
        warnings.append(
            f"The change was there before: {commits.at(earlier[0]).short} is {terms.new} too, and one after it is "
            f"{terms.old} again. {commits.at(bad).short} is the change that leads to the {terms.new_end}."
        )
    return tuple(warnings)
