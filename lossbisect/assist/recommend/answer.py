"""From a question to a recipe, its sizes and its command, with the reason for each."""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from lossbisect.assist.recommend.catalogue import Reading, list_recipes
from lossbisect.assist.recommend.choose import nearest_recipe
from lossbisect.assist.recommend.command import command_lines, dataset_preset
from lossbisect.assist.recommend.memory import GPU_MEMORY_GIB, Training, estimate
from lossbisect.assist.recommend.names import find_model
from lossbisect.assist.recommend.overrides import overrides
from lossbisect.assist.recommend.resize import Limits, resize, sizes_that_work
from lossbisect.assist.recommend.rules import broken_rules
from lossbisect.assist.recommend.shapes import known_shape, shape_from_hf
from lossbisect.assist.recommend.shortest import Shortest, shortest_for_settings
from lossbisect.assist.recommend.source import BridgeSource
from lossbisect.assist.recommend.steps import Step, steps
from lossbisect.assist.recommend.types import (
    BridgeRecipe,
    Fit,
    Goal,
    Kind,
    Layout,
    Memory,
    Override,
    Question,
    Shape,
    Task,
)
from lossbisect.errors import LossbisectError

__all__ = ["Answer", "Step", "recommend"]

_PER_NODE = {"gb200": 4, "gb300": 4, "vr200": 4}
_MULTIMODAL = ("_vl", "_omni", "_audio", "glm_45v", "ministral3", "step37", "flux", "wan")
_USUAL_LENGTH = 4096
_LONGEST = 2**24


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """What to run.

    Attributes:
        question: What was asked, with what it left open filled in.
        bridge: Which Bridge was read.
        recipe: The recipe function.
        reading: What its body says.
        layout: Parallel sizes and batch to run.
        is_own: Those are the recipe's own.
        steps: Each of them with its reason.
        overrides: What differs from the recipe.
        memory: The fullest GPU.
        shape: The model's sizes; None: not known.
        dataset: Data-set preset; None: the recipe's own data set.
        command: Lines of one shell command.
        notes: What else to know.
        bisect: Recipe of lossbisect that reaches this model's code.
    """

    question: Question
    bridge: str
    recipe: BridgeRecipe
    reading: Reading
    layout: Layout
    is_own: bool
    steps: tuple[Step, ...]
    overrides: tuple[Override, ...]
    memory: Memory
    shape: Shape | None
    dataset: str | None
    command: tuple[str, ...]
    notes: tuple[str, ...]
    bisect: Shortest


def recommend(
    source: BridgeSource,
    question: Question,
    *,
    recipes: Sequence[BridgeRecipe] | None = None,
    hf_config: Path | None = None,
) -> Answer:
    """The recipe, sizes and command for a question.

    Args:
        source: Bridge's sources.
        question: What is asked.
        recipes: All of them, where they are at hand.
        hf_config: The model's ``config.json``, for sizes that the table doesn't have.

    Raises:
        LossbisectError: Nothing can be run as asked; one sentence says why and what is the nearest that can.
    """
    question = _with_type(question)
    per_node = _check(question)
    recipes = list_recipes(source) if recipes is None else recipes
    model = find_model(source, recipes, question.model)
    recipe, reading = nearest_recipe(source, recipes, model, question)
    shape = shape_from_hf(hf_config) if hf_config else known_shape(model)
    length = question.sequence_length or reading.sequence_length or _USUAL_LENGTH
    capacity = question.memory_gib or GPU_MEMORY_GIB[question.gpu_type]
    training = Training(
        sequence_length=length,
        recompute=reading.recompute,
        is_peft=recipe.task is Task.PEFT,
        is_sharded=reading.is_sharded,
        is_fsdp=reading.is_fsdp,
        is_offloaded=reading.is_offloaded,
    )
    own_length = reading.sequence_length or length
    limits = Limits(
        gpus=question.gpus,
        per_node=per_node,
        sequence_length=length,
        tokens_per_rank=max(1, own_length // reading.layout.context),
        shape=shape,
        extra_layers=reading.extra_layers,
        tensor=question.tensor,
        is_weak=recipe.kind is Kind.PERFORMANCE,
        is_multimodal=any(word in f"_{model}" for word in _MULTIMODAL),
        recipe_gpus=recipe.gpus or question.gpus,
    )

    def memory(layout: Layout) -> Memory:
        return estimate(shape, layout, training, gpus=question.gpus, capacity_gib=capacity)

    is_same = _is_same(recipe, question, length, own_length)
    layout = _layout(reading.layout, limits, memory, is_same=is_same, is_fixed=recipe.kind is Kind.PERFORMANCE)
    if layout is None:
        raise LossbisectError(_impossible(model, reading.layout, limits))
    changed = overrides(
        reading.layout, layout, length=(own_length, length), goal=question.goal, is_moe=_is_moe(shape, reading)
    )
    taken = memory(layout)
    more = _more_gpus(reading.layout, limits, training, capacity) if taken.fit is Fit.TOO_LARGE else None
    preset = dataset_preset(source, recipe, is_multimodal=limits.is_multimodal)
    return Answer(
        question=question,
        bridge=source.told,
        recipe=recipe,
        reading=reading,
        layout=layout,
        is_own=layout == reading.layout,
        steps=steps(reading.layout, layout, limits),
        overrides=changed,
        memory=taken,
        shape=shape,
        dataset=preset,
        command=command_lines(source, recipes, recipe, changed, preset, question=question, per_node=per_node),
        notes=_notes(question, recipe, reading, limits, layout, taken, more),
        bisect=shortest_for_settings(_settings(shape, layout)),
    )


def _with_type(question: Question) -> Question:
    """A question with the type, and the memory, in what a user or a driver calls a GPU, such as ``A100-SXM4-40GB``."""
    told = question.gpu_type
    words = re.split(r"[^a-z0-9]+", told.lower())
    found = next((word for word in words if word in GPU_MEMORY_GIB), None)
    if found is None:
        raise LossbisectError(f"GPU type {told!r} isn't known. One of: {', '.join(GPU_MEMORY_GIB)}.")
    size = next((float(word[:-2]) for word in words if re.fullmatch(r"\d+gb", word)), GPU_MEMORY_GIB[found])
    is_usual = question.memory_gib is not None or size == GPU_MEMORY_GIB[found]
    return replace(question, gpu_type=found, memory_gib=question.memory_gib if is_usual else size)


def _check(question: Question) -> int:
    """GPUs of a node, for a question that makes sense."""
    gpu_type, gpus = question.gpu_type, question.gpus
    per_node = _PER_NODE.get(gpu_type, 8) if question.per_node is None else question.per_node
    if gpus < 1 or per_node < 1:
        raise LossbisectError(f"{gpus} GPUs, {per_node} per node: at least 1 of each is needed.")
    if gpus > per_node and gpus % per_node:
        low = gpus // per_node * per_node
        raise LossbisectError(
            f"{gpus} GPUs don't fill nodes of {per_node}: use {low} or {low + per_node}, or say --gpus-per-node."
        )
    if gpus < per_node and per_node % gpus:
        low = max(size for size in range(1, gpus) if per_node % size == 0)
        high = min(size for size in range(gpus, per_node + 1) if per_node % size == 0)
        raise LossbisectError(
            f"{gpus} GPUs don't divide a node of {per_node}, so no tensor- or data-parallel group comes out even: "
            f"use {low} or {high}."
        )
    length = question.sequence_length
    if length is not None and not 1 < length <= _LONGEST:
        raise LossbisectError(f"Sequence length {length}: between 2 and {_LONGEST} tokens; Bridge's usual one is 4096.")
    if question.tensor is not None and question.tensor < 1:
        raise LossbisectError(f"Tensor-parallel size {question.tensor}: at least 1.")
    if question.memory_gib is not None and not 0 < question.memory_gib < math.inf:
        raise LossbisectError(f"Memory {question.memory_gib:g} GiB: a number above 0 is needed; an H100 has 80.")
    return per_node


def _is_same(recipe: BridgeRecipe, question: Question, length: int, own_length: int) -> bool:
    """The question is the very one that the recipe was made for."""
    return (
        recipe.gpus == question.gpus
        and length == own_length
        and question.tensor is None
        and question.memory_gib is None
        and GPU_MEMORY_GIB[question.gpu_type] >= GPU_MEMORY_GIB.get(recipe.hardware or "", 0.0)
    )


def _layout(
    own: Layout, limits: Limits, memory: Callable[[Layout], Memory], *, is_same: bool, is_fixed: bool
) -> Layout | None:
    """The recipe's own layout where the question is its own and it can run; else the nearest that can.

    A benchmark's layout is the benchmark: theory doesn't overrule it.
    """
    can_run = is_same and not broken_rules(
        own,
        gpus=limits.gpus,
        per_node=min(limits.per_node, limits.gpus),
        sequence_length=limits.sequence_length,
        shape=limits.shape,
        extra_layers=limits.extra_layers,
    )
    if can_run and (is_fixed or memory(own).fit is not Fit.TOO_LARGE):
        return own
    other = resize(own, limits, memory)
    return own if can_run and (other is None or memory(other).fit is Fit.TOO_LARGE) else other


def _impossible(model: str, own: Layout, limits: Limits) -> str:
    shape = limits.shape
    if limits.tensor is not None:
        heads = None if shape is None else (shape.heads if shape.is_latent else shape.query_groups)
        works = [size for size in (1, 2, 4, 8) if heads is None or heads % size == 0]
        near = min(works, key=lambda size: (abs(size - (limits.tensor or 1)), size))
        told = f"{model} has {heads} key-value heads" if heads else f"{model}'s heads aren't known"
        nodes = f"nodes have {limits.per_node} GPUs"
        return f"TP {limits.tensor} can't be: {told}, {nodes}. The nearest that works: TP {near}."
    if limits.sequence_length % 2:
        return (
            f"Sequence length {limits.sequence_length} doesn't divide among ranks: use "
            f"{limits.sequence_length // 1024 * 1024 or 1024}."
        )
    counts = sizes_that_work(own, limits)
    near_counts = " or ".join(map(str, counts)) or "none found"
    return (
        f"{limits.gpus} GPUs: no TP, PP, CP and EP satisfy the rules for {model} at sequence length "
        f"{limits.sequence_length} (the recipe has {own.tensor} x {own.pipeline} x {own.context}, EP {own.expert}). "
        f"The nearest GPU counts that work: {near_counts}."
    )


def _more_gpus(own: Layout, limits: Limits, training: Training, capacity: float) -> int | None:
    """The next doubling of the GPUs that fits; None where even eight times as many don't."""
    for factor in (2, 4, 8):
        wider = replace(limits, gpus=limits.gpus * factor)

        def memory(layout: Layout, gpus: int = wider.gpus) -> Memory:
            return estimate(limits.shape, layout, training, gpus=gpus, capacity_gib=capacity)

        layout = resize(own, wider, memory)
        if layout is not None and memory(layout).fit in (Fit.FITS, Fit.TIGHT):
            return wider.gpus
    return None


def _is_moe(shape: Shape | None, reading: Reading) -> bool:
    return bool(shape.experts) if shape else reading.layout.expert > 1


def _notes(
    question: Question,
    recipe: BridgeRecipe,
    reading: Reading,
    limits: Limits,
    layout: Layout,
    memory: Memory,
    more: int | None,
) -> tuple[str, ...]:
    notes = []
    if recipe.kind is Kind.PERFORMANCE:
        notes.append(
            "A performance recipe: mock data, throughput only. Its loss proves nothing, about a commit as little as "
            "about a model; for a loss use --goal pretrain or correlation."
        )
    else:
        notes.append(
            "A library recipe: for training. Its speed isn't what Bridge publishes; for that use --goal benchmark."
        )
    if reading.mock and recipe.task is Task.PRETRAIN and recipe.kind is Kind.LIBRARY:
        notes.append(
            "It trains on mock data until a corpus is named: --dataset megatron-indexed dataset.data_path=PREFIX"
        )
    if reading.unread:
        notes.append(f"Not readable without running the recipe, so taken as 1: {', '.join(reading.unread)}.")
    own = _own_trouble(recipe, reading, limits)
    if own:
        notes.append(f"By these rules the recipe's own sizes can't run on the {recipe.gpus} GPUs in its name: {own}.")
    if recipe.hardware and recipe.hardware != question.gpu_type:
        notes.append(f"No recipe for {question.gpu_type} is nearer: this one was tuned for {recipe.hardware}.")
    if memory.fit is Fit.TOO_LARGE:
        count = f"{more} GPUs would do" if more else "no eightfold number of GPUs would do"
        notes.append(f"Won't fit by theory: {count}; so may recomputation or a shorter sequence.")
    elif memory.fit is Fit.TIGHT:
        notes.append("Out of memory? First train.micro_batch_size=1, then recompute, then PP or TP doubled.")
    elif memory.fit is Fit.UNKNOWN and layout.least_world < reading.layout.least_world:
        fewer = f"{layout.least_world} ranks a replica instead of the recipe's {reading.layout.least_world}"
        notes.append(f"It may well not fit: {fewer}, and its memory isn't known.")
    if question.goal is Goal.CORRELATION:
        notes.append(
            "To compare Megatron-LM with Bridge at one commit, 'lossbisect correlate' runs a small recipe in both; "
            "this is for the full model."
        )
    return tuple(notes)


def _own_trouble(recipe: BridgeRecipe, reading: Reading, limits: Limits) -> str | None:
    if recipe.gpus is None:
        return None
    broken = broken_rules(
        reading.layout,
        gpus=recipe.gpus,
        per_node=max(limits.per_node, reading.layout.tensor),
        sequence_length=reading.sequence_length or _USUAL_LENGTH,
        shape=limits.shape,
        extra_layers=reading.extra_layers,
    )
    return broken[0] if broken else None


def _settings(shape: Shape | None, layout: Layout) -> dict[str, str | int | float | bool | None]:
    """What the model's code paths depend on, by Megatron-LM's names."""
    if shape is None:
        return {"num_experts": 1 if layout.expert > 1 else None, "position_embedding_type": "rope"}
    return {
        "num_experts": shape.experts or None,
        "mtp_num_layers": shape.mtp_layers or None,
        "multi_latent_attention": shape.is_latent,
        "num_query_groups": shape.query_groups,
        "num_attention_heads": shape.heads,
        "position_embedding_type": "rope" if shape.norm_size == 1 else "learned_absolute",
    }
