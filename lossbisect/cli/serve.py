"""``lossbisect serve``."""

from pathlib import Path

import click

__all__ = ["command"]

DEFAULT_PORT = 8642


@click.command(
    epilog="Exit codes: 0 stopped by Ctrl-C or a polite kill, 2 wrong usage or a failure of lossbisect itself."
)
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    metavar="ADDRESS",
    help="Address to listen on. Any other one than this machine's own shows everything to whoever reaches it.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=DEFAULT_PORT,
    show_default=True,
    help="Port to listen on; 0: any free one.",
)
@click.option(
    "--work-dir",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="What to show: where runs and bisects are kept.  [default: $LOSSBISECT_CACHE_DIR, or the user's cache "
    "directory]",
)
def command(host: str, port: int, work_dir: Path | None) -> int:
    """Show histories, triages, bisects while they run, and stored runs as a small site, until interrupted.

    The site is only for reading, and its pages keep themselves up to date.

    Example: lossbisect serve --port 8642
    """
    from lossbisect.bisect.state import work_root
    from lossbisect.cli.console import interruptible
    from lossbisect.errors import LossbisectError
    from lossbisect.serve.site import Site
    from lossbisect.serve.web import is_loopback, open_server

    root = work_root(work_dir)
    try:
        server = open_server(Site(root), host, port)
    except (OSError, OverflowError) as error:
        raise LossbisectError(
            f"{host}:{port}: can't listen there: {getattr(error, 'strerror', None) or error}. "
            "Name another --port (0: any free one) or --host."
        ) from error
    with server:
        if not is_loopback(host):
            click.echo(
                f"Warning: {host} is reached from other machines, and nobody is asked for a password: commits, paths "
                "and logs are shown to everybody there. 'ssh -L' to the default host shows them to you alone.",
                err=True,
            )
        shown = f"[{host}]" if ":" in host else host
        click.echo(f"http://{shown}:{server.server_address[1]}/")
        click.echo(f"Shows {root}. Ctrl-C ends it.", err=True)
        try:
            with interruptible():
                server.serve_forever()
        except KeyboardInterrupt:
            return 0
    return 0
