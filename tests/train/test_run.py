"""How a run ends, and what is said of it."""

import os
import sys
import time
from pathlib import Path

import pytest

from lossbisect.errors import RecipeError, TrainerError
from lossbisect.train import Outcome, read_run, run_recipe
from lossbisect.train.defaults import run_spec
from lossbisect.train.types import Lane, Sources, TrainerName

from .conftest import TRAIN, MakeTree, git, spec_of

PYTHON = Path(sys.executable)


def test_a_finished_run_keeps_curves_and_proof(make_tree: MakeTree, tmp_path: Path) -> None:
    """A trainer that ends well gives a finished record with its curves, its commit, and the lines it printed."""
    tree = make_tree(TRAIN)
    lines: list[str] = []
    record = run_recipe(spec_of(tree, PYTHON), tmp_path / "out", on_line=lines.append)
    assert (record.outcome, record.exit_code) == (Outcome.FINISHED, 0)
    assert record.provenance is not None
    assert record.provenance.mcore_commit == git(tree, "rev-parse", "HEAD")
    assert record.provenance.megatron_core_file == str(tree / "megatron/core/__init__.py")
    assert read_run(record).iterations["lm_loss"].to_list()[2] == 10.0 / 3
    assert any("iteration        3/" in line for line in lines)


def test_nothing_is_written_into_the_checkout(make_tree: MakeTree, tmp_path: Path) -> None:
    """A run leaves no file in a tree that isn't ours, byte code included."""
    tree = make_tree(TRAIN)
    before = sorted(path for path in tree.rglob("*") if ".git" not in path.parts)
    run_recipe(spec_of(tree, PYTHON), tmp_path / "out")
    assert sorted(path for path in tree.rglob("*") if ".git" not in path.parts) == before


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("import megatron.core\nraise KeyError('moe')", "KeyError: 'moe'"),
        ("import megatron.core\nfrom megatron.core import gone", "ImportError: cannot import name 'gone'"),
        ("import os; os._exit(3)", "exit code 3"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "SIGSEGV"),
        ("import sys; sys.exit('CUDA out of memory')", "CUDA out of memory"),
        (TRAIN.replace("range(1, 11)", "range(1, 4)"), "only 3 of 10 iterations"),
    ],
)
def test_a_failed_run_says_why(make_tree: MakeTree, tmp_path: Path, script: str, reason: str) -> None:
    """An error, a signal, an early end: each is a failed run with its reason, never a finished one."""
    record = run_recipe(spec_of(make_tree(script), PYTHON), tmp_path / "out")
    assert record.outcome is Outcome.FAILED
    assert reason in record.reason


def test_a_run_that_hangs_is_killed_with_its_children(make_tree: MakeTree, tmp_path: Path) -> None:
    """After the time-out neither the trainer nor a process that it started is left."""
    script = (
        "import os, subprocess, sys, time, megatron.core\n"
        f"child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        f"open({str(tmp_path / 'pids')!r}, 'w').write(f'{{os.getpid()}} {{child.pid}}')\n"
        "time.sleep(600)\n"
    )
    record = run_recipe(spec_of(make_tree(script), PYTHON, timeout_s=2.0), tmp_path / "out")
    assert record.outcome is Outcome.TIMED_OUT
    assert "2 s" in record.reason
    time.sleep(0.2)
    for pid in map(int, (tmp_path / "pids").read_text().split()):
        assert not Path(f"/proc/{pid}").exists() or "zombie" in Path(f"/proc/{pid}/status").read_text()


def test_code_from_elsewhere_voids_the_run(make_tree: MakeTree, tmp_path: Path) -> None:
    """A trainer that imports another megatron.core than the tree's is void, and both are named."""
    baked = tmp_path / "baked" / "megatron" / "core"
    baked.mkdir(parents=True)
    (baked / "__init__.py").write_text("")
    tree = make_tree(f"import sys; sys.path.insert(0, {str(tmp_path / 'baked')!r})\n" + TRAIN)
    record = run_recipe(spec_of(tree, PYTHON), tmp_path / "out")
    assert record.outcome is Outcome.VOID
    assert str(baked) in record.reason
    assert str(tree) in record.reason


def test_another_commit_voids_the_run(make_tree: MakeTree, tmp_path: Path) -> None:
    """A tree that isn't at the commit asked for is void."""
    record = run_recipe(spec_of(make_tree(TRAIN), PYTHON, commit="f" * 40), tmp_path / "out")
    assert record.outcome is Outcome.VOID
    assert "not at ffff" in record.reason


def test_changed_files_void_the_run(make_tree: MakeTree, tmp_path: Path) -> None:
    """A tree with a changed tracked file says nothing about its commit."""
    tree = make_tree(TRAIN)
    spec = spec_of(tree, PYTHON)
    (tree / "megatron/core/__init__.py").write_text("__version__ = 'changed'\n")
    assert run_recipe(spec, tmp_path / "out").outcome is Outcome.VOID


def test_a_run_that_never_imports_megatron_is_void(make_tree: MakeTree, tmp_path: Path) -> None:
    """Curves without a word on the code behind them prove nothing."""
    record = run_recipe(spec_of(make_tree(TRAIN.replace("import megatron.core", "")), PYTHON), tmp_path / "out")
    assert record.outcome is Outcome.VOID
    assert "never said" in record.reason


def test_a_directory_is_used_once(make_tree: MakeTree, tmp_path: Path) -> None:
    """A run never goes into a directory that holds something: nothing is resumed or overwritten."""
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "keep").write_text("mine")
    with pytest.raises(TrainerError, match="not empty"):
        run_recipe(spec_of(make_tree(TRAIN), PYTHON), tmp_path / "out")
    assert (tmp_path / "out" / "keep").read_text() == "mine"


def test_what_cannot_start_is_one_line(make_tree: MakeTree, tmp_path: Path) -> None:
    """A missing interpreter, script or recipe is an error of ours that names it, not a verdict on the commit."""
    tree = make_tree(TRAIN)
    with pytest.raises(TrainerError, match="no-python"):
        run_recipe(spec_of(tree, tmp_path / "no-python"), tmp_path / "1")
    (tree / "pretrain_gpt.py").unlink()
    with pytest.raises(TrainerError, match=r"pretrain_gpt\.py"):
        run_recipe(spec_of(tree, PYTHON), tmp_path / "2")
    with pytest.raises(RecipeError, match="no-recipe"):
        run_recipe(run_spec(Sources(mcore=tree), recipe="no-recipe"), tmp_path / "3")


def test_the_users_python_path_stays_out(make_tree: MakeTree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A megatron on the caller's PYTHONPATH isn't imported in the tree's place."""
    shadow = tmp_path / "shadow" / "megatron" / "core"
    shadow.mkdir(parents=True)
    (shadow / "__init__.py").write_text("raise RuntimeError('shadowed')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "shadow") + os.pathsep + os.environ.get("PYTHONPATH", ""))
    assert run_recipe(spec_of(make_tree(TRAIN), PYTHON), tmp_path / "out").outcome is Outcome.FINISHED


def test_defaults_follow_the_checkout() -> None:
    """A Megatron-LM tree alone is run by its own trainer, everything else by Bridge; each lane has its recipe."""
    alone = run_spec(Sources(mcore=Path("/m")))
    both = run_spec(Sources(mcore=Path("/m"), bridge=Path("/b")), lane=Lane.CUDA)
    assert (alone.trainer, alone.recipe) == (TrainerName.MLM, "vanilla-cpu")
    assert (both.trainer, both.recipe) == (TrainerName.BRIDGE, "vanilla-1gpu")
    assert run_spec(Sources()).trainer is TrainerName.BRIDGE
