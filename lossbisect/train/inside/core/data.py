"""Synthetic tokens that depend on nothing but seed, iteration and place: no files, no torch generator.

A stream of short documents: each counts upwards from a token drawn at random, with some tokens replaced, and ends with
the end-of-document token. A model learns part of it within a few iterations.
"""

import random
from dataclasses import dataclass
from typing import Any

__all__ = ["Data", "microbatches", "sequence"]

_ALPHABET = 256
_REPLACED = 0.25
_SHORTEST, _LONGEST = 4, 32


@dataclass(frozen=True, kw_only=True)
class Data:
    """The recipe's data.

    Attributes:
        seed: Seed of the tokens.
        end_of_document: The token that ends a document.
        sequence_length: Tokens per sequence.
        micro_batch_size: Sequences per microbatch.
        num_microbatches: Microbatches per iteration.
        mask_end_of_document: Tokens that end a document don't count in the loss.
        masked_at: Iteration whose last microbatch doesn't count in the loss at all; 0: none.
    """

    seed: int
    end_of_document: int
    sequence_length: int
    micro_batch_size: int
    num_microbatches: int
    mask_end_of_document: bool
    masked_at: int


def microbatches(data: Data, iteration: int) -> list[dict[str, Any]]:
    """The microbatches of an iteration: tokens, labels, loss mask, positions, attention mask (True: not seen)."""
    return [_microbatch(data, iteration, number) for number in range(data.num_microbatches)]


def _microbatch(data: Data, iteration: int, number: int) -> dict[str, Any]:
    import torch

    rows = [
        sequence(random.Random(f"{data.seed} {iteration} {number} {row}"), data)  # noqa: S311  # no secret
        for row in range(data.micro_batch_size)
    ]
    text = torch.tensor(rows, dtype=torch.int64)
    tokens, labels = text[:, :-1].contiguous(), text[:, 1:].contiguous()
    loss_mask = torch.ones(tokens.shape, dtype=torch.float32)
    if data.mask_end_of_document:
        loss_mask[tokens == data.end_of_document] = 0.0
    if iteration == data.masked_at and number == data.num_microbatches - 1:
        loss_mask.zero_()
    length = data.sequence_length
    positions = torch.arange(length, dtype=torch.int64).unsqueeze(0).expand(data.micro_batch_size, length).contiguous()
    unseen = torch.ones((1, 1, length, length), dtype=torch.bool).triu(1)
    batch = {"tokens": tokens, "labels": labels, "loss_mask": loss_mask, "positions": positions, "unseen": unseen}
    return {name: tensor.cuda() for name, tensor in batch.items()}


def sequence(source: random.Random, data: Data) -> list[int]:
    """One token more than a sequence has, since labels are the tokens shifted by one."""
    text: list[int] = []
    size = min(_ALPHABET, data.end_of_document)
    while len(text) <= data.sequence_length:
        start = int(source.random() * size)
        length = _SHORTEST + int(source.random() * (_LONGEST - _SHORTEST))
        for place in range(length):
            is_replaced = source.random() < _REPLACED
            text.append(int(source.random() * size) if is_replaced else (start + place) % size)
        text.append(data.end_of_document)
    return text[: data.sequence_length + 1]
