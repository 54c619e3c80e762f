"""The picture of a range that shrinks: one row a run, with the commits that may still hold the change as a bar."""

from collections.abc import Sequence

from lossbisect.bisect.terms import Terms
from lossbisect.bisect.types import BisectStep, CommitRange, CommitVerdict, Role
from lossbisect.compare.wording import counted
from lossbisect.report.html.model import Picture, Shape

__all__ = ["brackets", "picture_of"]

_LEFT, _WIDTH, _RIGHT, _TOP = 44.0, 640.0, 130.0, 30.0
_ROW, _LEAST_ROW, _HEIGHT = 22.0, 1.5, 1600.0
_LABELLED_ROW = 13.0
_KINDS = {
    CommitVerdict.GOOD: "good",
    CommitVerdict.BAD: "bad",
    CommitVerdict.OTHER: "other",
    CommitVerdict.SKIP: "skip",
}


def brackets(steps: Sequence[BisectStep], last: int) -> list[tuple[int, int]]:
    """What is known after each run: the last index known good before the change (-1: the good end), the first bad one.

    Args:
        steps: The runs in order.
        last: Index of the bad end.
    """
    good_ones, good, bad, found = {-1}, -1, last, []
    for step in steps:
        if step.role is Role.REVERTED:
            pass  # it isn't the bad end's own code
        elif step.verdict is CommitVerdict.GOOD:
            good_ones.add(step.index)
        elif step.verdict is CommitVerdict.BAD:
            bad = min(bad, step.index)
        good = max(index for index in good_ones if index < bad) if bad > -1 else good
        found.append((good, bad))
    return found


def picture_of(steps: Sequence[BisectStep], commits: CommitRange, terms: Terms) -> Picture:
    """The range over the commits, oldest on the left, from the first run to the last."""
    last = len(commits.commits) - 1
    row = max(_LEAST_ROW, min(_ROW, _HEIGHT / max(1, len(steps))))

    def place(index: int) -> float:
        return _LEFT + _WIDTH * (index + 1) / (last + 1)

    shapes = [
        Shape(kind="text", x=_LEFT, y=_TOP - 12, text=f"{commits.good.short} {terms.old_end}"),
        Shape(kind="end", x=_LEFT + _WIDTH, y=_TOP - 12, text=f"{commits.bad.short} {terms.new_end}"),
    ]
    for number, (step, (good, bad)) in enumerate(zip(steps, brackets(steps, last), strict=True), start=1):
        y = _TOP + row * (number - 1)
        left, width = place(good), max(2.0, place(bad) - place(good))
        what = f"{terms.verdict(step.verdict)} ({terms.role(step.role)})"
        says = f"Run {number}: {step.commit[:10]} {what}, {_left(good, bad)}"
        bar = Shape(
            kind="bar", x=left, y=y + row * 0.2, width=width, height=row * 0.6, text=says, href=f"#run-{number}"
        )
        mark = Shape(kind=_KINDS[step.verdict], x=place(step.index), y=y + row / 2, height=min(11.0, row * 0.62))
        shapes += [bar, mark]
        if row >= _LABELLED_ROW:
            shapes.append(Shape(kind="end", x=_LEFT - 14, y=y + row / 2 + 4, text=str(number)))
            shapes.append(Shape(kind="text", x=_LEFT + _WIDTH + 14, y=y + row / 2 + 4, text=_left(good, bad)))
    foot = _TOP + row * len(steps) + 14
    used = [
        (kind, terms.verdict(verdict)) for verdict, kind in _KINDS.items() if any(s.verdict is verdict for s in steps)
    ]
    for number, (kind, name) in enumerate(used):
        shapes.append(Shape(kind=kind, x=_LEFT + 6 + 90 * number, y=foot, height=11))
        shapes.append(Shape(kind="text", x=_LEFT + 18 + 90 * number, y=foot + 4, text=name))
    says = f"{counted(len(steps), 'run')} narrow {counted(last + 1, 'commit')} down"
    return Picture(width=_LEFT + _WIDTH + _RIGHT, height=foot + 12, shapes=shapes, says=says)


def _left(good: int, bad: int) -> str:
    return "one commit" if bad - good <= 1 else f"{bad - good} commits"
