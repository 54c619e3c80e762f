"""What to say before any shape is read: the two can't be compared, or a bisect would be a waste."""

import math

from lossbisect.compare.evidence import Evidence, Pair
from lossbisect.compare.types import Diagnosis
from lossbisect.compare.wording import metric_name, relative_text, value_text

__all__ = ["GATES"]

_OTHER_TASK = (
    "seq_length",
    "global_batch_size",
    "rampup_batch_size",
    "data_path",
    "split",
    "mock_data",
    "data_seed",
    "padded_vocab_size",
    "num_layers",
    "hidden_size",
    "num_attention_heads",
    "hidden_dropout",
    "attention_dropout",
)
_FAR_OFF = 0.2
"""A first loss is ln(vocabulary) or a checkpoint's loss: a fifth off is another model, not another rounding."""


def not_comparable(evidence: Evidence) -> Diagnosis | None:
    """The runs were asked to do different things."""
    fields = evidence.fields(*_OTHER_TASK)
    if not fields or not _differs(evidence):
        return None
    dropout = [item for item in fields if item.field.endswith("dropout")]
    told = ", ".join(f"{item.field} ({item.baseline} vs {item.candidate})" for item in fields[:4])
    random = " (dropout draws other random zeros on each side)" if dropout else ""
    return Diagnosis(
        shape="not-comparable",
        meaning=f"The two runs are not comparable: they train something else{random}.",
        evidence=f"The settings differ in {told}.",
        check_next="Set these fields alike and run again before anything else is looked at.",
    )


def other_columns(evidence: Evidence) -> Diagnosis | None:
    """The learning rate or the samples differ, which no commit of the model code explains."""
    for name in ("learning_rate", "consumed_samples"):
        for pair in evidence.columns.get(name, ()):
            if _is_apart(pair):
                is_seen = _differs(evidence) or evidence.is_off
                return Diagnosis(
                    shape="other-schedule" if name == "learning_rate" else "other-samples",
                    meaning=f"The two runs differ in their {metric_name(name)}, "
                    + (
                        "so they don't do the same training."
                        if is_seen
                        else "and the loss shows nothing of it: only its logging changed, or it is too early."
                    ),
                    evidence=f"At iteration {pair.iteration} it is {value_text(pair.baseline)} against "
                    f"{value_text(pair.candidate)}.",
                    check_next="lr, lr_warmup_iters, lr_decay_iters, lr_decay_style, min_lr; after a resume the "
                    "scheduler's state in the checkpoint."
                    if name == "learning_rate"
                    else "global_batch_size, rampup_batch_size, train_samples; after a resume consumed_train_samples.",
                )
    return None


def first_loss_far_off(evidence: Evidence) -> Diagnosis | None:
    """The very first loss is another model's."""
    pairs = evidence.finite
    if not pairs or evidence.metric != "lm_loss":
        return None
    first = pairs[0]
    ours, theirs = first.baseline or 0.0, first.candidate or 0.0
    apart = abs(theirs - ours) / max(abs(ours), abs(theirs), 1e-30)
    is_start = first.iteration == 1 or first.iteration in evidence.resumes or first is evidence.pairs["lm_loss"][0]
    if apart <= _FAR_OFF or not is_start:
        return None
    return Diagnosis(
        shape="first-loss-far-off",
        meaning="The first loss is far off: wrong weights, labels or layout. No bisect is needed to see it.",
        evidence=f"Iteration {first.iteration}: {value_text(ours)} against {value_text(theirs)}, "
        f"{relative_text(apart)} apart.",
        check_next="Which checkpoint was loaded and whether all of it was; the shift of labels by one; the layout of "
        "QKV and of tensor-parallel shards; the tokenizer. Compare one forward pass with msprobe or TTrace.",
    )


def does_not_repeat(evidence: Evidence) -> Diagnosis | None:
    """The noise of the same set-up is as large as the difference."""
    largest = evidence.loss.largest_rel or 0.0
    noise = evidence.noise
    is_alarm = evidence.loss.effect is not None and evidence.loss.effect.is_alarm
    if is_alarm or evidence.are_medians or not noise.is_measured or not 0 < largest <= noise.surely_noise_rel:
        return None
    return Diagnosis(
        shape="does-not-repeat",
        meaning="The same set-up does not repeat itself, and the two sides lie no further apart than its repeats.",
        evidence=f"Its repeats differ by up to {relative_text(noise.surely_noise_rel)}, the two sides by "
        f"{relative_text(largest)}.",
        check_next="deterministic_mode, NCCL_ALGO, CUBLAS_WORKSPACE_CONFIG and NVTE_ALLOW_NONDETERMINISTIC_ALGO=0, or "
        "more repeats.",
    )


def _differs(evidence: Evidence) -> bool:
    loss = evidence.loss
    return loss.first_doubtful is not None or loss.first_divergent is not None or bool(loss.spikes)


def _is_apart(pair: Pair) -> bool:
    ours, theirs = pair.baseline, pair.candidate
    if ours is None or theirs is None:
        return False
    return not math.isclose(ours, theirs, rel_tol=2e-6, abs_tol=1e-12)


GATES = (other_columns, not_comparable, first_loss_far_off, does_not_repeat)
"""In the order in which they are told; a gate doesn't exclude the next."""
