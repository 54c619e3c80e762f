"""Golden values, as the functional tests of Megatron-LM and the performance tests of Megatron Bridge keep them.

Megatron-LM: one object a metric. Up to core_v0.10 its values are a list, taken every ``step_interval`` from
``start_step`` on, counted from 0; later a mapping from the iteration, counted from 1. They are rounded to five decimals
unless ``value_precision`` says ``full``. Bridge: one object an iteration, counted from 0.
"""

from pathlib import Path
from typing import Any

from lossbisect.errors import ParseError
from lossbisect.parsers.pointwise import Points, number, whole_number
from lossbisect.parsers.runlog import RunLog

__all__ = ["is_bridge_golden", "is_golden", "read_bridge_golden", "read_golden"]

_DECIMALS = 5
_CURRENT = ("current", "baseline")
_UTILIZATION = "GPU utilization"


def is_golden(data: object) -> bool:
    """Whether JSON is a golden file of Megatron-LM."""
    return isinstance(data, dict) and any(
        isinstance(item, dict) and "values" in item and ("step_interval" in item or "start_step" in item)
        for item in data.values()
    )


def is_bridge_golden(data: object) -> bool:
    """Whether JSON is a golden file of Megatron Bridge."""
    data = _unwrapped(data)
    return isinstance(data, dict) and any(
        key.isdecimal() and isinstance(item, dict) and ("lm loss" in item or _UTILIZATION in item)
        for key, item in data.items()
    )


def read_golden(data: dict[str, Any], path: Path) -> RunLog:
    """The curves of a golden file of Megatron-LM; what fills a hole (``"nan"``) is missing.

    Raises:
        ParseError: A value is no number.
    """
    points = Points(path, "megatron-lm-golden", "it has 'values' and 'start_step' for each metric")
    is_full = data.get("value_precision") == "full"
    smallest = float("inf")
    for metric, item in data.items():
        if not isinstance(item, dict) or "values" not in item:
            continue
        is_full = is_full or item.get("value_precision") == "full"
        try:
            for iteration, value in _values(item):
                if value == "nan":
                    continue
                found = number(value)
                points.add(metric, iteration, found)
                if found and metric == "lm loss":
                    smallest = min(smallest, abs(found))
        except ValueError as error:
            raise ParseError(f"{path}: metric '{metric}': {error}.") from None
    if any(isinstance(item, dict) and isinstance(item.get("values"), list) for item in data.values()):
        points.note(None, "golden-list", "Values are a list from iteration 0 on; they were counted from 1.")
    return points.log(loss_quantum_rel=0.0 if is_full else 0.5 * 10**-_DECIMALS / smallest)


def _values(item: dict[str, Any]) -> list[tuple[int, object]]:
    values = item["values"]
    if isinstance(values, dict):
        return [(whole_number(key), value) for key, value in values.items()]
    if not isinstance(values, list):
        raise ValueError("'values' is neither a list nor an object")
    start, interval = whole_number(item.get("start_step", 0)), whole_number(item.get("step_interval", 1))
    return [(start + index * interval + 1, value) for index, value in enumerate(values)]


def read_bridge_golden(data: dict[str, Any], path: Path) -> RunLog:
    """The curves of a golden file of Megatron Bridge, counted from 1; of two sets the current one.

    Raises:
        ParseError: A value is no number.
    """
    points = Points(path, "megatron-bridge-golden", "it has an object an iteration, from 0 on")
    if all(name in data for name in _CURRENT):
        points.note(None, "golden-current", "The file holds a baseline, too; only the current values were read.")
    try:
        for key, item in _unwrapped(data).items():
            if not key.isdecimal() or not isinstance(item, dict):
                continue
            for name, value in item.items():
                tag = "throughput per GPU (TFLOP/s/GPU)" if name == _UTILIZATION else name
                points.add(tag, whole_number(key) + 1, number(value))
    except ValueError as error:
        raise ParseError(f"{path}: {error}.") from None
    return points.log(loss_quantum_rel=5e-7)  # taken from a console log


def _unwrapped(data: Any) -> Any:
    if isinstance(data, dict):
        for name in _CURRENT:
            if isinstance(data.get(name), dict):
                return data[name]
    return data
