# SPDX-License-Identifier: Apache-2.0
"""The command line: python -m orrery simulate --model ..."""
import signal
import sys

from orrery import _core


def main() -> None:
    # The program has its own handler, and its output its own buffer.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(_core.run(sys.argv[1:]))


if __name__ == "__main__":
    main()
