"""Logs of NeMo: the progress lines of NeMo 2.0, and the progress bar of NeMo 1.

Both print few digits, so that small differences can't be seen; `RunLog.loss_quantum_rel` says so.
"""

import re
from collections.abc import Iterable
from pathlib import Path

from lossbisect.parsers.assembler import Assembler
from lossbisect.parsers.events import Evaluation, single_row
from lossbisect.parsers.records import ELAPSED_COLUMN, LOSS_COLUMN, data_column
from lossbisect.parsers.runlog import LossKind, RunLog
from lossbisect.parsers.source import Block, BlockReader, Line

__all__ = ["read_nemo"]

_NEEDLE = re.compile(rb"Training epoch \d+, iteration \d+/\d+ \||Epoch \d+: +\d+%\|")
_PROGRESS = re.compile(r"Training epoch \d{1,9}, iteration (?P<done>\d{1,12})/(?P<total>\d{1,12}) \|(?P<fields>.*)")
_BAR = re.compile(
    r"Epoch \d{1,9}: +\d{1,3}%\|[^|]*\| (?P<done>\d{1,12})/(?P<total>\d{1,12}) \[[^\],]*, [^,\]]*, (?P<fields>[^\]]*)\]"
)
_NUMBER = re.compile(r"[-+]?(?:\d+(?:\.\d*)?(?:e[-+]?\d+)?|nan|inf)", re.ASCII | re.IGNORECASE)
_COLUMNS = {"lr": "learning_rate", "reduced_train_loss": LOSS_COLUMN, "train_step_timing in s": ELAPSED_COLUMN}
_VALIDATION_KEY = "val_loss"
_QUANTUM_REL = 5e-4  # four digits


def read_nemo(reader: BlockReader, path: Path) -> RunLog | None:
    """The run that a NeMo log tells; None if it holds no row of NeMo's.

    NeMo 2.0 counts iterations from 0; here they count from 1, as everywhere.
    """
    assembler = Assembler(path)
    last_value: float | None = None
    last_row = (-1, -1)
    is_bar = False
    while (block := reader.read()) is not None:
        for line, match, is_bar in _lines(block):
            iteration, total = int(match["done"]) + (not is_bar), int(match["total"])
            fields = _fields(match["fields"], "," if is_bar else "|", is_ended=line.is_ended or is_bar)
            if LOSS_COLUMN not in fields or (iteration, total) == last_row:
                continue  # a bar is drawn again and again
            value = fields.pop(_VALIDATION_KEY, None)
            # The value of the last evaluation is printed in every row after it, so only a change dates an evaluation.
            is_next = last_row[1] == total and last_row[0] < iteration
            if value is not None and is_next and value != last_value:
                values: dict[str, float | None] = {LOSS_COLUMN: value}
                assembler.add(Evaluation(line_no=line.no, iteration=last_row[0], split="validation", values=values))
            last_value = value
            assembler.add(
                single_row(
                    fields=fields,
                    iteration=iteration,
                    total=total,
                    stamp="",
                    label="",
                    line_no=line.no,
                    is_complete=True,
                )
            )
            last_row = (iteration, total)
    if not assembler.has_rows:
        return None
    if is_bar:
        text = "A progress bar shows few digits and leaves iterations out: a log of the trainer itself tells more."
        assembler.note(None, "progress-bar", text)
    kind = LossKind.PER_ITERATION if is_bar else LossKind.INTERVAL_MEAN
    printer = "progress bar" if is_bar else "'Training epoch 0, iteration 0/9 |' lines"
    return assembler.finish(
        "nemo", loss_kind=kind, loss_quantum_rel=_QUANTUM_REL, dialect_reason=f"it has NeMo's {printer}"
    )


def _lines(block: Block) -> Iterable[tuple[Line, re.Match[str], bool]]:
    position = 0
    while found := _NEEDLE.search(block.data, position):
        line = block.line_at(found.start())
        if match := _PROGRESS.search(line.text):
            yield line, match, False
        elif match := _BAR.search(line.text):
            yield line, match, True
        position = max(line.end, found.end())


def _fields(text: str, separator: str, *, is_ended: bool) -> dict[str, float]:
    pieces = text.split(separator)
    fields: dict[str, float] = {}
    for piece in pieces if is_ended else pieces[:-1]:
        key, _, value = piece.partition(":" if separator == "|" else "=")
        key, value = key.strip(), value.strip()
        name = _COLUMNS.get(key) or data_column(key)
        if name and _NUMBER.fullmatch(value):
            fields[name] = float(value) * (1000.0 if name == ELAPSED_COLUMN else 1.0)
    return fields
