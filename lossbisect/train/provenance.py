"""Did the run run what was asked for? The provenance line against the spec."""

import json
from collections.abc import Iterable
from pathlib import Path

from lossbisect.train.inside.provenance import PREFIX
from lossbisect.train.types import Provenance, RunSpec

__all__ = ["mismatch", "read_provenance"]


def read_provenance(lines: Iterable[str]) -> Provenance | None:
    """What the run said about itself, whatever another rank printed on that line; None if it ended before it could."""
    for line in lines:
        _, found, text = line.partition(PREFIX)
        if found:
            try:
                return Provenance(**json.JSONDecoder().raw_decode(text)[0])
            except (ValueError, TypeError):
                continue  # a line cut by a killed run says nothing
    return None


def mismatch(spec: RunSpec, provenance: Provenance | None) -> str | None:
    """Why the run must not be judged, in one sentence; None if it ran the code that was asked for."""
    if provenance is None:
        return "the run never said which megatron.core it imported"
    sources = spec.sources
    for package, file, root in (
        ("megatron.core", provenance.megatron_core_file, sources.mcore),
        ("megatron.bridge", provenance.megatron_bridge_file, sources.bridge),
    ):
        if root is not None and not (file and Path(file).is_relative_to(root.resolve())):
            return f"{package} was imported from {file}, not from {root}"
    if sources.mcore_commit and provenance.mcore_commit not in (sources.mcore_commit, None):
        return f"megatron.core is at commit {provenance.mcore_commit}, not at {sources.mcore_commit}"
    if sources.mcore_commit and provenance.mcore_commit is None:
        return f"the run couldn't tell the commit of {provenance.megatron_core_file}; is git on its PATH?"
    if sources.mcore_commit and provenance.is_clean is not True:
        return f"the tree of {provenance.megatron_core_file} has changed files; the run says nothing about the commit"
    if sources.bridge_commit and provenance.bridge_commit not in (sources.bridge_commit, None):
        return f"megatron.bridge is at commit {provenance.bridge_commit}, not at {sources.bridge_commit}"
    return None
