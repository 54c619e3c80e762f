"""What a run is when little was said about it."""

from pathlib import Path

import pytest

from lossbisect.errors import RecipeError
from lossbisect.train.defaults import run_spec
from lossbisect.train.types import Sources, TrainerName


@pytest.mark.parametrize(
    ("recipe", "has_bridge", "trainer"),
    [
        (None, True, TrainerName.BRIDGE),
        (None, False, TrainerName.MLM),
        ("masked-microbatch-cpu", True, TrainerName.CORE),
        ("masked-microbatch-cpu", False, TrainerName.CORE),
    ],
)
def test_the_trainer_goes_with_the_checkout_and_the_recipe(
    recipe: str | None, trainer: TrainerName, tmp_path: Path, *, has_bridge: bool
) -> None:
    """Bridge's or Megatron-LM's by what the checkout is; the one that the recipe allows where it rules these out."""
    sources = Sources(mcore=tmp_path / "mcore", bridge=tmp_path / "bridge" if has_bridge else None)
    assert run_spec(sources, recipe=recipe).trainer is trainer


def test_a_recipe_that_is_not_there_is_named() -> None:
    """The error names it, whoever asks."""
    with pytest.raises(RecipeError, match="no-such-recipe"):
        run_spec(Sources(), recipe="no-such-recipe")
