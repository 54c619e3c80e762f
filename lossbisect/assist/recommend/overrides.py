"""What differs from the recipe, and whether that changes what is learned. Pure."""

from lossbisect.assist.recommend.types import Effect, Goal, Layout, Override

__all__ = ["overrides"]

_ITERATIONS = 100


def overrides(
    own: Layout, layout: Layout, *, length: tuple[int, int], goal: Goal, is_moe: bool
) -> tuple[Override, ...]:
    """Settings to give on the command line.

    Args:
        own: The recipe's layout.
        layout: The one to run.
        length: Tokens per sequence: the recipe's, and those to run.
        goal: What for.
        is_moe: The model has experts.
    """
    rounding = "the same arithmetic in another order: rounding differs, nothing else"
    changed: list[tuple[str, object, object, Effect, str]] = [
        ("model.tensor_model_parallel_size", own.tensor, layout.tensor, Effect.EXECUTION, rounding),
        ("model.sequence_parallel", own.is_sequence_parallel, layout.is_sequence_parallel, Effect.EXECUTION, rounding),
        ("model.pipeline_model_parallel_size", own.pipeline, layout.pipeline, Effect.EXECUTION, "where layers run"),
        ("model.virtual_pipeline_model_parallel_size", own.virtual, layout.virtual, Effect.EXECUTION, "when they run"),
        ("model.context_parallel_size", own.context, layout.context, Effect.EXECUTION, rounding),
    ]
    if is_moe:
        changed += [
            ("model.expert_model_parallel_size", own.expert, layout.expert, Effect.EXECUTION, "where experts run"),
            ("model.expert_tensor_parallel_size", own.expert_tensor, layout.expert_tensor, Effect.EXECUTION, rounding),
        ]
    micro = (
        (Effect.CONVERGENCE, "an MoE's load-balancing loss is taken over a micro batch")
        if is_moe
        else (Effect.EXECUTION, "the same sequences in more passes")
    )
    changed += [
        ("train.micro_batch_size", own.micro_batch, layout.micro_batch, *micro),
        (
            "train.global_batch_size",
            own.global_batch,
            layout.global_batch,
            Effect.CONVERGENCE,
            "other gradients per iteration; scale the learning rate with care",
        ),
        ("dataset.seq_length", *length, Effect.CONVERGENCE, "other contexts, and other tokens per iteration"),
    ]
    if goal is Goal.CORRELATION:
        changed += [
            ("train.train_iters", "the recipe's", _ITERATIONS, Effect.CONVERGENCE, "the schedule ends earlier"),
            (
                "logger.log_interval",
                "the recipe's",
                1,
                Effect.EXECUTION,
                "one row per iteration, to compare row by row",
            ),
        ]
    return tuple(
        Override(setting=setting, value=_text(value), was=_text(was), effect=effect, why=why)
        for setting, was, value, effect, why in changed
        if was != value
    )


def _text(value: object) -> str:
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
