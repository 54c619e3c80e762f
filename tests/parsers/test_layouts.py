"""Which rows go the quick way, and that they say there what they say when read one by one."""

import pytest

from lossbisect.parsers.layouts import learn, take
from lossbisect.parsers.records import find_records

_HEAD = "[default1]: [2026-01-16 10:00:00.123456] iteration        7/      10 | consumed samples:           56 |"
_TAIL = " number of skipped iterations:   0 | number of nan iterations:   0 |"
_NEOX = (
    "samples/sec: 31.152 | iteration      107/  320000 | elapsed time per iteration (ms): 32869.4 |"
    " learning rate: 1.000E-06 | approx flops per GPU: 9.8TFLOPS | lm_loss: 8.345678E+00 | loss scale: 524288.0 |"
)


@pytest.mark.parametrize(
    "line",
    [
        f"{_HEAD} lm loss: 1.037740E+01 | grad norm: 1.234 |{_TAIL}",
        f"{_HEAD} elapsed time per iteration (s): 105.31 | lm loss: 1.037740E-01 | grad norm: nan |{_TAIL}",
        f"{_HEAD} lm loss: -1.037740E-01 | grad norm: 12 |{_TAIL}",
        f"{_HEAD} lm loss: INF | grad norm: -inf |{_TAIL}",
        f"{_HEAD} lm loss: 1.037740E+01 |{_TAIL} packing_eff: 91.7% | toks/s: 104857 |",
        _NEOX + _TAIL,
    ],
)
def test_row_goes_the_quick_way(line: str) -> None:
    """Signs, units, words for numbers and gpt-neox's field before the iteration included; times come in ms."""
    import numpy as np

    (record,) = find_records(line)
    layout = learn(line.encode(), record)
    assert layout is not None
    other = line.replace("7", "9")
    (expected,) = find_records(other)
    data = f"\n{other}\n".encode().ljust(layout.shape.width, b"\0")
    taken = take(layout, data, np.array([data.index(b"iteration ")]))
    assert taken is not None
    found = {field.column: float(value[0]) for field, value in zip(layout.fields, taken.values, strict=True)}
    assert repr(found) == repr(expected.fields)
    assert int(taken.iterations[0]) == expected.iteration
    assert taken.stamps[0].decode() == expected.stamp


@pytest.mark.parametrize(
    "line",
    [
        f"{_HEAD} lm loss: 11.5949103307723999 |{_TAIL}",  # more digits than a double holds
        f"{_HEAD} lm loss: 1.037740E+01 |{_TAIL} node: gpu-7 |",
        f"{_HEAD} lm loss: 1.037740E+01 |",
    ],
)
def test_row_goes_the_slow_way(line: str) -> None:
    """What can't be read as columns of digits, to the last bit, is left to the other way."""
    (record,) = find_records(line)
    assert learn(line.encode(), record) is None
