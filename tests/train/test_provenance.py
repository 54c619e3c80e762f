"""What a run proves about itself."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from lossbisect.train import Outcome, run_recipe
from lossbisect.train.inside import fingerprint
from lossbisect.train.inside.provenance import PREFIX
from lossbisect.train.provenance import mismatch, read_provenance
from lossbisect.train.types import Provenance, Sources

from .conftest import TRAIN, MakeTree, git, spec_of

PYTHON = Path(sys.executable)


def _proof(tree: Path, out: Path) -> Provenance:
    record = run_recipe(spec_of(tree, PYTHON), out)
    assert record.provenance is not None, record.reason
    return record.provenance


def test_another_rank_may_print_on_the_same_line(make_tree: MakeTree, tmp_path: Path) -> None:
    """What stands before and after the proof changes nothing; a proof that is cut is none."""
    ran = _proof(make_tree(TRAIN), tmp_path / "out")
    (line,) = [each for each in (tmp_path / "out" / "console.log").read_text().splitlines() if PREFIX in each]
    assert read_provenance([f"rank 1: loading {line}site-packages/megatron/core: UserWarning: {{no Apex}}\n"]) == ran
    assert read_provenance([line[:-1], line[:-1] + " cut by another rank"]) is None


def test_the_environment_is_told(make_tree: MakeTree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Packages, CPU, image and the variables of the start are those that the tool finds, secrets masked."""
    monkeypatch.setenv("CONTAINER_IMAGE", "registry/nemo:26.08")
    monkeypatch.setenv("NCCL_ALGO", "Ring")
    monkeypatch.setenv("NVTE_LICENSE_KEY", "abcdefgh1234")
    monkeypatch.setenv("UNRELATED", "1")
    changing = "import os; os.environ['NCCL_ALGO'] = 'Tree'\n" + TRAIN
    ran = _proof(make_tree(changing), tmp_path / "out")
    assert ran.packages == fingerprint.installed(sys.path)
    assert "numpy" in ran.packages
    assert ran.processor == fingerprint.processor()
    assert ran.image == "CONTAINER_IMAGE=registry/nemo:26.08"
    assert (ran.variables["NCCL_ALGO"], ran.variables["NVTE_LICENSE_KEY"]) == ("Ring", "[redacted]")
    assert "UNRELATED" not in ran.variables


def test_a_core_that_fails_in_its_import_is_still_named(make_tree: MakeTree, tmp_path: Path) -> None:
    """A run that ends inside megatron.core's own import proves which commit could not be imported."""
    tree = make_tree("import megatron.core\n")
    (tree / "megatron/core/__init__.py").write_text("from megatron.core import gone\n")
    git(tree, "add", "--all")
    git(tree, "commit", "--quiet", "-m", "broken")
    record = run_recipe(spec_of(tree, PYTHON), tmp_path / "out")
    assert record.outcome is Outcome.FAILED
    assert record.provenance is not None
    assert (record.provenance.mcore_commit, record.provenance.is_clean) == (git(tree, "rev-parse", "HEAD"), True)


def test_a_planted_megatron_ahead_of_the_worktree_is_caught(make_tree: MakeTree, tmp_path: Path) -> None:
    """A megatron package that comes before the tree on the path, as in an image, voids the run; both are named."""
    planted = tmp_path / "image"
    (planted / "megatron/core").mkdir(parents=True)
    (planted / "megatron/__init__.py").write_text("")
    (planted / "megatron/core/__init__.py").write_text("__version__ = '0.1'\n")
    tree = make_tree(TRAIN)
    spec = replace(spec_of(tree, PYTHON), env={"PYTHONPATH": f"{planted}:{tree}"})
    record = run_recipe(spec, tmp_path / "out")
    assert record.outcome is Outcome.VOID
    assert str(planted) in record.reason
    assert str(tree) in record.reason


def test_another_bridge_voids_the_run(make_tree: MakeTree, tmp_path: Path) -> None:
    """A Bridge tree that is at another commit than asked for is a mismatch that names both."""
    tree = make_tree(TRAIN)
    ran = replace(
        _proof(tree, tmp_path / "out"), megatron_bridge_file="/b/src/megatron/bridge.py", bridge_commit="b" * 40
    )
    spec = replace(spec_of(tree, PYTHON), sources=Sources(bridge=Path("/b"), bridge_commit="c" * 40))
    assert mismatch(spec, ran) == f"megatron.bridge is at commit {'b' * 40}, not at {'c' * 40}"


def test_gpus_are_read_without_touching_cuda(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Driver and models come from the driver's own files; unlike GPUs are told with those that are visible."""
    for number, model in enumerate(("NVIDIA H200", "NVIDIA H200")):
        (tmp_path / f"gpus/000{number}").mkdir(parents=True)
        (tmp_path / f"gpus/000{number}/information").write_text(f"Model: \t\t {model}\nIRQ: 1\n")
    version = (
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build\nGCC version: gcc 13.3.0\n"
    )
    (tmp_path / "version").write_text(version)
    monkeypatch.setattr(fingerprint, "_PROC_DRIVER", tmp_path)
    fingerprint.video.cache_clear()
    try:
        assert fingerprint.video() == ("580.65.06", "NVIDIA H200")
        (tmp_path / "gpus/0001/information").write_text("Model: NVIDIA A100\n")
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
        fingerprint.video.cache_clear()
        assert fingerprint.video() == ("580.65.06", "NVIDIA A100, NVIDIA H200 (visible: 1)")
    finally:
        fingerprint.video.cache_clear()
