"""A recipe in the words of each trainer. Pure: no files, no environment.

The two renderings say the same thing. Where the trainers' defaults differ (Adam's betas and epsilon, weight decay, the
data split, dropout, sharding, fused cross entropy) both are told; what they share is told only if a recipe changes it,
so that a commit needn't know a setting that isn't used. Switches for the CPU lane turn off kernels that only a GPU has.
"""

from dataclasses import fields
from pathlib import Path

from lossbisect.errors import RecipeError
from lossbisect.train.parts import Part, checkpoints
from lossbisect.train.recipes import Activation, Normalization, PositionEmbedding, Precision, Recipe
from lossbisect.train.types import Lane, TrainerName

__all__ = ["BRIDGE_RECIPE", "bridge_overrides", "mlm_arguments"]

BRIDGE_RECIPE = "vanilla_gpt_pretrain_config"
"""Bridge's own recipe for correlation with Megatron-LM: every model field at Megatron-LM's default."""

_DATA_SPLIT = "9999,8,2"
_NEVER = 1_000_000
"""An interval that no correlation run reaches."""

_ALWAYS = (
    ("layers", "--num-layers", ("model.num_layers",)),
    ("hidden_size", "--hidden-size", ("model.hidden_size",)),
    ("attention_heads", "--num-attention-heads", ("model.num_attention_heads",)),
    ("ffn_hidden_size", "--ffn-hidden-size", ("model.ffn_hidden_size",)),
    ("sequence_length", "--seq-length", ("model.seq_length", "dataset.seq_length")),
    ("hidden_dropout", "--hidden-dropout", ("model.hidden_dropout",)),
    ("attention_dropout", "--attention-dropout", ("model.attention_dropout",)),
    ("vocabulary_size", "--vocab-size", ("tokenizer.vocab_size",)),
    ("iterations", "--train-iters", ("train.train_iters",)),
    ("micro_batch_size", "--micro-batch-size", ("train.micro_batch_size",)),
    ("global_batch_size", "--global-batch-size", ("train.global_batch_size",)),
    ("seed", "--seed", ("rng.seed", "dataset.random_seed")),
    ("lr", "--lr", ("optimizer.lr",)),
    ("min_lr", "--min-lr", ("optimizer.min_lr",)),
    ("lr_schedule", "--lr-decay-style", ("scheduler.lr_decay_style",)),
    ("lr_warmup_iterations", "--lr-warmup-iters", ("scheduler.lr_warmup_iters",)),
    ("lr_decay_iterations", "--lr-decay-iters", ("scheduler.lr_decay_iters",)),
    # Bridge's scheduler writes its own weight decay over the optimizer's at every iteration.
    (
        "weight_decay",
        "--weight-decay",
        ("optimizer.weight_decay", "scheduler.start_weight_decay", "scheduler.end_weight_decay"),
    ),
    ("adam_beta1", "--adam-beta1", ("optimizer.adam_beta1",)),
    ("adam_beta2", "--adam-beta2", ("optimizer.adam_beta2",)),
    ("adam_eps", "--adam-eps", ("optimizer.adam_eps",)),
    ("clip_grad", "--clip-grad", ("optimizer.clip_grad",)),
)
"""Field, Megatron-LM's argument, Bridge's keys: what both are always told."""

_IF_CHANGED = (
    ("query_groups", "--num-query-groups", "model.num_query_groups"),
    ("experts", "--num-experts", "model.num_moe_experts"),
    ("expert_ffn_hidden_size", "--moe-ffn-hidden-size", "model.moe_ffn_hidden_size"),
    ("load_balancing", "--moe-router-load-balancing-type", "model.moe_router_load_balancing_type"),
    ("aux_loss_coefficient", "--moe-aux-loss-coeff", "model.moe_aux_loss_coeff"),
    ("z_loss_coefficient", "--moe-z-loss-coeff", "model.moe_z_loss_coeff"),
    ("router_score", "--moe-router-score-function", "model.moe_router_score_function"),
    ("mtp_layers", "--mtp-num-layers", "model.mtp_num_layers"),
    ("decoupled_lr", "--decoupled-lr", "optimizer.decoupled_lr"),
    ("decoupled_min_lr", "--decoupled-min-lr", "optimizer.decoupled_min_lr"),
    ("embedding_init_std", "--embedding-init-method-std", "model.embedding_init_method_std"),
    ("tensor_parallel", "--tensor-model-parallel-size", "model.tensor_model_parallel_size"),
    ("pipeline_parallel", "--pipeline-model-parallel-size", "model.pipeline_model_parallel_size"),
)
"""Field, argument, key: told if it isn't at the default that both share."""

_SWITCHES = (
    ("position_embedding", PositionEmbedding.ROPE, "--position-embedding-type rope",
     "model.position_embedding_type=rope"),
    ("normalization", Normalization.RMS_NORM, "--normalization RMSNorm", "model.normalization=RMSNorm"),
    ("activation", Activation.SWIGLU, "--swiglu", "model.gated_linear_unit=true model.activation_func=silu"),
    ("tied_embeddings", False, "--untie-embeddings-and-output-weights",
     "model.share_embeddings_and_output_weights=false"),
    ("linear_bias", False, "--disable-bias-linear", "model.add_bias_linear=false"),
    ("qk_layernorm", True, "--qk-layernorm", "model.qk_layernorm=true"),
    ("multi_latent_attention", True, "--multi-latent-attention --rope-type rope --kv-channels 128",
     "model.multi_latent_attention=true model.rope_type=rope model.kv_channels=128"),
    ("mask_end_of_document", True, "--eod-mask-loss", "dataset.eod_mask_loss=true"),
    ("per_token_loss", True, "--calculate-per-token-loss", "model.calculate_per_token_loss=true"),
    ("sequence_parallel", True, "--sequence-parallel", "model.sequence_parallel=true"),
    ("expert_bias", True, "--moe-router-enable-expert-bias", "model.moe_router_enable_expert_bias=true"),
)  # fmt: skip
"""Field, value, Megatron-LM's words, Bridge's words: told if the field has that value."""

_MLM_WITHOUT_GPU = (
    "--no-gradient-accumulation-fusion", "--no-masked-softmax-fusion", "--no-persist-layer-norm", "--no-rope-fusion",
    "--no-bias-gelu-fusion", "--no-bias-swiglu-fusion", "--no-bias-dropout-fusion",
    "--no-create-attention-mask-in-dataloader",
)  # fmt: skip
_BRIDGE_WITHOUT_GPU = (
    "model.gradient_accumulation_fusion=false", "model.masked_softmax_fusion=false", "model.bias_dropout_fusion=false",
    "model.bias_activation_fusion=false", "model.persist_layer_norm=false", "model.apply_rope_fusion=false",
)  # fmt: skip


def mlm_arguments(recipe: Recipe, *, lane: Lane, out: Path, part: Part = Part.WHOLE) -> list[str]:
    """Arguments of Megatron-LM's ``pretrain_gpt.py``.

    Args:
        recipe: What to train.
        lane: Where.
        out: The run's directory; TensorBoard's and a restarting recipe's checkpoint go into it.
        part: Which part of a recipe that restarts.

    Raises:
        RecipeError: Only another trainer can express the recipe.
    """
    _check_trainer(recipe, TrainerName.MLM)
    words = [word for field, name, _ in _ALWAYS for word in (name, str(getattr(recipe, field)))]
    words += ["--max-position-embeddings", str(recipe.sequence_length)]
    for field, name, _ in _changed(recipe):
        words += [name, str(getattr(recipe, field))]
    for _, _, said, _ in _switched(recipe):
        words += said.split()
    if recipe.query_groups:
        words.append("--group-query-attention")
    if recipe.experts:
        words += ["--moe-router-topk", str(recipe.experts_per_token)]
    if recipe.distributed_optimizer:
        words.append("--use-distributed-optimizer")
    if recipe.precision is Precision.BF16:
        words += ["--bf16", "--accumulate-allreduce-grads-in-fp32"]
    if part is Part.FIRST:
        words += ["--save", str(checkpoints(out)), "--save-interval", str(recipe.restart_at)]
        words += ["--exit-interval", str(recipe.restart_at)]
    elif part is Part.SECOND:
        words += ["--load", str(checkpoints(out)), "--exit-on-missing-checkpoint"]
    if lane is Lane.CPU:
        words += ["--transformer-impl", "local", "--distributed-backend", "gloo", *_MLM_WITHOUT_GPU]
    return [
        *words,
        *("--optimizer", "adam", "--tokenizer-type", "NullTokenizer", "--mock-data", "--split", _DATA_SPLIT),
        *("--eval-iters", "0", "--eval-interval", str(_NEVER), "--log-interval", "1", "--num-workers", "0"),
        *("--tensorboard-dir", str(out / "tensorboard")),
    ]


def bridge_overrides(recipe: Recipe, *, lane: Lane, out: Path, part: Part = Part.WHOLE) -> list[str]:
    """``KEY=VALUE`` overrides of Bridge's `BRIDGE_RECIPE`.

    Args:
        recipe: What to train.
        lane: Where.
        out: The run's directory; TensorBoard's and a restarting recipe's checkpoint go into it.
        part: Which part of a recipe that restarts; a recipe that doesn't saves nothing and resumes nothing.

    Raises:
        RecipeError: Only another trainer can express the recipe.
    """
    _check_trainer(recipe, TrainerName.BRIDGE)
    words = [f"{key}={getattr(recipe, field)}" for field, _, keys in _ALWAYS for key in keys]
    words += [f"{key}={getattr(recipe, field)}" for field, _, key in _changed(recipe)]
    for _, _, _, said in _switched(recipe):
        words += said.split()
    if recipe.experts:
        words.append(f"model.moe_router_topk={recipe.experts_per_token}")
    is_sharded = str(recipe.distributed_optimizer).lower()
    # Sharded or not, sums differ in their order only; Megatron-LM doesn't shard unasked.
    words += [f"ddp.use_distributed_optimizer={is_sharded}", f"optimizer.use_distributed_optimizer={is_sharded}"]
    # On by default in Bridge, off in Megatron-LM: the fused kernel rounds the logits' gradient to bfloat16.
    words.append("model.cross_entropy_loss_fusion=false")
    if recipe.precision is Precision.FP32:
        words.append("mixed_precision=null")
    if lane is Lane.CPU:
        words += _BRIDGE_WITHOUT_GPU
    return [
        *words,
        *(f"dataset.split='{_DATA_SPLIT}'", "dataset.num_workers=0", "logger.log_interval=1"),
        *("validation.eval_iters=0", f"validation.eval_interval={_NEVER}"),
        *(f"logger.tensorboard_dir='{out / 'tensorboard'}'", *_bridge_checkpoint(recipe, out, part)),
    ]


def _bridge_checkpoint(recipe: Recipe, out: Path, part: Part) -> list[str]:
    folder, interval = checkpoints(out), recipe.restart_at
    if part is Part.FIRST:
        save = [f"checkpoint.save='{folder}'", f"checkpoint.save_interval={interval}", "checkpoint.load=null"]
        return [*save, f"train.exit_interval={interval}"]
    if part is Part.SECOND:
        return ["checkpoint.save=null", f"checkpoint.load='{folder}'", "checkpoint.exit_on_missing_checkpoint=true"]
    return ["checkpoint.save=null", "checkpoint.load=null"]


def _check_trainer(recipe: Recipe, trainer: TrainerName) -> None:
    if trainer not in recipe.trainers:
        raise RecipeError(
            f"recipe {recipe.name}: {trainer} can't express it. Use --trainer {' or '.join(recipe.trainers)}."
        )


def _changed(recipe: Recipe) -> list[tuple[str, str, str]]:
    defaults = {field.name: field.default for field in fields(Recipe)}
    return [row for row in _IF_CHANGED if getattr(recipe, row[0]) != defaults[row[0]]]


def _switched(recipe: Recipe) -> list[tuple[str, object, str, str]]:
    return [row for row in _SWITCHES if getattr(recipe, row[0]) == row[1]]
