"""A recipe in the words of each trainer. Pure: no files, no environment.

The two renderings say the same thing; where the trainers' defaults differ (Adam's betas and epsilon, weight decay,
the data split, dropout) both are told. Switches for the CPU lane turn off kernels that only a GPU has.
"""

from pathlib import Path

from lossbisect.train.recipes import Precision, Recipe
from lossbisect.train.types import Lane

__all__ = ["BRIDGE_RECIPE", "bridge_overrides", "mlm_arguments"]

BRIDGE_RECIPE = "vanilla_gpt_pretrain_config"
"""Bridge's own recipe for correlation with Megatron-LM: every model field at Megatron-LM's default."""

_DATA_SPLIT = "9999,8,2"
_NEVER = 1_000_000
"""An interval that no correlation run reaches."""


def mlm_arguments(recipe: Recipe, *, lane: Lane, out: Path) -> list[str]:
    """Arguments of Megatron-LM's ``pretrain_gpt.py``.

    Args:
        recipe: What to train.
        lane: Where.
        out: The run's directory; TensorBoard's goes into it.
    """
    settings: dict[str, object] = {
        "num-layers": recipe.layers,
        "hidden-size": recipe.hidden_size,
        "num-attention-heads": recipe.attention_heads,
        "ffn-hidden-size": recipe.ffn_hidden_size,
        "seq-length": recipe.sequence_length,
        "max-position-embeddings": recipe.sequence_length,
        "hidden-dropout": recipe.hidden_dropout,
        "attention-dropout": recipe.attention_dropout,
        "tokenizer-type": "NullTokenizer",
        "vocab-size": recipe.vocabulary_size,
        "train-iters": recipe.iterations,
        "micro-batch-size": recipe.micro_batch_size,
        "global-batch-size": recipe.global_batch_size,
        "seed": recipe.seed,
        "optimizer": "adam",
        "lr": recipe.lr,
        "min-lr": recipe.min_lr,
        "lr-decay-style": recipe.lr_schedule,
        "lr-warmup-iters": recipe.lr_warmup_iterations,
        "lr-decay-iters": recipe.lr_decay_iterations,
        "weight-decay": recipe.weight_decay,
        "adam-beta1": recipe.adam_beta1,
        "adam-beta2": recipe.adam_beta2,
        "adam-eps": recipe.adam_eps,
        "clip-grad": recipe.clip_grad,
        "split": _DATA_SPLIT,
        "eval-iters": 0,
        "eval-interval": _NEVER,
        "log-interval": 1,
        "tensorboard-dir": out / "tensorboard",
        "num-workers": 0,
    }
    switches = ["mock-data"]
    if recipe.precision is Precision.BF16:
        switches += ["bf16", "accumulate-allreduce-grads-in-fp32"]
    if lane is Lane.CPU:
        settings |= {"transformer-impl": "local", "distributed-backend": "gloo"}
        switches += [
            "no-gradient-accumulation-fusion",
            "no-masked-softmax-fusion",
            "no-persist-layer-norm",
            "no-rope-fusion",
            "no-bias-gelu-fusion",
            "no-bias-dropout-fusion",
            "no-create-attention-mask-in-dataloader",
        ]
    values = [word for name, value in settings.items() for word in (f"--{name}", str(value))]
    return [*values, *(f"--{switch}" for switch in switches)]


def bridge_overrides(recipe: Recipe, *, lane: Lane, out: Path) -> list[str]:
    """``KEY=VALUE`` overrides of Bridge's `BRIDGE_RECIPE`.

    Args:
        recipe: What to train.
        lane: Where.
        out: The run's directory; TensorBoard's goes into it, and nothing is saved or resumed.
    """
    settings: dict[str, object] = {
        "model.num_layers": recipe.layers,
        "model.hidden_size": recipe.hidden_size,
        "model.num_attention_heads": recipe.attention_heads,
        "model.ffn_hidden_size": recipe.ffn_hidden_size,
        "model.seq_length": recipe.sequence_length,
        "dataset.seq_length": recipe.sequence_length,
        "model.hidden_dropout": recipe.hidden_dropout,
        "model.attention_dropout": recipe.attention_dropout,
        "tokenizer.vocab_size": recipe.vocabulary_size,
        "train.train_iters": recipe.iterations,
        "train.micro_batch_size": recipe.micro_batch_size,
        "train.global_batch_size": recipe.global_batch_size,
        "rng.seed": recipe.seed,
        "dataset.random_seed": recipe.seed,
        "optimizer.lr": recipe.lr,
        "optimizer.min_lr": recipe.min_lr,
        "scheduler.lr_decay_style": recipe.lr_schedule,
        "scheduler.lr_warmup_iters": recipe.lr_warmup_iterations,
        "scheduler.lr_decay_iters": recipe.lr_decay_iterations,
        "optimizer.weight_decay": recipe.weight_decay,
        # The scheduler writes its own weight decay over the optimizer's at every iteration.
        "scheduler.start_weight_decay": recipe.weight_decay,
        "scheduler.end_weight_decay": recipe.weight_decay,
        "optimizer.adam_beta1": recipe.adam_beta1,
        "optimizer.adam_beta2": recipe.adam_beta2,
        "optimizer.adam_eps": recipe.adam_eps,
        "optimizer.clip_grad": recipe.clip_grad,
        "dataset.split": f"'{_DATA_SPLIT}'",
        "validation.eval_iters": 0,
        "validation.eval_interval": _NEVER,
        "logger.log_interval": 1,
        "logger.tensorboard_dir": f"'{out / 'tensorboard'}'",
        # On by default in Bridge, off in Megatron-LM; the fused kernel rounds the logits' gradient to bfloat16.
        "model.cross_entropy_loss_fusion": "false",
        # Sharded or not, the sums are the same but for their order; Megatron-LM doesn't shard unasked.
        "ddp.use_distributed_optimizer": "false",
        "optimizer.use_distributed_optimizer": "false",
        "checkpoint.save": "null",
        "checkpoint.load": "null",
        "dataset.num_workers": 0,
    }
    if recipe.precision is Precision.FP32:
        settings |= {"mixed_precision": "null"}
    if lane is Lane.CPU:
        settings |= {
            "model.gradient_accumulation_fusion": "false",
            "model.masked_softmax_fusion": "false",
            "model.bias_dropout_fusion": "false",
            "model.bias_activation_fusion": "false",
            "model.persist_layer_norm": "false",
        }
    return [f"{key}={value}" for key, value in settings.items()]
