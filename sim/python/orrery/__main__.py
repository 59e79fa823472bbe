# SPDX-License-Identifier: Apache-2.0
"""The command line: python -m orrery simulate --model ..."""
import json
import os
import signal
import sys

from orrery import _core


def main() -> None:
    # The program has its own handler, and its output its own buffer.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    # What this program starts beside itself: searches of `orrery web`, and charts by vl-convert.
    os.environ["ORRERY_COMMAND"] = json.dumps([sys.executable, "-m", "orrery"])
    os.environ.setdefault("ORRERY_PYTHON", sys.executable)
    sys.exit(_core.run(sys.argv[1:]))


if __name__ == "__main__":
    main()
