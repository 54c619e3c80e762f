"""Iteration records in a line of text: where they start, which fields they have, whether they are whole.

A record is ``iteration i/N |`` and then ``key: value |`` pairs. It may stand anywhere in a line, several may share one,
and other ranks may write into it; so a record is searched for, not matched, and ends where its shape ends. A field
counts only if its closing bar was printed: ``lm loss: 1.03`` may be the start of ``lm loss: 1.037740E+01``.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

from lossbisect.parsers.prefixes import peel
from lossbisect.schema import column_name

__all__ = [
    "ELAPSED_COLUMN",
    "LOSS_COLUMN",
    "NAN_COLUMN",
    "SKIPPED_COLUMN",
    "THROUGHPUT_COLUMN",
    "Key",
    "Record",
    "data_column",
    "find_records",
    "is_loss_column",
    "joins",
    "key_of",
    "wants_more",
]

LOSS_COLUMN = "lm_loss"
ELAPSED_COLUMN = "elapsed_time_per_iteration_ms"
THROUGHPUT_COLUMN = "throughput_per_gpu_tflops"
SKIPPED_COLUMN = "number_of_skipped_iterations"
NAN_COLUMN = "number_of_nan_iterations"

_START = re.compile(
    r"(?<![A-Za-z_-])iteration[ \t]+(?P<iteration>\d{1,12})[ \t]*/[ \t]*(?P<total>\d{1,12})[ \t]*\|", re.ASCII
)
# NeMo 2.0 prints `Training epoch 0, iteration 3/99 | lr: …`, 0-based: another dialect.
_OTHER_DIALECT = re.compile(r"(?:epoch \d+, |Validation: )$", re.ASCII)
_BRACKET = re.compile(r"\[([^\[\]|]{1,32})\]\s*$")
_STAMP = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,9})?", re.ASCII)
_KEY = re.compile(r"[A-Za-z][A-Za-z0-9 _/().%#@-]{0,79}")
_NUMBER = re.compile(r"[-+]?(?:\d+(?:\.\d*)?(?:[eE][-+]?\d+)?|nan|inf)", re.ASCII | re.IGNORECASE)
_WITH_UNIT = re.compile(
    r"([-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?)\s?(%|ms|s|[A-Z]?FLOPS?|[A-Z]?FLOP/s(?:/GPU)?)", re.ASCII | re.IGNORECASE
)
_LOSS = re.compile(r"loss(?:_full|_budget|_[0-9.]+)?$")
_NO_COLON = re.compile(r"\s*(learning rate|lm loss|nsp loss|loss scale)\s+(\S+)\s*")
_LEADING_FIELD = re.compile(r"(?:^|\s)(samples/sec): ([0-9.]+) \|\s*(?:\[[^\[\]|]{1,32}\]\s*)?$")  # gpt-neox

# Keys of a training row since 2019. At least one makes a record believable; compared without blanks, they also mend
# keys that a terminal broke (`number of sk` / `ipped iterations`) or a person retyped (`g      rad norm`).
_KNOWN_KEYS = (
    "consumed samples",
    "consumed tokens",
    "consumed bins",
    "skipped samples",
    "elapsed time per iteration",
    "elapsed time per iteration (ms)",
    "elapsed time per iteration (s)",
    "throughput per GPU (TFLOP/s/GPU)",
    "learning rate",
    "decoupled learning rate",
    "global batch size",
    "lm loss",
    "sop loss",
    "load_balancing_loss",
    "seq_load_balancing_loss",
    "global_load_balancing_loss",
    "z_loss",
    "mtp_1 loss",
    "mtp_2 loss",
    "indexer loss",
    "total loss",
    "loss scale",
    "grad norm",
    "num zeros",
    "params norm",
    "max attention logit",
    "actual seqlen",
    "number of skipped iterations",
    "number of nan iterations",
    "samples per second",
    "tokens per gpu per second (tgs)",
)
_BY_SQUEEZED: Mapping[str, str] = {key.replace(" ", "").lower(): key for key in _KNOWN_KEYS}
_FIRST_KEYS = ("consumedsamples:", "elapsedtimeperiteration(ms):")
_NAN_COUNTER = "numberofnaniterations"
_MOST_KEYS = 4096
_OWN_COLUMNS = frozenset({"iteration", "attempt", "window", "is_complete", "line_no", "total", "stamp"})


class Record(NamedTuple):
    """One training row as printed.

    Attributes:
        iteration: Number of the iteration.
        total: Number of iterations that the run was to have.
        stamp: The row's own clock, ``YYYY-mm-dd HH:MM:SS`` with up to nine decimals, or ``""``.
        label: The process that printed it, or ``""``.
        fields: Column to value, in printing order; times are ms. NaN and inf are as printed.
        is_complete: False if the row was cut: a field is missing or broken.
        offset: Where in the line it starts.
    """

    iteration: int
    total: int
    stamp: str
    label: str
    fields: dict[str, float]
    is_complete: bool
    offset: int


class Key(NamedTuple):
    """What a printed key means.

    Attributes:
        column: Its column.
        scale: Factor that turns its value into the column's unit.
        is_known: Whether Megatron's own rows have it.
        is_nan_counter: Whether it is the counter that ends a row.
    """

    column: str
    scale: float
    is_known: bool
    is_nan_counter: bool


def data_column(key: str) -> str:
    """The column of a printed key, which never has the name of a column of our own; ``""`` if nothing is left of it."""
    name = column_name(key)
    return f"logged_{name}" if name in _OWN_COLUMNS else name


def is_loss_column(column: str) -> bool:
    """Whether a column is a loss: a mean over the iterations that advanced."""
    return _LOSS.search(column) is not None


def find_records(text: str, *, is_ended: bool = True) -> list[Record]:
    """Every record of a line, in order.

    Args:
        text: The line, prefixes and all.
        is_ended: Whether a line end follows, so that the text isn't the start of a longer one.
    """
    starts = [match for match in _START.finditer(text) if not _OTHER_DIALECT.search(text, 0, match.start())]
    found: list[Record] = []
    label: str | None = None
    for index, start in enumerate(starts):
        is_last = index + 1 == len(starts)
        rest = text[start.end() :] if is_last else text[start.end() : starts[index + 1].start()]
        fields, is_complete, is_known = _fields(rest, is_line_end=is_last and is_ended)
        if not is_known and not _is_cut_before_first_field(rest):
            continue
        if lead := _LEADING_FIELD.search(text, 0, start.start()):
            fields = {data_column(lead[1]): float(lead[2]), **fields}
        bracket = _BRACKET.search(text, 0, start.start())
        stamp = _STAMP.fullmatch(bracket[1]) if bracket else None
        if label is None:
            label = peel(text[: bracket.start() if bracket else start.start()])[1]
        record = Record(
            iteration=int(start["iteration"]),
            total=int(start["total"]),
            stamp=stamp[0] if stamp else "",
            label=label,
            fields=fields,
            is_complete=is_complete,
            offset=start.start(),
        )
        found.append(record)
    return found


def joins(text: str, following: str) -> bool:
    """Whether a line goes on with the record that another line broke off, as terminals and people wrap them.

    True only if the two together give a field of a training row at the seam: a line of another rank never does.
    """
    if _START.search(following):
        return False
    seam = text.rpartition("|")[2] + following.partition("|")[0]
    key, _, value = seam.rpartition(":")
    return key.replace(" ", "").lower() in _BY_SQUEEZED and _number(value) is not None


def wants_more(text: str) -> bool:
    """Whether a line's last record lacks its closing counters, so that the next line may go on with it."""
    start = max(text.rfind("iteration"), 0) if "nan iterations" not in text else text.rfind("nan iterations")
    tail = text[start:].replace(" ", "")
    return not (tail.startswith("naniterations") and tail.endswith("|"))


def _fields(rest: str, *, is_line_end: bool) -> tuple[dict[str, float], bool, bool]:
    """Fields of a record from after its first bar on, whether it is whole, and whether it has a known key."""
    *closed, tail = rest.split("|")
    fields: dict[str, float] = {}
    is_whole, is_known, saw_counters = True, False, False
    for piece in closed:
        raw_key, colon, value = piece.rpartition(": " if ": " in piece else ":")
        key = key_of(raw_key) if colon else None
        if key is None:
            old = _NO_COLON.fullmatch(piece)
            key, value = (key_of(old[1]), old[2]) if old else (None, "")
            if key is None:
                is_whole, tail = saw_counters, ""
                break  # another writer's text starts here
        number = _number(value)
        if number is None:
            if key.is_known:
                is_whole, tail = saw_counters, ""
                break  # another writer broke in
            continue  # a word or a clock: a fork's own field
        amount, unit = number
        fields[_column(key, unit)] = amount * key.scale
        is_known = is_known or key.is_known
        saw_counters = saw_counters or key.is_nan_counter
    if not saw_counters:
        raw_key, _, value = tail.rpartition(":")
        is_counter = raw_key.replace(" ", "").lower() == _NAN_COUNTER
        saw_counters = is_counter and is_line_end and value.strip().isdecimal()
        is_whole = is_whole and (saw_counters or not tail.strip()) and bool(fields)
    return fields, is_whole, is_known


def _is_cut_before_first_field(rest: str) -> bool:
    """Whether nothing but the start of a row's first field follows, as in ``iteration 5429/250000 | consumed sam``."""
    squeezed = rest.replace(" ", "").strip().rstrip("0123456789.")
    return bool(squeezed) and any(key.startswith(squeezed) for key in _FIRST_KEYS)


_keys: dict[str, Key | None] = {}


def key_of(raw: str) -> Key | None:
    """What a printed key means, or None if it can't be a key."""
    try:
        return _keys[raw]
    except KeyError:
        pass
    key: Key | None = None
    text = " ".join(raw.split())
    if _KEY.fullmatch(text):
        squeezed = text.replace(" ", "").lower()
        known = _BY_SQUEEZED.get(squeezed)
        column, scale = data_column(known or text), 1.0
        if column == "elapsed_time_per_iteration_s":
            column, scale = ELAPSED_COLUMN, 1000.0
        is_counter = squeezed == _NAN_COUNTER
        key = Key(column=column, scale=scale, is_known=known is not None, is_nan_counter=is_counter)
    if len(_keys) < _MOST_KEYS:
        _keys[raw] = key
    return key


def _number(text: str) -> tuple[float, str] | None:
    """A printed value and its unit, or None."""
    text = text.strip()
    if _NUMBER.fullmatch(text):
        return float(text), ""
    if match := _WITH_UNIT.fullmatch(text):
        return float(match[1]), match[2].lower()
    return None


def _column(key: Key, unit: str) -> str:
    if unit == "%":
        return f"{key.column}_pct"
    if unit == "ms" and key.column == "elapsed_time_per_iteration":
        return ELAPSED_COLUMN
    return key.column
