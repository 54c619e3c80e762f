"""Logs of Megatron-LM, Megatron Bridge and their forks."""

from pathlib import Path

from lossbisect.parsers.assembler import Assembler
from lossbisect.parsers.runlog import RunLog
from lossbisect.parsers.scan import scan
from lossbisect.parsers.source import BlockReader

__all__ = ["read_megatron"]

_BRIDGE_SIGNS = (
    b"megatron.bridge",
    b"megatron/bridge",
    b"Step Time : ",
    b"MODEL_TFLOP",
    b"memory (GB) | mem-",
    b"max attention logit:",
    b"Starting training loop at iteration ",
    b"Deleting CUDA graphs",
)
_MEGATRON_SIGNS = (
    b"megatron.core",
    b"megatron/core",
    b"megatron/training",
    b"Megatron-LM",
    b"Megatron-DeepSpeed",
    b"No module named 'megatron",
)
_SIGNS_BLOCKS = 4


def read_megatron(reader: BlockReader, path: Path) -> RunLog | None:
    """The run that a log of Megatron-LM or Megatron Bridge tells; None if it surely isn't one.

    A log without a row is one if a process start, a dump of the configuration or a failure says so.
    """
    assembler = Assembler(path)
    is_bridge = has_sign = False
    count = 0
    while (block := reader.read()) is not None:
        result = scan(block)
        if result.keep_from is not None:
            reader.keep(result.keep_from)
        for event in result.events:
            assembler.add(event)
        if count < _SIGNS_BLOCKS:
            is_bridge = is_bridge or any(sign in block.data for sign in _BRIDGE_SIGNS)
        if not assembler.has_rows:
            has_sign = has_sign or is_bridge or any(sign in block.data for sign in _MEGATRON_SIGNS)
        count += 1
    if reader.was_cut:
        assembler.note(None, "cut-archive", "The compressed file ends in mid-stream: what follows is missing.")
    if not assembler.has_rows and not assembler.has_start and not (has_sign and assembler.has_failure):
        return None
    return assembler.finish("megatron-bridge" if is_bridge else "megatron-lm")
