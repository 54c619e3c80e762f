"""The recipe command."""

from pathlib import Path

import pytest

from lossbisect.cli import main
from lossbisect.train.recipes import built_in_names, load_recipe


def _run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    with pytest.raises(SystemExit) as caught:
        main(["recipe", *arguments])
    assert isinstance(caught.value.code, int)
    return caught.value.code, capsys.readouterr().out


def test_list_names_every_recipe_with_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    """Each built-in recipe has a line that says what it's for."""
    code, out = _run(capsys, "list")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()] == list(built_in_names())
    assert all(len(line.split()) > 3 for line in out.splitlines())


@pytest.mark.parametrize("name", built_in_names())
def test_what_show_prints_is_the_same_recipe(capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str) -> None:
    """The printed TOML, saved, is a recipe file with the very same fields."""
    code, out = _run(capsys, "show", name)
    file = tmp_path / "shown.toml"
    file.write_text(out)
    shown, original = load_recipe(str(file)), load_recipe(name)
    assert code == 0
    fields = [field for field in original.__slots__ if field != "name"]
    assert [getattr(shown, field) for field in fields] == [getattr(original, field) for field in fields]


def test_render_speaks_each_trainers_language(capsys: pytest.CaptureFixture[str]) -> None:
    """One recipe gives Megatron-LM's arguments, one a line, or Bridge's overrides."""
    assert "--num-experts 4\n" in _run(capsys, "render", "moe-cpu", "--trainer", "mlm")[1]
    assert "model.num_moe_experts=4\n" in _run(capsys, "render", "moe-cpu", "--trainer", "bridge")[1]
    assert "--no-rope-fusion\n" in _run(capsys, "render", "moe-cpu", "--trainer", "mlm", "--lane", "cpu")[1]


def test_an_unknown_recipe_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """A name that is no recipe exits with 2 and prints nothing on stdout."""
    assert _run(capsys, "show", "nosuch") == (2, "")
