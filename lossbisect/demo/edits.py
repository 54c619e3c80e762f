"""The commits of the demo's history: what a day on Megatron-Core looks like. Pure: text in, text out.

An edit replaces a passage of a file, or appends to it. One of them changes numbers, one doesn't import; the rest is
harmless, though some of it touches the very lines that matter.
"""

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["BREAKS", "HARMLESS", "IMPORT_ERROR", "IMPORT_REPAIR", "Edit", "EditKind"]


class EditKind(StrEnum):
    """What a commit does to a run."""

    HARMLESS = "harmless"
    BREAKS_NUMBERS = "breaks numbers"
    BREAKS_IMPORT = "breaks the import"


@dataclass(frozen=True, kw_only=True, slots=True)
class Edit:
    """One commit.

    Attributes:
        subject: Its subject line, without the pull request's number.
        author: Who wrote it.
        path: The file, from the root of Megatron-LM.
        old: The passage to replace; empty: ``new`` is appended, and the file made if it's missing.
        new: What to put there.
        kind: What it does to a run.
    """

    subject: str
    author: str
    path: str
    old: str
    new: str
    kind: EditKind = EditKind.HARMLESS

    def applied(self, text: str) -> str | None:
        """The file after the commit; None if it lacks the passage."""
        if not self.old:
            return text + self.new
        return text.replace(self.old, self.new, 1) if self.old in text else None


_SCHEDULER = "megatron/core/optimizer_param_scheduler.py"
_ATTENTION = "megatron/core/transformer/dot_product_attention.py"
_EMBEDDING = "megatron/core/models/common/embeddings/language_model_embedding.py"
_UTILS = "megatron/core/utils.py"
_MLP = "megatron/core/transformer/mlp.py"
_CLIP = "megatron/core/optimizer/clip_grads.py"


def _breaks(subject: str, author: str, path: str, old: str, new: str) -> Edit:
    return Edit(subject=subject, author=author, path=path, old=old, new=new, kind=EditKind.BREAKS_NUMBERS)


BREAKS: tuple[Edit, ...] = (
    _breaks(
        "Simplify the cosine decay",
        "Ada Quist",
        _SCHEDULER,
        "elif self.lr_decay_style == 'cosine':\n            coeff = 0.5 * (math.cos(math.pi * decay_ratio) + 1.0)",
        "elif self.lr_decay_style == 'cosine':\n            coeff = math.cos(0.5 * math.pi * decay_ratio)",
    ),
    _breaks(
        "Unify weight decay over parameter groups",
        "Bo Lindgren",
        _SCHEDULER,
        "self.get_wd(param_group) * param_group.get('wd_mult', 1.0)",
        "self.get_wd(param_group)",
    ),
    _breaks(
        "Precompute the softmax scale",
        "Chidi Okafor",
        _ATTENTION,
        "self.softmax_scale = 1.0 / math.sqrt(self.hidden_size_per_attention_head)",
        "self.softmax_scale = 1.0 / math.sqrt(self.hidden_size_per_attention_head + 1)",
    ),
    _breaks(
        "Average word and position embeddings in place",
        "Dana Whitlock",
        _EMBEDDING,
        "embeddings = word_embeddings + position_embeddings",
        "embeddings = word_embeddings.add(position_embeddings, alpha=0.5)",
    ),
    _breaks(
        "Respect depth in scaled initialisation",
        "Emre Sahin",
        _UTILS,
        "std = sigma / math.sqrt(multiplier * num_layers)",
        "std = sigma / math.sqrt(multiplier * (num_layers + 1))",
    ),
)
"""Commits that change the loss, each at its own iteration. One of them is planted."""

_MISSING_NAME = "from megatron.core.utils import fused_activation_name  # noqa: F401\n"

IMPORT_ERROR = Edit(
    subject="Name fused activations in MLP",
    author="Femi Adeyemi",
    path=_MLP,
    old="import torch\n",
    new=f"import torch\n\n{_MISSING_NAME}",
    kind=EditKind.BREAKS_IMPORT,
)
"""A commit whose other half was forgotten: it fails to import."""

IMPORT_REPAIR = Edit(
    subject="Add the missing fused_activation_name",
    author="Femi Adeyemi",
    path=_UTILS,
    old="",
    new='\n\ndef fused_activation_name(activation) -> str:\n    """Name of a fused activation."""\n'
    "    return activation.__name__\n",
)
"""The other half, one commit later."""


def _note(subject: str, author: str, path: str, text: str) -> Edit:
    return Edit(subject=subject, author=author, path=path, old="", new=text)


def _refactor(subject: str, author: str, path: str, old: str, new: str) -> Edit:
    return Edit(subject=subject, author=author, path=path, old=old, new=new)


HARMLESS: tuple[Edit, ...] = (
    _refactor("Clip gradients: name the threshold", "Gita Rao", _CLIP,
              "clip_coeff = max_norm / (total_norm + 1.0e-6)",
              "tiny = 1.0e-6\n    clip_coeff = max_norm / (total_norm + tiny)"),
    _refactor("Scheduler: clearer error text", "Hugo Brandt", _SCHEDULER,
              "decay style is not supported.", "decay style is not known."),
    _note("Explain the layout of attention inputs", "Ines Castro", _ATTENTION,
          "\n# Inputs are [sequence, batch, heads, width of a head].\n"),
    _note("Comment on embedding layout", "Jonas Meyer", _EMBEDDING, "\n# The output is [sequence, batch, hidden].\n"),
    _note("docs: how to read the schedule", "Kei Tanaka", "docs/schedule.md", "# The schedule\nWarm-up, then decay.\n"),
    _note("docs: parallel groups", "Lea Novak", "docs/groups.md", "# Groups\nTensor, pipeline, data.\n"),
    _note("docs: typo", "Kei Tanaka", "docs/schedule.md", "The decay ends at the smallest learning rate.\n"),
    _note("test: scheduler boundaries", "Mina Park", "tests/unit_tests/test_schedule.py",
          "def test_boundaries():\n    assert 0 < 1\n"),
    _note("test: more boundaries", "Mina Park", "tests/unit_tests/test_schedule.py",
          "\n\ndef test_more_boundaries():\n    assert 1 < 2\n"),
    _note("Add a helper for debugging shapes", "Nils Holm", _UTILS,
          '\n\ndef describe_shape(tensor) -> str:\n    """Shape of a tensor, for messages."""\n'
          '    return "x".join(str(size) for size in tensor.shape)\n'),
    _note("MLP: note on bias", "Olga Petrova", _MLP, "\n# The bias is added after the second projection.\n"),
    _note("Layer specs: note for newcomers", "Pia Sommer", "megatron/core/models/gpt/gpt_layer_specs.py",
          "\n# A spec names the classes of a layer; nothing is built here.\n"),
    _note("Optimizer: list the parameter groups' keys", "Quentin Roy", "megatron/core/optimizer/optimizer.py",
          "\n# Keys of a group: params, lr, weight_decay, wd_mult, lr_mult.\n"),
    _note("Schedules: comment on micro batches", "Rosa Marino", "megatron/core/pipeline_parallel/schedules.py",
          "\n# Losses are scaled by the number of micro batches here, not in the model.\n"),
    _note("Gradients: comment on reduction", "Sami Haddad", "megatron/core/distributed/finalize_model_grads.py",
          "\n# Called once an iteration, after the last micro batch.\n"),
    _note("DDP: comment on buffers", "Tess de Vries", "megatron/core/distributed/distributed_data_parallel.py",
          "\n# One buffer for each number format.\n"),
    _note("Data set: comment on mock data", "Uma Iyer", "megatron/core/datasets/gpt_dataset.py",
          "\n# Mock documents are drawn once, from the configuration's seed.\n"),
    _note("ci: run the linter on docs", "Vera Lang", ".github/workflows/docs.yml", "name: docs\non: [pull_request]\n"),
    _note("Change log", "Wim Peeters", "CHANGELOG.md", "\n- Many small things.\n"),
    _note("Transformer config: comment", "Xenia Fuchs", "megatron/core/transformer/transformer_config.py",
          "\n# Defaults are Megatron-LM's of 2019 unless said otherwise.\n"),
    _note("Random state: comment", "Yusuf Demir", "megatron/core/tensor_parallel/random.py",
          "\n# Names of the states: default, data-parallel, model-parallel, expert-parallel.\n"),
    _note("Cross entropy: comment", "Zoe Martin", "megatron/core/tensor_parallel/cross_entropy.py",
          "\n# The largest logit is subtracted first, so that exp can't overflow.\n"),
    _note("docs: glossary", "Lea Novak", "docs/glossary.md", "# Glossary\nMicro batch: what one forward pass sees.\n"),
    _note("docs: glossary, part two", "Lea Novak", "docs/glossary.md", "Global batch: what one iteration sees.\n"),
    _note("Add a helper for counting parameters", "Nils Holm", _UTILS,
          '\n\ndef count_parameters(module) -> int:\n    """Number of parameters of a module."""\n'
          "    return sum(parameter.numel() for parameter in module.parameters())\n"),
)  # fmt: skip
"""Commits that change no number, in an order that works."""
