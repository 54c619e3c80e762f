"""``lossbisect.toml``."""

from pathlib import Path

import pytest

from lossbisect.errors import RecipeError
from lossbisect.train.types import Lane, TrainerName
from lossbisect.triage.suite import load_cases


def test_a_suite_is_read_whole(tmp_path: Path) -> None:
    """Every key arrives, a recipe file beside the suite is found, and what isn't said has its default."""
    (tmp_path / "mine.toml").write_text(_recipe(), encoding="utf-8")
    file = tmp_path / "lossbisect.toml"
    file.write_text(
        '[[triage]]\nrecipe = "mine.toml"\ntrainer = "core"\nrepeats = 4\ntolerance = 1e-3\nowners = ["@ada"]\n'
        "[[triage]]\n",
        encoding="utf-8",
    )
    first, second = load_cases(file)
    assert first.recipe == str(tmp_path / "mine.toml")
    assert (first.trainer, first.repeats, first.tolerance, first.owners) == (TrainerName.CORE, 4, 1e-3, ("@ada",))
    assert (second.recipe, second.lane, second.trainer, second.repeats) == ("vanilla-cpu", Lane.CPU, None, 2)


def _recipe() -> str:
    from lossbisect.train.recipes import recipe_file

    return recipe_file("vanilla-cpu").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", r"no \[\[triage\]\] table"),
        ("[triage]\n", r"no \[\[triage\]\] table"),
        ("[[triage\n", "not TOML"),
        ("[[triage]]\n[[triage]]\nreceipt = 1\n", "number 2: unknown: receipt"),
        ('[[triage]]\nlane = "tpu"\n', "'tpu'"),
        ("[[triage]]\nrepeats = 1\n", "repeats = 1: from 2"),
        ("[[triage]]\ntolerance = 2\n", "tolerance = 2.0"),
        ('[[triage]]\nrecipe = "nothing"\n', "nothing"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, told: str) -> None:
    """Each mistake is one line with the file in it."""
    file = tmp_path / "lossbisect.toml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(RecipeError, match=told):
        load_cases(file)
