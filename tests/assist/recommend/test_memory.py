"""The memory estimate against Megatron-LM's own, and against published sizes of models."""

import json
import subprocess
import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest

from lossbisect.assist.recommend.memory import Training, count_parameters, estimate
from lossbisect.assist.recommend.shapes import known_shape, shape_from_hf
from lossbisect.assist.recommend.types import Fit, Layout, Shape
from lossbisect.errors import LossbisectError

SCRIPT = Path(__file__).with_name("megatron_estimate.py")
CASES = [
    ("llama3_8b", Layout(global_batch=8), 8),
    ("llama3_8b", Layout(tensor=2, expert_tensor=2, is_sequence_parallel=True, global_batch=64), 8),
    ("llama3_70b", Layout(tensor=4, expert_tensor=4, pipeline=4, is_sequence_parallel=True, global_batch=256), 32),
    ("llama3_70b", Layout(tensor=8, pipeline=4, virtual=5, is_sequence_parallel=True, global_batch=64), 64),
    ("qwen3_32b", Layout(tensor=8, expert_tensor=8, pipeline=2, micro_batch=2, global_batch=32), 16),
    ("gpt3_175b", Layout(tensor=8, expert_tensor=8, pipeline=8, is_sequence_parallel=True, global_batch=1536), 128),
    ("llama32_1b", Layout(global_batch=16, micro_batch=4), 4),
    ("qwen3_30b_a3b", Layout(expert=8, global_batch=64), 16),
    ("deepseek_v3", Layout(tensor=2, expert=32, pipeline=8, is_sequence_parallel=True, global_batch=2048), 512),
    ("glm45_air_106b", Layout(expert=8, pipeline=2, global_batch=256), 32),
]
LENGTH = 4096


def shape_of(name: str) -> Shape:
    """A shape of the table."""
    shape = known_shape(name)
    assert shape is not None
    return shape


def arguments(shape: Shape, layout: Layout, gpus: int) -> dict[str, object]:
    """The same question in Megatron-LM's words."""
    multiple = 128 * layout.tensor
    return {
        "kv_channels": shape.kv_channels, "num_attention_heads": shape.heads, "hidden_size": shape.hidden_size,
        "group_query_attention": not shape.is_latent, "num_query_groups": shape.query_groups,
        "num_experts": shape.experts or None, "swiglu": shape.is_gated, "moe_latent_size": None,
        "moe_shared_expert_intermediate_size": shape.shared_expert_ffn or None,
        "moe_layer_freq": [0] * shape.dense_layers + [1] * (shape.num_layers - shape.dense_layers),
        "num_layers": shape.num_layers, "moe_ffn_hidden_size": shape.expert_ffn, "moe_router_topk": shape.top_k,
        "mtp_num_layers": shape.mtp_layers or None, "normalization": "RMSNorm" if shape.norm_size == 1 else "LayerNorm",
        "multi_latent_attention": shape.is_latent, "q_lora_rank": shape.q_lora_rank or None,
        "qk_head_dim": shape.qk_head_dim, "qk_pos_emb_head_dim": shape.qk_pos_emb_head_dim,
        "kv_lora_rank": shape.kv_lora_rank, "v_head_dim": shape.v_head_dim,
        "padded_vocab_size": -(-shape.vocab_size // multiple) * multiple, "ffn_hidden_size": shape.ffn_hidden_size,
        "untie_embeddings_and_output_weights": not shape.is_tied, "add_bias_linear": False, "world_size": gpus,
        "expert_tensor_parallel_size": layout.expert_tensor, "expert_model_parallel_size": layout.expert,
        "pipeline_model_parallel_size": layout.pipeline, "tensor_model_parallel_size": layout.tensor,
        "virtual_pipeline_model_parallel_size": layout.virtual, "use_distributed_optimizer": True,
        "data_parallel_size": layout.data(gpus), "seq_length": LENGTH, "micro_batch_size": layout.micro_batch,
        "sequence_parallel": layout.is_sequence_parallel,
        "num_microbatches": layout.global_batch // (layout.micro_batch * layout.data(gpus)),
    }  # fmt: skip


def test_it_agrees_with_megatron_lm() -> None:
    """On the same configuration, weights with optimizer and (of dense models) activations are within 5 %."""
    spec = find_spec("megatron")
    places = [Path(place) for place in spec.submodule_search_locations or ()] if spec else []
    if not any((place / "training/theoretical_memory_usage.py").is_file() for place in places):
        pytest.skip("megatron.training isn't installed")
    lines = "\n".join(json.dumps(arguments(shape_of(name), layout, gpus)) for name, layout, gpus in CASES)
    done = subprocess.run(
        [sys.executable, str(SCRIPT)], input=lines, capture_output=True, text=True, check=True, timeout=120
    )
    theirs = [json.loads(line) for line in done.stdout.splitlines()]
    for (name, layout, gpus), (states, activations) in zip(CASES, theirs, strict=True):
        shape = shape_of(name)
        ours = estimate(shape, layout, Training(sequence_length=LENGTH), gpus=gpus, capacity_gib=80)
        assert ours.weights + ours.gradients + ours.optimizer == pytest.approx(states, rel=0.05), name
        if not shape.experts:
            assert ours.activations == pytest.approx(activations, rel=0.05), name


@pytest.mark.parametrize(
    ("name", "billions"),
    [
        ("llama3_8b", 8.03), ("llama3_70b", 70.6), ("llama31_405b", 405.9), ("llama32_1b", 1.24), ("qwen2_7b", 7.6),
        ("qwen25_72b", 72.7), ("qwen3_8b", 8.19), ("qwen3_32b", 32.8), ("qwen3_30b_a3b", 30.5),
        ("qwen3_235b_a22b", 235.1),
        ("deepseek_v2_lite", 15.7), ("deepseek_v2", 235.7), ("deepseek_v3", 684.5), ("kimi_k2", 1026.0),
        ("glm45_355b", 358.0), ("gpt_oss_20b", 20.9), ("gpt_oss_120b", 116.8), ("olmoe_7b", 6.92), ("gemma2_9b", 9.24),
        ("gemma2_27b", 27.2), ("gpt3_175b", 175.0), ("moonlight_16b", 16.0),
    ],
)  # fmt: skip
def test_parameters_are_those_that_the_models_publish(name: str, billions: float) -> None:
    """The count from a shape is within 2 % of the model's published number of parameters."""
    assert count_parameters(shape_of(name)).total / 1e9 == pytest.approx(billions, rel=0.02)


def test_what_makes_a_run_smaller() -> None:
    """TP, PP, CP, EP, full recomputation, adapters and FSDP each lower the estimate; a longer sequence raises it."""
    dense, sparse = shape_of("llama3_8b"), shape_of("qwen3_30b_a3b")
    plain, training = Layout(global_batch=64), Training(sequence_length=LENGTH)

    def total(shape: Shape, layout: Layout, how: Training) -> float:
        return estimate(shape, layout, how, gpus=64, capacity_gib=80).total

    base = total(dense, plain, training)
    for layout in (replace(plain, tensor=2), replace(plain, pipeline=2), replace(plain, context=2)):
        assert total(dense, layout, training) < base
    for how in (replace(training, recompute="full"), replace(training, is_peft=True), replace(training, is_fsdp=True)):
        assert total(dense, plain, how) < base
    assert total(dense, plain, replace(training, sequence_length=2 * LENGTH)) > base
    assert total(sparse, replace(plain, expert=8), training) < total(sparse, plain, training)


def test_the_judgement() -> None:
    """The same run fits, is tight or won't fit as the memory shrinks; without sizes it is unknown, with the way out."""
    shape, layout, training = shape_of("llama3_8b"), Layout(global_batch=64), Training(sequence_length=LENGTH)
    need = estimate(shape, layout, training, gpus=8, capacity_gib=80).total / 1024**3
    fits = [estimate(shape, layout, training, gpus=8, capacity_gib=need / share).fit for share in (0.7, 0.9, 1.1)]
    assert fits == [Fit.FITS, Fit.TIGHT, Fit.TOO_LARGE]
    unknown = estimate(None, layout, training, gpus=8, capacity_gib=80)
    assert unknown.fit is Fit.UNKNOWN
    assert "--hf-config" in unknown.why
    hybrid = estimate(shape_of("nemotronh_8b"), layout, training, gpus=8, capacity_gib=80)
    assert hybrid.fit is Fit.UNKNOWN


def test_sizes_from_a_model_configuration(tmp_path: Path) -> None:
    """A config.json gives the shape, that of the language model where there is an encoder; another file is refused."""
    config = {
        "num_hidden_layers": 48, "hidden_size": 2048, "intermediate_size": 6144, "num_attention_heads": 32,
        "num_key_value_heads": 4, "head_dim": 128, "vocab_size": 151936, "num_experts": 128, "num_experts_per_tok": 8,
        "moe_intermediate_size": 768, "hidden_act": "silu",
    }  # fmt: skip
    file = tmp_path / "config.json"
    for written in (config, {"text_config": config, "vision_config": {}}):
        file.write_text(json.dumps(written), encoding="utf-8")
        shape, expected = shape_from_hf(file), shape_of("qwen3_30b_a3b")
        assert replace(shape, name="", source="") == replace(expected, name="", source="")
    file.write_text("{}", encoding="utf-8")
    with pytest.raises(LossbisectError, match="num_hidden_layers"):
        shape_from_hf(file)
    file.write_text("no json", encoding="utf-8")
    with pytest.raises(LossbisectError, match=r"config\.json"):
        shape_from_hf(file)
