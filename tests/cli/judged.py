"""``lossbisect judge`` with a made-up trainer, for the real ``git bisect run``."""

import sys
from functools import partial
from pathlib import Path
from unittest.mock import patch

sys.path.insert(0, str(Path(__file__).parents[2]))

from lossbisect.bisect.judge import judge_checkout
from lossbisect.cli import main
from tests.bisect.support import play, read_play

if __name__ == "__main__":
    with patch("lossbisect.cli.judge.judge_checkout", partial(judge_checkout, run=play, read=read_play)):
        main(["judge", *sys.argv[1:]])
