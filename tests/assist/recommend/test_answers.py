"""Questions with their right answers, and an independent check of every answer."""

import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from lossbisect.assist.recommend import Answer, Goal, Question, find_bridge, list_recipes, recommend
from lossbisect.assist.recommend.names import find_model
from lossbisect.assist.recommend.source import BridgeSource
from lossbisect.assist.recommend.types import BridgeRecipe, Effect, Kind
from lossbisect.errors import LossbisectError
from tests.assist.support import call

HERE = Path(__file__).parent
QUESTIONS: list[dict[str, Any]] = tomllib.loads((HERE / "questions.toml").read_text(encoding="utf-8"))["question"]
_SOURCES: dict[Path, BridgeSource] = {}
NODES = {"h100": 8, "gb200": 4, "gb300": 4}


@pytest.fixture(scope="module")
def bridge() -> BridgeSource:
    """The installed Bridge 0.6, which the answers are from."""
    try:
        source = find_bridge(None)
    except LossbisectError as error:
        pytest.skip(str(error))
    if not source.version.startswith("0.6"):
        pytest.skip(f"the answers are from Bridge 0.6, installed is {source.version}")
    _SOURCES[source.root] = source
    return source


def ask(bridge: BridgeSource, *, model: str, gpus: int, goal: str = "pretrain", **more: Any) -> Answer:
    """The answer to a question."""
    question = Question(model=model, gpus=gpus, goal=Goal(goal), **more)
    return recommend(bridge, question, recipes=_recipes(bridge.root))


@cache
def _recipes(bridge_root: Path) -> tuple[BridgeRecipe, ...]:
    return list_recipes(_SOURCES[bridge_root])


@cache
def _answer(bridge_root: Path, index: int) -> Answer:
    fields = QUESTIONS[index]
    names = ("model", "gpus", "goal", "gpu_type", "sequence_length")
    return ask(_SOURCES[bridge_root], **{name: fields[name] for name in names if name in fields})


def answer(bridge: BridgeSource, index: int) -> Answer:
    """The answer to a question of the file, worked out once."""
    return _answer(bridge.root, index)


def test_the_file_asks_enough() -> None:
    """There are at least 60 questions, about at least 12 families of models, and of every goal."""
    families = {question["recipe"].split("_")[0].rstrip("0123456789") for question in QUESTIONS}
    assert len(QUESTIONS) >= 60
    assert len(families) >= 12
    assert {question["goal"] for question in QUESTIONS} == set(Goal)


@pytest.mark.parametrize("index", range(len(QUESTIONS)), ids=lambda index: f"{QUESTIONS[index]['recipe']}")
def test_the_right_answer(bridge: BridgeSource, index: int) -> None:
    """A question has the recipe, the sizes and the judgement of its memory that the file says."""
    expected, found = QUESTIONS[index], answer(bridge, index)
    layout = found.layout
    assert found.recipe.name == expected["recipe"]
    assert found.recipe.kind == expected["kind"]
    assert [
        layout.tensor, layout.pipeline, layout.virtual or 1, layout.context, layout.expert, layout.expert_tensor,
        layout.micro_batch, layout.global_batch,
    ] == expected["sizes"]  # fmt: skip
    assert found.is_own == expected["is_own"]
    assert found.memory.fit == expected["fit"]
    told = any("own sizes can't run" in note for note in found.notes)
    assert told == expected.get("own_trouble", False)


@pytest.mark.parametrize("index", range(len(QUESTIONS)), ids=lambda index: f"{QUESTIONS[index]['recipe']}")
def test_every_answer_can_run(bridge: BridgeSource, index: int) -> None:
    """The sizes satisfy the rules of divisibility, by arithmetic of this test's own."""
    found = answer(bridge, index)
    gpus, per_node = found.question.gpus, NODES[found.question.gpu_type]
    size = found.layout
    length = found.question.sequence_length or found.reading.sequence_length or 4096
    dense = size.tensor * size.pipeline * size.context
    assert gpus % dense == 0
    assert size.global_batch % (size.micro_batch * gpus // dense) == 0
    assert size.tensor <= per_node
    assert size.context == 1 or length % (2 * size.context) == 0
    if size.expert > 1:
        assert gpus % (size.expert * size.expert_tensor * size.pipeline) == 0
        assert gpus >= size.pipeline * max(size.tensor * size.context, size.expert * size.expert_tensor)
    if found.shape is not None:
        shape = found.shape
        assert shape.heads % size.tensor == 0
        groups = shape.heads if shape.is_latent else shape.query_groups
        assert groups % size.tensor == 0 or size.tensor % groups == 0
        assert size.expert == 1 or shape.experts % size.expert == 0


@pytest.mark.parametrize("index", range(len(QUESTIONS)), ids=lambda index: f"{QUESTIONS[index]['recipe']}")
def test_the_command_says_what_the_answer_says(bridge: BridgeSource, index: int) -> None:
    """The command starts every GPU and holds every override; a performance recipe takes no data set."""
    found = answer(bridge, index)
    words = " ".join(found.command).replace("\\", "").split()
    nodes = int(words[words.index("--nnodes") + 1]) if "--nnodes" in words else 1
    assert nodes * int(words[words.index("--nproc-per-node") + 1]) == found.question.gpus
    assert all(f"{override.setting}={override.value}" in words for override in found.overrides)
    is_performance = found.recipe.kind is Kind.PERFORMANCE
    assert is_performance == (found.question.goal is Goal.BENCHMARK)
    assert any("loss proves nothing" in note for note in found.notes) == is_performance
    assert not (is_performance and "--dataset" in words)


def test_overrides_say_what_they_touch(bridge: BridgeSource) -> None:
    """Where layers run is execution only; sequence length and global batch change convergence."""
    found = ask(bridge, model="llama3_70b", gpus=64, sequence_length=12288, memory_gib=60.0)
    effects = {override.setting: override.effect for override in found.overrides}
    assert effects["dataset.seq_length"] is Effect.CONVERGENCE
    del effects["dataset.seq_length"]
    assert effects
    assert set(effects.values()) == {Effect.EXECUTION}
    wide = ask(bridge, model="qwen3_8b", gpus=512, goal="sft")
    effects = {override.setting: override.effect for override in wide.overrides}
    assert effects["train.global_batch_size"] is Effect.CONVERGENCE


def test_memory_makes_the_model_wider(bridge: BridgeSource) -> None:
    """On a smaller GPU the same question gets more model-parallel ranks; on one too small it says won't fit."""
    large = ask(bridge, model="qwen3_8b", gpus=16)
    small = ask(bridge, model="qwen3_8b", gpus=16, memory_gib=48.0)
    tiny = ask(bridge, model="qwen3_8b", gpus=16, memory_gib=4.0)
    assert small.layout.tensor * small.layout.pipeline > large.layout.tensor * large.layout.pipeline
    assert small.memory.fit in ("fits", "tight")
    assert tiny.memory.fit == "won't fit"
    assert any("Won't fit by theory" in note for note in tiny.notes)


def test_unknown_memory_is_not_called_fitting(bridge: BridgeSource) -> None:
    """A model without known sizes on fewer ranks than its recipe has is answered with a warning."""
    found = ask(bridge, model="minimax_m3", gpus=8)
    assert found.memory.fit == "unknown"
    assert any("may well not fit" in note for note in found.notes)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"model": "llamma3_8b", "gpus": 8}, ["no recipe for 'llamma3_8b'", "llama3_8b"]),
        ({"model": "mistral_large", "gpus": 8}, ["no recipe for", "nearest"]),
        ({"model": "llama3", "gpus": 8}, ["several models", "llama3_8b", "llama3_70b"]),
        ({"model": "", "gpus": 8}, ["No model named"]),
        ({"model": "llama3_8b", "gpus": 7}, ["7 GPUs", "use 4 or 8"]),
        ({"model": "llama3_8b", "gpus": 12}, ["12 GPUs", "use 8 or 16"]),
        ({"model": "llama3_8b", "gpus": 0}, ["0 GPUs", "at least 1"]),
        ({"model": "llama3_8b", "gpus": 8, "tensor": 3}, ["TP 3", "8 key-value heads", "TP 2"]),
        ({"model": "qwen3_30b_a3b", "gpus": 16, "tensor": 16}, ["TP 16", "nodes have 8 GPUs", "TP 4"]),
        ({"model": "llama3_8b", "gpus": 8, "sequence_length": 0}, ["Sequence length 0", "4096"]),
        ({"model": "llama3_8b", "gpus": 8, "sequence_length": -5}, ["Sequence length -5"]),
        ({"model": "llama3_8b", "gpus": 8, "gpu_type": "voodoo2"}, ["'voodoo2'", "h100"]),
        ({"model": "llama3_8b", "gpus": 8, "memory_gib": 0.0}, ["Memory 0 GiB"]),
        ({"model": "llama3_8b", "gpus": 8, "memory_gib": float("nan")}, ["Memory nan GiB", "a number above 0"]),
        ({"model": "llama3_8b", "gpus": 8, "per_node": 0}, ["0 per node", "at least 1"]),
        ({"model": "235b-a22b", "gpus": 128}, ["several models: qwen3_235b_a22b, qwen3_vl_235b_a22b"]),
        ({"model": "70b", "gpus": 64}, ["several models: llama31_70b, llama3_70b"]),
        ({"model": "olmoe_7b", "gpus": 8, "goal": "benchmark"}, ["no benchmark recipe for olmoe_7b", "pretrain"]),
        ({"model": "qwen3_next_80b_a3b", "gpus": 8, "goal": "peft"}, ["only an unfinished peft recipe", "sft"]),
        ({"model": "kimi_k2", "gpus": 8, "goal": "sft"}, ["no sft recipe for kimi_k2", "pretrain"]),
    ],
)
def test_bad_questions(bridge: BridgeSource, fields: dict[str, Any], words: list[str]) -> None:
    """A question that can't be answered gets one line that says why and the nearest thing that works."""
    with pytest.raises(LossbisectError) as raised:
        ask(bridge, **fields)
    told = str(raised.value)
    assert "\n" not in told
    assert all(word in told for word in words), told


@pytest.mark.parametrize(
    ("told", "gpu_type", "memory_gib"),
    [
        ("NVIDIA H100 80GB HBM3", "h100", None),
        ("NVIDIA A100-SXM4-40GB", "a100", 40.0),
        ("GB200", "gb200", None),
    ],
)
def test_a_gpu_by_its_drivers_name(bridge: BridgeSource, told: str, gpu_type: str, memory_gib: float | None) -> None:
    """The type is found in it, and the memory, where that isn't what the type usually has."""
    question = ask(bridge, model="llama3_8b", gpus=8, gpu_type=told).question
    assert (question.gpu_type, question.memory_gib) == (gpu_type, memory_gib)


@pytest.mark.parametrize(
    ("asked", "model"),
    [
        ("meta-llama/Meta-Llama-3.1-70B", "llama31_70b"),
        ("Qwen/Qwen3-0.6B", "qwen3_600m"),
        ("Qwen2.5-VL-7B-Instruct", "qwen25_vl_7b"),
        ("zai-org/GLM-4.5-Air", "glm45_air_106b"),
        ("openai/gpt-oss-20b", "gpt_oss_20b"),
        ("llama 3.2 1b", "llama32_1b"),
        ("Qwen3 1.7B", "qwen3_1p7b"),
        ("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", "nemotron_3_nano"),
        ("moonshotai/Kimi-K2-Instruct", "kimi_k2"),
    ],
)
def test_names_of_one_model(bridge: BridgeSource, asked: str, model: str) -> None:
    """A model is found by its Hugging Face id and by the ways people write its name."""
    assert find_model(bridge, _recipes(bridge.root), asked) == model


@pytest.mark.usefixtures("bridge")
def test_a_name_of_several_words_needs_no_quotes() -> None:
    """The words of the command line are one name; none at all is wrong usage."""
    assert call("recommend", "qwen3", "8b", "--gpus", "16").stdout.startswith("qwen3_8b_")
    assert call("recommend", "--gpus", "8").returncode == 2
