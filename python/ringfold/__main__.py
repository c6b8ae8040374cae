"""The program `ringfold`, as it is without Python."""

from __future__ import annotations

import os
import sys

from . import _ringfold


def main() -> None:
    """Runs the command line."""
    code = _ringfold.main(["ringfold", *sys.argv[1:]])
    sys.stdout.flush()
    # What the program leaves to the end of its process needn't be taken apart first.
    os._exit(code)


if __name__ == "__main__":
    main()
