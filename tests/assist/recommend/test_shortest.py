"""The shortest run that shows a change: the recipe that reaches it, and how many iterations are enough."""

import pytest

from lossbisect.assist.recommend import shortest_for_change
from lossbisect.train.recipes import load_recipe


@pytest.mark.parametrize(
    ("change", "recipes"),
    [
        ("megatron/core/transformer/moe/router.py", {"moe-cpu", "moe-sigmoid-cpu", "moe-z-loss-cpu"}),
        ("megatron/core/transformer/multi_token_prediction.py", {"mtp-cpu", "mtp-masks-cpu"}),
        ("megatron/core/transformer/multi_latent_attention.py", {"mla-cpu"}),
        ("megatron/core/pipeline_parallel/schedules.py", {"pp2-cpu"}),
        ("megatron/core/models/common/embeddings/rotary_pos_embedding.py", {"llama-cpu", "mla-cpu"}),
        ("megatron/core/dist_checkpointing/strategies/torch.py", {"resume-cpu"}),
        ("Compute the router's sigmoid in bfloat16", {"moe-bf16-cpu", "moe-sigmoid-cpu"}),
        ("Fix dropout of the random number generators", {"dropout-cpu"}),
        ("grouped-query attention: query groups", {"gqa-cpu"}),
    ],
)
def test_the_recipe_that_reaches_a_change(change: str, recipes: set[str]) -> None:
    """A path or a subject leads to a recipe whose documentation is about that code."""
    found = shortest_for_change(change)
    assert found is not None
    assert found.recipe in recipes


def test_as_many_iterations_as_the_documentation_says() -> None:
    """The iterations cover the one from which the loss differs, and never exceed the recipe's own."""
    found = shortest_for_change("moe bfloat16 bf16 sigmoid scores float32")
    assert found is not None
    assert found.recipe == "moe-bf16-cpu"
    assert found.iterations == 4  # the loss differs from iteration 3 on
    masked = shortest_for_change("masked microbatch")
    assert masked is not None
    own = load_recipe(masked.recipe)
    assert own.masked_microbatch_at < masked.iterations <= own.iterations


def test_nothing_is_made_up() -> None:
    """Words that no recipe mentions give no recipe."""
    assert shortest_for_change("zebra crossing") is None
