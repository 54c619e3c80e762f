"""What the other columns say: the gradient norm, and losses that only the log knows."""

import math
from itertools import pairwise

from lossbisect.compare.evidence import Evidence, constant_ratio
from lossbisect.compare.middle import median, spread
from lossbisect.compare.types import Diagnosis
from lossbisect.compare.wording import metric_name, relative_text

__all__ = ["WITNESSES"]

_SIZES = (
    "data_parallel_size",
    "tensor_model_parallel_size",
    "pipeline_model_parallel_size",
    "context_parallel_size",
    "expert_model_parallel_size",
)
_TRAINED_BY = ("grad_norm", "learning_rate", "loss_scale")
"""Columns that training itself follows: a difference in them isn't one of logging."""
_SMOOTH = 0.1
"""A gradient norm that varies ten times less than the baseline's isn't that of training."""


def gradient_gone(evidence: Evidence) -> Diagnosis | None:
    """The gradient norm of one side is 0, or moves far less than the other's."""
    pairs = [pair for pair in evidence.pairs.get("grad_norm", ()) if pair.is_finite]
    if len(pairs) < 4:
        return None
    sides = [[abs(getattr(pair, side) or 0.0) for pair in pairs] for side in ("baseline", "candidate")]
    for side, own, other in (("candidate", sides[1], sides[0]), ("baseline", sides[0], sides[1])):
        zeros = sum(value <= 1e-3 * reference for value, reference in zip(own, other, strict=True) if reference > 0)
        if 2 * zeros > len(own):
            what, evidence_text = "is gone to 0", f"It is 0 in {zeros} of {len(own)} rows of the {side} only."
        elif len(own) >= 8 and _wobble(own) < _SMOOTH * _wobble(other):
            what = "is unnaturally smooth"
            evidence_text = f"From row to row it varies by {_wobble(own):.1%} there, by {_wobble(other):.1%} else."
        else:
            continue
        return Diagnosis(
            shape="gradient-gone",
            meaning=f"The grad norm of the {side} {what}: its gradient isn't that of the loss.",
            evidence=evidence_text,
            check_next="cross_entropy_loss_fusion and its implementation (te zeroes its input), frozen parameters, "
            "overlap_grad_reduce, a softmax over one value (moe_router_topk 1 without moe_router_pre_softmax).",
        )
    return None


def gradient_factor(evidence: Evidence) -> Diagnosis | None:
    """The gradient norm is off by a constant factor."""
    gradient = evidence.differences.get("grad_norm")
    if gradient is None or gradient.first_divergent is None:
        return None
    pairs = evidence.pairs["grad_norm"]
    ratio = constant_ratio(pairs, 0.02)
    if ratio is None or abs(ratio - 1) < 0.05:
        return None
    return Diagnosis(
        shape="gradient-factor",
        meaning="The gradient is off by a constant factor: scaled by a size of the set-up, once too often or too "
        "seldom. Adam hides such a factor from the loss.",
        evidence=f"The grad norm is {ratio:.4g} times the baseline's in all rows{_named(ratio, evidence)}.",
        check_next="calculate_per_token_loss, gradient averaging (average_in_collective, finalize_model_grads.py), "
        "the number of microbatches, loss scale, and duplicated parameters in the norm (clip_grads.py).",
    )


def gradient_only(evidence: Evidence) -> Diagnosis | None:
    """The gradient norm differs, and the loss doesn't or later."""
    gradient = evidence.differences.get("grad_norm")
    if gradient is None or gradient.first_divergent is None:
        return None
    if evidence.onset is not None and evidence.onset <= gradient.first_divergent:
        return None
    rest = "not at all so far" if evidence.onset is None else f"from iteration {evidence.onset} on"
    return Diagnosis(
        shape="gradient-first",
        meaning="The backward pass differs and the forward pass doesn't: a scaling that Adam hides, or a wrong "
        "gradient of one layer. With a warm-up from 0 it reaches the loss at iteration 3 at the earliest.",
        evidence=f"The grad norm differs from iteration {gradient.first_divergent} on, by up to "
        f"{relative_text(gradient.largest_rel or 0)} relative; the {metric_name(evidence.metric)} {rest}.",
        check_next="The gradient layer by layer (msprobe, TTrace); attention's backward pass, gradient reduction in "
        "bfloat16, distributed/finalize_model_grads.py.",
    )


def logging_only(evidence: Evidence) -> Diagnosis | None:
    """An auxiliary loss moves while training doesn't."""
    gradient = evidence.differences.get("grad_norm")
    if evidence.is_off or (gradient is not None and gradient.first_divergent is not None):
        return None
    for name, difference in evidence.differences.items():
        if name in (evidence.metric, *_TRAINED_BY) or difference.first_divergent is None:
            continue
        ratio = constant_ratio(evidence.pairs[name], 0.01)
        factor = f", {ratio:.4g} times the baseline's" if ratio is not None else ""
        return Diagnosis(
            shape="logging-only",
            meaning=f"Only the {metric_name(name)} changes: how it is logged, not how it is trained.",
            evidence=f"It differs from iteration {difference.first_divergent} on{factor}; the "
            f"{metric_name(evidence.metric)} and the grad norm agree.",
            check_next="Recompute counts it twice (load_balancing_loss), log_interval divides it (mtp loss), averaging "
            "over ranks (z loss); moe_utils.py and multi_token_prediction.py.",
        )
    return None


def _named(ratio: float, evidence: Evidence) -> str:
    """What a factor equals: a power of two, a parallel size, the number of microbatches; or a root of those."""
    size = ratio if ratio > 1 else 1 / ratio
    names = [
        name.replace("_", " ")
        for name in _SIZES
        if isinstance(number := evidence.settings.get(name), int)
        and number > 1
        and math.isclose(size, number, rel_tol=0.02)
    ]
    batches = [evidence.settings.get(name) for name in ("global_batch_size", "micro_batch_size")]
    ranks = evidence.settings.get("data_parallel_size", 1)
    if all(isinstance(number, int) and number for number in (*batches, ranks)):
        microbatches = batches[0] / (batches[1] * ranks)  # type: ignore[operator]
        if microbatches > 1 and math.isclose(size, microbatches, rel_tol=0.02):
            names.append("number of microbatches")
    names += [
        f"root of the {name.replace('_', ' ')}"
        for name in _SIZES
        if isinstance(number := evidence.settings.get(name), int)
        and number > 1
        and math.isclose(size**2, number, rel_tol=0.02)
    ]
    power = math.log2(size)
    if abs(power - round(power)) < 0.03 and round(power):
        names.append(f"2 to the power of {round(math.log2(ratio))}")
    return f", which is the {' or the '.join(names)}" if names else ""


def _wobble(values: list[float]) -> float:
    """Median relative change from one row to the next about its trend."""
    middle = median(values)
    if not middle:
        return 0.0
    changes = [(later - earlier) / middle for earlier, later in pairwise(values)]
    return spread(changes)


WITNESSES = (gradient_gone, gradient_factor, gradient_only, logging_only)
"""In the order in which they are told."""
