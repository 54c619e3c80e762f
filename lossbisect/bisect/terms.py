"""What both sides of a search are called, and what comes back without the culprit. Pure."""

from dataclasses import dataclass

from lossbisect.bisect.figures import FIGURES
from lossbisect.bisect.options import Regress, SearchOptions
from lossbisect.bisect.types import CommitVerdict, Role

__all__ = ["Terms", "terms_of"]

_WORDS = {
    Regress.LOSS: (None, "moved", "the loss comes back", "curve"),
    Regress.GRAD_NORM: (None, "moved", "the gradient norm comes back", "curve"),
    Regress.NAN: ("NaN", "brought in", "it is finite again", "curve"),
    Regress.CRASH: ("crash", "brought in", "it runs again", "outcome"),
    Regress.REPEATABILITY: ("repeatability", "lost", "it repeats itself again", "outcome"),
    Regress.THROUGHPUT: (FIGURES[Regress.THROUGHPUT], "raised", "the speed comes back", FIGURES[Regress.THROUGHPUT]),
    Regress.MEMORY: (FIGURES[Regress.MEMORY], "raised", "the memory comes back", FIGURES[Regress.MEMORY]),
}
"""What is hunted (None: the metric), what the culprit did to it, what taking that back does, and what runs show."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Terms:
    """The words of one search. The older end is the one before the change, whichever of them is right.

    Attributes:
        old: What the older side is called: ``good``, or ``bad`` where a fix is looked for.
        new: What the newer side is called.
        first: The answer: ``first bad commit`` or ``first fixed commit``.
        last: The commit before it: ``last good`` or ``last bad``.
        turning: The found commit among curves: ``first bad`` or ``first good``.
        culprit: The commit that is found: ``culprit`` or ``fix``.
        back: What taking it back does, a clause without its yes or no.
        old_end: What the older end is called.
        new_end: What the newer end is called.
        hunted: What is hunted; None: the metric.
        moved: What the culprit did to it.
        trait: What of a run is like an end's or isn't.
    """

    old: str
    new: str
    first: str
    last: str
    turning: str
    culprit: str
    back: str
    old_end: str
    new_end: str
    hunted: str | None
    moved: str
    trait: str

    def verdict(self, verdict: CommitVerdict) -> str:
        """What a verdict is called; inside, the older side is always `CommitVerdict.GOOD`."""
        return {CommitVerdict.GOOD: self.old, CommitVerdict.BAD: self.new}.get(verdict, verdict.value)

    def role(self, role: Role) -> str:
        """Why a commit is run."""
        words = {
            Role.GOOD_END: self.old_end,
            Role.GOOD_AGAIN: f"{self.old_end} again",
            Role.BAD_END: self.new_end,
            Role.BAD_AGAIN: f"{self.new_end} again",
            Role.CANARY: f"{self.old_end}, is it still running",
            Role.CULPRIT_AGAIN: f"{self.culprit} again",
            Role.CULPRIT_CHECKED: f"{self.culprit} once more, it looks harmless",
            Role.REVERTED: f"{self.new_end} without the {self.culprit}",
        }
        return words.get(role, role.value)


def terms_of(options: SearchOptions) -> Terms:
    """The words of a search with these options."""
    what, how, back, trait = _WORDS[options.regress]
    if options.advance:
        return Terms(
            old="same",
            new="changed",
            first="first changed commit",
            last="last same",
            turning="first changed",
            culprit="change",
            back=back,
            old_end="commit in use",
            new_end="newest commit",
            hunted=what,
            moved=how,
            trait=trait,
        )
    if options.find_fix:
        return Terms(
            old="bad",
            new="good",
            first="first fixed commit",
            last="last bad",
            turning="first good",
            culprit="fix",
            back="the break comes back",
            old_end="bad end",
            new_end="good end",
            hunted=what,
            moved="mended",
            trait=trait,
        )
    return Terms(
        old="good",
        new="bad",
        first="first bad commit",
        last="last good",
        turning="first bad",
        culprit="culprit",
        back=back,
        old_end="good end",
        new_end="bad end",
        hunted=what,
        moved=how,
        trait=trait,
    )
