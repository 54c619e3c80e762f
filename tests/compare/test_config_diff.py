"""Two configuration dumps, of one code base or of two."""

import pytest

from lossbisect.compare.config_diff import (
    config_differences,
    effective_settings,
    settings_not_compared,
    unlisted_differences,
)
from lossbisect.compare.settings import SETTINGS
from lossbisect.parsers.runlog import ConfigValue

type Config = dict[str, ConfigValue]

MEGATRON: Config = {
    "num_layers": 2,
    "num_attention_heads": 4,
    "num_query_groups": 1,
    "group_query_attention": False,
    "vocab_size": 32000,
    "padded_vocab_size": None,
    "make_vocab_size_divisible_by": 128,
    "tensor_model_parallel_size": 1,
    "add_bias_linear": True,
    "add_qkv_bias": True,
    "embedding_init_method_std": None,
    "init_method_std": 0.02,
    "swiglu": False,
    "mock_data": True,
    "split": "9999,8,2",
    "seed": 1234,
    "global_batch_size": 8,
    "train_iters": 10,
    "lr_decay_iters": None,
    "lr_decay_style": "cosine",
    "lr_warmup_iters": 1,
    "optimizer": "adam",
    "adam_beta2": 0.95,
    "adam_eps": 1e-08,
    "weight_decay": 0.1,
    "start_weight_decay": 0.1,
    "end_weight_decay": 0.1,
    "weight_decay_incr_style": "constant",
    "accumulate_allreduce_grads_in_fp32": False,
    "cross_entropy_loss_fusion": False,
    "num_experts": None,
    "moe_router_topk": 2,
    "params_dtype": "torch.float32",
    "bf16": False,
    "fp16": False,
    "fp8": None,
}
BRIDGE: Config = {
    "model.num_layers": 2,
    "model.num_attention_heads": 4,
    "model.num_query_groups": 4,
    "model.embedding_init_method_std": 0.02,
    "model.cross_entropy_loss_fusion": True,
    "model.autocast_dtype": "torch.float32",
    "tokenizer.vocab_size": 32000,
    "tokenizer.pad_vocab_size": False,
    "tokenizer.make_vocab_size_divisible_by": 1,
    "dataset.mock": True,
    "dataset.split": "1,1,1",
    "dataset.random_seed": 1234,
    "rng.seed": 1234,
    "train.global_batch_size": 8,
    "train.train_iters": 10,
    "scheduler.lr_decay_iters": 10,
    "scheduler.lr_decay_style": "'cosine'",
    "scheduler.lr_warmup_iters": 1,
    "scheduler.start_weight_decay": 0.1,
    "scheduler.end_weight_decay": 0.1,
    "scheduler.weight_decay_incr_style": "constant",
    "optimizer.adam_beta2": 0.95,
    "optimizer.bf16": True,
    "optimizer.weight_decay": 0.1,
    "ddp.grad_reduce_in_fp32": True,
}


def fields(baseline: Config, candidate: Config) -> dict[str, tuple[ConfigValue, ConfigValue]]:
    """Fields that differ, with both values."""
    return {item.field: (item.baseline, item.candidate) for item in config_differences(baseline, candidate)}


def test_matched_dumps_of_the_two_code_bases_tell_no_false_news() -> None:
    """Vocabulary padding, query groups, embedding scale, data split, gradients in float32: said otherwise, the same."""
    assert fields(MEGATRON, BRIDGE) == {"cross_entropy_loss_fusion": (False, True)}


def test_roles_only_swap_the_values() -> None:
    """What differs one way differs the other way."""
    assert fields(BRIDGE, MEGATRON) == {"cross_entropy_loss_fusion": (True, False)}


def test_setting_that_the_summary_leaves_out_has_the_default() -> None:
    """Bridge's summary prints an adam_eps only if it isn't Megatron-Core's."""
    assert fields(MEGATRON | {"adam_eps": 1e-05}, BRIDGE)["adam_eps"] == (1e-05, 1e-08)


def test_weight_decay_is_the_schedulers() -> None:
    """Bridge's recipes leave start and end at 0.033, which the scheduler writes over the optimizer's 0.1."""
    recipe = BRIDGE | {"scheduler.start_weight_decay": 0.033, "scheduler.end_weight_decay": 0.033}
    assert fields(MEGATRON, recipe)["weight_decay"] == (0.1, 0.033)


def test_growing_weight_decay_is_told_as_such() -> None:
    """Start, end and style in one value."""
    grows = MEGATRON | {"start_weight_decay": 0.0, "weight_decay_incr_style": "linear"}
    assert effective_settings(grows)["weight_decay"] == "0.0 to 0.1 (linear)"


@pytest.mark.parametrize(
    ("key", "value", "field"),
    [
        ("num_layers", 3, "num_layers"),
        ("seed", 1, "seed"),
        ("adam_beta2", 0.999, "adam_beta2"),
        ("lr_warmup_iters", 2, "lr_warmup_iters"),
        ("lr_decay_iters", 20, "lr_decay_iters"),
        ("bf16", True, "precision"),
        ("num_experts", 4, "num_experts"),
        ("swiglu", True, "gated_linear_unit"),
        ("vocab_size", 32001, "padded_vocab_size"),
        ("tensor_model_parallel_size", 2, "tensor_model_parallel_size"),
    ],
)
def test_real_difference_across_dialects_is_found(key: str, value: ConfigValue, field: str) -> None:
    """Each in its neutral name."""
    assert field in fields(MEGATRON | {key: value}, BRIDGE)


def test_switched_off_settings_are_no_news() -> None:
    """The router's top-k says nothing about a dense model; with experts it does."""
    assert fields(MEGATRON, MEGATRON | {"moe_router_topk": 1}) == {}
    experts = MEGATRON | {"num_experts": 4}
    assert fields(experts, experts | {"moe_router_topk": 1}) == {"moe_router_topk": (2, 1)}


def test_split_matters_with_real_data_only() -> None:
    """Made-up data isn't split."""
    assert fields(MEGATRON, MEGATRON | {"split": "1,1,1"}) == {}
    real = MEGATRON | {"mock_data": False, "data_path": ["/a/corpus_text"]}
    assert list(fields(real, real | {"split": "1,1,1"})) == ["split"]
    assert fields(real, real | {"data_path": ["/other/place/corpus_text"]}) == {}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1e-05, "0.00001"),
        ("torch.float32", "float32"),
        ("AttnBackend.auto", "<AttnBackend.auto: 5>"),
        (["p2p"], "p2p"),
        (0, 0.0),
    ],
)
def test_spelling_is_no_difference(one: ConfigValue, other: ConfigValue) -> None:
    """One value may be written in several ways."""
    for key in ("layernorm_epsilon", "attention_backend"):
        assert fields({key: one}, {key: other}) == {}


def test_most_telling_difference_comes_first() -> None:
    """Adam's epsilon moves early losses; weight decay creeps; kernels come last."""
    changed = MEGATRON | {
        "cross_entropy_loss_fusion": True,
        "end_weight_decay": 0.2,
        "start_weight_decay": 0.2,
        "adam_eps": 1e-05,
        "num_layers": 3,
    }
    assert list(fields(MEGATRON, changed)) == ["num_layers", "adam_eps", "weight_decay", "cross_entropy_loss_fusion"]


def test_setting_told_by_one_dump_only_is_named_and_not_guessed() -> None:
    """Bridge's summary never prints the position embedding."""
    rope = MEGATRON | {"position_embedding_type": "rope"}
    assert fields(rope, BRIDGE) == {"cross_entropy_loss_fusion": (False, True)}
    assert "position_embedding_type" in settings_not_compared(rope, BRIDGE)


def test_unknown_settings_of_one_dialect_are_listed() -> None:
    """An option that the table doesn't know may matter; one that says where to write doesn't."""
    one = MEGATRON | {"softmax_type": "vanilla", "save": "/a", "tensorboard_dir": None}
    other = MEGATRON | {"softmax_type": "learnable", "save": "/b", "tensorboard_dir": "/b"}
    assert unlisted_differences(one, other) == ("softmax_type",)


def test_no_dump_no_difference() -> None:
    """An empty configuration tells nothing, so nothing differs."""
    assert config_differences({}, MEGATRON) == ()


def test_every_setting_has_a_name_of_its_own() -> None:
    """The table's rows are distinct, and each is reachable."""
    names = [setting.name for setting in SETTINGS]
    assert len(names) == len(set(names))
    assert all(setting.megatron and setting.reason for setting in SETTINGS)
