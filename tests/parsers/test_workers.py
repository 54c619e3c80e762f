"""Large files are scanned by processes, and read as small ones are."""

from pathlib import Path

import pytest

from lossbisect.parsers import RunLog, megatron, pipeline, workers
from lossbisect.parsers.files import open_log
from lossbisect.parsers.megatron import read_megatron
from lossbisect.parsers.source import BlockReader

FIXTURES = Path(__file__).parents[2] / "fixtures"
BLOCK_BYTES = 3001  # so small that many things stand across the border of two blocks


@pytest.mark.parametrize("can_start", [True, False])
def test_processes_read_what_threads_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, can_start: bool) -> None:
    """All that a log says is the same to the last digit; where no process can start, that costs time only."""
    path = tmp_path / "train.log"
    path.write_bytes(b"\n".join(part.read_bytes() for part in sorted(FIXTURES.glob("*/*.log"))))
    expected = _read(path)
    assert expected.iterations.height > 50
    for module, name, value in (
        (workers, "_SMALLEST_BYTES", 0),
        (workers, "_NEAR_BYTES", 100),
        (workers, "BLOCK_BYTES", BLOCK_BYTES),
        (workers, "usable_cores", lambda: 2),
        (pipeline, "HEAD_BLOCKS", 2),
        (megatron, "HEAD_BLOCKS", 4),
    ):
        monkeypatch.setattr(module, name, value)
    if not can_start:
        monkeypatch.setattr(workers, "_START", "raise SystemExit(1)  # {path} {file}")
    found = _read(path)
    assert found.iterations.equals(expected.iterations)
    assert found.validation.equals(expected.validation)
    for name in ("config", "attempts", "notes", "failure", "checkpoints", "memory", "timings", "dialect"):
        assert getattr(found, name) == getattr(expected, name), name


def _read(path: Path) -> RunLog:
    with open_log([path]) as stream:
        log = read_megatron(BlockReader(stream, path, BLOCK_BYTES), path)
    assert log is not None
    return log
