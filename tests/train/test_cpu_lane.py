"""The CPU lane: what a CUDA-only script finds in it. Real torch, in a process of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
LAUNCH = HERE.parents[1] / "lossbisect" / "train" / "inside" / "launch.py"

pytestmark = pytest.mark.real


def _in_lane(out: Path, part: str, *before: str, ranks: int = 1) -> dict[str, Any]:
    preload = str(out / "cache" / "preload.json")
    ours = ["--lane", "cpu", "--cache", str(out / "cache"), "--preload", preload, "--out", str(out)]
    command = [*before, str(LAUNCH), *ours]
    one_rank = {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0"} if ranks == 1 else {}
    done = subprocess.run(
        [sys.executable, *command, str(HERE / "lane_script.py"), part],
        capture_output=True, text=True, check=False, cwd=out, env={**os.environ, **one_rank},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [line.partition("FACTS ")[2] for line in done.stdout.splitlines() if "FACTS " in line]
    return json.loads(lines[0]) if lines else {}


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the script saw on one rank."""
    return _in_lane(tmp_path_factory.mktemp("lane"), "seen")


def test_one_device_is_there(facts: dict[str, Any]) -> None:
    """A script that asks for CUDA finds one device, and tensors placed on it say so while host tensors don't."""
    assert (facts["is_available"], facts["devices"]) == (True, 1)
    assert facts["is_cuda"] == [True, True, True, False]
    assert facts["type"] == "torch.cuda.FloatTensor"


def test_device_and_host_draw_apart(facts: dict[str, Any]) -> None:
    """Random numbers drawn on the host don't shift those of the emulated device, nor the other way round."""
    assert facts["dropout_ignores_host_draws"]
    assert facts["host_ignores_device_draws"]
    assert facts["device_state_restores"]


def test_what_has_no_emulation_is_named(facts: dict[str, Any]) -> None:
    """A CUDA graph, a memory snapshot, FP8 and another accelerator raise the lane's error, naming each."""
    graph, snapshot, fp8, xpu = facts["unsupported"]
    assert all(text.startswith("UnsupportedOnCpuLaneError") for text in facts["unsupported"])
    assert "torch.cuda.CUDAGraph" in graph
    assert "memory_snapshot" in snapshot
    assert "float8" in fp8
    assert "xpu" in xpu


def test_kernels_that_only_cuda_has(facts: dict[str, Any]) -> None:
    """A histogram of integers and an optimizer's step, which ask for CUDA, work."""
    assert facts["histc"] == [1, 2]
    assert facts["steps"]


def test_the_device_is_there_in_the_backward_pass(facts: dict[str, Any]) -> None:
    """A tensor that an autograd function places on the device while gradients are computed stays on the CPU."""
    assert facts["made_in_backward"] == [2.0, 2.0]


def test_adam_counts_by_group_without_a_changed_digit(facts: dict[str, Any]) -> None:
    """Counted by parameter group as a GPU's Adam does, and through a reload, the steps are torch's to the last bit."""
    (by_parameter, _, has_own), (by_group, count, has_none) = facts["stepped"]
    assert by_group == by_parameter
    assert (count, has_own, has_none) == (5, True, False)


def test_two_ranks_reduce_over_gloo(tmp_path: Path) -> None:
    """Two ranks that ask for NCCL get sums, averages, gathers and scatters that are right."""
    facts = _in_lane(
        tmp_path, "reduced", "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2", ranks=2
    )  # fmt: skip
    assert facts == {"sum": 3.0, "mean": 1.5, "gathered": [0.0, 1.0], "scattered": 2.0}


def test_a_spawned_process_is_on_the_lane_too(tmp_path: Path) -> None:
    """It has the device, one thread, and the hidden libraries hidden before it imports the script again."""
    assert _in_lane(tmp_path, "spawned") == {"spawned": [1, True, 1, True]}


def test_recorder_keeps_full_precision(tmp_path: Path) -> None:
    """What goes to TensorBoard is recorded with every digit, NaN kept, and tags on another axis left out."""
    _in_lane(tmp_path, "recorded")
    lines = [json.loads(line) for line in (tmp_path / "scalars.ndjson").read_text().splitlines()]
    assert lines == [
        {"tag": "lm loss", "iteration": 1, "value": 0.3333333432674408},
        {"tag": "lm loss", "iteration": 2, "value": None, "nonfinite": "nan"},
    ]
