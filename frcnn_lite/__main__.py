"""`python -m frcnn_lite`."""

import sys

from frcnn_lite.cli import main

if __name__ == "__main__":
    sys.exit(main())
