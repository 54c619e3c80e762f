"""``lossbisect recommend``: exit code and output together, on a made-up Bridge."""

import json
from pathlib import Path

import pytest

from tests.assist.support import call

RECIPE = """
from megatron.bridge import AutoBridge

def llama3_8b_pretrain_2gpu_h100_bf16_config():
    cfg = ConfigContainer(model=None, train=TrainingConfig(global_batch_size=64, micro_batch_size=1),
                          dataset=GPTDatasetConfig(seq_length=4096, blend=None))
    cfg.model = AutoBridge.from_hf_pretrained("meta-llama/Meta-Llama-3-8B").to_megatron_provider()
    cfg.model.tensor_model_parallel_size = 2
    return cfg
"""


@pytest.fixture
def bridge(tmp_path: Path) -> Path:
    """A checkout with one recipe."""
    root = tmp_path / "src/megatron/bridge"
    for name, text in {
        "package_info.py": "MAJOR = 0\nMINOR = 6\nPATCH = 0\n",
        "recipes/__init__.py": "from megatron.bridge.recipes.llama import *\n",
        "recipes/llama/__init__.py": "from .llama3 import llama3_8b_pretrain_2gpu_h100_bf16_config\n",
        "recipes/llama/llama3.py": RECIPE,
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    return tmp_path


def test_an_answer(bridge: Path) -> None:
    """The answer names the recipe, the Bridge it was read from, every size with its reason, and the command."""
    done = call("recommend", "llama3_8b", "--gpus", "8", "--repo", str(bridge))
    assert done.returncode == 0
    assert done.stdout.startswith("llama3_8b_pretrain_2gpu_h100_bf16_config (library recipe, resized): fits on 8 h100")
    assert f"Bridge 0.6.0 (checkout {bridge})" in done.stdout
    assert "divides the 8 key-value heads" in done.stdout
    assert "--recipe llama3_8b_pretrain_2gpu_h100_bf16_config" in done.stdout
    assert "lossbisect bisect" in done.stdout


def test_an_answer_as_json(bridge: Path) -> None:
    """The object holds layout, overrides with their effect, and bytes of memory."""
    done = call("recommend", "llama3_8b", "--gpus", "8", "--repo", str(bridge), "--json")
    told = json.loads(done.stdout)
    assert told["schema_version"] == 1
    layout = told["layout"]
    assert layout["tensor"] * layout["pipeline"] * layout["context"] * told["data_parallel"] == 8
    assert {override["effect"] for override in told["overrides"]} <= {"execution only", "changes convergence"}
    parts = ("weights", "gradients", "optimizer", "activations")
    assert told["memory"]["total"] == pytest.approx(sum(told["memory"][part] for part in parts))


def test_what_does_not_fit_exits_with_1(bridge: Path) -> None:
    """A run that theory doesn't fit is answered, says so first, and exits with 1."""
    done = call("recommend", "llama3_8b", "--gpus", "1", "--memory", "10", "--repo", str(bridge))
    assert done.returncode == 1
    assert "won't fit" in done.stdout.splitlines()[0]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["llama3_9b"], "The nearest: llama3_8b"),
        (["llama3_8b", "--gpus", "7"], "use 4 or 8"),
        (["llama3_8b", "--tensor-parallel", "3"], "The nearest that works: TP 2"),
        (["llama3_8b", "--seq-length", "0"], "Sequence length 0"),
        (["llama3_8b", "--goal", "benchmark"], "no benchmark recipe"),
        (["llama3_8b", "--goal", "win"], "'win' is not one of"),
        ([], "Name a model"),
    ],
)
def test_bad_input_is_one_line(bridge: Path, arguments: list[str], words: str) -> None:
    """Wrong input exits with 2 and one line that says what would work."""
    done = call("recommend", *arguments, "--repo", str(bridge))
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.strip().splitlines()) == 1
    assert words in done.stderr


def test_the_catalogue(bridge: Path) -> None:
    """``--list`` counts and names what the checkout exports."""
    done = call("recommend", "--list", "--repo", str(bridge))
    assert done.returncode == 0
    assert "1 library recipes, 0 performance recipes" in done.stdout.splitlines()[0]
    told = json.loads(call("recommend", "--list", "--repo", str(bridge), "--json").stdout)
    assert [recipe["name"] for recipe in told["recipes"]] == ["llama3_8b_pretrain_2gpu_h100_bf16_config"]


def test_the_shortest_run() -> None:
    """``--change`` needs no Bridge: it names a recipe and the bisect to run, or says that none is about it."""
    done = call("recommend", "--change", "megatron/core/transformer/multi_token_prediction.py")
    assert done.returncode == 0
    assert "--recipe mtp" in done.stdout
    nothing = call("recommend", "--change", "zebra")
    assert nothing.returncode == 2
    assert "suite run known-breaks" in nothing.stderr
