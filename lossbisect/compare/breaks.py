"""A side without a value: NaN, an absent loss, a cut log, rows that are missing."""

import math

from lossbisect.compare.evidence import Evidence
from lossbisect.compare.types import Diagnosis
from lossbisect.compare.wording import metric_name, value_text

__all__ = ["BREAKS"]


def nan_on_one_side(evidence: Evidence) -> Diagnosis | None:
    """A value is NaN or infinite where the other side's isn't so, or isn't printed where that has a number."""
    for pair in evidence.pairs[evidence.metric]:
        states = [_state(pair.baseline), _state(pair.candidate)]
        if states[0] == states[1] or ("absent" in states and "finite" not in states):
            continue
        side = "candidate" if states[1] != "finite" else "baseline"
        state = states[1] if side == "candidate" else states[0]
        is_absent = state == "absent"
        name = metric_name(evidence.metric)
        return Diagnosis(
            shape="loss-absent" if is_absent else "nan",
            meaning=f"The {name} is absent from the {side}'s row: printers leave out a NaN, a negative loss, and the "
            "loss of an interval in which every iteration was skipped."
            if is_absent
            else f"The {name} goes {state} in the {side}.",
            evidence=f"Iteration {pair.iteration}: {_shown(pair.baseline)} against {_shown(pair.candidate)}; "
            f"the grad norm there: {_gradient_at(evidence, pair.iteration)}.",
            check_next="The iteration before it: grad norm, loss scale and skipped iterations; a microbatch whose "
            "tokens are all masked (division by 0 in pipeline_parallel/schedules.py, multi_token_prediction.py).",
        )
    return None


def cut_short(evidence: Evidence) -> Diagnosis | None:
    """One side ends before the other, and wasn't meant to."""
    ends = evidence.ends
    if ends is None or ends.cut is None:
        return None
    side = "candidate" if ends.candidate < ends.baseline else "baseline"
    return Diagnosis(
        shape="cut-short",
        meaning=f"The {side} ends early, so nothing is known about the iterations after it.",
        evidence=f"The baseline reaches iteration {ends.baseline}, the candidate {ends.candidate}; {ends.cut}.",
        check_next="The end of that log and of the other ranks' logs; the scheduler's time limit.",
    )


def rows_missing(evidence: Evidence) -> Diagnosis | None:
    """One side lacks rows between its first and its last."""
    if evidence.ends is None or evidence.ends.hole is None:
        return None
    return Diagnosis(
        shape="rows-missing",
        meaning="Rows are missing in the middle of a log: lines were lost, or only a part of it was kept.",
        evidence=f"By its own distance from row to row, {evidence.ends.hole}.",
        check_next="The same lines in the other ranks' logs; a filter such as grep, a full disk, a log server's limit.",
    )


def _state(value: float | None) -> str:
    if value is None:
        return "absent"
    if math.isfinite(value):
        return "finite"
    return "NaN" if math.isnan(value) else "infinite" if value > 0 else "negative infinite"


def _shown(value: float | None) -> str:
    return "none" if value is None else value_text(value)


def _gradient_at(evidence: Evidence, iteration: int) -> str:
    pair = next((pair for pair in evidence.pairs.get("grad_norm", ()) if pair.iteration == iteration), None)
    return "not logged" if pair is None else f"{_shown(pair.baseline)} against {_shown(pair.candidate)}"


BREAKS = (nan_on_one_side, cut_short, rows_missing)
"""A side without a value."""
