"""Which change a curve shows, what a noisy curve scores, and when a run can be ended."""

import json
import math
import random
from pathlib import Path

import pytest

from lossbisect.bisect.cutting import Cutter
from lossbisect.bisect.scale import scores
from lossbisect.bisect.symptom import Symptom, symptom_of

GOOD = {1: 10.5, 2: 10.25, 3: 9.875, 4: 9.5}
BAD = {1: 10.5, 2: 10.25, 3: 9.9, 4: 9.6}


@pytest.mark.parametrize(
    ("run", "shown"),
    [
        ({**BAD, 4: 9.6001}, Symptom.SAME),
        ({**GOOD, 4: 9.5001}, Symptom.SMALLER),
        ({**GOOD, 1: 10.6}, Symptom.OTHER),
        ({**GOOD, 3: 9.85, 4: 9.4}, Symptom.OTHER),
        ({**GOOD, 4: math.nan}, Symptom.OTHER),
    ],
)
def test_symptoms(run: dict[int, float], shown: Symptom) -> None:
    """Near the bad end is its symptom, near the good end a smaller change; another place or sign is neither."""
    assert symptom_of(GOOD, BAD, run) is shown


def test_a_nan_is_the_same_symptom_at_the_same_iteration_only() -> None:
    """A bad end that goes NaN at iteration 3 is matched by NaN at iteration 3."""
    bad = {**GOOD, 3: math.nan, 4: math.nan}
    assert symptom_of(GOOD, bad, bad) is Symptom.SAME
    assert symptom_of(GOOD, bad, {**bad, 2: math.nan}) is Symptom.OTHER
    assert symptom_of(GOOD, bad, {**GOOD, 4: 9.6}) is Symptom.SMALLER


def test_scores_go_from_the_good_end_to_the_bad_end() -> None:
    """A noisy curve scores near 0 or 1 by its side; one far beside the way between the ends is another change."""
    rng = random.Random(1)

    def noisy(curve: dict[int, float]) -> dict[int, float]:
        return {i: value + rng.gauss(0, 1e-3) for i, value in curve.items()}

    aside = {**GOOD, 1: 11.0}
    found = scores([noisy(GOOD) for _ in range(3)], [noisy(BAD) for _ in range(3)], [noisy(GOOD), noisy(BAD), aside])
    assert [round(score.value) for score in found[:8]] == [0, 0, 0, 1, 1, 1, 0, 1]
    assert [score.is_other for score in found[6:]] == [False, False, True]


def recorded(path: Path, values: dict[int, float]) -> Path:
    """A run's recorded losses so far."""
    rows = [
        {"tag": "lm loss", "iteration": i, "value": v}
        if math.isfinite(v)
        else {"tag": "lm loss", "iteration": i, "value": None, "nonfinite": "nan"}
        for i, v in values.items()
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_a_run_is_ended_when_its_verdict_is_sure(tmp_path: Path) -> None:
    """The bad end's first other digit ends a run at once, the good end's two iterations later, anything else never."""
    good = {i: 10.0 - i for i in range(1, 9)}
    bad = {**good, **{i: 20.0 - i for i in range(3, 9)}}
    file = tmp_path / "scalars.ndjson"
    cutter = Cutter(file, "lm_loss", lambda: (good, bad))
    assert not cutter.is_sure()
    recorded(file, {i: bad[i] for i in (1, 2)})
    assert not cutter.is_sure()
    recorded(file, {i: bad[i] for i in (1, 2, 3)})
    assert cutter.is_sure()
    assert cutter.reason == "stopped: verdict sure at iteration 3"
    cutter = Cutter(recorded(file, {i: good[i] for i in range(1, 5)}), "lm_loss", lambda: (good, bad))
    assert not cutter.is_sure()
    recorded(file, {i: good[i] for i in range(1, 6)})
    assert cutter.is_sure()
    other = {**good, 3: 7.5}
    assert not Cutter(recorded(file, other), "lm_loss", lambda: (good, bad)).is_sure()
    early = {**bad, 2: 7.75}
    assert not Cutter(recorded(file, early), "lm_loss", lambda: (good, bad)).is_sure()


def test_a_torn_line_waits_for_its_end(tmp_path: Path) -> None:
    """Half a line is read when the rest is there."""
    good, bad = {1: 1.0, 2: 2.0}, {1: 1.5, 2: 2.5}
    file = recorded(tmp_path / "scalars.ndjson", {1: 1.5})
    whole = file.read_bytes()
    file.write_bytes(whole[:-5])
    cutter = Cutter(file, "lm_loss", lambda: (good, bad))
    assert not cutter.is_sure()
    file.write_bytes(whole)
    assert cutter.is_sure()
