"""Keep every value that the trainer sends to TensorBoard, at full precision, without TensorBoard.

Both trainers hand each iteration's own losses, grad norm and learning rate to ``SummaryWriter.add_scalar``: no
interval mean, no seven digits, NaN kept. The writer put in its place appends one JSON object a line to
``scalars.ndjson``, so that what a killed run had reached can still be read.
"""

import json
import math
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

__all__ = ["install"]

_TWIN = " vs samples"
"""Suffix of tags that repeat a value on another axis."""


class _SummaryWriter:
    """The part of ``torch.utils.tensorboard.SummaryWriter`` that the trainers use; it records scalars."""

    file: Path
    before_value: Callable[[], None]

    def __init__(self, log_dir: str | None = None, *args: Any, **kwargs: Any) -> None:  # noqa: ARG002
        self.log_dir = str(log_dir or kwargs.get("log_dir") or "")
        self._lines = self.file.open("a", encoding="utf-8", buffering=1)

    def add_scalar(self, tag: str, scalar_value: Any, global_step: Any = None, *args: Any, **kwargs: Any) -> None:  # noqa: ARG002
        """Append one value; a tensor gives its exact double."""
        if tag.endswith(_TWIN) or global_step is None or scalar_value is None:
            return
        value = float(scalar_value)
        record: dict[str, object] = {"tag": tag, "iteration": int(global_step), "value": value}
        if not math.isfinite(value):
            record |= {"value": None, "nonfinite": "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"}
        self.before_value()
        self._lines.write(json.dumps(record, allow_nan=False) + "\n")

    def get_logdir(self) -> str:
        """The directory that the trainer asked for."""
        return self.log_dir

    def __getattr__(self, name: str) -> Any:
        if name.startswith(("add_", "flush", "close")):
            return lambda *args, **kwargs: None  # noqa: ARG005
        raise AttributeError(name)


def install(file: Path, before_value: Callable[[], None] = lambda: None) -> None:
    """Put the recording writer where the trainers look for TensorBoard's.

    Args:
        file: The scalars file; it's created empty now, so that a run without a value is told from one never started.
        before_value: Called before each value is written.
    """
    if os.environ.get("RANK", "0") == "0":
        file.touch()
    _SummaryWriter.file = file
    _SummaryWriter.before_value = staticmethod(before_value)
    package = ModuleType("torch.utils.tensorboard")
    package.__path__ = []
    for module in (package, ModuleType("torch.utils.tensorboard.writer")):
        module.SummaryWriter = _SummaryWriter  # type: ignore[attr-defined]
        sys.modules[module.__name__] = module
