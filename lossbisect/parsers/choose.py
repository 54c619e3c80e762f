"""Which reader a file needs, by what is in it, never by its name (but event files, which are binary).

Each reader but that of console logs is imported when a file looks like its own: a start costs what it needs.
"""

import re
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from lossbisect.errors import ParseError, UnknownFormatError
from lossbisect.parsers.files import EVENT_FILE_MARK, UNPACKING_ERRORS, open_log
from lossbisect.parsers.megatron import read_megatron
from lossbisect.parsers.runlog import RunLog
from lossbisect.parsers.source import BlockReader

__all__ = ["FORMATS", "read_parts"]

FORMATS = {
    "megatron-lm": "console log of Megatron-LM (2019 to today) and its forks: Megatron-DeepSpeed, gpt-neox, MindSpeed",
    "megatron-bridge": "console log of Megatron Bridge 0.1 and later",
    "nemo": "console log of NeMo 2.0, or the progress bar of NeMo 1",
    "tensorboard": "event file, or a folder of them (needs lossbisect[tensorboard])",
    "golden": "golden values (JSON) of Megatron-LM and of Megatron Bridge",
    "torchtitan": "lines of 'step loss'",
    "wandb": "history exported from W&B (CSV, JSON, NDJSON)",
    "mlflow": "metrics exported from MLflow (CSV, JSON), or a run's folder in its file store",
    "lossbisect": "what 'parse -o' or a run wrote (Parquet, CSV, JSON, NDJSON)",
}
"""What can be read, by dialect."""

_JSON_START = re.compile(r"\ufeff?\s*(?:\{\s*[\"}]|\[\s*\{)")
_TORCHTITAN_START = re.compile(r"\s*(?:\d{1,12}\s+[-+\dni]|step\s+loss\s)")
_LARGEST_DOCUMENT = 1 << 30


def read_parts(paths: Sequence[Path], shown: Path, columns: Collection[str] | None = None) -> RunLog:
    """The run that a log tells.

    Args:
        paths: Its parts, in order.
        shown: Its name in messages.
        columns: The columns that are wanted, if not all; others need not come back.

    Raises:
        ParseError: It can't be read, or is damaged.
        UnknownFormatError: Nothing in it looks like a format in `FORMATS`.
    """
    first = paths[0]
    if len(paths) == 1 and (first.is_dir() or EVENT_FILE_MARK in first.name):
        return _read_binary(first, shown)
    with open_log(paths) as stream:
        reader = BlockReader(stream, shown)
        head = reader.head()
        if head.startswith("PAR1") and len(paths) == 1:
            from lossbisect.parsers.histories import read_parquet

            return read_parquet(first)
        if _looks_like_scalars(head):
            from lossbisect.parsers.scalars import read_scalars

            return read_scalars(reader, shown)
    if (log := _read_document(paths, head, shown)) is not None:
        return log
    with open_log(paths) as stream:
        log = read_megatron(BlockReader(stream, shown), shown, columns)
    if log is None or log.iterations.is_empty():
        from lossbisect.parsers.nemo import read_nemo

        with open_log(paths) as stream:
            log = read_nemo(BlockReader(stream, shown), shown) or log
    if log is not None:
        return log
    raise UnknownFormatError(
        f"{shown}: no iteration record found. Not a log of Megatron-LM or Megatron Bridge? "
        "See 'lossbisect parse --formats'."
    )


def _looks_like_scalars(head: str) -> bool:
    """Whether a file that starts so holds our own full-precision scalars."""
    line = head.lstrip().partition("\n")[0]
    return line.startswith("{") and '"tag"' in line and '"iteration"' in line


def _read_binary(path: Path, shown: Path) -> RunLog:
    from lossbisect.parsers.histories import read_mlflow_store
    from lossbisect.parsers.tensorboard import event_files, read_event_files

    files = event_files(path) if path.is_dir() else [path]
    if files:
        return read_event_files(files, shown)
    if (path / "metrics").is_dir():
        return read_mlflow_store(path)
    raise ParseError(
        f"{shown}: is a directory, not a log. Name the file that holds the training rows, or a folder of event files."
    )


def _read_document(paths: Sequence[Path], head: str, shown: Path) -> RunLog | None:
    """The run of a file that has to be read as a whole; None if it isn't one."""
    first_line, is_more, _ = head.lstrip("\ufeff").partition("\n")
    if _JSON_START.match(head):
        from lossbisect.parsers.histories import is_history

        line = _json(first_line)
        if isinstance(line, dict) and is_more and not is_history(line):
            return None  # another program's JSON lines
        return _read_json(_text(paths, shown), shown)
    if _TORCHTITAN_START.match(head):
        from lossbisect.parsers.torchtitan import is_torchtitan, read_torchtitan

        if is_torchtitan(head, is_whole=len(head) < 1024):
            text = _text(paths, shown)
            return read_torchtitan(text, shown) if is_torchtitan(text, is_whole=True) else None
    if "," in first_line:
        from lossbisect.parsers.histories import is_history, read_csv

        if is_history(cell.strip(' "\r') for cell in first_line.split(",")):
            return read_csv(_text(paths, shown), shown)
    return None


def _read_json(text: str, shown: Path) -> RunLog | None:
    from lossbisect.parsers.golden import is_bridge_golden, is_golden, read_bridge_golden, read_golden
    from lossbisect.parsers.histories import is_history, read_history

    data = _json(text)
    if is_golden(data):
        return read_golden(data, shown)
    if is_bridge_golden(data):
        return read_bridge_golden(data, shown)
    if data is None:
        data = [_json(line) for line in text.splitlines() if line.strip()]
        if data and data[-1] is None:
            del data[-1]  # its writer was killed in mid-line
    if isinstance(data, dict):
        data = next((item for item in data.values() if isinstance(item, list)), None)  # MLflow: {"metrics": […]}
    if not isinstance(data, list) or not data or not all(isinstance(row, dict) for row in data):
        return None
    return read_history(data, shown) if is_history(data[0]) else None


def _json(text: str) -> Any:
    """A JSON document; None if it isn't one."""
    import json

    try:
        return json.loads(text.lstrip("\ufeff"))
    except (ValueError, RecursionError):
        return None


def _text(paths: Sequence[Path], shown: Path) -> str:
    parts: list[bytes] = []
    n_bytes = 0
    with open_log(paths) as stream:
        try:
            while part := stream.read1(1 << 20):
                parts.append(part)
                n_bytes += len(part)
                if n_bytes > _LARGEST_DOCUMENT:
                    raise ParseError(f"{shown}: is larger than 1 GiB, too large for a file that is read as a whole.")
        except EOFError:
            pass  # an archive that was cut: what there is may still be readable
        except UNPACKING_ERRORS as error:
            raise ParseError(f"{shown}: can't be read: {error}. Is the file damaged?") from None
    return b"".join(parts).decode("utf-8", "replace")
