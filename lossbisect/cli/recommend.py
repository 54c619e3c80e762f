"""``lossbisect recommend``."""

from pathlib import Path

import click

from lossbisect.cli.log_options import json_option

__all__ = ["command"]

_GOALS = ("pretrain", "sft", "peft", "benchmark", "correlation")


@click.command(epilog="Exit codes: 0, 1 what was asked won't fit by theory, 2 wrong usage or nothing that can run.")
@click.argument("words", nargs=-1, metavar="[MODEL]")
@click.option("--gpus", type=int, metavar="N", help="GPUs in all.  [default: 8]")
@click.option("--gpu-type", default="h100", show_default=True, metavar="TYPE", help="Such as h100, h200, b200, gb200.")
@click.option("--gpus-per-node", type=int, metavar="N", help="GPUs of a node.  [default: 8, of gb200 and gb300 4]")
@click.option("--goal", type=click.Choice(_GOALS), default="pretrain", show_default=True, help="What for.")
@click.option("--seq-length", type=int, metavar="TOKENS", help="Tokens per sequence.  [default: the recipe's]")
@click.option("--memory", type=float, metavar="GIB", help="Memory of a GPU, GiB.  [default: what the type has]")
@click.option("--tensor-parallel", type=int, metavar="N", help="Insist on this TP.  [default: free]")
@click.option(
    "--hf-config",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The model's config.json, for the memory estimate of a model whose sizes aren't known here.",
)
@click.option(
    "--repo",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="Megatron Bridge checkout to read the recipes from. Only read.  [default: the installed package]",
)
@click.option("--list", "is_list", is_flag=True, help="List every recipe that this Bridge exports.")
@click.option(
    "--change",
    metavar="WORDS|PATH",
    help="Instead: the shortest run of lossbisect's own that shows a change there.",
)
@json_option
def command(
    words: tuple[str, ...],
    gpus: int | None,
    gpu_type: str,
    gpus_per_node: int | None,
    goal: str,
    seq_length: int | None,
    memory: float | None,
    tensor_parallel: int | None,
    hf_config: Path | None,
    repo: Path | None,
    change: str | None,
    *,
    is_list: bool,
    is_json: bool,
) -> int:
    """Say which recipe of Bridge to run for MODEL, on which parallel sizes, and whether it fits.

    MODEL is a name with its size, or a Hugging Face id. The recipes are read from the sources of the Bridge at hand,
    without running them.

    Example: lossbisect recommend Qwen/Qwen3-30B-A3B --gpus 32 --goal sft --seq-length 8192
    """
    if change is not None:
        return _change(change, is_json=is_json)
    from lossbisect.assist.recommend import Goal, Question, find_bridge, list_recipes, recommend
    from lossbisect.report.recommend import answer_json, answer_text, catalogue_json, catalogue_text

    model = " ".join(words)
    if not model.strip() and not is_list:
        raise click.UsageError("Name a model, such as llama3_8b, or say --list or --change.")
    source = find_bridge(repo)
    if is_list:
        recipes = list_recipes(source)
        click.echo((catalogue_json if is_json else catalogue_text)(recipes, source.told))
        return 0
    question = Question(
        model=model,
        gpus=8 if gpus is None else gpus,
        gpu_type=gpu_type,
        per_node=gpus_per_node,
        goal=Goal(goal),
        sequence_length=seq_length,
        memory_gib=memory,
        tensor=tensor_parallel,
    )
    answer = recommend(source, question, hf_config=hf_config)
    click.echo(answer_json(answer) if is_json else answer_text(answer))
    return 1 if answer.memory.fit == "won't fit" else 0


def _change(change: str, *, is_json: bool) -> int:
    from lossbisect.assist.recommend import shortest_for_change
    from lossbisect.errors import LossbisectError
    from lossbisect.report.recommend import shortest_json, shortest_text

    shortest = shortest_for_change(change)
    if shortest is None:
        raise LossbisectError(
            f"No recipe's documentation mentions anything of {change!r}. Run several: lossbisect suite run known-breaks"
        )
    click.echo(shortest_json(shortest) if is_json else shortest_text(shortest))
    return 0
