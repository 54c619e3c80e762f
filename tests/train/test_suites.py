"""Suites: what a file may say, and what is found out before the first run."""

from pathlib import Path

import pytest

from lossbisect.errors import RecipeError
from lossbisect.train.recipes import built_in_names
from lossbisect.train.suites import built_in_suites, load_suite
from lossbisect.train.types import TrainerName


@pytest.mark.parametrize("name", built_in_suites())
def test_built_in_suites_name_built_in_recipes(name: str) -> None:
    """Every recipe of a built-in suite is there, once, and the core trainer can express all of them."""
    suite = load_suite(name)
    assert suite.description
    assert set(suite.recipes) <= set(built_in_names())
    assert len(set(suite.recipes)) == len(suite.recipes)
    suite.check(TrainerName.CORE)


def test_a_trainer_that_cannot_is_told_before_the_first_run() -> None:
    """The suite for all trainers suits all; the one of known breaks names the recipe and the trainer that it needs."""
    for trainer in TrainerName:
        load_suite("cpu").check(trainer)
    with pytest.raises(RecipeError, match=r"known-breaks: mlm can't express masked-microbatch-cpu\."):
        load_suite("known-breaks").check(TrainerName.MLM)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('recipes = ["vanilla-cpu"]\nrecipe = 1', "unknown: recipe"),
        ('description = "x"', "recipes = None"),
        ("recipes = []", "recipes = []"),
        ('recipes = "vanilla-cpu"', "a list of names is needed"),
        ("recipes = [", "not TOML"),
    ],
)
def test_a_wrong_suite_file_is_refused(tmp_path: Path, text: str, message: str) -> None:
    """A suite file that can't be right is refused with its path and what's wrong."""
    file = tmp_path / "mine.toml"
    file.write_text(text)
    with pytest.raises(RecipeError) as caught:
        load_suite(str(file))
    assert str(file) in str(caught.value)
    assert message in str(caught.value)


def test_a_suite_of_ones_own(tmp_path: Path) -> None:
    """A file's recipes may be files; a name that is nothing lists the built-in suites, a recipe that is nothing too."""
    (tmp_path / "mine.toml").write_text('extends = "vanilla-cpu"\n')
    file = tmp_path / "suite.toml"
    file.write_text(f'recipes = ["moe-cpu", "{tmp_path / "mine.toml"}"]\n')
    load_suite(str(file)).check(TrainerName.BRIDGE)
    with pytest.raises(RecipeError, match="quick"):
        load_suite("nosuch")
    file.write_text('recipes = ["nosuch"]\n')
    with pytest.raises(RecipeError, match="nosuch"):
        load_suite(str(file)).check(TrainerName.BRIDGE)
