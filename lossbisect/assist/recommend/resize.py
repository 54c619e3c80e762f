"""Parallel sizes for the GPUs at hand, starting from a recipe's own. Pure."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from lossbisect.assist.recommend.rules import broken_rules
from lossbisect.assist.recommend.types import Fit, Layout, Memory, Shape

__all__ = ["Limits", "resize", "sizes_that_work"]

_LARGEST_PIPELINE = 64
_TOKENS_PER_RANK = 8192
"""Tokens of a sequence that one context-parallel rank takes, unless the recipe itself gives it more."""
_RANK = {Fit.FITS: 0, Fit.UNKNOWN: 0, Fit.TIGHT: 1, Fit.TOO_LARGE: 2}


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """What is given.

    Attributes:
        gpus: Ranks in all.
        per_node: GPUs of a node.
        sequence_length: Tokens per sequence.
        tokens_per_rank: Tokens of a sequence that the recipe gives to a context-parallel rank.
        shape: The model; None: not known.
        extra_layers: As in `broken_rules`.
        tensor: TP that is insisted on; None: free.
        is_weak: The global batch grows with the GPUs, as Bridge's runner does it for performance recipes.
        is_multimodal: The model has an encoder: sequence parallelism stays as the recipe has it.
        recipe_gpus: GPUs that the recipe is for.
    """

    gpus: int
    per_node: int
    sequence_length: int
    tokens_per_rank: int
    shape: Shape | None
    extra_layers: int | None
    tensor: int | None
    is_weak: bool
    is_multimodal: bool
    recipe_gpus: int


def resize(recipe: Layout, limits: Limits, memory: Callable[[Layout], Memory]) -> Layout | None:
    """The layout that fits and is nearest to the recipe's; None where no layout satisfies all rules.

    Nearest: first those that fit into memory, and without figures for that at least as many ranks a replica as the
    recipe has; then context-parallel ranks as few as the sequence needs, then the fewest changes of TP, EP and PP, then
    the smallest PP. Of one layout the recipe's micro batch is tried first, then 1.
    """
    best: tuple[tuple[float, ...], Layout] | None = None
    for layout in _candidates(recipe, limits):
        fit = memory(layout)
        if fit.fit is Fit.TOO_LARGE and layout.micro_batch > 1:
            layout = _batched(replace(layout, micro_batch=1), recipe, limits)
            fit = memory(layout)
        score = _score(layout, recipe, limits, fit)
        if best is None or score < best[0]:
            best = score, layout
    return best[1] if best else None


def sizes_that_work(recipe: Layout, limits: Limits, *, largest: int = 4096) -> tuple[int, ...]:
    """GPU counts next to the one at hand for which there is a layout: the nearest below and the nearest above."""
    below = next((count for count in range(limits.gpus - 1, 0, -1) if _works(recipe, limits, count)), None)
    step = limits.per_node if limits.gpus >= limits.per_node else 1
    start = (limits.gpus // step + 1) * step
    above = next(
        (count for count in range(start, min(largest, 4 * start) + 1, step) if _works(recipe, limits, count)), None
    )
    return tuple(count for count in (below, above) if count is not None)


def _works(recipe: Layout, limits: Limits, gpus: int) -> bool:
    if gpus > limits.per_node and gpus % limits.per_node:
        return False
    return next(_candidates(recipe, replace(limits, gpus=gpus)), None) is not None


def _candidates(recipe: Layout, limits: Limits) -> Iterator[Layout]:
    for tensor in _tensors(recipe, limits):
        for pipeline in _pipelines(recipe, limits):
            for context in _contexts(recipe, limits):
                if limits.gpus % (tensor * pipeline * context):
                    continue
                for expert, expert_tensor in _experts(recipe, limits, tensor):
                    yield from _whole(recipe, limits, tensor, pipeline, context, expert, expert_tensor)


def _whole(
    recipe: Layout, limits: Limits, tensor: int, pipeline: int, context: int, expert: int, expert_tensor: int
) -> Iterator[Layout]:
    """The layout of these sizes if no rule is broken, with VP where it goes."""
    virtual = recipe.virtual if pipeline > 1 else None
    is_sequence_parallel = tensor > 1 and (recipe.is_sequence_parallel or not limits.is_multimodal)
    for chunks in dict.fromkeys((virtual, None)):
        layout = Layout(
            tensor=tensor,
            pipeline=pipeline,
            virtual=chunks,
            context=context,
            expert=expert,
            expert_tensor=expert_tensor,
            is_sequence_parallel=is_sequence_parallel,
            micro_batch=recipe.micro_batch,
        )
        layout = _batched(layout, recipe, limits)
        is_own = (pipeline, chunks) == (recipe.pipeline, recipe.virtual)
        by_hand = limits.extra_layers is None
        broken = broken_rules(
            layout,
            gpus=limits.gpus,
            per_node=min(limits.per_node, limits.gpus),
            sequence_length=limits.sequence_length,
            shape=limits.shape,
            extra_layers=(None if is_own else 0) if by_hand else limits.extra_layers,
        )
        if not broken:
            yield layout
            return


def _batched(layout: Layout, recipe: Layout, limits: Limits) -> Layout:
    """With the recipe's global batch and a micro batch that divides it; else the next global batch that works."""
    wanted = recipe.global_batch
    if limits.is_weak and limits.recipe_gpus:
        wanted = max(1, round(wanted * limits.gpus / limits.recipe_gpus))
    data = layout.data(limits.gpus)
    for micro in range(layout.micro_batch, 0, -1):  # a smaller micro batch changes less than another global batch
        if layout.micro_batch % micro == 0 and wanted % (micro * data) == 0:
            return replace(layout, micro_batch=micro, global_batch=wanted)
    least = layout.micro_batch * data
    return replace(layout, global_batch=max(1, math.ceil(wanted / least)) * least)


def _tensors(recipe: Layout, limits: Limits) -> list[int]:
    if limits.tensor is not None:
        return [limits.tensor]
    shape, most = limits.shape, min(limits.per_node, limits.gpus)
    if shape is None:
        return sorted({size for size in (1, 2, 4, 8, recipe.tensor) if size <= most and recipe.tensor % size == 0})
    heads = shape.heads if shape.is_latent else math.gcd(shape.heads, shape.query_groups)
    return [size for size in range(1, most + 1) if heads % size == 0 or size == recipe.tensor]


def _pipelines(recipe: Layout, limits: Limits) -> list[int]:
    shape = limits.shape
    if shape is None or shape.is_hybrid:  # without its layers, only what divides the recipe's own stages
        return [size for size in range(1, recipe.pipeline + 1) if recipe.pipeline % size == 0]
    layers = shape.num_layers + (limits.extra_layers or 0)
    sizes = {size for size in range(1, _LARGEST_PIPELINE + 1) if layers % size == 0}
    return sorted(sizes | {recipe.pipeline})


def _contexts(recipe: Layout, limits: Limits) -> list[int]:
    powers = [2**power for power in range(9) if 2**power <= limits.gpus]
    return sorted({*powers, recipe.context})


def _experts(recipe: Layout, limits: Limits, tensor: int) -> list[tuple[int, int]]:
    shape = limits.shape
    if not (shape.experts if shape else recipe.expert > 1):
        return [(1, tensor)]
    most = shape.experts if shape else recipe.expert
    own = {1, tensor} if recipe.expert_tensor > 1 else {1}
    return [(size, other) for size in range(1, most + 1) if most % size == 0 for other in sorted(own)]


def _score(layout: Layout, recipe: Layout, limits: Limits, memory: Memory) -> tuple[float, ...]:
    def far(one: int, other: int) -> float:
        return abs(math.log2(one / other))

    needed = max(1, math.ceil(limits.sequence_length / max(_TOKENS_PER_RANK, limits.tokens_per_rank)))
    if limits.sequence_length == limits.tokens_per_rank * recipe.context:
        needed = recipe.context
    least = recipe.tensor * recipe.pipeline
    shards = layout.tensor * layout.pipeline
    unknown = max(0.0, math.log2(least / shards)) if memory.fit is Fit.UNKNOWN else 0.0
    if memory.fit is Fit.UNKNOWN and recipe.expert > 1:
        unknown += max(0.0, math.log2(recipe.expert_ranks / layout.expert_ranks))
    changes = far(layout.tensor, recipe.tensor) + far(layout.expert, recipe.expert)
    changes += far(layout.pipeline, recipe.pipeline) + (layout.virtual != recipe.virtual) / 4
    changes += far(layout.expert_tensor, recipe.expert_tensor) / 4 if layout.expert > 1 else 0
    return (
        _RANK[memory.fit],
        unknown,
        far(layout.context, needed),
        float(layout.micro_batch != recipe.micro_batch),
        changes,
        layout.pipeline,
        layout.tensor,
    )
