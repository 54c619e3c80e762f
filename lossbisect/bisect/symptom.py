"""Is a difference the one that the bad end shows? Pure.

A range may hold several changes. A commit whose curve isn't the good end's isn't bad for that alone: it is bad if it
shows what the bad end shows. In units of the bad end's own difference from the good end (root of the mean square over
the iterations, relative differences): nearer than a third to the bad end is the same symptom, within a tenth of the
good end a smaller change that isn't looked for, and anything else matches neither end.
"""

import math
from collections.abc import Mapping
from enum import StrEnum

__all__ = ["Symptom", "symptom_of"]

_SAME = 1 / 3
_SMALL = 0.1


class Symptom(StrEnum):
    """What a curve that differs from the good end's shows."""

    SAME = "the bad end's"
    SMALLER = "a smaller change"
    OTHER = "neither end's"


def symptom_of(good: Mapping[int, float], bad: Mapping[int, float], run: Mapping[int, float]) -> Symptom:
    """What the curve ``run`` shows, which differs from ``good``.

    Args:
        good: The good end's values by iteration.
        bad: The bad end's.
        run: The run's; iterations that it lacks are left out.
    """
    iterations = [i for i in good if i in bad and i in run]
    states = {name: _first_broken(good, curve, iterations) for name, curve in (("bad", bad), ("run", run))}
    if states["bad"] is not None or states["run"] is not None:
        if states["bad"] == states["run"]:
            return Symptom.SAME
        # Without a number at the bad end there is no size to be small against.
        return Symptom.OTHER if states["run"] is not None else Symptom.SMALLER
    whole, off, apart = 0.0, 0.0, 0.0
    for i in iterations:
        values = (good[i], bad[i], run[i])
        if not all(map(math.isfinite, values)):
            continue
        scale = max(map(abs, values)) or 1.0
        whole += ((bad[i] - good[i]) / scale) ** 2
        off += ((run[i] - good[i]) / scale) ** 2
        apart += ((run[i] - bad[i]) / scale) ** 2
    if apart <= _SAME**2 * whole:
        return Symptom.SAME
    return Symptom.SMALLER if off <= _SMALL**2 * whole else Symptom.OTHER


def _first_broken(good: Mapping[int, float], curve: Mapping[int, float], iterations: list[int]) -> int | None:
    """First iteration at which the curve is NaN or infinite and the good end's isn't."""
    return next((i for i in iterations if math.isfinite(good[i]) and not math.isfinite(curve[i])), None)
