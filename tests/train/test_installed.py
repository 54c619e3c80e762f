"""Which package comes from which distribution is remembered, and asked anew once something is installed."""

import importlib.metadata
import os
from pathlib import Path

import pytest

from lossbisect.train.inside.installed import remembered


def _install(folder: Path, name: str) -> None:
    about = folder / f"{name}-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (about / "top_level.txt").write_text(f"{name}_package\n")


def test_the_answer_is_that_of_the_metadata(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """First, remembered, after an installation, and with a damaged cache: always what importlib itself says."""
    site, cache = tmp_path / "site", tmp_path / "cache"
    cache.mkdir()
    _install(site, "one")
    monkeypatch.setattr("sys.path", [str(site)])
    ask = importlib.metadata.packages_distributions
    reads = 0

    def counted() -> object:
        nonlocal reads
        reads += 1
        return ask()

    monkeypatch.setattr(importlib.metadata, "packages_distributions", counted)
    with remembered(cache):
        assert importlib.metadata.packages_distributions() == ask() == {"one_package": ["one"]}
        assert importlib.metadata.packages_distributions() == ask()
        assert reads == 1
        _install(site, "two")
        os.utime(site)
        assert importlib.metadata.packages_distributions() == ask()
        assert reads == 2
        (cache / "distributions.json").write_text("{")
        assert importlib.metadata.packages_distributions() == ask()
        assert reads == 3
    assert importlib.metadata.packages_distributions is counted
