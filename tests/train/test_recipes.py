"""Recipes: what a file may say, and that both trainers are told the same."""

import re
from pathlib import Path

import pytest

from lossbisect.errors import RecipeError
from lossbisect.train.recipes import Precision, Recipe, built_in_names, load_recipe
from lossbisect.train.render import bridge_overrides, mlm_arguments
from lossbisect.train.types import Lane, TrainerName

BUILT_IN = Path(__file__).parents[2] / "lossbisect" / "train" / "recipes"

PAIRS = {
    "--num-layers": "model.num_layers",
    "--hidden-size": "model.hidden_size",
    "--num-attention-heads": "model.num_attention_heads",
    "--ffn-hidden-size": "model.ffn_hidden_size",
    "--seq-length": "dataset.seq_length",
    "--hidden-dropout": "model.hidden_dropout",
    "--attention-dropout": "model.attention_dropout",
    "--vocab-size": "tokenizer.vocab_size",
    "--train-iters": "train.train_iters",
    "--micro-batch-size": "train.micro_batch_size",
    "--global-batch-size": "train.global_batch_size",
    "--seed": "rng.seed",
    "--lr": "optimizer.lr",
    "--min-lr": "optimizer.min_lr",
    "--lr-decay-style": "scheduler.lr_decay_style",
    "--lr-warmup-iters": "scheduler.lr_warmup_iters",
    "--lr-decay-iters": "scheduler.lr_decay_iters",
    "--weight-decay": "scheduler.start_weight_decay",
    "--adam-beta1": "optimizer.adam_beta1",
    "--adam-beta2": "optimizer.adam_beta2",
    "--adam-eps": "optimizer.adam_eps",
    "--clip-grad": "optimizer.clip_grad",
    "--split": "dataset.split",
    "--eval-iters": "validation.eval_iters",
    "--log-interval": "logger.log_interval",
}


def _told(recipe: Recipe, lane: Lane) -> tuple[dict[str, str], dict[str, str]]:
    words = mlm_arguments(recipe, lane=lane, out=Path("/out"))
    mlm = {word: words[i + 1] for i, word in enumerate(words[:-1]) if word.startswith("--")}
    bridge = dict(word.split("=", 1) for word in bridge_overrides(recipe, lane=lane, out=Path("/out")))
    return mlm, bridge


BOTH = [name for name in built_in_names() if {TrainerName.MLM, TrainerName.BRIDGE} <= set(load_recipe(name).trainers)]


@pytest.mark.parametrize("name", BOTH)
@pytest.mark.parametrize("lane", list(Lane))
def test_both_trainers_are_told_the_same(name: str, lane: Lane) -> None:
    """Every setting of a built-in recipe reaches both trainers with the same value."""
    mlm, bridge = _told(load_recipe(name), lane)
    assert {key: mlm[key] for key in PAIRS} == {key: bridge[other].strip("'") for key, other in PAIRS.items()}


def test_built_in_recipes_are_there() -> None:
    """The recipe for the CPU lane and the correlation guide's for a GPU come with the package."""
    assert {"vanilla-cpu", "vanilla-1gpu", "dropout-cpu"} <= set(built_in_names())
    guide = load_recipe("vanilla-1gpu")
    shape = (guide.layers, guide.hidden_size, guide.attention_heads, guide.ffn_hidden_size, guide.sequence_length)
    assert shape == (2, 256, 4, 1024, 512)
    assert (guide.micro_batch_size, guide.global_batch_size, guide.iterations) == (4, 32, 10)
    assert (guide.precision, guide.seed) == (Precision.BF16, 1234)


def test_the_three_sizes_of_the_plain_recipe() -> None:
    """One for the CPU lane, one for a GPU, and one for two GPUs with tensor and sequence parallel."""
    small, one, two = (load_recipe(f"vanilla-{size}") for size in ("cpu", "1gpu", "2gpu"))
    assert (small.ranks, one.ranks, two.ranks) == (1, 1, 2)
    assert (two.tensor_parallel, two.sequence_parallel) == (2, True)
    assert (two.layers, two.hidden_size, two.sequence_length) == (4, 256, 1024)
    assert (two.micro_batch_size, two.global_batch_size) == (2, 16)


def test_every_recipe_says_what_it_reaches() -> None:
    """Each built-in recipe documents what code it reaches, and those made for a real break name it."""
    recipes = {name: load_recipe(name) for name in built_in_names()}
    assert [name for name, recipe in recipes.items() if not recipe.documentation.startswith("Reaches")] == []
    caught = {name for name, recipe in recipes.items() if "Would have caught" in recipe.documentation}
    assert {"resume-cpu", "masked-microbatch-cpu", "mtp-masked-microbatch-cpu", "embedding-init-cpu"} <= caught


def test_gpu_kernels_are_off_on_the_cpu_lane_only() -> None:
    """Fused kernels are switched off where there is no GPU, and left alone where there is one."""
    recipe = load_recipe("vanilla-cpu")
    assert "--no-masked-softmax-fusion" in mlm_arguments(recipe, lane=Lane.CPU, out=Path("/out"))
    assert "--no-masked-softmax-fusion" not in mlm_arguments(recipe, lane=Lane.CUDA, out=Path("/out"))


@pytest.mark.parametrize(
    ("pattern", "replacement", "message"),
    [
        (r"layers = 2\n", "", "missing: layers"),
        (r"layers = 2", "layers = 2\nlayer = 3", "unknown: layer"),
        (r"layers = 2", "layers = 'two'", "layers = 'two'"),
        (r"layers = 2", "layers = 0", "layers = 0"),
        (r"layers = 2", "layers = true", "layers = True"),
        (r"hidden_size = 64", "hidden_size = 65", "hidden_size 65 isn't a multiple"),
        (r"global_batch_size = 8", "global_batch_size = 9", "global_batch_size 9 isn't a multiple"),
        (r"lr_warmup_iterations = 1", "lr_warmup_iterations = 10", "lr_warmup_iterations 10"),
        (r'precision = "fp32"', 'precision = "fp12"', "one of fp32, bf16"),
        (r"layers = 2", "layers = ", "not TOML"),
        (r"layers = 2", "layers = 2\nquery_groups = 3", "attention_heads 4 isn't a multiple of query_groups 3"),
        (r"layers = 2", "layers = 2\nrestart_at = 10", "restart_at 10 must be less than iterations"),
        (r"layers = 2", "layers = 2\nrestart_at = 5\ntensor_parallel = 2", "restart_at needs one rank"),
        (r"layers = 2", "layers = 2\nmasked_microbatch_at = 5", 'add trainers = ["core"]'),
        (r"layers = 2", "layers = 2\ntrainers = ['nemo']", "one of bridge, mlm, core"),
        (r"layers = 2", "layers = 2\ntrainers = 'core'", "a list"),
        (r"layers = 2", "layers = 2\nexperts = 4\nexperts_per_token = 5", "experts_per_token 5"),
    ],
)
def test_a_wrong_recipe_file_names_the_field(tmp_path: Path, pattern: str, replacement: str, message: str) -> None:
    """A recipe file that can't be right is refused with its path and the field."""
    text = (BUILT_IN / "vanilla-cpu.toml").read_text()
    file = tmp_path / "mine.toml"
    file.write_text(re.sub(pattern, replacement, text, count=1))
    with pytest.raises(RecipeError, match=re.escape(str(file))) as caught:
        load_recipe(str(file))
    assert message in str(caught.value)


def test_a_file_may_extend_a_built_in_recipe(tmp_path: Path) -> None:
    """A file that extends a recipe says only what differs; the rest is the base's, and the base must exist."""
    file = tmp_path / "mine.toml"
    file.write_text('extends = "moe-cpu"\n[model]\nexperts = 8\n')
    mine, base = load_recipe(str(file)), load_recipe("moe-cpu")
    assert (mine.experts, mine.aux_loss_coefficient, mine.layers) == (8, base.aux_loss_coefficient, base.layers)
    file.write_text('extends = "nosuch"\n')
    with pytest.raises(RecipeError, match="nosuch"):
        load_recipe(str(file))


def test_a_setting_at_its_shared_default_is_not_said() -> None:
    """A dense recipe names no MoE or MTP setting, so that a commit without these still runs."""
    for words in (
        mlm_arguments(load_recipe("vanilla-cpu"), lane=Lane.CPU, out=Path("/out")),
        bridge_overrides(load_recipe("vanilla-cpu"), lane=Lane.CPU, out=Path("/out")),
    ):
        assert not [word for word in words if "moe" in word or "mtp" in word or "expert" in word]


def test_variants_reach_both_trainers() -> None:
    """What sets a variant apart is said to Megatron-LM and to Bridge."""
    moe = load_recipe("moe-z-loss-cpu")
    mlm = mlm_arguments(moe, lane=Lane.CPU, out=Path("/out"))
    assert [mlm[mlm.index(name) + 1] for name in ("--num-experts", "--moe-router-topk", "--moe-z-loss-coeff")] == [
        "4",
        "2",
        "0.001",
    ]
    bridge = bridge_overrides(moe, lane=Lane.CPU, out=Path("/out"))
    assert {"model.num_moe_experts=4", "model.moe_router_topk=2", "model.moe_z_loss_coeff=0.001"} <= set(bridge)


def test_a_users_file_is_a_recipe(tmp_path: Path) -> None:
    """A whole number is taken where a fraction is meant, and the file's path is the recipe's name."""
    file = tmp_path / "mine.toml"
    file.write_text((BUILT_IN / "vanilla-cpu.toml").read_text().replace("clip_grad = 1.0", "clip_grad = 2"))
    assert load_recipe(str(file)).clip_grad == 2.0


def test_no_such_recipe_lists_the_known_ones() -> None:
    """A name that is neither a recipe nor a file is refused with the names that are."""
    with pytest.raises(RecipeError, match="vanilla-cpu"):
        load_recipe("nope")
