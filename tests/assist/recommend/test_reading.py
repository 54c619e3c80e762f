"""Recipes read from syntax trees: a made-up Bridge, and what the installed one's functions really return."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from lossbisect.assist.recommend import find_bridge, list_recipes
from lossbisect.assist.recommend.catalogue import read_settings
from lossbisect.assist.recommend.shapes import known_shape
from lossbisect.assist.recommend.source import BridgeSource
from lossbisect.assist.recommend.types import BridgeRecipe, Kind, Task
from lossbisect.errors import LossbisectError

SCRIPT = Path(__file__).with_name("executed.py")
COMMON = """
import torch
from megatron.bridge.training.config import ConfigContainer, TrainingConfig, GPTDatasetConfig

def _common(*, length=4096):
    cfg = ConfigContainer(model=None, train=TrainingConfig(global_batch_size=32, micro_batch_size=2),
                          dataset=GPTDatasetConfig(seq_length=length, blend=None))
    return cfg

def _layout(model, layout):
    model.pipeline_model_parallel_layout = layout
"""
TOY = """
import torch
from megatron.bridge import AutoBridge
from megatron.bridge.recipes.common import _common, _layout

LONG = 16 * 1024
_ID = "acme/Toy-8B"

def toy_8b_pretrain_4gpu_h100_bf16_config():
    cfg = _common()
    cfg.model = AutoBridge.from_hf_pretrained(_ID).to_megatron_provider(load_weights=False)
    cfg.model.tensor_model_parallel_size = 2
    cfg.model.context_parallel_size = 2
    cfg.model.sequence_parallel = cfg.model.tensor_model_parallel_size > 1
    if cfg.model.num_layers > 4:
        cfg.train.micro_batch_size = 1
    return cfg

def toy_8b_pretrain_8gpu_h100_bf16_16k_config():
    cfg = toy_8b_pretrain_4gpu_h100_bf16_config()
    cfg.dataset.seq_length = LONG
    for size in (1, 2):
        cfg.model.pipeline_model_parallel_size = size
    _layout(cfg.model, "Et|tL")
    if cfg.model.tensor_model_parallel_size == 2:
        cfg.train.global_batch_size //= 2
    return cfg

def toy_8b_sft_1gpu_h100_bf16_config():
    raise NotImplementedError("not yet")
"""
FILES = {
    "package_info.py": "MAJOR = 9\nMINOR = 8\nPATCH = 7\nPRE_RELEASE = 'rc1'\n",
    "recipes/__init__.py": "from megatron.bridge.recipes.toy import *\n",
    "recipes/common.py": COMMON,
    "recipes/toy/__init__.py": "from megatron.bridge.recipes.toy.toy import *\n",
    "recipes/toy/toy.py": (
        "from megatron.bridge.recipes.toy.h100.toy import toy_8b_pretrain_4gpu_h100_bf16_config as "
        'toy_8b_pretrain_config\n__all__ = ["toy_8b_pretrain_config"]\n'
    ),
    "recipes/toy/h100/__init__.py": "from .toy import *\n",
    "recipes/toy/h100/toy.py": TOY,
    "perf_recipes/__init__.py": "",
}


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """A checkout of a made-up Bridge."""
    for name, text in FILES.items():
        file = tmp_path / "src/megatron/bridge" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return tmp_path


def by_name(source: BridgeSource) -> dict[str, BridgeRecipe]:
    """The catalogue of a Bridge."""
    return {recipe.name: recipe for recipe in list_recipes(source)}


def test_the_catalogue_is_what_is_exported(made: Path) -> None:
    """Names, aliases, GPUs, hardware, precision and variant come from the checkout at hand, with its version."""
    source = find_bridge(made)
    assert source.version == "9.8.7rc1"
    recipes = by_name(source)
    assert len(recipes) == 3
    plain = recipes["toy_8b_pretrain_4gpu_h100_bf16_config"]
    assert (plain.kind, plain.task, plain.model) == (Kind.LIBRARY, Task.PRETRAIN, "toy_8b")
    assert (plain.gpus, plain.hardware, plain.precision) == (4, "h100", "bf16")
    assert plain.aliases == ("toy_8b_pretrain_config",)
    assert recipes["toy_8b_pretrain_8gpu_h100_bf16_16k_config"].variant == "16k"


def test_a_body_is_read_through_what_it_calls(made: Path) -> None:
    """Defaults of shared functions, overrides, loops, conditions and arithmetic give what the function returns."""
    source = find_bridge(made)
    recipes = by_name(source)
    plain = read_settings(source, recipes["toy_8b_pretrain_4gpu_h100_bf16_config"])
    assert plain is not None
    assert plain.model_id == "acme/Toy-8B"
    assert (plain.layout.tensor, plain.layout.context, plain.layout.is_sequence_parallel) == (2, 2, True)
    assert (plain.layout.global_batch, plain.sequence_length, plain.extra_layers) == (32, 4096, 0)
    long = read_settings(source, recipes["toy_8b_pretrain_8gpu_h100_bf16_16k_config"])
    assert long is not None
    assert (long.layout.pipeline, long.layout.global_batch, long.sequence_length) == (2, 16, 16384)
    assert long.extra_layers is None


def test_what_cannot_be_known_is_not_guessed(made: Path) -> None:
    """A condition on the model's own sizes takes neither branch; a recipe that isn't there yet can't be read."""
    source = find_bridge(made)
    recipes = by_name(source)
    plain = read_settings(source, recipes["toy_8b_pretrain_4gpu_h100_bf16_config"])
    assert plain is not None
    assert plain.unread == ("train.micro_batch_size",)
    assert read_settings(source, recipes["toy_8b_sft_1gpu_h100_bf16_config"]) is None


def test_nothing_is_executed(made: Path) -> None:
    """A recipe module that would fail when it's imported is read all the same, and leaves no trace."""
    file = made / "src/megatron/bridge/recipes/toy/h100/toy.py"
    file.write_text(f"open('ran', 'w')\n{TOY}", encoding="utf-8")
    source = find_bridge(made)
    assert read_settings(source, by_name(source)["toy_8b_pretrain_4gpu_h100_bf16_config"]) is not None
    assert not Path("ran").exists()


def test_places_without_a_bridge(made: Path, tmp_path: Path) -> None:
    """A folder that is no checkout, and a module that isn't Python, are named in one line."""
    with pytest.raises(LossbisectError, match="no Megatron Bridge checkout"):
        find_bridge(tmp_path / "nowhere")
    (made / "src/megatron/bridge/recipes/toy/__init__.py").write_text("def (", encoding="utf-8")
    with pytest.raises(LossbisectError, match="can't be read as Python"):
        list_recipes(find_bridge(made))


def _installed() -> BridgeSource:
    try:
        return find_bridge(None)
    except LossbisectError as error:
        pytest.skip(str(error))


def test_the_installed_catalogue() -> None:
    """Every recipe of the installed Bridge has a model and a purpose, and both sets are there."""
    recipes = list_recipes(_installed())
    assert len(recipes) > 500
    assert {recipe.kind for recipe in recipes} == set(Kind)
    assert all(recipe.model and recipe.name.endswith("_config") for recipe in recipes)
    assert len({(recipe.kind, recipe.name, recipe.module) for recipe in recipes}) == len(recipes)


def test_shapes_are_those_that_recipes_state() -> None:
    """Where a recipe sets sizes of its model itself, the table has the same."""
    source = _installed()
    names = {
        "num_layers": "num_layers", "hidden_size": "hidden_size", "ffn_hidden_size": "ffn_hidden_size",
        "num_attention_heads": "heads", "num_query_groups": "query_groups",
    }  # fmt: skip
    compared = 0
    for recipe in list_recipes(source):
        shape = known_shape(recipe.model)
        if recipe.model.startswith(("nemotronh_", "gemma3_1b", "gpt3_")) and shape and recipe.kind is Kind.LIBRARY:
            reading = read_settings(source, recipe)
            stated = reading.stated if reading else {}
            for theirs, ours in names.items():
                if theirs in stated:
                    assert getattr(shape, ours) == stated[theirs], (recipe.name, theirs)
                    compared += 1
    assert compared > 20


@pytest.mark.slow
def test_reading_agrees_with_running(tmp_path: Path) -> None:
    """What is read of every recipe that runs with a stubbed model is what its function returns."""
    source = _installed()
    recipes = list_recipes(source)
    lines = "\n".join(f"{recipe.module} {recipe.name}" for recipe in recipes)
    environment = {**os.environ, "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(tmp_path)],
        input=lines,
        capture_output=True,
        text=True,
        timeout=900,
        env=environment,
        check=True,
    )
    told = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    ran = 0
    for recipe, real in zip(recipes, told, strict=True):
        assert real["name"] == recipe.name
        reading = read_settings(source, recipe)
        if real["error"] or reading is None:
            continue
        layout = reading.layout
        read = {
            "tensor": layout.tensor, "pipeline": layout.pipeline, "context": layout.context, "expert": layout.expert,
            "is_sequence_parallel": layout.is_sequence_parallel, "micro_batch": layout.micro_batch,
            "global_batch": layout.global_batch, "sequence_length": reading.sequence_length,
        }  # fmt: skip
        for name, value in read.items():
            if value is not None:  # a length that can't be read is said to be unknown
                assert real[name] in (value, None), (recipe.name, name, real[name], value)
        ran += 1
    assert ran > 0.75 * len(recipes)
