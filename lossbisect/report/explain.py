"""An explanation as text and as JSON."""

import json
from dataclasses import asdict

from lossbisect.assist.checklist import Answer, Explanation, Point
from lossbisect.compare.types import Verdict

__all__ = ["SCHEMA_VERSION", "explanation_json", "explanation_text"]

SCHEMA_VERSION = 1


def explanation_text(explanation: Explanation) -> str:
    """Several lines without a final newline; the first one is the verdict in capitals."""
    blocks = [_head(explanation), "\n".join(line for point in explanation.points for line in _lines(point))]
    if explanation.person:
        blocks.append("left for you\n" + "\n".join(f"  - {item}" for item in explanation.person))
    command = [f"  $ {explanation.bisect}"] if explanation.bisect else []
    blocks.append("\n".join(["next", f"  {explanation.why}", *command]))
    return "\n\n".join(blocks)


def _head(explanation: Explanation) -> str:
    judgement = explanation.judgement
    found = [point.name for point in explanation.points if point.answer is Answer.FOUND]
    left = sum(point.answer is Answer.OPEN for point in explanation.points)
    if judgement is not None and judgement.verdict is Verdict.SAME:
        head = "NOTHING TO EXPLAIN: the two logs show the same loss"
    else:
        head = f"FOUND: {', '.join(found)}" if found else "NOTHING FOUND: nothing here explains a difference"
    if left:
        head += f" ({left} of {len(explanation.points)} points open)"
    return head if judgement is None else f"{head}\n  the logs: {judgement.verdict.value}, {judgement.reason}"


def _lines(point: Point) -> list[str]:
    indent = " " * (max(map(len, Answer)) + 4)
    if len(point.told) == 1:
        lines = [f"  {point.answer:<5}  {point.name}: {point.told[0]}"]
    else:
        lines = [f"  {point.answer:<5}  {point.name}:", *(f"{indent}- {told}" for told in point.told)]
    return lines + [f"{indent}$ {remedy}" for remedy in point.remedies]


def explanation_json(explanation: Explanation) -> str:
    """One object, indented, without a final newline."""
    judgement = explanation.judgement
    report = {
        "schema_version": SCHEMA_VERSION,
        "verdict": judgement.verdict.value if judgement else None,
        "reason": judgement.reason if judgement else None,
        "points": [asdict(point) for point in explanation.points],
        "left_for_you": list(explanation.person),
        "bisect": explanation.bisect,
        "why": explanation.why,
    }
    return json.dumps(report, indent=2, allow_nan=False, ensure_ascii=False)
