"""Each parallel size with the rule behind it. Pure."""

from dataclasses import dataclass

from lossbisect.assist.recommend.resize import Limits
from lossbisect.assist.recommend.types import Layout

__all__ = ["Step", "steps"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """One size.

    Attributes:
        name: Such as ``TP``.
        value: As text.
        was: The recipe's own, where it differs; None: the same.
        why: The rule, with this question's figures.
    """

    name: str
    value: str
    was: str | None
    why: str


def steps(own: Layout, layout: Layout, limits: Limits) -> tuple[Step, ...]:
    """The sizes in the order in which they are decided."""
    shape = limits.shape
    heads = None if shape is None else (shape.heads if shape.is_latent else shape.query_groups)
    kind = "attention" if shape is not None and shape.is_latent else "key-value"
    node = f"stays in a node of {limits.per_node} GPUs"
    found = [
        _step("TP", own.tensor, layout.tensor, f"{_parts(layout.tensor, heads, kind)}, {node}"),
        _step("SP", own.is_sequence_parallel, layout.is_sequence_parallel, _sequence(layout, limits)),
        _step("PP", own.pipeline, layout.pipeline, _stages(layout, limits)),
        _step("VP", own.virtual, layout.virtual, "chunks of layers per stage fill the pipeline's bubble"),
        _step("CP", own.context, layout.context, _context(layout, limits)),
    ]
    if layout.expert > 1 or own.expert > 1:
        experts = f"divides the {shape.experts} experts; " if shape else ""
        least = f"PP x max(TP x CP, EP x ETP) = {layout.least_world} GPUs at least"
        found += [
            _step("EP", own.expert, layout.expert, f"{experts}{limits.gpus} / (EP x ETP x PP) is whole; {least}"),
            _step(
                "ETP", own.expert_tensor, layout.expert_tensor, "experts are split by EP before they are split by TP"
            ),
        ]
    data, before = layout.data(limits.gpus), own.data(limits.recipe_gpus)
    batches = layout.global_batch // (layout.micro_batch * data)
    found += [
        _step("DP", before, data, f"implied: {limits.gpus} / (TP x PP x CP)"),
        _step(
            "micro batch",
            own.micro_batch,
            layout.micro_batch,
            "micro batch x DP divides the global batch; the first to be lowered when memory runs out",
        ),
        _step(
            "global batch",
            own.global_batch,
            layout.global_batch,
            f"micro batch x DP x accumulation = {layout.micro_batch} x {data} x {batches}",
        ),
    ]
    return tuple(step for step in found if step.name != "VP" or layout.virtual or own.virtual)


def _step(name: str, own: object, value: object, why: str) -> Step:
    told = {True: "on", False: "off", None: "none"}

    def text(item: object) -> str:
        return told[item] if item is None or isinstance(item, bool) else str(item)

    return Step(name=name, value=text(value), was=None if own == value else text(own), why=why)


def _parts(size: int, heads: int | None, kind: str) -> str:
    if heads is None:
        return "divides the recipe's own" if size > 1 else "1 divides everything"
    return f"divides the {heads} {kind} heads" if heads % size == 0 else f"a multiple of the {heads} {kind} heads"


def _sequence(layout: Layout, limits: Limits) -> str:
    if layout.tensor == 1:
        return "only with TP > 1"
    if not layout.is_sequence_parallel:
        return "left as the recipe has it" + (": the model has an encoder" if limits.is_multimodal else "")
    return "with TP > 1, activations outside attention and feed-forward layers are shared too"


def _stages(layout: Layout, limits: Limits) -> str:
    shape = limits.shape
    if layout.pipeline == 1:
        return "as small as fits: no pipeline, no bubble"
    if shape is None:
        return "as small as fits, no larger than the recipe's"
    if limits.extra_layers is None:
        return f"as small as fits; the recipe places the {shape.num_layers} layers itself"
    extra = f" (and {limits.extra_layers} for embedding and loss)" if limits.extra_layers else ""
    return f"as small as fits; divides the {shape.num_layers} layers{extra}"


def _context(layout: Layout, limits: Limits) -> str:
    length = limits.sequence_length
    if layout.context == 1:
        return f"{length} tokens need no split"
    return f"{length} tokens are {length // layout.context} a rank; 2 x CP divides them"
