"""Logs of Megatron-LM, Megatron Bridge and their forks."""

from collections.abc import Collection
from pathlib import Path

from lossbisect.parsers.assembler import Assembler
from lossbisect.parsers.needles import find_needles
from lossbisect.parsers.pipeline import HEAD_BLOCKS, scans
from lossbisect.parsers.runlog import RunLog
from lossbisect.parsers.source import BlockReader

__all__ = ["read_megatron"]

_BRIDGE_SIGNS = (
    "megatron.bridge",
    "megatron/bridge",
    "Step Time : ",
    "MODEL_TFLOP",
    "memory (GB) | mem-",
    "max attention logit:",
    "Starting training loop at iteration ",
    "Deleting CUDA graphs",
)
_MEGATRON_SIGNS = (
    "megatron.core",
    "megatron/core",
    "megatron/training",
    "Megatron-LM",
    "Megatron-DeepSpeed",
    "No module named 'megatron",
)


def read_megatron(reader: BlockReader, path: Path, columns: Collection[str] | None = None) -> RunLog | None:
    """The run that a log of Megatron-LM or Megatron Bridge tells; None if it surely isn't one.

    A log without a row is one if a process start, a dump of the configuration or a failure says so. If only some
    columns are wanted, others may be missing.
    """
    assembler = Assembler(path, columns)
    bridge_sign, has_sign = "", False
    for count, (block, result) in enumerate(scans(reader)):
        assembler.add_scan(result)
        if not bridge_sign and count < HEAD_BLOCKS:
            signs = _signs(block().data, _BRIDGE_SIGNS)
            bridge_sign = next((sign for sign in _BRIDGE_SIGNS if sign in signs), "")
        if not has_sign and not assembler.has_rows:
            has_sign = bool(_signs(block().data, (*_BRIDGE_SIGNS, *_MEGATRON_SIGNS)))
    if reader.was_cut:
        assembler.note(None, "cut-archive", "The compressed file ends in mid-stream: what follows is missing.")
    if not assembler.has_rows and not assembler.has_start and not (has_sign and assembler.has_failure):
        return None
    if bridge_sign:
        return assembler.finish("megatron-bridge", dialect_reason=f"it says '{bridge_sign.strip()}'")
    what = "rows" if assembler.has_rows else "start marks and failures"
    return assembler.finish("megatron-lm", dialect_reason=f"it has Megatron's {what} and no sign of Bridge")


def _signs(data: bytes, signs: tuple[str, ...]) -> set[str]:
    """The signs that a block holds."""
    longest = max(map(len, signs))
    texts = {data[offset : offset + longest].decode("latin-1") for offset in find_needles(data, signs).tolist()}
    return {sign for sign in signs if any(text.startswith(sign) for text in texts)}
