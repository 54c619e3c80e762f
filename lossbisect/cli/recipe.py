"""``lossbisect recipe``."""

import json
from pathlib import Path

import click

from lossbisect.train.types import Lane, TrainerName

__all__ = ["command"]


@click.group(
    epilog="Exit codes: 0, or 2 for wrong usage or a recipe that can't be read.",
)
def command() -> None:
    """List, show and render correlation recipes.

    Example: lossbisect recipe render moe-cpu --trainer bridge
    """


@command.command("list", epilog="Exit codes: 0.")
def list_recipes() -> int:
    """List the built-in recipes.

    Example: lossbisect recipe list
    """
    from lossbisect.train.recipes import built_in_names, load_recipe

    names = built_in_names()
    width = max(map(len, names))
    for name in names:
        click.echo(f"{name:{width}}  {load_recipe(name).description}")
    return 0


@command.command("show", epilog="Exit codes: 0, or 2 for a recipe that can't be read.")
@click.argument("name", metavar="NAME|FILE")
def show(name: str) -> int:
    """Print every field of a recipe, those that it takes from another one included, as TOML.

    Example: lossbisect recipe show moe-cpu > mine.toml
    """
    from dataclasses import fields

    from lossbisect.train.recipes import load_recipe

    recipe = load_recipe(name)
    for field in fields(recipe):
        if field.name != "name":
            click.echo(f"{field.name} = {_toml(getattr(recipe, field.name))}")
    return 0


@command.command("render", epilog="Exit codes: 0, or 2 for a recipe that can't be read.")
@click.argument("name", metavar="NAME|FILE")
@click.option(
    "--trainer",
    type=click.Choice([name.value for name in TrainerName]),
    required=True,
    help="Whose words: Megatron-LM's arguments, Bridge's overrides, or the settings of lossbisect's own core trainer.",
)
@click.option(
    "--lane",
    type=click.Choice([lane.value for lane in Lane]),
    default=Lane.CUDA.value,
    show_default=True,
    help="Where it would train: cpu adds the switches that turn off a GPU's kernels.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("out"),
    show_default=True,
    help="The run's folder, as it is to stand in the words.",
)
def render(name: str, trainer: str, lane: str, out: Path) -> int:
    """Print a recipe in the words of a trainer, one setting a line.

    Example: lossbisect recipe render vanilla-1gpu --trainer mlm
    """
    from lossbisect.train.parts import Part, parts_of
    from lossbisect.train.recipes import load_recipe
    from lossbisect.train.render import bridge_overrides, mlm_arguments
    from lossbisect.train.render_core import core_settings

    renderers = {
        TrainerName.BRIDGE: bridge_overrides,
        TrainerName.MLM: mlm_arguments,
        TrainerName.CORE: core_settings,
    }
    recipe = load_recipe(name)
    for part in parts_of(recipe):
        if part is Part.SECOND:
            click.echo(f"# after iteration {recipe.restart_at}, in a new process:")
        words = renderers[TrainerName(trainer)](recipe, lane=Lane(lane), out=out, part=part)
        click.echo("\n".join(_lines(words) if trainer == TrainerName.MLM else words))
    return 0


def _lines(words: list[str]) -> list[str]:
    """An argument with its value on each line."""
    lines: list[str] = []
    for word in words:
        if word.startswith("--") or not lines:
            lines.append(word)
        else:
            lines[-1] += f" {word}"
    return lines


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return json.dumps(value)  # TOML's escapes are JSON's
    if isinstance(value, tuple):
        return f"[{', '.join(map(_toml, value))}]"
    return str(value)
