"""Arguments to overrides and back: fates, defaults, groups, round trips."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from lossbisect.assist.translate import refusal, translate
from lossbisect.assist.translate.command_line import arguments_of
from lossbisect.assist.translate.derive import derived
from lossbisect.assist.translate.emit import Form, emit, hydra, words_of
from lossbisect.assist.translate.hydra import hydra_value, overrides_of
from lossbisect.assist.translate.inputs import read_settings, way_of
from lossbisect.assist.translate.source import Value
from lossbisect.assist.translate.to_bridge import bridge_settings, to_bridge
from lossbisect.assist.translate.to_mlm import to_mlm
from lossbisect.assist.translate.types import Facts, Fate, Translation, Way
from lossbisect.assist.translate.values import same
from lossbisect.errors import RecipeError
from lossbisect.train.recipes import built_in_names, load_recipe
from lossbisect.train.render import bridge_overrides, mlm_arguments
from lossbisect.train.types import Lane, TrainerName

_FACTS: list[Facts] = []


@pytest.fixture(autouse=True)
def _keep(facts: Facts) -> None:
    """Keep the facts where hypothesis doesn't print them."""
    _FACTS[:] = [facts]


def _installed() -> Facts:
    return _FACTS[0]


MODEL = "--num-layers 2 --hidden-size 64 --num-attention-heads 4 --seq-length 64 --max-position-embeddings 64"
RUN = "--micro-batch-size 2 --global-batch-size 4 --train-iters 10 --lr 1e-3 --tokenizer-type NullTokenizer --mock-data"


def forward(text: str, facts: Facts, processes: int | None = None) -> Translation:
    """A command line's translation."""
    settings = arguments_of(text.split(), facts)
    return to_bridge(settings.told, facts, unknown=settings.unknown, num_processes=processes)


def settings_of_fate(translation: Translation, fate: Fate) -> list[str]:
    """The names with one fate."""
    return [item.name for item in translation.items if item.fate is fate]


def fates(translation: Translation) -> dict[str, Fate]:
    """What became of each argument told."""
    return {item.name: item.fate for item in translation.items if item.is_told}


def test_each_argument_ends_in_one_class(facts: Facts) -> None:
    """One of each kind: translated, default on both sides, execution only, without equivalent, unknown."""
    text = "--num-layers 2 --clip-grad 1.0 --use-flash-attn --init-method-xavier-uniform --no-such-thing 3"
    assert fates(forward(text, facts)) == {
        "--num-layers": Fate.TRANSLATED,
        "--clip-grad": Fate.DEFAULT,
        "--use-flash-attn": Fate.EXECUTION,
        "--init-method-xavier-uniform": Fate.NO_EQUIVALENT,
        "--no-such-thing": Fate.UNKNOWN,
    }


def test_what_changes_the_loss_and_is_lost_is_refused(facts: Facts) -> None:
    """The refusal names the argument, why, and the way out; a whole translation has none."""
    why = refusal(forward("--num-layers 2 --freeze-all-layers", facts))
    assert why is not None
    assert "--freeze-all-layers" in why
    assert "--allow-lossy" in why
    assert refusal(forward(f"{MODEL} {RUN} --bf16", facts)) is None


def test_defaults_that_move_the_loss_are_carried_over(facts: Facts) -> None:
    """With nothing told but the model, Bridge gets Megatron-LM's own defaults where the recipe's differ."""
    settings = forward(f"{MODEL} {RUN}", facts).settings
    assert settings["optimizer.adam_beta2"] == 0.999
    assert settings["optimizer.min_lr"] == 0.0
    assert settings["scheduler.lr_decay_style"] == "linear"
    assert settings["scheduler.lr_warmup_iters"] == 0
    assert settings["model.cross_entropy_loss_fusion"] is False
    assert settings["mixed_precision"] is None
    assert settings["logger.log_interval"] == 100
    assert settings["checkpoint.save"] is None
    assert "model.hidden_dropout" not in settings  # 0.1 on both sides
    assert "optimizer.adam_eps" not in settings


def test_the_schedulers_weight_decay_goes_along(facts: Facts) -> None:
    """The weight decay reaches the scheduler, which would else write Bridge's 0.033 over it; so does the default."""
    for text, expected in (("--weight-decay 0.1", 0.1), ("", 0.01)):
        settings = forward(f"{MODEL} {RUN} {text}", facts).settings
        keys = ("optimizer.weight_decay", "scheduler.start_weight_decay", "scheduler.end_weight_decay")
        assert settings.get("optimizer.weight_decay", facts.base["optimizer.weight_decay"]) == expected
        assert [settings[key] for key in keys[1:]] == [expected] * 2
    back = to_mlm(overrides_of(["optimizer.weight_decay=0.1"]), facts)
    assert back.settings["weight_decay"] == 0.033
    assert fates(back)["optimizer.weight_decay"] is Fate.NO_EQUIVALENT


def test_what_megatron_lm_works_out_is_worked_out(facts: Facts) -> None:
    """A gated unit's width, a batch from the ranks, virtual stages, precision of gradients."""
    settings = forward(
        f"{MODEL} --hidden-size 1024 --swiglu --micro-batch-size 2 --tensor-model-parallel-size 2 "
        "--pipeline-model-parallel-size 2 --num-layers 8 --num-layers-per-virtual-pipeline-stage 2 --bf16",
        facts,
        processes=16,
    ).settings
    assert settings["model.ffn_hidden_size"] == 2688
    assert settings["train.global_batch_size"] == 8
    assert settings["model.virtual_pipeline_model_parallel_size"] == 2
    assert settings["model.activation_func"] == "silu"
    assert "mixed_precision" not in settings or settings["mixed_precision"] == "bf16_mixed"


def test_a_batch_that_depends_on_the_ranks_is_not_guessed(facts: Facts) -> None:
    """Without the number of processes Bridge's own batch size would be taken: that is refused."""
    why = refusal(forward(f"{MODEL} --micro-batch-size 2", facts))
    assert why is not None
    assert "--num-processes" in why


def test_learned_positions_that_outnumber_the_sequence_are_refused(facts: Facts) -> None:
    """They make a table of another size, hence other first weights; with RoPE they make none."""
    text = f"{RUN} --seq-length 64 --max-position-embeddings 128"
    assert fates(forward(text, facts))["--max-position-embeddings"] is Fate.NO_EQUIVALENT
    rope = forward(f"{text} --position-embedding-type rope", facts)
    assert fates(rope)["--max-position-embeddings"] is Fate.TRANSLATED


def test_few_bits_are_spelled_out(facts: Facts) -> None:
    """FP8 with Megatron-LM's own defaults is none of Bridge's named precisions, so its fields are told."""
    text = f"{MODEL} {RUN} --bf16 --fp8-format hybrid"
    told = hydra(forward(text, facts).settings["mixed_precision"])
    assert told.startswith("{_target_:megatron.bridge.training.mixed_precision.MixedPrecisionConfig,")
    assert "fp8:hybrid" in told
    assert "params_dtype:{_target_:torch.bfloat16,_call_:false}" in told


IN_RENDER_ALONE = {"checkpoint.load", "dataset.split"}
"""Told by the rendering though they are Bridge's defaults already, or don't count without data."""


SUITE = [
    name
    for name in built_in_names()
    if {TrainerName.MLM, TrainerName.BRIDGE} <= set(load_recipe(name).trainers) and not load_recipe(name).restart_at
]


@pytest.mark.parametrize("name", SUITE)
def test_recipes_translate_to_their_own_overrides(
    name: str, facts: Facts, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """For every recipe of the correlation suite, the translation gives Bridge what its own rendering gives it."""
    recipe, out = load_recipe(name), tmp_path_factory.getbasetemp()
    settings = arguments_of(mlm_arguments(recipe, lane=Lane.CPU, out=out), facts)
    made = facts.base | to_bridge(settings.told, facts, num_processes=recipe.ranks).settings
    rendered = overrides_of(bridge_overrides(recipe, lane=Lane.CPU, out=out))
    differing = {
        key: (value, made[key])
        for key, value in rendered.items()
        if key not in IN_RENDER_ALONE and not same(made[key], value)
    }
    assert differing == {}


@pytest.mark.parametrize("name", SUITE)
def test_overrides_of_recipes_translate_to_their_own_arguments(
    name: str, facts: Facts, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The other way: what Bridge is told becomes arguments that mean what Megatron-LM's own rendering means."""
    recipe, out = load_recipe(name), tmp_path_factory.getbasetemp()
    back = to_mlm(overrides_of(bridge_overrides(recipe, lane=Lane.CPU, out=out)), facts, num_processes=recipe.ranks)
    told = arguments_of(mlm_arguments(recipe, lane=Lane.CPU, out=out), facts).told
    defaults = {dest: argument.default for dest, argument in facts.arguments.items()}
    ours, own = (
        bridge_settings(derived(each, defaults, num_processes=recipe.ranks), facts)[0] for each in (back.settings, told)
    )
    differing = {key: (ours[key], own[key]) for key in own if key not in IN_ONE_ALONE and not same(ours[key], own[key])}
    assert differing == {}
    assert refusal(back) is None


IN_ONE_ALONE = {"dist.distributed_backend", "dataset.split"}
"""The CPU lane sees to the first for Bridge; the second doesn't count without data."""


ARGUMENTS: dict[str, st.SearchStrategy[Value]] = {
    "num_layers": st.integers(1, 64),
    "hidden_size": st.integers(8, 8192),
    "num_attention_heads": st.integers(1, 64),
    "micro_batch_size": st.integers(1, 8),
    "global_batch_size": st.integers(1, 512),
    "train_iters": st.integers(1, 10**6),
    "lr": st.floats(1e-6, 1),
    "min_lr": st.floats(0, 1e-6),
    "weight_decay": st.floats(0, 1),
    "adam_beta2": st.floats(0.5, 0.9999),
    "adam_eps": st.floats(1e-12, 1e-3),
    "lr_decay_style": st.sampled_from(["constant", "linear", "cosine"]),
    "position_embedding_type": st.sampled_from(["learned_absolute", "rope", "none"]),
    "normalization": st.sampled_from(["LayerNorm", "RMSNorm"]),
    "add_bias_linear": st.booleans(),
    "untie_embeddings_and_output_weights": st.booleans(),
    "bf16": st.booleans(),
    "masked_softmax_fusion": st.booleans(),
    "use_distributed_optimizer": st.booleans(),
    "num_experts": st.integers(2, 8),
    "moe_router_topk": st.integers(1, 2),
    "moe_aux_loss_coeff": st.lists(st.floats(0, 1), min_size=1, max_size=1),
    "moe_layer_freq": st.lists(st.integers(0, 1), min_size=2, max_size=4),
    "seed": st.integers(1, 10**6),
    "split": st.sampled_from(["969,30,1", "1,0,0"]),
    "data_path": st.lists(st.sampled_from(["/a b", "0.5", "/c'd", "$X/e"]), min_size=1, max_size=3),
    "swiglu": st.booleans(),
    "tensor_model_parallel_size": st.sampled_from([1, 2]),
    "sequence_parallel": st.booleans(),
    "no_persist_layer_norm": st.booleans(),
    "hidden_dropout": st.floats(0, 0.5),
    "log_interval": st.integers(1, 100),
    "attention_backend": st.sampled_from(["auto", "flash", "local"]),
}
TOLD = st.fixed_dictionaries({"seq_length": st.just(64), "max_position_embeddings": st.just(64)}, optional=ARGUMENTS)


@hypothesis_settings(deadline=None, max_examples=60)
@given(told=TOLD)
def test_arguments_come_back_from_bridge(told: dict[str, Value]) -> None:
    """Translated to Bridge and back, every argument that was translated has its value, as Megatron-LM derives it."""
    facts = _installed()
    translation = to_bridge(told, facts, num_processes=2)
    back = to_mlm(translation.settings, facts, num_processes=2)
    defaults = {dest: argument.default for dest, argument in facts.arguments.items()}
    before = derived(told, defaults, num_processes=2)
    after = derived(back.settings, defaults, num_processes=2)
    wanted, _ = bridge_settings(before, facts)
    made, _ = bridge_settings(after, facts)
    assert settings_of_fate(back, Fate.NO_EQUIVALENT) == []
    for item in translation.items:
        if item.is_told and item.fate is Fate.TRANSLATED:
            for key in item.to:
                assert same(wanted.get(key), made.get(key)), (item.name, key)


@hypothesis_settings(deadline=None, max_examples=60)
@given(told=TOLD)
def test_words_say_what_they_were_made_of(told: dict[str, Value]) -> None:
    """Arguments written as words, and read again, are the same; so are overrides."""
    facts = _installed()
    translation = to_bridge(told, facts, num_processes=2)
    text = emit(translation, facts, Form.COMMAND)
    again = read_settings(text, Way.TO_MLM, facts, source="x", given={})
    assert {key: hydra(value) for key, value in again.told.items()} == {
        key: hydra(value) for key, value in translation.settings.items()
    }
    back = to_mlm(translation.settings, facts, num_processes=2)
    words = [word for group in words_of(back.settings, facts) for word in group]
    read = arguments_of(words, facts).told
    assert read.keys() == back.settings.keys()
    assert all(same(read[dest], value) for dest, value in back.settings.items())


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=6,
)


@hypothesis_settings(deadline=None)
@given(PLAIN)
def test_values_come_back_from_hydras_grammar(value: Value) -> None:
    """A value written as an override reads as itself."""
    assert hydra_value(hydra(value)) == value


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--num-layers two", "--num-layers: 'two' isn't a whole number."),
        ("--num-layers", "--num-layers: needs a value."),
        ("--num-layers 2 3", "takes one value, not 2"),
        ("--lr-decay-style cosin", "The nearest is cosine."),
        ("--bf16 yes", "--bf16 is a switch and takes no value"),
        ("--bf16 $MORE", "the script doesn't set $MORE"),
        ("--num-layers $N", "Say it: --set N=VALUE."),
        ("--moe-layer-freq open(1)", "isn't a number or a list"),
        ("program --bf16", "no"),
    ],
)
def test_wrong_arguments_are_one_clear_line(words: str, message: str, facts: Facts) -> None:
    """The option, what is wrong with it, and what would be right."""
    if words.startswith("program"):
        with pytest.raises(RecipeError):
            read_settings(words, Way.TO_BRIDGE, facts, source="x", given={})
        return
    with pytest.raises(RecipeError) as raised:
        arguments_of(words.split(), facts)
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_misspelt_name_has_its_nearest_told(facts: Facts) -> None:
    """On both sides."""
    notes = {item.name: item.note for item in forward("--num-layer 2", facts).items if item.is_told}
    assert "--num-layers" in notes["--num-layer"]
    back = {item.name: item.note for item in to_mlm({"model.num_layer": 2}, facts).items if item.is_told}
    assert "model.num_layers" in back["model.num_layer"]


def test_a_model_that_is_not_told_is_left_out(facts: Facts) -> None:
    """The recipe's own sizes are zeros, which are no arguments."""
    back = to_mlm({"model.num_layers": 4}, facts)
    assert back.settings["num_layers"] == 4
    assert "hidden_size" not in back.settings
    assert "model.hidden_size" in settings_of_fate(back, Fate.MISSING)


LOG = """[rank0] hello
------------------------ arguments ------------------------
  adam_beta2 ...................................... 0.95
  attention_backend ............................... AttnBackend.flash
  bf16 ............................................ True
  hidden_size ..................................... 64
  main_grads_dtype ................................ torch.float32
  num_layers ...................................... 2
  params_dtype .................................... torch.bfloat16
  world_size ...................................... 8
-------------------- end of arguments ---------------------
"""
YAML = """# a model of the benchmarks
ENV_VARS:
  CUDA_DEVICE_MAX_CONNECTIONS: 1
MODEL_ARGS:
  --num-layers: 2
  --bf16: true
  --sequence-parallel: false
  --data-path: 0.5 /a 0.5 /b
  hidden_size: 64
"""


def test_a_logs_block_of_arguments_is_read(facts: Facts) -> None:
    """What differs from Megatron-LM's defaults is told; the number of processes comes along."""
    assert way_of(LOG) is Way.TO_BRIDGE
    settings = read_settings(LOG, Way.TO_BRIDGE, facts, source="x.log", given={})
    told = {"adam_beta2": 0.95, "attention_backend": "flash", "bf16": True, "hidden_size": 64, "num_layers": 2}
    assert settings.told == told
    assert settings.num_processes == 8


def test_a_yaml_of_arguments_is_read(facts: Facts) -> None:
    """Options and destinations, in sections; a switch that is false isn't given; the environment is no argument."""
    settings = read_settings(YAML, way_of(YAML), facts, source="x.yaml", given={})
    told = {"num_layers": 2, "bf16": True, "data_path": ["0.5", "/a", "0.5", "/b"], "hidden_size": 64}
    assert settings.told == told
    with pytest.raises(RecipeError, match=r"x\.yaml:2: not YAML"):
        read_settings("a: [\n", Way.TO_BRIDGE, facts, source="x.yaml", given={})


SUMMARY = """------- Configuration Summary (Non-Default Megatron Core) -------
================ Configuration Summary (Non-Default Megatron Core) ================

[model] Non-default values (vs TransformerConfig):
  num_layers: 2  (Mcore default: 0)
  hidden_size: 64  (Mcore default: 0)

[optimizer] Non-default values (vs OptimizerConfig):
  lr: 0.003  (Mcore default: None)

[train]:
  global_batch_size: 8
  train_iters: 10

======================================================================
"""


def test_bridges_summary_is_read(facts: Facts) -> None:
    """What it leaves out has Megatron-Core's default, not the recipe's."""
    assert way_of(SUMMARY) is Way.TO_MLM
    settings = read_settings(SUMMARY, Way.TO_MLM, facts, source="x.log", given={})
    assert settings.told["model.num_layers"] == 2
    assert settings.told["train.global_batch_size"] == 8
    assert settings.base is not None
    assert settings.base["optimizer.adam_beta2"] == 0.999


BRIDGE_LOGS = Path(__file__).parents[3] / "fixtures" / "real"


def test_a_real_log_of_bridge_becomes_the_arguments_of_the_same_run(facts: Facts) -> None:
    """A whole dump by Bridge translates without loss, the weight decay being what its scheduler wrote."""
    log = BRIDGE_LOGS / "bridge-main-2026-08-1rank.log"
    settings = read_settings(log.read_text(), Way.TO_MLM, facts, source=log.name, given={})
    back = to_mlm(settings.told, facts)
    assert refusal(back) is None
    expected = {
        "num_layers": 2,
        "hidden_size": 64,
        "weight_decay": 0.033,
        "lr_decay_style": "cosine",
        "mock_data": True,
    }
    assert {name: back.settings[name] for name in expected} == expected
    assert not back.settings.get("bf16")


def test_a_real_log_of_megatron_lm_translates(facts: Facts) -> None:
    """The block of arguments of a whole run is understood to its last line."""
    log = BRIDGE_LOGS / "mlm-main-2026-08-1rank.log"
    settings = read_settings(log.read_text(), Way.TO_BRIDGE, facts, source=log.name, given={})
    made = to_bridge(settings.told, facts, num_processes=settings.num_processes)
    assert refusal(made) is None
    assert made.settings["model.num_layers"] == 2
    assert made.settings["mixed_precision"] is None


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("MODEL: gpt_16b\nTP: 1\n", "x.yaml"),
        ("MODEL_ARGS:\n  prompt: hello\n", "x.yaml"),
        ("python pretrain_gpt.py $ARGS", "x.sh"),
    ],
)
def test_an_input_without_arguments_is_no_translation(text: str, source: str, facts: Facts) -> None:
    """Nothing told is an error, not Megatron-LM's defaults."""
    with pytest.raises(RecipeError, match=r"argument|options"):
        read_settings(text, Way.TO_BRIDGE, facts, source=source, given={"ARGS": ""})


def test_a_text_with_blanks_in_a_yaml_is_one_word(facts: Facts) -> None:
    """Unless the argument takes many: then its words, with or without brackets, as Megatron-LM's own runner has it."""
    text = (
        "MODEL_ARGS:\n  --step-batch-size-schedule: '0:384 200B:768'\n"
        "  --hierarchical-context-parallel-sizes: '[2 2]'\n  --cuda-graph-modules: '[attn mlp]'\n"
    )
    told = read_settings(text, Way.TO_BRIDGE, facts, source="x.yaml", given={}).told
    assert told["step_batch_size_schedule"] == "0:384 200B:768"
    assert told["hierarchical_context_parallel_sizes"] == [2, 2]
    assert told["cuda_graph_modules"] == ["attn", "mlp"]


SECTIONS = "model:\n  num_layers: 2\n  hidden_size: 64  # small\noptimizer:\n  lr: 1e-4\ndataset:\n  split: '9,1,0'\n"


def test_a_yaml_of_bridges_sections_is_read(facts: Facts) -> None:
    """Its sections say whose words it is in; numbers as Bridge's reader takes them."""
    assert way_of(SECTIONS) is Way.TO_MLM
    assert way_of(SECTIONS + "other: 1\n") is Way.TO_BRIDGE
    told = read_settings(SECTIONS, Way.TO_MLM, facts, source="x.yaml", given={}).told
    assert told == {"model.num_layers": 2, "model.hidden_size": 64, "optimizer.lr": 1e-4, "dataset.split": "9,1,0"}


def test_options_of_bridges_runner_are_settings(facts: Facts) -> None:
    """Long and short ones stand for overrides, one after another; the length is the model's, too."""
    text = (
        "torchrun --nproc_per_node=4 scripts/training/run_recipe.py --recipe vanilla_gpt_pretrain_config -tp 2 "
        "--max_steps=10 --lr 1e-4 -sl 128 model.num_layers=2 --mode pretrain --dry-run"
    )
    settings = read_settings(text, Way.TO_MLM, facts, source="x.sh", given={})
    assert settings.told == {
        "model.tensor_model_parallel_size": 2,
        "train.train_iters": 10,
        "optimizer.lr": 1e-4,
        "dataset.seq_length": 128,
        "model.seq_length": 128,
        "model.num_layers": 2,
    }
    assert settings.besides == ()
    assert settings.num_processes == 4


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("run_recipe.py --recipe llama3_8b_pretrain_config", "--recipe"),
        ("run_recipe.py --model llama3_8b --mode pretrain", "--model"),
        ("run_recipe.py --recipe vanilla_gpt_pretrain_config --mode lora", "--mode"),
        ("run_recipe.py --recipe vanilla_gpt_pretrain_config --deterministic", "--deterministic"),
        ("my_training.py", "my_training.py"),
    ],
)
@pytest.mark.usefixtures("facts")
def test_another_recipe_is_not_taken_for_the_base(words: str, name: str) -> None:
    """What the launcher chooses beside the overrides has no equivalent, and the way out is told."""
    translation, _ = translate(f"torchrun {words} model.num_layers=2", source="x.sh")
    assert [item.name for item in translation.items if item.fate is Fate.NO_EQUIVALENT] == [name]
    assert name in (refusal(translation) or "")


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("model.num_layers=two", "model.num_layers: 'two' isn't a whole number"),
        ("model.sequence_parallel=maybe", "isn't true or false"),
        ("optimizer.lr=true", "isn't a number"),
        ("model.num_layers=$N", "doesn't say what $N is. Say it: --set N=VALUE"),
        ("~model.num_layers", "takes a setting away"),
        ("model.num_layers", "is no override"),
    ],
)
def test_wrong_overrides_are_one_clear_line(override: str, message: str, facts: Facts) -> None:
    """The key, what is wrong with it, and what would be right."""
    with pytest.raises(RecipeError) as raised:
        read_settings(f"model.hidden_size=64 {override}", Way.TO_MLM, facts, source="x", given={})
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_one_is_a_switch_that_is_on(facts: Facts) -> None:
    """Bridge takes 1 for true, too."""
    text = "model.sequence_parallel=1 model.tensor_model_parallel_size=2"
    settings = read_settings(text, Way.TO_MLM, facts, source="x", given={})
    assert emit(to_mlm(settings.told, facts), facts, Form.OVERRIDES).startswith("--") is True
    assert settings.told["model.sequence_parallel"] is True


def test_a_variable_stays_one_in_what_is_written(facts: Facts) -> None:
    """For Bridge as OmegaConf takes it from the environment, for the shell in double quotes; and back."""
    settings = read_settings('--num-layers 2 --data-path "$DATA/it\'s" --save ${OUT}', Way.TO_BRIDGE, facts,
                             source="x", given={})  # fmt: skip
    text = emit(to_bridge(settings.told, facts), facts, Form.OVERRIDES)
    assert "dataset.data_path='${oc.env:DATA}/it\\'s'" in text.splitlines()
    back = read_settings(text, Way.TO_MLM, facts, source="x", given={})
    assert back.told["checkpoint.save"] == "${OUT}"
    assert '--data-path "${DATA}/it\'s"' in emit(to_mlm(back.told, facts), facts, Form.OVERRIDES).splitlines()


def test_a_dump_of_a_newer_megatron_lm_hides_nothing(facts: Facts) -> None:
    """An argument that the parser at hand doesn't have is told unless it is off, at its default, or harmless."""
    extra = "  gdp_num_householder ............. {}\n  my_loss_weight .................. {}\n"
    for values, unknown in (((3, 0), {}), ((5, 0.5), {"gdp_num_householder": 5, "my_loss_weight": 0.5})):
        text = LOG.replace("  hidden_size", extra.format(*values) + "  hidden_size")
        assert read_settings(text, Way.TO_BRIDGE, facts, source="x.log", given={}).unknown == unknown


def test_a_dump_of_another_bridge_hides_nothing(facts: Facts) -> None:
    """A setting that the base doesn't have is told unless it is off; variables of the environment move no loss."""
    log = BRIDGE_LOGS / "bridge-main-2026-08-1rank.log"
    text = log.read_text().replace("\n  num_layers: 2\n", "\n  num_layers: 2\n  my_loss_weight: 0.5\n")
    settings = read_settings(text, Way.TO_MLM, facts, source=log.name, given={})
    made = fates(to_mlm(settings.told, facts))
    assert made["model.my_loss_weight"] is Fate.UNKNOWN
    assert made["env_vars.TORCH_NCCL_HIGH_PRIORITY"] is Fate.EXECUTION


def test_a_value_of_many_variables_takes_no_time(facts: Facts) -> None:
    """What is said of it is found in one pass."""
    made = forward(f"--save {'$A_LONG_NAME/' * 40}$(pwd)", facts)
    assert [item.note for item in made.items if item.name == "--save"] == [
        "the script doesn't say what stands for the $: put it in"
    ]
