"""A judgement as text."""

import math

from lossbisect.compare import compare_logs
from lossbisect.report.many import render_table
from lossbisect.report.text import render_text
from tests.browser.made import evil_pair
from tests.compare.logs import FLOAT32, make_log


def test_verdict_comes_first_then_rows_settings_and_notes() -> None:
    """Each block where a reader looks for it, and the first divergent iteration marked."""
    left = make_log([10.4, 10.3, 10.2, 10.1], path="mlm.log", config=FLOAT32 | {"seed": 1}, grad_norm=[1.0] * 4)
    right = make_log([10.4, 10.3, 10.3, 10.4], path="bridge.log", config=FLOAT32 | {"seed": 2}, grad_norm=[1.0] * 4)
    lines = render_text(compare_logs(left, right)).splitlines()
    assert lines[0].startswith("DIVERGED: lm loss diverges from iteration 3")
    assert "  baseline     mlm.log" in lines
    assert "  >          3  10.20000   10.30000   +9.8e-3  real" in lines
    assert "  grad norm  identical" in lines
    assert "  seed  1 vs 2  other initial weights" in lines


def test_long_curve_shows_the_rows_that_tell_something() -> None:
    """A thousand rows become a dozen: around the onset, the largest difference, and the last."""
    base = [5.0 + 1 / (row + 1) for row in range(1000)]
    other = [value * (1.01 if row >= 500 else 1.0) for row, value in enumerate(base)]
    text = render_text(compare_logs(make_log(base), make_log(other)))
    rows = [line for line in text.splitlines() if line.strip(" >")[:3].isdigit() or "1000  " in line]
    assert [line.split()[0].strip(">") or line.split()[1] for line in rows][:2] == ["499", "500"]
    assert any(line.startswith("  >  ") and " 501 " in line for line in rows)
    assert "1000" in rows[-1]
    assert len(rows) <= 12


def test_missing_and_nan_values_are_words() -> None:
    """No None in the table, and a NaN isn't missing."""
    text = render_text(compare_logs(make_log([5.0, 4.0, 3.0]), make_log([5.0, None, math.nan])))
    assert "missing" in text
    assert "nan" in text
    assert "None" not in text


def test_no_line_ends_in_a_blank() -> None:
    """The text can be pasted."""
    text = render_text(compare_logs(make_log([5.0] * 3), make_log([5.0] * 3)))
    assert all(line == line.rstrip() for line in text.splitlines())


def test_text_of_logs_commands_no_terminal() -> None:
    """Colours, titles and turned reading directions in settings, notes, names and columns are not passed on."""
    judgement = evil_pair()
    for text in (render_text(judgement), render_table([judgement, judgement])):
        assert "<img src=x" in text
        assert all(char.isprintable() or char == "\n" for char in text)
