"""The configuration dumps: shape, types, noise in between, prefixes, and starts in the middle."""

from lossbisect.parsers.config_dump import parse_arguments, parse_summary, parse_yaml

ARGUMENTS = """\
------------------------ arguments ------------------------
  adam_eps ........................................ 1e-08
  attention_backend ............................... AttnBackend.auto
  bf16 ............................................ True
  config_logger_dir ...............................
  cp_comm_type .................................... ['p2p']
  ddp_param_name_patterns_for_fp32_local_accumulation  []
  hash ............................................ 12e456
  job_name ........................................ a name with blanks ... and dots
  layers .......................................... [1, 2.5, None]
  lr_decay_iters .................................. None
  split ........................................... 9999,8,2
  train_iters ..................................... 10
  unclosed ........................................ [1, 2
-------------------- end of arguments ---------------------
  after ........................................... 1
""".splitlines()
ARGUMENT_VALUES = {
    "adam_eps": 1e-8,
    "attention_backend": "AttnBackend.auto",
    "bf16": True,
    "config_logger_dir": "",
    "cp_comm_type": ["p2p"],
    "ddp_param_name_patterns_for_fp32_local_accumulation": [],
    "hash": "12e456",
    "job_name": "a name with blanks ... and dots",
    "layers": [1, 2.5, None],
    "lr_decay_iters": None,
    "split": "9999,8,2",
    "train_iters": 10,
    "unclosed": "[1, 2",
}


def test_arguments_are_typed() -> None:
    """Numbers, booleans, None and lists get their types; everything else stays text; the end mark ends it."""
    dump = parse_arguments(ARGUMENTS)
    assert dump.values == ARGUMENT_VALUES
    assert dump.is_closed
    assert dump.n_lines == 15


def test_prefixes_and_noise_of_other_ranks_are_passed_over() -> None:
    """Launchers' labels, and lines of other ranks inside the block, change nothing."""
    lines = [f"[default0]:{line}" for line in ARGUMENTS]
    lines[5:5] = ["[default1]:  warnings.warn(", "3: INFO:megatron.core.x:hello", ""]
    assert parse_arguments(lines).values == ARGUMENT_VALUES
    assert parse_arguments([f"0: {line}" for line in ARGUMENTS]).values == ARGUMENT_VALUES


def test_cut_block_keeps_what_it_has() -> None:
    """Without its end the block is open, and its values are there."""
    dump = parse_arguments(ARGUMENTS[:4])
    assert not dump.is_closed
    assert dump.values == {"adam_eps": 1e-8, "attention_backend": "AttnBackend.auto", "bf16": True}


YAML = """\
_target_: megatron.bridge.training.config.ConfigContainer
comm_overlap: null
dataset:
  _target_: megatron.bridge.training.config.GPTDatasetConfig
  blend:
  - - /data/a
    - /data/b
  name: 'it''s quoted'
  path: /a/very/long/path that pyyaml folds into
    a second line
  split: 9999,8,2
  tokens: "with \\"escapes\\""
env_vars:
  NCCL_NVLS_ENABLE: 0
  PYTORCH_CUDA_ALLOC_CONF: expandable_segments:True
model:
  attention_backend:
    _args_:
    - 5
    _call_: true
    _name_: auto
    _target_: megatron.core.transformer.enums.AttnBackend
  empty: {}
  layernorm_epsilon: 1.0e-05
  limit: .inf
  params_dtype:
    _call_: false
    _target_: torch.float32
  ranks:
  - 0
  - 8
  tp: 2
  use: false
train:
  train_iters: 10

/workspace/x.py:1: UserWarning: not yaml
""".splitlines()
YAML_VALUES = {
    "comm_overlap": None,
    "dataset.name": "it's quoted",
    "dataset.path": "/a/very/long/path that pyyaml folds into a second line",
    "dataset.split": "9999,8,2",
    "dataset.tokens": 'with "escapes"',
    "env_vars.NCCL_NVLS_ENABLE": 0,
    "env_vars.PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True",
    "model.attention_backend": "auto",
    "model.empty": "{}",
    "model.layernorm_epsilon": 1e-5,
    "model.limit": float("inf"),
    "model.params_dtype": "torch.float32",
    "model.ranks": [0, 8],
    "model.tp": 2,
    "model.use": False,
    "train.train_iters": 10,
}


def test_yaml_is_flat_and_typed() -> None:
    """Sections become dots; an enum's member, a dtype or a function becomes its name."""
    dump = parse_yaml(YAML)
    assert {key: dump.values.get(key, "missing") for key in YAML_VALUES} == YAML_VALUES
    assert dump.values.keys() - YAML_VALUES.keys() == {"_target_", "dataset._target_", "dataset.blend"}
    assert dump.is_closed
    assert YAML[dump.n_lines] == ""


def test_yaml_behind_a_prefix_reads_alike() -> None:
    """A nemo-run or torchrun label before each line is peeled."""
    for prefix in ("main_fp8/0 [default0]:", "0: ", "2026-06-10T23:09:45.9428001Z "):
        dump = parse_yaml([prefix + line for line in YAML])
        assert {key: dump.values.get(key, "missing") for key in YAML_VALUES} == YAML_VALUES


SUMMARY = """\
Configuration Summary (Non-Default Values vs Megatron Core)
======================================================================

[optimizer] Non-default values (vs Mcore OptimizerConfig):
  adam_beta2: 0.95  (Mcore default: 0.999)
  lr: 0.003  (Mcore default: None)
  name: 'a (b)'  (Mcore default: 'c')

[model] Non-default values (vs Mcore TransformerConfig):
  autocast_dtype: torch.float32  (Mcore default: None)
  scope: <InferenceCudaGraphScope.none: 1>  (Mcore default: None)
INFO:megatron.core:another rank
  recompute_modules: ['core_attn']  (Mcore default: None)

----------------------------------------------------------------------
Other Configuration Values:
----------------------------------------------------------------------

[train]:
  exit_signal: <Signals.SIGTERM: 15>
  manual_gc: False

======================================================================
  after: 1
""".splitlines()


def test_summary_is_flat_and_typed() -> None:
    """The value counts, not Megatron-Core's default behind it."""
    dump = parse_summary(SUMMARY)
    assert dump.values == {
        "optimizer.adam_beta2": 0.95,
        "optimizer.lr": 0.003,
        "optimizer.name": "a (b)",
        "model.autocast_dtype": "torch.float32",
        "model.scope": "none",
        "model.recompute_modules": ["core_attn"],
        "train.exit_signal": "SIGTERM",
        "train.manual_gc": False,
    }
    assert dump.is_closed


def test_summary_behind_a_prefix_reads_alike() -> None:
    """A label before each line is peeled."""
    assert parse_summary([f"job/0 {line}" for line in SUMMARY]).values == parse_summary(SUMMARY).values
