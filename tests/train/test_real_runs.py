"""Real Megatron-Core on the CPU lane: both trainers, cold and warm."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lossbisect.compare import Verdict, compare_logs
from lossbisect.train import Outcome, RunRecord, Sources, TrainerName, read_run, run_recipe
from lossbisect.train.defaults import run_spec
from lossbisect.train.recipes import built_in_names, load_recipe
from lossbisect.train.run import expect_run
from lossbisect.train.warm import WarmParents

pytestmark = pytest.mark.real

PYTHON = Path(sys.executable)


def _run(trainer: TrainerName, out: Path, warm: WarmParents | None = None) -> RunRecord:
    """Train the dropout recipe with the installed packages."""
    spec = run_spec(Sources(), trainer=trainer, recipe="dropout-cpu", python=PYTHON)
    record = run_recipe(spec, out, warm=warm)
    assert record.outcome is Outcome.FINISHED, record.reason
    return record


@pytest.fixture(scope="module")
def bridge(folder: Path) -> RunRecord:
    """A cold run of Bridge."""
    return _run(TrainerName.BRIDGE, folder / "bridge")


def test_a_warm_run_is_the_cold_one_bit_for_bit(bridge: RunRecord, folder: Path) -> None:
    """Runs forked from a warm parent record the very digits of a run that started by itself."""
    parents = WarmParents()
    try:
        expect_run(bridge.spec, parents)
        again = [_run(TrainerName.BRIDGE, folder / f"warm-{number}", parents) for number in range(2)]
        assert parents.forked == 2
        assert len(parents._parents) == 1, "the one that was started when the run was expected"  # noqa: SLF001
    finally:
        parents.close()

    def losses(record: RunRecord) -> list[str]:
        lines = record.scalars.read_text().splitlines()
        return [line for line in lines if '"lm loss"' in line or '"grad-norm"' in line]

    assert len(losses(bridge)) == 20
    assert [losses(record) for record in again] == [losses(bridge)] * 2
    assert all("lossbisect-provenance" in record.console.read_text() for record in again)


def test_both_trainers_train_the_same(bridge: RunRecord, folder: Path) -> None:
    """Megatron-LM and Bridge, given one recipe with dropout, agree in every digit of loss and grad norm."""
    judgement = compare_logs(read_run(_run(TrainerName.MLM, folder / "mlm")), read_run(bridge), tolerance=0)
    assert judgement.verdict is Verdict.SAME, judgement.reason
    assert judgement.comparison.difference.iterations == 10
    assert judgement.comparison.difference.is_identical
    assert judgement.comparison.witnesses["grad_norm"].is_identical
    convergence = [item.field for item in judgement.comparison.config if item.kind == "convergence"]
    assert convergence == []


BOTH = (TrainerName.MLM, TrainerName.BRIDGE)
VARIANTS = [
    name
    for name in built_in_names()
    if name.endswith("-cpu") and name != "dropout-cpu" and set(BOTH) <= set(load_recipe(name).trainers)
]
ALWAYS = {"llama-cpu", "moe-sigmoid-cpu", "mtp-cpu", "sp2-cpu"}
"""Between them they reach most of what the others do; each costs a run of both trainers."""
DIFFERING = {"mtp-masks-cpu"}
"""The trainers really differ, for a cause that the recipe's documentation tells."""


@pytest.fixture(scope="module")
def parents(bridge: RunRecord, folder: Path) -> Iterator[WarmParents]:
    """Warm parents of both trainers; the cold runs before have told them what to import."""
    assert bridge.out.is_relative_to(folder)
    parents = WarmParents()
    yield parents
    parents.close()


@pytest.mark.parametrize(
    "recipe",
    [
        pytest.param(name, marks=() if name in ALWAYS else pytest.mark.slow)
        for name in VARIANTS
        if name not in DIFFERING
    ],
)
def test_every_recipe_trains_the_same_with_both_trainers(recipe: str, parents: WarmParents, folder: Path) -> None:
    """Each built-in CPU recipe runs with both trainers, which agree in every digit of every value they both record."""
    specs = [run_spec(Sources(), trainer=trainer, recipe=recipe, python=PYTHON) for trainer in BOTH]
    records = [run_recipe(spec, folder / f"{recipe}-{spec.trainer}", warm=parents) for spec in specs]
    assert [record.outcome for record in records] == [Outcome.FINISHED] * 2, [record.reason for record in records]
    judgement = compare_logs(read_run(records[0]), read_run(records[1]), tolerance=0)
    assert judgement.comparison.difference.is_identical, judgement.reason
    differing = [name for name, found in judgement.comparison.witnesses.items() if not found.is_identical]
    assert differing == []
    assert [item.field for item in judgement.comparison.config if item.kind == "convergence"] == []


@pytest.mark.slow
def test_bridge_counts_masked_tokens_in_the_multi_token_loss(parents: WarmParents, folder: Path) -> None:
    """At iteration 1 the main loss is equal and the multi-token loss isn't: Bridge's forward step keeps the mask."""
    specs = [run_spec(Sources(), trainer=trainer, recipe="mtp-masks-cpu", python=PYTHON) for trainer in BOTH]
    mlm, bridge = (read_run(run_recipe(spec, folder / f"masks-{spec.trainer}", warm=parents)) for spec in specs)
    assert mlm.iterations["lm_loss"][0] == bridge.iterations["lm_loss"][0]
    assert mlm.iterations["mtp_1_loss"][0] != bridge.iterations["mtp_1_loss"][0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("recipe", "trainer"),
    [
        (name, trainer)
        for name in built_in_names()
        if name.endswith("-cpu")
        for trainer in BOTH
        if trainer in load_recipe(name).trainers
    ],
)
def test_every_recipe_is_the_same_cold_and_warm(
    recipe: str, trainer: TrainerName, parents: WarmParents, folder: Path
) -> None:
    """Whatever a recipe reaches, a run forked from a warm parent gives every digit of one that started by itself."""
    spec, forked = run_spec(Sources(), trainer=trainer, recipe=recipe, python=PYTHON), parents.forked
    cold = run_recipe(spec, folder / f"{recipe}-{trainer}-cold")
    warm = run_recipe(spec, folder / f"{recipe}-{trainer}-warm", warm=parents)
    assert [cold.outcome, warm.outcome] == [Outcome.FINISHED] * 2, (cold.reason, warm.reason)
    assert (parents.forked > forked) == (load_recipe(recipe).ranks == 1)  # several ranks start by themselves
    comparison = compare_logs(read_run(cold), read_run(warm), tolerance=0).comparison
    assert comparison.difference.is_identical
    assert [name for name, found in comparison.witnesses.items() if not found.is_identical] == []


def test_a_run_tells_what_it_ran(bridge: RunRecord) -> None:
    """The provenance line names the installed megatron.core and the lane; the installed package has no commit."""
    ran = bridge.provenance
    assert ran is not None
    assert "site-packages" in ran.megatron_core_file
    assert (ran.lane, ran.mcore_commit) == ("cpu", None)
