"""The `core` trainer, as far as it needs neither torch nor Megatron-Core: its settings, its tokens, its parts."""

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from lossbisect.errors import RecipeError
from lossbisect.train.inside.core.data import Data, sequence
from lossbisect.train.inside.core.settings import MissingFeatureError, accepts, fitted, parse
from lossbisect.train.inside.parts import THEN
from lossbisect.train.parts import Part, parts_of
from lossbisect.train.recipes import built_in_names, load_recipe
from lossbisect.train.render import bridge_overrides, mlm_arguments
from lossbisect.train.render_core import core_settings
from lossbisect.train.trainers import launch
from lossbisect.train.types import Lane, RunSpec, Sources, TrainerName

OUT = Path("/out")
LAUNCH = Path(__file__).parents[2] / "lossbisect" / "train" / "inside" / "launch.py"


def _settings(name: str, part: Part = Part.WHOLE) -> dict[str, dict[str, object]]:
    words = core_settings(load_recipe(name), lane=Lane.CPU, out=OUT, part=part)
    return {group: dict(values) for group, values in parse(words).items()}


@pytest.mark.parametrize("name", built_in_names())
def test_every_recipe_reaches_the_core_trainer(name: str) -> None:
    """What makes a recipe what it is arrives in Megatron-Core's own names, and comes back from the words as it was."""
    recipe, told = load_recipe(name), _settings(name)
    model, optimizer = told["model"], told["optimizer"]
    assert (model["num_layers"], model["hidden_size"]) == (recipe.layers, recipe.hidden_size)
    assert (optimizer["lr"], optimizer["clip_grad"]) == (recipe.lr, recipe.clip_grad)
    assert (model.get("num_moe_experts", 0), model.get("mtp_num_layers", 0)) == (recipe.experts, recipe.mtp_layers)
    assert model.get("bf16", False) is (recipe.precision == "bf16")
    assert told["data"].get("masked_microbatch_at", 0) == recipe.masked_microbatch_at
    assert optimizer.get("decoupled_lr", 0.0) == recipe.decoupled_lr


def test_the_vocabulary_is_padded_as_megatron_lm_pads_it() -> None:
    """One token more than the recipe's, for the end of a document, and then a multiple of 128 for each rank."""
    assert _settings("vanilla-cpu")["gpt"]["vocab_size"] == 4224
    assert _settings("tp2-cpu")["gpt"]["vocab_size"] == 4352


def test_a_setting_that_a_commit_lacks_is_named() -> None:
    """A setting that the commit's own signature doesn't have is an error with both names, never left out."""

    class TransformerConfig:
        def __init__(self, num_layers: int) -> None: ...

    def anything(**settings: object) -> None: ...

    assert fitted(TransformerConfig, {"num_layers": 2}) == {"num_layers": 2}
    with pytest.raises(MissingFeatureError, match="this commit's TransformerConfig has no moe_z_loss_coeff"):
        fitted(TransformerConfig, {"num_layers": 2, "moe_z_loss_coeff": 1e-3})
    assert accepts(anything, "moe_z_loss_coeff")
    assert str(MissingFeatureError.__module__) == "lossbisect"


def test_a_word_that_is_no_setting_is_refused() -> None:
    """A word without a known group is named rather than lost."""
    with pytest.raises(ValueError, match=r"modle\.num_layers=2"):
        parse(["modle.num_layers=2"])


def _data(length: int = 64) -> Data:
    return Data(
        seed=1, end_of_document=1000, sequence_length=length, micro_batch_size=1, num_microbatches=1,
        mask_end_of_document=False, masked_at=0,
    )  # fmt: skip


def test_tokens_depend_on_the_seed_alone() -> None:
    """The same source gives the same sequence, another source another one, and documents end in it."""
    first, again, other = (sequence(random.Random(seed), _data()) for seed in ("a", "a", "b"))
    assert first == again != other
    assert len(first) == 65
    assert 1000 in sequence(random.Random("a"), _data(256))
    assert all(0 <= token <= 1000 for token in first)


def test_a_restarting_recipe_has_two_parts() -> None:
    """The first part ends with a checkpoint and the second begins with it, for every trainer, in one folder."""
    recipe = load_recipe("resume-cpu")
    assert parts_of(recipe) == (Part.FIRST, Part.SECOND)
    assert parts_of(load_recipe("vanilla-cpu")) == (Part.WHOLE,)
    folder = str(OUT / "checkpoints")
    first, second = (_settings("resume-cpu", part)["train"] for part in parts_of(recipe))
    assert (first["save"], first["stop_after"], second["load"]) == (folder, 8, folder)
    mlm = [mlm_arguments(recipe, lane=Lane.CPU, out=OUT, part=part) for part in parts_of(recipe)]
    assert mlm[0][mlm[0].index("--exit-interval") + 1] == "8"
    assert mlm[0][mlm[0].index("--save") + 1] == mlm[1][mlm[1].index("--load") + 1] == folder
    bridge = [bridge_overrides(recipe, lane=Lane.CPU, out=OUT, part=part) for part in parts_of(recipe)]
    assert {f"checkpoint.save='{folder}'", "train.exit_interval=8"} <= set(bridge[0])
    assert {f"checkpoint.load='{folder}'", "checkpoint.save=null"} <= set(bridge[1])


@pytest.mark.parametrize("trainer", [TrainerName.MLM, TrainerName.BRIDGE])
def test_what_only_core_can_train_is_refused_by_the_others(trainer: TrainerName, tmp_path: Path) -> None:
    """A recipe that no command line reaches is an error with the trainer that takes it, before anything is started."""
    spec = RunSpec(
        sources=Sources(), recipe="masked-microbatch-cpu", trainer=trainer, lane=Lane.CPU, python=Path(sys.executable)
    )
    with pytest.raises(RecipeError, match=r"masked-microbatch-cpu.*--trainer core"):
        launch(spec, load_recipe(spec.recipe), out=tmp_path, cache=tmp_path, port=1)


PART = "import os, sys; open('seen', 'a').write(f'{{os.getpid()}} {{sys.argv[1:]}}\\n'); sys.exit({code})"


@pytest.mark.parametrize(("code", "parts"), [(0, 2), (3, 1)])
def test_parts_run_in_processes_of_their_own_until_one_fails(tmp_path: Path, code: int, parts: int) -> None:
    """The second part gets its own arguments and process; after a first part that failed it isn't started at all."""
    (tmp_path / "first.py").write_text(PART.format(code=code))
    (tmp_path / "second.py").write_text(PART.format(code=0))
    targets = [str(tmp_path / "first.py"), "--save", THEN, str(tmp_path / "second.py"), "--load"]
    ours = ["--lane", "cuda", "--cache", str(tmp_path), "--preload", str(tmp_path / "p.json"), "--out", str(tmp_path)]
    done = subprocess.run(
        [sys.executable, str(LAUNCH), *ours, "-m", "lossbisect.train.inside.parts", *targets],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    seen = [line.split(" ", 1) for line in (tmp_path / "seen").read_text().splitlines()]
    assert [words for _, words in seen] == ["['--save']", "['--load']"][:parts]
    assert len({pid for pid, _ in seen}) == parts


def test_what_either_part_reads_is_known(tmp_path: Path) -> None:
    """A module that only the first part imports counts among what the run has read, as the second part's does."""
    (tmp_path / "tree").mkdir()
    for name in ("saving", "loading"):
        (tmp_path / "tree" / f"{name}.py").write_text("")
        (tmp_path / f"{name}_part.py").write_text(f"import {name}\n")
    ours = ["--lane", "cuda", "--cache", str(tmp_path), "--preload", str(tmp_path / "p.json"), "--out", str(tmp_path)]
    targets = [str(tmp_path / "saving_part.py"), THEN, str(tmp_path / "loading_part.py")]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "tree"), "RANK": "0", "WORLD_SIZE": "1"}
    subprocess.run(
        [sys.executable, str(LAUNCH), *ours, "-m", "lossbisect.train.inside.parts", *targets],
        cwd=tmp_path, env=environment, check=True,
    )  # fmt: skip
    (table,) = json.loads((tmp_path / "reads-0-of-1.json").read_text())
    assert {"saving.py", "loading.py"} <= set(table["opened"])
