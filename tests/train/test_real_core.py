"""The `core` trainer over real Megatron-Core, on the CPU lane."""

import json
import math
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lossbisect.parsers import read_log
from lossbisect.train import Outcome, RunRecord, Sources, TrainerName, read_run, run_recipe
from lossbisect.train.defaults import run_spec
from lossbisect.train.recipes import built_in_names, load_recipe
from lossbisect.train.warm import WarmParents

pytestmark = pytest.mark.real

PYTHON = Path(sys.executable)


@pytest.fixture(scope="module")
def parents(folder: Path) -> Iterator[WarmParents]:
    """Warm parents for the runs of this file; the first run is cold and tells them what to import."""
    assert folder.is_dir()
    parents = WarmParents()
    yield parents
    parents.close()


def _run(recipe: str, out: Path, parents: WarmParents | None) -> RunRecord:
    spec = run_spec(Sources(), trainer=TrainerName.CORE, recipe=recipe, python=PYTHON)
    record = run_recipe(spec, out, warm=parents)
    assert record.outcome is Outcome.FINISHED, record.reason
    return record


def _values(record: RunRecord, tag: str) -> list[tuple[int, float]]:
    lines = [json.loads(line) for line in record.scalars.read_text().splitlines()]
    return [(line["iteration"], line["value"]) for line in lines if line["tag"] == tag]


def test_a_run_that_resumes_is_the_run_that_never_stopped(folder: Path, parents: WarmParents) -> None:
    """Saved, loaded in a new process and gone on with, the curve is one, and every digit that of an unbroken run."""
    unbroken = folder / "unbroken.toml"
    unbroken.write_text('extends = "resume-cpu"\nrestart_at = 0\n')
    whole = _run(str(unbroken), folder / "whole", parents)  # cold
    resumed = _run("resume-cpu", folder / "resumed", parents)  # warm
    assert parents.forked == 1
    for tag in ("lm loss", "grad-norm", "learning-rate", "decoupled-learning-rate", "num-zeros"):
        assert _values(resumed, tag) == _values(whole, tag)
    assert [iteration for iteration, _ in _values(resumed, "lm loss")] == list(range(1, 13))
    assert _values(resumed, "lm loss")[-1][1] < _values(resumed, "lm loss")[0][1]
    assert len(_values(whole, "initial params checksum")) == len(_values(resumed, "initial params checksum")) == 1
    assert (resumed.out / "checkpoints").is_dir()


def test_what_is_printed_is_what_is_recorded(folder: Path, parents: WarmParents) -> None:
    """The console is a log of Megatron-LM's kind, whose rows hold the recorded values to the last digit."""
    record = _run("masked-microbatch-cpu", folder / "masked", parents)
    recorded, printed = read_run(record), read_log(record.console)
    losses = printed.iterations["lm_loss"].to_list()
    assert losses == recorded.iterations["lm_loss"].to_list()
    assert losses == [value for _, value in _values(record, "lm loss")]
    assert all(math.isfinite(loss) for loss in losses)  # Megatron-Core of today survives the masked microbatch
    assert printed.config["num_layers"] == load_recipe("masked-microbatch-cpu").layers
    assert printed.iterations["grad_norm"].to_list() == [value for _, value in _values(record, "grad-norm")]


REST = [name for name in built_in_names() if name.endswith("-cpu") and name not in {"resume-cpu", "vanilla-cpu"}]


@pytest.mark.slow
@pytest.mark.parametrize("recipe", REST)
def test_every_recipe_runs_and_repeats_itself(recipe: str, folder: Path, parents: WarmParents) -> None:
    """Each built-in CPU recipe trains with the core trainer, and to the same digits from a warm parent."""
    cold, warm = (_run(recipe, folder / f"{recipe}-{name}", way) for name, way in (("cold", None), ("warm", parents)))
    for tag in ("lm loss", "grad-norm", "initial params checksum"):
        assert _values(cold, tag) == _values(warm, tag) != []
    assert len(_values(cold, "lm loss")) == load_recipe(recipe).iterations
