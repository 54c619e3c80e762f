"""The loop: forward and backward by Megatron-Core's schedule, step, log."""

import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from lossbisect.train.inside.core import checkpoint, rows
from lossbisect.train.inside.core.data import Data, microbatches
from lossbisect.train.inside.core.metrics import log_auxiliary_losses, log_parts
from lossbisect.train.inside.core.model import build as build_model
from lossbisect.train.inside.core.model import transformer_config
from lossbisect.train.inside.core.optimizer import build as build_optimizer
from lossbisect.train.inside.core.optimizer import learning_rates
from lossbisect.train.inside.core.settings import MissingFeatureError, Settings, accepts

__all__ = ["train"]


def train(settings: Settings) -> None:
    """Train as the settings say, from a checkpoint if they name one, and save one if they say where.

    Raises:
        MissingFeatureError: The commit can't do what they ask for.
    """
    from torch.utils.tensorboard import SummaryWriter

    asked = settings["train"]
    data = _data(settings)
    config = transformer_config(settings)
    model = build_model(settings, config)
    optimizer, scheduler = build_optimizer(settings, model)
    config.grad_scale_func = optimizer.scale_loss
    writer = SummaryWriter() if _is_last_rank() else None
    done = 0
    if "load" in asked:
        done = checkpoint.load(Path(asked["load"]), model, optimizer, scheduler)
    elif writer is not None:  # in the first row: one of iteration 0 would have no loss
        writer.add_scalar("initial params checksum", rows.checksum(model), 1)
    last = asked.get("stop_after", asked["iterations"])
    for iteration in range(done + 1, last + 1):
        started_s = time.perf_counter()
        values = _iterate(iteration, data, config, model, optimizer, scheduler)
        elapsed_ms = (time.perf_counter() - started_s) * 1e3
        log_auxiliary_losses(settings, iteration, data.num_microbatches, writer, values)
        if writer is not None:
            batch = asked["global_batch_size"]
            rows.row(iteration, asked["iterations"], iteration * batch, batch, elapsed_ms, values)
            log_parts(writer, iteration, values)
    if "save" in asked:
        checkpoint.save(Path(asked["save"]), last, model, optimizer, scheduler)


def _data(settings: Settings) -> Data:
    train, data = settings["train"], settings["data"]
    return Data(
        seed=train["seed"],
        end_of_document=data["end_of_document"],
        sequence_length=data["sequence_length"],
        micro_batch_size=train["micro_batch_size"],
        num_microbatches=train["global_batch_size"] // train["micro_batch_size"],
        mask_end_of_document=data.get("mask_end_of_document", False),
        masked_at=data.get("masked_microbatch_at", 0),
    )


def _is_last_rank() -> bool:
    """The last stage of a pipeline knows the loss."""
    import torch

    return bool(torch.distributed.get_rank() == torch.distributed.get_world_size() - 1)


def _iterate(iteration: int, data: Data, config: Any, model: Any, optimizer: Any, scheduler: Any) -> dict[str, float]:
    from megatron.core.pipeline_parallel import get_forward_backward_func

    model.zero_grad_buffer()
    optimizer.zero_grad()
    parts = get_forward_backward_func()(
        forward_step_func=partial(_forward_step, takes_mask=_takes_mask(config)),
        data_iterator=iter(microbatches(data, iteration)),
        model=[model],
        num_microbatches=data.num_microbatches,
        seq_length=data.sequence_length,
        micro_batch_size=data.micro_batch_size,
        forward_only=False,
    )
    _, grad_norm, num_zeros = optimizer.step()
    scheduler.step(increment=1)
    lowest, highest = learning_rates(optimizer)
    values = {"learning rate": lowest}
    if highest != lowest:
        values["decoupled learning rate"] = highest
    if parts:  # on the last stage only
        values["lm loss"] = sum(float(loss) for loss, _ in parts) / max(1.0, sum(float(count) for _, count in parts))
    return values | {"grad norm": float(grad_norm), "num zeros": float(num_zeros)}


def _takes_mask(config: Any) -> bool:
    """Multi-token prediction masks its own loss."""
    from megatron.core.models.gpt import GPTModel

    if not getattr(config, "mtp_num_layers", None):
        return False
    if not accepts(GPTModel.forward, "loss_mask"):
        raise MissingFeatureError("this commit's GPTModel takes no loss_mask")
    return True


def _forward_step(data_iterator: Iterator[dict[str, Any]], model: Any, *, takes_mask: bool) -> tuple[Any, Any]:
    batch = next(data_iterator)
    mask = {"loss_mask": batch["loss_mask"]} if takes_mask else {}
    output = model(batch["tokens"], batch["positions"], batch["unseen"], labels=batch["labels"], **mask)
    return output, partial(_loss, batch["loss_mask"])


def _loss(loss_mask: Any, output: Any) -> tuple[Any, Any, tuple[Any, Any]]:
    """The sum over tokens that count, their number, and both for the log."""
    import torch

    mask = loss_mask.view(-1)
    loss = torch.sum(output.view(-1).float() * mask)
    count = mask.sum().to(torch.int)
    return loss, count, (loss.detach().clone(), count.clone())
