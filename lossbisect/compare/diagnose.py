"""The shape of a difference, put into words: what most likely made it, and what to check next. Pure.

Gates come first: two runs that can't be compared need no bisect. Then a side without a value, prints that mislead, the
gradient norm, and the course of the loss. Each is a lead and no proof; its evidence is told with it. The shapes are
those of real breaks: ``docs/method.md`` lists them.
"""

from lossbisect.compare.breaks import BREAKS
from lossbisect.compare.evidence import Evidence
from lossbisect.compare.gates import GATES
from lossbisect.compare.prints import PRINTED
from lossbisect.compare.shapes import COURSES, course
from lossbisect.compare.types import Diagnosis
from lossbisect.compare.witnesses import WITNESSES

__all__ = ["diagnose"]


def diagnose(evidence: Evidence) -> tuple[Diagnosis, ...]:
    """What the difference's shape speaks for, the most telling first; empty where nothing differs.

    Of the prints that mislead and of the courses only the first one that fits is told. What is constant since a later
    row than the first one has an onset to explain too.
    """
    told = [found for read in (*GATES, *BREAKS) if (found := read(evidence)) is not None]
    if any(found.shape == "first-loss-far-off" for found in told):
        return tuple(told)
    printed = next((found for read in PRINTED if (found := read(evidence)) is not None), None)
    if printed is not None:
        return (*told, printed)
    told += [found for read in WITNESSES if (found := read(evidence)) is not None][:2]
    if any(found.shape == "nan" and evidence.onset == _first_break(evidence) for found in told):
        return tuple(told)
    shape = next((found for read in COURSES if (found := read(evidence)) is not None), None)
    if shape is not None:
        told.append(shape)
        is_constant = shape.shape.startswith("constant-")
        if is_constant and evidence.began != evidence.finite[0].iteration and (onset := course(evidence)) is not None:
            told.append(onset)
    return tuple(told)


def _first_break(evidence: Evidence) -> int | None:
    """First iteration at which a value of one side only is finite."""
    loss = evidence.loss
    return min((*loss.only_baseline_missing, *loss.only_candidate_missing), default=None)
