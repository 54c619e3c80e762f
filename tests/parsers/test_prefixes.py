"""What stands before a line."""

import pytest

from lossbisect.parsers.prefixes import peel

LINE = " iteration 5/10 |"


@pytest.mark.parametrize(
    ("prefix", "label"),
    [
        ("[default7]:", "default7"),
        ("3: ", "3"),
        ("  12: ", "12"),
        ("ain_fp8_mx/0 ", "ain_fp8_mx/0"),
        ("retraining/0 [default0]:", "retraining/0 default0"),
        ("(Actor pid=1, ip=10.0.0.1) ", "Actor pid=1, ip=10.0.0.1"),
        ("INFO:megatron.core.timers:", ""),
        ("2026-06-10T23:09:45.9428001Z ", ""),
        ("2026-06-10T23:09:45.942800123Z stdout F ", ""),
        ("2026-06-10T23:09:45.942800123+02:00 stderr P ", ""),
        ("[2026-03-07 16:41:09,112] [INFO] [timer.py:260:stop] ", ""),
        ("[NeMo W 2025-08-19 15:40:12 rerun_state_machine:1263] ", ""),
        ("logs/train.log:", "logs/train.log"),
        ("logs/train.log:12:", "logs/train.log"),
        ("2026-06-10T23:09:45.9428001Z 3: [default0]:", "3 default0"),
    ],
)
def test_prefixes_are_peeled(prefix: str, label: str) -> None:
    """Every prefix goes, stacked ones too; the process it names stays as the label."""
    rest, found = peel(prefix + LINE)
    assert rest.strip() == LINE.strip()
    assert found == label


@pytest.mark.parametrize(
    "line", [" [2026-01-01 00:00:00] iteration 5/10 |", "  adam_eps ...... 1e-08", "time (ms) | a: 1", ""]
)
def test_lines_without_prefix_stay(line: str) -> None:
    """A row's own clock and the indent of a dump are no prefixes."""
    assert peel(line) == (line, "")
