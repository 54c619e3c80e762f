"""Run a trainer's script or module, with lossbisect's recorder and, on the CPU lane, emulated CUDA around it.

    python launch.py --lane cpu --cache DIR --preload FILE --out DIR SCRIPT.py ARGS...
    python launch.py --lane cpu --cache DIR --preload FILE --out DIR -m MODULE ARGS...
    python launch.py --lane cpu --cache DIR --preload FILE --warm

The last form is a warm parent: it imports what doesn't come from a checkout, and then forks a run for each request.

The file is run by path, by an interpreter that need not have lossbisect installed. The package is therefore loaded
from this file's place under its own name, and nothing is put on ``sys.path``: the trainer must not see the tool's
neighbours.
"""

import sys


def _load_lossbisect() -> None:
    import importlib.util
    from pathlib import Path

    here = Path(__file__).resolve()
    if sys.path and sys.path[0] and Path(sys.path[0]).resolve() == here.parent:
        del sys.path[0]
    root = here.parents[2]
    spec = importlib.util.spec_from_file_location(
        "lossbisect", root / "__init__.py", submodule_search_locations=[str(root)]
    )
    assert spec is not None
    assert spec.loader is not None
    package = importlib.util.module_from_spec(spec)
    sys.modules["lossbisect"] = package
    spec.loader.exec_module(package)


def enter_lane(cache: str) -> None:
    """Be on the CPU lane from here on, in a process that a trainer spawned."""
    from pathlib import Path

    _load_lossbisect()

    from lossbisect.train.cpu_lane import activate

    activate(Path(cache))


def main() -> None:
    """Parse the few options of ours, set the stage, and hand over to the trainer as ``__main__``."""
    _load_lossbisect()

    import argparse
    from pathlib import Path

    parser = argparse.ArgumentParser(prog="launch.py", allow_abbrev=False)
    parser.add_argument("--lane", choices=("cpu", "cuda"), required=True)
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("--preload", type=Path, required=True)
    parser.add_argument("--warm", action="store_true")
    parser.add_argument("--out", type=Path)
    parser.add_argument("-m", dest="is_module", action="store_true")
    parser.add_argument("target", nargs="?")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    options = parser.parse_args()

    if options.warm:
        import gc

        gc.disable()  # imports make little garbage, and looking for it takes a tenth of their time
    if options.lane == "cpu":
        from lossbisect.train.cpu_lane import activate

        activate(options.cache)
    if options.warm:
        from lossbisect.train.inside.warm import serve

        serve(options.lane, options.cache, options.preload)

    from lossbisect.train.inside.stage import Run, perform

    run = Run(
        lane=options.lane,
        cache=options.cache,
        out=options.out,
        target=options.target,
        arguments=tuple(options.arguments),
        is_module=options.is_module,
    )
    ours = [__file__, "--lane", options.lane, "--cache", str(options.cache), "--preload", str(options.preload)]
    perform(run, options.preload, again=[*ours, "--out", str(options.out)])


if __name__ == "__main__":
    main()
