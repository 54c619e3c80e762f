"""Recommendations as text for a terminal, and as JSON."""

import json
from collections.abc import Sequence
from dataclasses import asdict

from lossbisect.assist.recommend import Answer, Shortest
from lossbisect.assist.recommend.types import BridgeRecipe, Fit, Kind, Memory

__all__ = ["answer_json", "answer_text", "catalogue_json", "catalogue_text", "shortest_json", "shortest_text"]

SCHEMA_VERSION = 1
_GIB = 1024**3


def answer_text(answer: Answer) -> str:
    """Several lines without a final newline; the first names the recipe."""
    recipe = answer.recipe
    what = "resized" if not answer.is_own else "with other settings" if answer.overrides else "as it is"
    where = f"{answer.question.gpus} {answer.question.gpu_type} GPUs"
    fit = "fit unknown" if answer.memory.fit is Fit.UNKNOWN else str(answer.memory.fit)
    blocks = [
        f"{recipe.name} ({recipe.kind} recipe, {what}): {fit} on {where}",
        "\n".join([f"  read from    {answer.bridge}", f"  module       {recipe.module}", *_about(answer)]),
    ]
    rows = [
        (step.name, step.value, f"{step.why} (the recipe's: {step.was})" if step.was else step.why)
        for step in answer.steps
    ]
    blocks.append("parallel sizes and batch\n" + _table(rows))
    if answer.overrides:
        told = [(f"{item.setting}={item.value}", str(item.effect), item.why) for item in answer.overrides]
        blocks.append("what differs from the recipe\n" + _table(told))
    blocks.append("memory of the fullest GPU\n" + _memory(answer.memory))
    blocks.append("\n".join([_where(answer), *(f"  {line}" for line in answer.command)]))
    blocks.append("notes\n" + "\n".join(f"  - {note}" for note in answer.notes))
    blocks.append(f"to bisect a change of the loss\n{_bisect(answer.bisect)}")
    return "\n\n".join(blocks)


def _where(answer: Answer) -> str:
    """Where to run the command: the installed package has no entry point."""
    said = " ".join(answer.command)
    blanks = [word for word in ("FIRST_NODE", "CHECKPOINT") if word in said]
    fill = f"; {' and '.join(blanks)} {'is' if len(blanks) == 1 else 'are'} yours to fill in" if blanks else ""
    return f"run, on each node, in a checkout of {answer.bridge.partition(' (')[0]}{fill}"


def _about(answer: Answer) -> list[str]:
    question = answer.question
    recipe, reading = answer.recipe, answer.reading
    made = f"{recipe.gpus} {recipe.hardware} GPUs, {recipe.precision}" if recipe.gpus else "no GPU count in its name"
    length = question.sequence_length or reading.sequence_length
    lines = [f"  made for     {made}, sequence length {reading.sequence_length or 'unknown'}"]
    lines.append(f"  model        {reading.model_id or recipe.model}")
    lines.append(f"  trains on    {answer.dataset or 'the data set that the recipe sets'}, sequence length {length}")
    return lines


def _memory(memory: Memory) -> str:
    if memory.fit is Fit.UNKNOWN and not memory.total:
        return f"  {memory.fit}: {memory.why}"
    rows = [
        (name, f"{size / _GIB:.1f} GiB", "")
        for name, size in (
            ("weights", memory.weights),
            ("gradients", memory.gradients),
            ("optimizer", memory.optimizer),
            ("activations", memory.activations),
            ("total", memory.total),
        )
    ]
    rows[-1] = ("total", rows[-1][1], f"of {memory.capacity / _GIB:.0f} GiB: {memory.fit}")
    return f"{_table(rows)}\n  {memory.why}"


def _table(rows: Sequence[tuple[str, str, str]]) -> str:
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    return "\n".join(f"  {name:<{widths[0]}}  {value:<{widths[1]}}  {rest}".rstrip() for name, value, rest in rows)


def _bisect(shortest: Shortest) -> str:
    return (
        f"  lossbisect bisect --repo PATH --good COMMIT --bad COMMIT --recipe {shortest.recipe}\n"
        f"  Seconds on a CPU instead of this run. {shortest.why}"
    )


def answer_json(answer: Answer) -> str:
    """One object, indented, without a final newline."""
    memory = {**asdict(answer.memory), "total": answer.memory.total}
    return _dump({**asdict(answer), "memory": memory, "data_parallel": answer.layout.data(answer.question.gpus)})


def shortest_text(shortest: Shortest) -> str:
    """Several lines without a final newline; the first names the recipe."""
    lines = [
        f"{shortest.recipe}: {shortest.iterations} of its {shortest.recipe_iterations} iterations are enough",
        "",
        f"  {shortest.why}",
        f"  trainers  {', '.join(shortest.trainers)}",
    ]
    if shortest.others:
        lines.append(f"  or        {', '.join(shortest.others)}")
    trainer = "" if "bridge" in shortest.trainers else f" --trainer {shortest.trainers[-1]}"
    lines += ["", f"  lossbisect bisect --repo PATH --good COMMIT --bad COMMIT --recipe {shortest.recipe}{trainer}"]
    if shortest.iterations < shortest.recipe_iterations:
        lines += [
            "",
            "as short as it gets: this file as --recipe short.toml",
            f'  extends = "{shortest.recipe}"',
            "  [training]",
            f"  iterations = {shortest.iterations}",
        ]
    return "\n".join(lines)


def shortest_json(shortest: Shortest) -> str:
    """One object, indented, without a final newline."""
    return _dump(asdict(shortest))


def catalogue_text(recipes: Sequence[BridgeRecipe], told: str) -> str:
    """One line a model and purpose, without a final newline; the first line counts the recipes."""
    counts = {kind: sum(recipe.kind is kind for recipe in recipes) for kind in Kind}
    lines = [f"{told}: {counts[Kind.LIBRARY]} library recipes, {counts[Kind.PERFORMANCE]} performance recipes"]
    groups: dict[tuple[str, str, str], list[BridgeRecipe]] = {}
    for recipe in recipes:
        groups.setdefault((recipe.model, recipe.kind, recipe.task), []).append(recipe)
    rows = []
    for (model, kind, task), members in sorted(groups.items()):
        places = sorted({(member.hardware or "", member.gpus or 0) for member in members})
        where = ", ".join(f"{count or '?'} {hardware}".strip() for hardware, count in places)
        rows.append((model, f"{kind} {task}", where))
    return f"{lines[0]}\n\n{_table(rows)}"


def catalogue_json(recipes: Sequence[BridgeRecipe], told: str) -> str:
    """One object, indented, without a final newline."""
    return _dump({"bridge": told, "recipes": [asdict(recipe) for recipe in recipes]})


def _dump(told: dict[str, object]) -> str:
    return json.dumps({"schema_version": SCHEMA_VERSION, **told}, indent=2, allow_nan=False, ensure_ascii=False)
