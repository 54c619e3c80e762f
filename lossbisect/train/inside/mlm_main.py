"""Train with the installed ``megatron.training``, for set-ups without a Megatron-LM checkout.

    python -m lossbisect.train.inside.mlm_main ARGS...

``pretrain_gpt.py`` isn't part of the released package; its training loop is. This is the least that drives the loop
with mock data on one pipeline stage, taking ``pretrain_gpt.py``'s arguments. Written for the loop of Megatron-Core
0.19.
"""

from functools import partial
from typing import Any

__all__: list[str] = []

_FIELDS = ("tokens", "labels", "loss_mask", "attention_mask", "position_ids")


def _batch(data_iterator: Any) -> list[Any]:
    batch = next(data_iterator)
    return [batch[field].cuda() if batch.get(field) is not None else None for field in _FIELDS]


def _loss(loss_mask: Any, output: Any) -> tuple[Any, Any, dict[str, Any]]:
    """Sum over the unmasked tokens, their number, and both again for the log."""
    import torch

    mask = loss_mask.view(-1).float()
    loss = torch.sum(output.view(-1).float() * mask)
    tokens = mask.sum().clone().detach().to(torch.int)
    return loss, tokens, {"lm loss": torch.cat([loss.clone().detach().view(1), tokens.view(1)])}


def _forward_step(data_iterator: Any, model: Any) -> tuple[Any, Any]:
    tokens, labels, loss_mask, attention_mask, position_ids = _batch(data_iterator)
    output = model(tokens, position_ids, attention_mask, labels=labels, loss_mask=loss_mask)
    return output, partial(_loss, loss_mask)


def _mock_data(sample_counts: list[int]) -> Any:
    """Train, validation and test sets of made-up tokens, sized as the training loop asks."""
    from megatron.core.datasets.blended_megatron_dataset_builder import BlendedMegatronDatasetBuilder
    from megatron.core.datasets.gpt_dataset import GPTDatasetConfig, MockGPTDataset
    from megatron.core.tokenizers.utils.build_tokenizer import build_tokenizer
    from megatron.training import get_args

    args = get_args()
    configuration = GPTDatasetConfig(
        random_seed=args.seed,
        sequence_length=args.seq_length,
        split=args.split,
        tokenizer=build_tokenizer(args),
        reset_position_ids=False,
        reset_attention_mask=False,
        eod_mask_loss=args.eod_mask_loss,
        create_attention_mask=args.create_attention_mask_in_dataloader,
    )
    return BlendedMegatronDatasetBuilder(MockGPTDataset, sample_counts, lambda: True, configuration).build()


def main() -> None:
    """Parse Megatron-LM's arguments and train."""
    from megatron.core.enums import ModelType
    from megatron.core.package_info import __version__ as version
    from megatron.training import pretrain
    from megatron.training.argument_utils import gpt_config_from_args, pretrain_cfg_container_from_args
    from megatron.training.arguments import parse_and_validate_args

    print(f"> Megatron-Core version .......... {version}")  # noqa: T201  # as pretrain_gpt.py says it
    args = parse_and_validate_args(args_defaults={"tokenizer_type": "NullTokenizer"})
    configuration = pretrain_cfg_container_from_args(args, gpt_config_from_args(args))
    _mock_data.is_distributed = True  # type: ignore[attr-defined]  # every rank builds its own
    pretrain(configuration, _mock_data, ModelType.encoder_or_decoder, _forward_step)


if __name__ == "__main__":
    main()
