"""The command that runs a recipe, by the entry point of the Bridge at hand."""

import ast
from collections.abc import Sequence

from lossbisect.assist.recommend.source import PACKAGE, BridgeSource
from lossbisect.assist.recommend.types import BridgeRecipe, Goal, Kind, Override, Question, Task

__all__ = ["command_lines", "dataset_preset"]

ENTRY_POINT = "scripts/training/run_recipe.py"
_MODES = {Task.PRETRAIN: "pretrain", Task.SFT: "sft", Task.PEFT: "lora"}
_PRESETS = {Task.PRETRAIN: "mock", Task.SFT: "squad", Task.PEFT: "squad"}


def dataset_preset(source: BridgeSource, recipe: BridgeRecipe, *, is_multimodal: bool) -> str | None:
    """Name of the data-set preset for a recipe; None where it brings its own and takes no other."""
    if recipe.kind is Kind.PERFORMANCE or is_multimodal:
        return None
    wanted = _PRESETS[recipe.task]
    return wanted if wanted in _presets(source) else None


def _presets(source: BridgeSource) -> frozenset[str]:
    """Names in Bridge's table of presets."""
    tree = source.module(f"{PACKAGE}.recipes.utils.dataset_utils")
    for node in tree.body if tree else ():
        if not isinstance(node, ast.Assign | ast.AnnAssign) or not isinstance(node.value, ast.Dict):
            continue
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target
        if isinstance(target, ast.Name) and target.id == "DATASET_PRESETS":
            return frozenset(str(key.value) for key in node.value.keys if isinstance(key, ast.Constant))
    return frozenset()


def command_lines(
    source: BridgeSource,
    recipes: Sequence[BridgeRecipe],
    recipe: BridgeRecipe,
    changed: Sequence[Override],
    preset: str | None,
    *,
    question: Question,
    per_node: int,
) -> tuple[str, ...]:
    """Lines of one shell command, to be run on each node from a checkout's root; all but the last end with a backslash.

    ``torchrun`` starts the ranks of one node; with several, the address of the first is left to fill in.
    """
    nodes = max(1, question.gpus // per_node)
    launch = f"torchrun --nproc-per-node {min(question.gpus, per_node)}"
    if nodes > 1:
        launch += f" --nnodes {nodes} --rdzv-backend c10d --rdzv-endpoint FIRST_NODE:29500"
    lines = [launch, f"  {ENTRY_POINT}", f"  --recipe {_callable_name(recipes, recipe)}"]
    if _takes_mode(source):
        lines[-1] += f" --mode {_MODES[recipe.task]}" + (f" --dataset {preset}" if preset else "")
        if question.goal is Goal.CORRELATION:
            lines[-1] += " --deterministic"
    if recipe.task is not Task.PRETRAIN and recipe.kind is Kind.LIBRARY:
        lines.append("  checkpoint.pretrained_checkpoint=CHECKPOINT")
    lines += [f"  {override.setting}={override.value}" for override in changed]
    return (*(f"{line} \\" for line in lines[:-1]), lines[-1])


def _callable_name(recipes: Sequence[BridgeRecipe], recipe: BridgeRecipe) -> str:
    """Its name, or an alias where a performance recipe has the same name: that one would win."""
    rivals = {other.name for other in recipes if other.kind is not recipe.kind}
    names = [recipe.name, *recipe.aliases]
    if recipe.kind is Kind.LIBRARY:
        return next((name for name in names if name not in rivals), recipe.name)
    return recipe.name


def _takes_mode(source: BridgeSource) -> bool:
    """Whether the checkout's entry point has ``--mode``; that of Bridge 0.6 and later has."""
    script = source.checkout / ENTRY_POINT if source.checkout else None
    return script is None or (script.is_file() and '"--mode"' in script.read_text(encoding="utf-8"))
