"""The table of rules against what the installed trainers really have."""

import json
import subprocess
import sys
from collections import Counter

import pytest

from lossbisect.assist.translate.groups import GROUPS, MIXED
from lossbisect.assist.translate.rules import bridge_only, read_rules
from lossbisect.assist.translate.source import Unread
from lossbisect.assist.translate.types import Facts
from lossbisect.compare.settings import SETTINGS

NEWER = "newer than"


def _tell(text: str) -> None:
    """Coverage, for ``pytest -rP`` or ``-s``."""
    sys.stdout.write(f"{text}\n")


def test_every_argument_of_megatron_lm_is_classified(facts: Facts) -> None:
    """Each destination of the installed parser has a rule, and a rule without an argument says that it is newer."""
    rules = read_rules()
    classes = Counter(rules[dest].section for dest in facts.arguments if dest in rules)
    options = sum(len(argument.options) for argument in facts.arguments.values())
    _tell(f"{len(facts.arguments)} destinations, {options} options: {dict(classes)}")
    assert facts.arguments.keys() - rules.keys() == set()
    newer = {dest for dest, rule in rules.items() if NEWER in rule.mlm}
    assert rules.keys() - facts.arguments.keys() <= newer
    assert len(facts.arguments) > 800


def test_every_rule_names_where_megatron_lm_declares_its_argument(facts: Facts) -> None:
    """The file told is the one that declares the argument today; the line may have moved since."""
    wrong, moved = [], 0
    for dest, argument in facts.arguments.items():
        name, _, line_no = read_rules()[dest].mlm.partition(":")
        moved += line_no != str(argument.line_no)
        if name != argument.path.name:
            wrong.append((dest, name, argument.path.name))
    _tell(f"{moved} of {len(facts.arguments)} lines have moved")
    assert wrong == []


def test_every_target_is_a_setting_of_bridge(facts: Facts) -> None:
    """What an argument translates to exists in the configuration that the recipe builds."""
    missing = [
        (dest, key)
        for dest, rule in read_rules().items()
        if rule.section == "translated" and NEWER not in rule.mlm
        for key in rule.to
        if key not in facts.base
    ]
    assert missing == []


def test_every_setting_of_bridge_is_classified(facts: Facts) -> None:
    """Each field of the recipe's configuration is the target of an argument, or stands in a list of Bridge's own."""
    only = bridge_only()
    targets = {key for rule in read_rules().values() for key in rule.to}
    own = only.convergence | only.execution | only.implied
    _tell(f"{len(facts.base)} settings: {len(targets & facts.base.keys())} have an argument")
    assert facts.base.keys() - targets - own == set()
    assert targets & own == set()


def test_every_class_and_field_told_as_a_source_exists(facts: Facts) -> None:
    """The classes that the rules name declare the fields that they name."""
    places = {
        "GPTModelProvider": "megatron.bridge.models.gpt_provider",
        "TransformerConfig": "megatron.core.transformer.transformer_config",
        "ModelParallelConfig": "megatron.core.model_parallel_config",
        "OptimizerConfig": "megatron.core.optimizer.optimizer_config",
        "SchedulerConfig": "megatron.training.config",
        "TrainingConfig": "megatron.training.config",
    }
    told = {name for rule in read_rules().values() if NEWER not in rule.mlm for name in rule.bridge.split(", ") if name}
    known = [name.split(".") for name in told if name.partition(".")[0] in places]
    assert len(known) > 300
    missing = [(owner, field) for owner, field in known if field not in facts.sources.fields(places[owner], owner)]
    assert missing == []


def test_rules_are_whole() -> None:
    """A translated argument has a target, another one a sentence; a named way of translating exists."""
    for dest, rule in read_rules().items():
        assert bool(rule.to) == (rule.section == "translated"), dest
        assert bool(rule.note) == (rule.section != "translated"), dest
        assert rule.by in ("", "not", "mixed", "enum") or rule.by in GROUPS, dest
        assert rule.when is None or rule.when[0] in read_rules(), dest


OTHER_WORDS = {
    "padded_vocab_size": "compared as the number of rows, told as the number of words",
    "multi_latent_attention": "the correlation recipe's model has the switch and not the layers",
    "untie_embeddings_and_output_weights": "turned round",
    "mock_data": "no data told is made-up data",
    "train_data_path": "compared together with --data-path",
    "data_args_path": "compared together with --data-path",
    "transformer_impl": "another layer specification, which no override names",
}
"""Arguments that the comparison of two dumps pairs in another way than the translation, and why."""


def test_the_rules_and_the_comparison_of_dumps_pair_the_same_names() -> None:
    """A setting under two names in ``compare/settings.py`` goes to one of the same keys of Bridge."""
    rules = read_rules()
    apart = [
        name
        for setting in SETTINGS
        for name in setting.megatron
        if name in rules and setting.bridge and not set(rules[name].to) & set(setting.bridge)
    ]
    assert set(apart) == OTHER_WORDS.keys()


@pytest.mark.real
@pytest.mark.slow
def test_reading_the_parser_agrees_with_running_it(facts: Facts) -> None:
    """Destinations, options and defaults read from the source are those of the parser that Python builds."""
    script = """
import argparse, json, sys, types
from importlib.machinery import ModuleSpec
stub = types.ModuleType("nvidia_resiliency_ext"); stub.__version__ = "9.9.9"; stub.__path__ = []
stub.__spec__ = ModuleSpec("nvidia_resiliency_ext", None, is_package=True)
sys.modules["nvidia_resiliency_ext"] = stub
from megatron.training.arguments import add_megatron_arguments
parser = add_megatron_arguments(argparse.ArgumentParser(allow_abbrev=False))
found = {}
for action in parser._actions:
    if action.dest != "help":
        row = found.setdefault(action.dest, {"options": [], "default": str(action.default)})
        row["options"] += action.option_strings
json.dump(found, sys.stdout)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    real = json.loads(done.stdout.splitlines()[-1])
    assert real.keys() <= facts.arguments.keys()
    only_read = facts.arguments.keys() - real.keys()
    assert all(dest.startswith("kitchen_") for dest in only_read)  # declared where an optional package is installed
    for dest, row in real.items():
        argument = facts.arguments[dest]
        assert set(row["options"]) == argument.options.keys(), dest
        if not isinstance(argument.default, Unread):
            assert row["default"].rpartition(".")[2] == str(argument.default).rpartition(".")[2], dest


def test_a_named_precision_is_a_setting_of_its_own(facts: Facts) -> None:
    """The recipe names its mixed precision, so nothing inside it can be overridden one by one."""
    assert facts.base[MIXED] == "bf16_mixed"
