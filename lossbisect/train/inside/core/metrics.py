"""Values beside the loss: MoE's and multi-token prediction's own, read from Megatron-Core's trackers."""

from typing import Any

from lossbisect.train.inside.core.settings import Settings, accepts

__all__ = ["log_auxiliary_losses", "log_parts"]

_TAGS = {
    "learning rate": "learning-rate", "decoupled learning rate": "decoupled-learning-rate", "grad norm": "grad-norm",
    "num zeros": "num-zeros",
}  # fmt: skip
"""Row's key -> TensorBoard's tag, as Megatron-LM has them."""


def log_parts(writer: Any, iteration: int, values: dict[str, float]) -> None:
    """Record an iteration's values under Megatron-LM's tags."""
    for name, value in values.items():
        writer.add_scalar(_TAGS.get(name, name), value, iteration)


def log_auxiliary_losses(
    settings: Settings, iteration: int, num_microbatches: int, writer: Any, values: dict[str, float]
) -> None:
    """Add what the trackers have gathered to ``values``, on every rank: they talk to each other."""
    told = _Told()
    scale = 1 / num_microbatches
    model = settings["model"]
    if model.get("num_moe_experts"):
        from megatron.core.transformer.moe.moe_utils import track_moe_metrics

        names = ["z_loss"] if model.get("moe_z_loss_coeff") else []
        if (kind := model.get("moe_router_load_balancing_type", "aux_loss")) != "none":
            names.append("seq_load_balancing_loss" if kind == "seq_aux_loss" else "load_balancing_loss")
        extras = {
            "force_initialize": True, "track_names": names, "num_layers": model["num_layers"],
            "mtp_num_layers": model.get("mtp_num_layers"),
        }  # fmt: skip
        known = {name: value for name, value in extras.items() if accepts(track_moe_metrics, name)}
        track_moe_metrics(loss_scale=scale, iteration=iteration, writer=told, **known)
    if model.get("mtp_num_layers"):
        from megatron.core.transformer.multi_token_prediction import MTPLossLoggingHelper

        MTPLossLoggingHelper.track_mtp_metrics(scale, iteration, told)
    if writer is not None:
        values |= told.values


class _Told:
    """Stands in for TensorBoard's writer and keeps what it's told."""

    def __init__(self) -> None:
        self.values: dict[str, float] = {}

    def add_scalar(self, tag: str, scalar_value: Any, global_step: int) -> None:  # noqa: ARG002
        """Keep one value."""
        self.values[tag] = float(scalar_value)
