# SPDX-License-Identifier: Apache-2.0
"""Starts `orrery web` for a test, or takes the one that runs at ORRERY_WEB_URL."""
import contextlib
import os
import subprocess


@contextlib.contextmanager
def server():
    """The address of a server, with a slash at its end."""
    url = os.environ.get("ORRERY_WEB_URL")
    if url:
        yield url
        return
    line = [os.environ["ORRERY_BINARY"], "web", "--port", "0"]
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True) as process:
        try:
            first = process.stdout.readline().strip()
            if not first.startswith("http://127.0.0.1:"):
                raise AssertionError(f"{line} printed {first!r} in place of its address")
            yield first
        finally:
            process.terminate()
