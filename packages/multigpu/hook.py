#!/usr/bin/env python3
"""The linter as a hook of pre-commit: from a checkout of this repository, with nothing installed."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "src"))

if __name__ == "__main__":
    if sys.version_info < (3, 11):  # noqa: UP036 whose python3 it is, is not for this package to say
        sys.exit("multigpu lint needs Python 3.11 or newer, and python3 is " + sys.version.split()[0])
    from multigpu.lint import main

    sys.exit(main())
