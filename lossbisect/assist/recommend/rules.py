"""What parallel sizes must satisfy, in Megatron-Core's and Bridge's own terms. Pure."""

from lossbisect.assist.recommend.types import Layout, Shape

__all__ = ["broken_rules"]


def broken_rules(
    layout: Layout, *, gpus: int, per_node: int, sequence_length: int, shape: Shape | None, extra_layers: int | None = 0
) -> tuple[str, ...]:
    """Each rule that a layout breaks, in one sentence; none: it can run.

    Args:
        layout: The parallel sizes.
        gpus: Ranks in all.
        per_node: GPUs of a node.
        sequence_length: Tokens per sequence.
        shape: The model; None: its own rules aren't checked.
        extra_layers: What counts as a layer beside those (the embedding, the loss) when pipeline stages are filled;
            None: the recipe says which layer is on which stage, so that they need not divide evenly.
    """
    found = []
    if gpus % layout.dense_ranks:
        found.append(
            f"{gpus} GPUs aren't a multiple of TP x PP x CP = {layout.tensor} x {layout.pipeline} x {layout.context} "
            f"= {layout.dense_ranks}"
        )
    if layout.expert > 1 and gpus % layout.expert_ranks:
        found.append(
            f"{gpus} GPUs aren't a multiple of EP x ETP x PP = {layout.expert} x {layout.expert_tensor} x "
            f"{layout.pipeline} = {layout.expert_ranks}"
        )
    if layout.tensor > per_node or (per_node % layout.tensor and gpus > per_node):
        found.append(f"TP {layout.tensor} doesn't stay within a node of {per_node} GPUs")
    if layout.context > 1 and sequence_length % (2 * layout.context):
        found.append(f"sequence length {sequence_length} isn't a multiple of 2 x CP = {2 * layout.context}")
    if layout.is_sequence_parallel and sequence_length % (layout.tensor * layout.context):
        found.append(f"sequence length {sequence_length} isn't a multiple of TP x CP, which sequence parallelism needs")
    if not gpus % layout.dense_ranks and layout.global_batch % (layout.micro_batch * layout.data(gpus)):
        found.append(
            f"global batch {layout.global_batch} isn't a multiple of micro batch x DP = {layout.micro_batch} x "
            f"{layout.data(gpus)}"
        )
    if shape is not None:
        found += _of_model(layout, shape, extra_layers)
    return tuple(found)


def _of_model(layout: Layout, shape: Shape, extra_layers: int | None) -> list[str]:
    found = []
    if shape.heads % layout.tensor:
        found.append(f"TP {layout.tensor} doesn't divide the model's {shape.heads} attention heads")
    elif not shape.is_latent and shape.query_groups % layout.tensor and layout.tensor % shape.query_groups:
        found.append(
            f"TP {layout.tensor} neither divides the model's {shape.query_groups} key-value heads nor is a multiple"
        )
    stages = layout.pipeline * (layout.virtual or 1)
    if extra_layers is not None and (shape.num_layers + extra_layers) % stages and not shape.is_hybrid:
        found.append(f"{shape.num_layers + extra_layers} layers don't divide into PP x VP = {stages} stages")
    if layout.expert > 1 and shape.experts % layout.expert:
        found.append(f"EP {layout.expert} doesn't divide the model's {shape.experts} experts")
    return found
