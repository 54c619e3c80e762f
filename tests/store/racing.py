"""A process that stores runs of one key as fast as it can: ``python racing.py CACHE FOLDER NAME COUNT``."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from lossbisect.store.store import RunStore
from tests.store.made import made_key, made_run


def main(cache: str, folder: str, name: str, count: str) -> None:
    """Store ``count`` runs and take each back."""
    store, key = RunStore(Path(cache)), made_key()
    for number in range(int(count)):
        out = Path(folder) / f"{name}-{number}"
        assert isinstance(store.add(key, made_run(out, key, console=f"{name} {number}\n" + "x" * 50_000)), str)
        assert store.recall(key, Path(folder) / f"{name}-{number}-again") is not None
    print("done", flush=True)  # noqa: T201


if __name__ == "__main__":
    main(*sys.argv[1:])
