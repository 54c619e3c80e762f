"""The translate command: what stands where, exit codes, one clear line for what is wrong."""

import json
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from lossbisect.cli import main

needs_megatron = pytest.mark.skipif(find_spec("megatron") is None, reason="no Megatron is installed")


def _run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as caught:
        main(["translate", *arguments])
    assert isinstance(caught.value.code, int)
    captured = capsys.readouterr()
    return caught.value.code, captured.out, captured.err


SCRIPT = """#!/bin/bash
ARGS=(
    --num-layers 2 --hidden-size 64 --num-attention-heads 4  # small
    --seq-length 64 --max-position-embeddings 64
)
torchrun --nproc_per_node 4 pretrain_gpt.py "${ARGS[@]}" --micro-batch-size 2 --bf16 \\
    --tokenizer-type NullTokenizer --mock-data --train-iters 10 --lr 1e-3 --weight-decay 0.1 --log-interval 1
"""


@needs_megatron
def test_a_script_becomes_a_command(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The command stands alone on the standard output, the fates on the standard error; ranks and batch go along."""
    script = tmp_path / "train.sh"
    script.write_text(SCRIPT)
    code, out, err = _run(capsys, str(script), "--emit", "command")
    assert code == 0, err
    assert out.startswith("torchrun --nproc_per_node=4 scripts/training/run_recipe.py --recipe vanilla_gpt_pretrain")
    assert "train.global_batch_size=8" in out
    assert "scheduler.end_weight_decay=0.1" in out
    assert "Defaults that differ, carried over:" in err
    assert "adam_beta2 = 0.999" in err


@needs_megatron
def test_there_and_back(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Overrides that the command wrote are taken back from a file, and become a script that bash can read."""
    script, overrides = tmp_path / "train.sh", tmp_path / "overrides.txt"
    script.write_text(SCRIPT)
    overrides.write_text(_run(capsys, str(script))[1])
    code, out, err = _run(capsys, str(overrides), "--emit", "recipe")
    assert code == 0, err
    assert out.startswith("#!/usr/bin/env bash")
    assert "    --weight-decay 0.1\n" in out
    assert "    --num-layers 2\n" in out


@needs_megatron
def test_the_file_of_a_recipe_is_python(capsys: pytest.CaptureFixture[str]) -> None:
    """It compiles, names Bridge's recipe, and holds each override."""
    code, out, err = _run(capsys, "--emit", "recipe", "--", "--num-layers", "2", "--data-path", "/it's here")
    assert code == 0, err
    compile(out, "recipe.py", "exec")
    assert "vanilla_gpt_pretrain_config()" in out
    assert "'model.num_layers=2'" in out


@needs_megatron
def test_json_tells_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    """One object: settings, fates, and the text that would have been printed."""
    code, out, _ = _run(capsys, "--json", "--", "--num-layers", "2")
    told = json.loads(out)
    assert code == 0
    assert told["settings"]["model.num_layers"] == 2
    assert "model.num_layers=2" in told["text"].splitlines()
    assert {item["fate"] for item in told["items"]} >= {"translated", "execution only"}


@needs_megatron
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--", "--num-layer", "2"), "the nearest is --num-layers"),
        (("--", "--freeze-all-layers"), "--allow-lossy"),
        (("--", "--num-layers", "two"), "isn't a whole number"),
        (("model.num_layer=2",), "the nearest is model.num_layers"),
        (("hello=3",), "neither Megatron-LM's arguments"),
        (("no-such.sh",), "no such file"),
        ((), "Give a FILE"),
        (("--set", "A", "--", "--bf16"), "say NAME=VALUE"),
    ],
)
def test_what_is_wrong_is_one_line(
    arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 2, nothing on the standard output, and an error that says what to do."""
    code, out, err = _run(capsys, *arguments)
    assert (code, out) == (2, "")
    assert message in err.splitlines()[-1]
    assert err.splitlines()[-1].startswith("Error: ")


@needs_megatron
def test_lossy_leaves_it_out(capsys: pytest.CaptureFixture[str]) -> None:
    """With the user's word for it, what has no equivalent is left out, and still told."""
    code, out, err = _run(capsys, "--allow-lossy", "--", "--num-layers", "2", "--freeze-all-layers")
    assert code == 0
    assert "model.num_layers=2" in out
    assert "--freeze-all-layers" in err


def test_a_folder_without_megatron_is_told(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Nothing is guessed of a checkout that has neither side's sources."""
    code, out, err = _run(capsys, "--repo", str(tmp_path), "--", "--num-layers", "2")
    assert (code, out) == (2, "")
    assert "there is no Megatron-LM" in err


@needs_megatron
def test_neither_torch_nor_megatron_is_imported(capsys: pytest.CaptureFixture[str]) -> None:
    """Both sides are read, not run."""
    before = set(sys.modules)
    assert _run(capsys, "--", "--num-layers", "2")[0] == 0
    assert not {name for name in set(sys.modules) - before if name.partition(".")[0] in ("torch", "megatron")}
