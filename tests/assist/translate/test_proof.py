"""Real training: Megatron-LM's arguments, translated, make Bridge train the same, digit for digit."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lossbisect.assist.translate.command_line import arguments_of
from lossbisect.assist.translate.emit import hydra
from lossbisect.assist.translate.facts import read_facts
from lossbisect.assist.translate.to_bridge import to_bridge
from lossbisect.assist.translate.types import Facts
from lossbisect.compare import compare_logs
from lossbisect.train import Outcome, Sources, TrainerName, read_run, run_recipe, trainers
from lossbisect.train.defaults import run_spec
from lossbisect.train.parts import Part
from lossbisect.train.recipes import Recipe, built_in_names, load_recipe
from lossbisect.train.render import mlm_arguments
from lossbisect.train.types import Lane

pytestmark = pytest.mark.real

BOTH = (TrainerName.MLM, TrainerName.BRIDGE)
DIFFERING = {"mtp-masks-cpu"}
"""The trainers themselves differ, for a cause that the recipe's documentation tells."""
VARIANTS = [
    name
    for name in built_in_names()
    if name.endswith("-cpu") and name not in DIFFERING and set(BOTH) <= set(load_recipe(name).trainers)
]
ALWAYS = "llama-cpu"
"""RoPE, RMSNorm, a gated activation, no bias, embeddings untied: the variant with the most that differs by name."""


@pytest.fixture(scope="module")
def facts() -> Facts:
    """The installed trainers' arguments."""
    return read_facts()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder and a cache for all runs of this file."""
    folder = tmp_path_factory.mktemp("proof")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LOSSBISECT_CACHE_DIR", str(folder / "cache"))
        yield folder


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name == ALWAYS else pytest.mark.slow) for name in VARIANTS]
)
def test_translated_arguments_train_the_same(
    name: str, facts: Facts, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Megatron-LM with its arguments and Bridge with their translation agree in every digit of every value."""
    given: list[list[str]] = []

    def translated(recipe: Recipe, *, lane: Lane, out: Path, part: Part) -> list[str]:
        settings = arguments_of(mlm_arguments(recipe, lane=lane, out=out, part=part), facts)
        translation = to_bridge(settings.told, facts, unknown=settings.unknown, num_processes=recipe.ranks)
        given.append([f"{key}={hydra(value)}" for key, value in translation.settings.items()])
        return given[-1]

    monkeypatch.setattr(trainers, "bridge_overrides", translated)
    specs = [run_spec(Sources(), trainer=trainer, recipe=name, python=Path(sys.executable)) for trainer in BOTH]
    records = [run_recipe(spec, folder / f"{name}-{spec.trainer}") for spec in specs]
    assert [record.outcome for record in records] == [Outcome.FINISHED] * 2, [record.reason for record in records]
    assert given
    judgement = compare_logs(read_run(records[0]), read_run(records[1]), tolerance=0)
    assert judgement.comparison.difference.is_identical, judgement.reason
    differing = [metric for metric, found in judgement.comparison.witnesses.items() if not found.is_identical]
    assert differing == []
    assert [item.field for item in judgement.comparison.config if item.kind == "convergence"] == []
