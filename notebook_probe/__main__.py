"""``python -m notebook_probe``: runs that were recorded, in a terminal."""

import sys

from notebook_probe.command_line import main

if __name__ == "__main__":
    sys.exit(main())
