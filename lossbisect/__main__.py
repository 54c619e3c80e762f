"""``python -m lossbisect``: the same as the console script."""

from lossbisect.cli import main

if __name__ == "__main__":
    main()
