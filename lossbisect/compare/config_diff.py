"""Two configuration dumps compared across dialects: a setting under two names, normalised, if it can move a loss."""

import re
from collections.abc import Callable, Mapping
from pathlib import PurePath

from lossbisect.compare.settings import NOT_NAMED, SETTINGS, Setting, SettingKind
from lossbisect.compare.types import ConfigDifference
from lossbisect.parsers.runlog import ConfigValue

__all__ = ["config_differences", "effective_settings", "settings_not_compared", "unlisted_differences"]

type Config = Mapping[str, ConfigValue]
type _Settings = dict[str, ConfigValue]

_MCORE_SECTIONS = frozenset({"model", "optimizer", "ddp"})
"""Sections of which Bridge's summary prints what differs from Megatron-Core's defaults, and nothing else."""
_ENUM = re.compile(r"^<?[A-Z]\w*\.(\w+)(?::.*>)?$")
_IRRELEVANT = re.compile(
    r"(?:^|\.)_|save|load(?!er_type)|log|path|dir\b|exit|rank|world_size|wandb|tensorboard|timing|profile|inprocess|ckpt"
    r"|checkpoint|num_workers|timeout|eval|train_iters|train_samples|one_logger|num_weight_shards|port\b|name\b"
)
"""Keys of a dump that say where a run writes and when it ends, not what it computes."""


def config_differences(baseline: Config, candidate: Config) -> tuple[ConfigDifference, ...]:
    """Settings that can move the loss and that the two runs don't share, most telling first.

    A setting that either dump leaves unknown is left out: `settings_not_compared` names those.
    """
    left, right = effective_settings(baseline), effective_settings(candidate)
    return tuple(
        ConfigDifference(
            field=setting.name,
            baseline=left[setting.name],
            candidate=right[setting.name],
            kind=setting.kind.value,
            reason=setting.reason,
            needs_update=setting.needs_update,
        )
        for setting in SETTINGS
        if setting.name in left and setting.name in right
        if _matters(setting, left, right) and left[setting.name] != right[setting.name]
        if not (setting.name == "data_seed" and _has_one_seed(left) and _has_one_seed(right))
    )


def settings_not_compared(baseline: Config, candidate: Config) -> tuple[str, ...]:
    """Settings that change the loss by themselves, are on, and are told by one of the two dumps only."""
    left, right = effective_settings(baseline), effective_settings(candidate)
    return tuple(
        setting.name
        for setting in SETTINGS
        if setting.kind is SettingKind.CONVERGENCE
        if (setting.name in left) != (setting.name in right) and _matters(setting, left, right)
        if left.get(setting.name) or right.get(setting.name)
    )


def unlisted_differences(baseline: Config, candidate: Config) -> tuple[str, ...]:
    """Keys that differ between two dumps of one dialect and that no row of the table explains."""
    listed = {key for setting in SETTINGS for key in (*setting.megatron, *setting.bridge)}
    return tuple(
        key
        for key in sorted(baseline.keys() & candidate.keys() - listed)
        if _normal(baseline[key]) != _normal(candidate[key]) and not _IRRELEVANT.search(key)
    )


def effective_settings(config: Config) -> dict[str, ConfigValue]:
    """What a run really trains with, by neutral name; a setting that the dump leaves open isn't there."""
    sections = {key.partition(".")[0] for key in config if "." in key}
    is_bridge = bool(sections & {"model", "optimizer", "train"})
    settings: _Settings = {}
    for setting in SETTINGS:
        keys = setting.bridge if is_bridge else setting.megatron
        present = [key for key in keys if key in config]
        told = [key for key in present if config[key] is not None] or present
        if told:
            settings[setting.name] = _normal(config[told[0]])
        elif is_bridge and setting.default != NOT_NAMED and _section(keys) in sections & _MCORE_SECTIONS:
            settings[setting.name] = setting.default
    if is_bridge:
        _derive_bridge(config, settings)
    else:
        _derive_megatron(config, settings)
    _derive_common(settings)
    _derive_schedule(config, settings)
    return settings


def _has_one_seed(settings: _Settings) -> bool:
    """Whether the data's seed is the run's, as always in Megatron-LM: it then says nothing new."""
    return settings.get("data_seed") == settings.get("seed")


def _section(keys: tuple[str, ...]) -> str:
    return keys[0].partition(".")[0] if keys else ""


def _matters(setting: Setting, left: _Settings, right: _Settings) -> bool:
    """Whether what switches a setting on is on, on either side."""
    if setting.only_if is None:
        return True
    is_on = _SWITCHES[setting.only_if]
    return is_on(left) or is_on(right)


_SWITCHES: Mapping[str, Callable[[_Settings], bool]] = {
    "rope": lambda settings: settings.get("position_embedding_type") in ("rope", "mrope", "yarn"),
    "real_data": lambda settings: settings.get("mock_data") is not True,
    "float16": lambda settings: settings.get("precision") == "float16",
    "low_precision": lambda settings: settings.get("precision") != "float32",
    "num_experts": lambda settings: bool(settings.get("num_experts")),
}


def _derive_megatron(config: Config, settings: _Settings) -> None:
    """Megatron-LM's own ways to say a setting."""
    if not config.get("group_query_attention") and "num_attention_heads" in settings:
        settings["num_query_groups"] = settings["num_attention_heads"]
    if settings.get("padded_vocab_size") is None:
        divisor = config.get("make_vocab_size_divisible_by") if config.get("pad_vocab_size", True) else 1
        _set(settings, "padded_vocab_size", _padded(config.get("vocab_size"), divisor, settings))
    if config.get("use_rotary_position_embeddings"):
        settings["position_embedding_type"] = "rope"
    if config.get("quick_geglu"):
        settings["gated_linear_unit"] = True
    if settings.get("gated_linear_unit") and "bias_swiglu_fusion" in config:
        settings["bias_activation_fusion"] = _normal(config["bias_swiglu_fusion"])
    if "swiglu" in config:
        names = {
            "swiglu": "silu",
            "squared_relu": "squared_relu",
            "quick_geglu": "quick_gelu",
            "openai_gelu": "openai_gelu",
        }
        settings["activation_func"] = next((name for key, name in names.items() if config.get(key)), "gelu")
    params_dtype = _normal(config.get("params_dtype"))
    fp8 = config.get("fp8") or config.get("fp8_format")
    _set(settings, "precision", _precision(fp8, config.get("bf16"), config.get("fp16"), params_dtype))


def _derive_bridge(config: Config, settings: _Settings) -> None:
    """Bridge's own ways to say a setting."""
    if settings.get("num_query_groups") is None and "num_attention_heads" in settings:
        settings["num_query_groups"] = settings["num_attention_heads"]
    vocab_size = config.get("model.vocab_size") or config.get("tokenizer.vocab_size")
    is_padded = config.get("model.should_pad_vocab") or config.get("tokenizer.pad_vocab_size")
    side = "model" if config.get("model.should_pad_vocab") else "tokenizer"
    divisor = config.get(f"{side}.make_vocab_size_divisible_by") if is_padded else 1
    _set(settings, "padded_vocab_size", _padded(vocab_size, divisor, settings))
    if "model.share_embeddings_and_output_weights" in config:
        settings["untie_embeddings_and_output_weights"] = not config["model.share_embeddings_and_output_weights"]
    activation = settings.get("activation_func")
    if isinstance(activation, str):
        settings["activation_func"] = activation.rpartition(".")[2]
    if any(key.startswith("model.") for key in config):
        # Not optimizer.bf16: it stays true where mixed_precision is null and the model trains in float32.
        dtypes = [_normal(config.get(key)) for key in ("model.params_dtype", "model.autocast_dtype")]
        low = next((dtype for dtype in dtypes if dtype not in (None, "float32")), "float32")
        flags = (config.get("model.fp8"), config.get("model.bf16"), config.get("model.fp16"))
        _set(settings, "precision", _precision(*flags, low))


def _derive_common(settings: _Settings) -> None:
    """Two ways to say the same: a default spelled out, or a setting that another one makes void."""
    if settings.get("embedding_init_method_std", 0) is None:
        _set(settings, "embedding_init_method_std", settings.get("init_method_std"))
    if settings.get("add_bias_linear"):
        settings["add_qkv_bias"] = True
    if settings.get("precision") == "float32":
        settings["gradients_in_fp32"] = True
    if settings.get("optimizer") not in (None, "adam"):
        for name in ("adam_beta1", "adam_beta2", "adam_eps"):
            settings.pop(name, None)
    for name in ("num_experts", "mtp_num_layers", "moe_z_loss_coeff", "use_cpu_initialization", "decoupled_lr"):
        if settings.get(name, 0) is None:
            settings[name] = 0
    if not settings.get("mtp_num_layers"):
        settings.pop("mtp_loss_scaling_factor", None)
    if "data_path" in settings:
        settings["data_path"] = _base_names(settings["data_path"])


def _derive_schedule(config: Config, settings: _Settings) -> None:
    """Warmup and decay in iterations, and the weight decay that the scheduler writes into the optimizer each time."""

    def get(name: str) -> ConfigValue:
        return next((config[key] for key in (name, f"scheduler.{name}", f"train.{name}") if key in config), None)

    def in_iterations(samples: ConfigValue) -> ConfigValue:
        batch = settings.get("global_batch_size")
        return samples / batch if isinstance(samples, int) and isinstance(batch, int) and batch else None

    samples = get("lr_decay_samples") or get("train_samples")
    decay = get("lr_decay_iters") or get("train_iters") or in_iterations(samples)
    _set(settings, "lr_decay_iters", decay)
    fraction = get("lr_warmup_fraction")
    if isinstance(fraction, float) and isinstance(decay, int | float):
        settings["lr_warmup_iters"] = fraction * decay
    elif get("lr_warmup_samples"):
        _set(settings, "lr_warmup_iters", in_iterations(get("lr_warmup_samples")))
    if settings.get("lr_decay_style") == "constant":
        settings.pop("lr_decay_iters", None)
        settings.pop("min_lr", None)
    start, end, style = get("start_weight_decay"), get("end_weight_decay"), get("weight_decay_incr_style")
    if end is not None:
        settings["weight_decay"] = end if start == end or style == "constant" else f"{start} to {end} ({style})"


def _set(settings: _Settings, name: str, value: ConfigValue) -> None:
    """Write a derived value; one that can't be derived leaves the setting unknown."""
    if value is None:
        settings.pop(name, None)
    else:
        settings[name] = value


def _precision(fp8: ConfigValue, bf16: ConfigValue, fp16: ConfigValue, dtype: ConfigValue) -> ConfigValue:
    if fp8:
        return "float8"
    if bf16:
        return "bfloat16"
    if fp16:
        return "float16"
    return dtype if dtype in ("float32", "bfloat16", "float16") else None


def _padded(vocab_size: ConfigValue, divisor: ConfigValue, settings: _Settings) -> ConfigValue:
    """Rows of the embedding: a multiple of the divisor on each tensor-parallel rank; None where that isn't told."""
    ranks = settings.get("tensor_model_parallel_size", 1)
    if not (isinstance(vocab_size, int) and isinstance(divisor, int) and isinstance(ranks, int)):
        return None
    multiple = divisor * ranks if divisor > 1 else 1
    return -(-vocab_size // multiple) * multiple


def _base_names(value: ConfigValue) -> ConfigValue:
    """Data paths without their folders, which differ from machine to machine."""
    if isinstance(value, list):
        return [_base_names(item) for item in value]
    return PurePath(value).name if isinstance(value, str) else value


def _normal(value: ConfigValue) -> ConfigValue:
    """One spelling for a value: plain enum names and types, numbers as numbers, a list of one as its item."""
    if isinstance(value, list):
        return _normal(value[0]) if len(value) == 1 else [_normal(item) for item in value]
    if not isinstance(value, str):
        return value
    text = value.strip().strip("'\"").removeprefix("torch.")
    if text in ("", "None", "null"):
        return None
    if text in ("True", "False"):
        return text == "True"
    if match := _ENUM.match(text):
        return match[1]
    try:
        return float(text)
    except ValueError:
        return text
