"""Runs that are ended once their verdict is sure: the answer is that of whole runs."""

import math
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lossbisect.bisect.culprit import Answer, Finding
from lossbisect.bisect.options import Regress, SearchOptions
from lossbisect.bisect.types import Role
from lossbisect.train.types import Outcome
from tests.bisect.support import Script
from tests.bisect.test_driver import LONG_CURVE, Bench, one_change

BROKEN = (*LONG_CURVE[:2], *(value + 0.25 for value in LONG_CURVE[2:]))
"""Differs from iteration 3 on."""


def slow(folder: Path, count: int, script: "dict[int, Script] | object") -> Bench:
    """A bench whose runs take their time, so that they can be ended."""
    bench = Bench(folder, count, script)  # type: ignore[arg-type]
    bench.runner.is_slow = True
    return bench


def outcomes(finding: Finding) -> list[tuple[Role, Outcome]]:
    """Why each run was made, and how it ended."""
    return [(step.role, step.record.outcome) for step in finding.steps]


def test_ends_and_confirmations_run_whole_and_the_rest_does_not(tmp_path: Path) -> None:
    """Both ends, the culprit and its parent show whole curves; a repeat and a search run end once they are sure."""
    finding = slow(tmp_path, 8, one_change(5, good=LONG_CURVE, bad=BROKEN)).drive()
    assert (finding.answer, finding.bad) == (Answer.FOUND, 5)
    whole = {Role.GOOD_END, Role.BAD_END, Role.PARENT_AGAIN, Role.CULPRIT_AGAIN}
    for role, outcome in outcomes(finding):
        assert outcome is (Outcome.FINISHED if role in whole else Outcome.CUT), role
    assert finding.judgement is not None
    assert finding.judgement.comparison.difference.first_difference == 3
    rows = {step.role: len(step.record.scalars.read_text().splitlines()) for step in finding.steps}
    assert rows[Role.GOOD_AGAIN] == 5


@settings(deadline=None, max_examples=25)
@given(
    st.integers(2, 12).flatmap(lambda count: st.tuples(st.just(count), st.integers(0, count - 1))),
    st.integers(0, len(LONG_CURVE) - 1),
    st.integers(1, 3),
)
def test_the_answer_is_that_of_whole_runs(where: tuple[int, int], since: int, jobs: int) -> None:
    """Wherever the change is and whichever iteration shows it, the same commit is named with the same reason."""
    count, at = where
    broken = tuple(value + 0.25 * (i >= since) for i, value in enumerate(LONG_CURVE))
    script = one_change(at, good=LONG_CURVE, bad=broken)
    with TemporaryDirectory() as one, TemporaryDirectory() as other:
        short, whole = slow(Path(one), count, script), Bench(Path(other), count, script)
        found, wanted = short.drive(jobs=jobs), whole.drive(jobs=jobs)
    assert (found.answer, found.bad, found.reason.partition(",")[0]) == (
        Answer.FOUND,
        at,
        wanted.reason.partition(",")[0],
    )


def test_a_nan_is_waited_for(tmp_path: Path) -> None:
    """Where a NaN is hunted an earlier difference of the ends ends no run: the commit with the NaN is named."""
    moved = tuple(value + 0.25 for value in LONG_CURVE)
    broken = (*moved[:8], *[math.nan] * 4)

    def script(index: int) -> Script:
        return broken if index >= 6 else moved if index >= 2 else LONG_CURVE

    finding = slow(tmp_path, 8, script).drive(search=SearchOptions(revert=False, regress=Regress.NAN))
    assert (finding.answer, finding.bad) == (Answer.FOUND, 6)


@pytest.mark.parametrize(("differs_at", "by"), [(2, 1e-6), (8, 0.5)])
def test_a_good_end_that_does_not_repeat_itself_is_seen_where_it_matters(
    tmp_path: Path, differs_at: int, by: float
) -> None:
    """Noise within the iterations that are judged is measured; noise that comes later decides nothing, and is told."""
    bench = slow(tmp_path, 8, one_change(5, good=LONG_CURVE, bad=BROKEN))
    inner = bench.runner.script
    runs = 0

    def noisy(sha: str) -> Script:
        nonlocal runs
        runs += 1
        return tuple(v + (by * runs if i == differs_at else 0.0) for i, v in enumerate(inner(sha), 1))  # type: ignore[operator]

    bench.runner.script = noisy
    finding = bench.drive()
    assert (finding.answer, finding.bad) == (Answer.FOUND, 5)
    assert finding.noise is not None
    assert finding.noise.source == ("repeats" if differs_at == 2 else "bit-exact")
    if differs_at == 8:
        parent = next(step for step in finding.steps if step.role is Role.PARENT_AGAIN)
        assert "what comes later is another one" in parent.reason
