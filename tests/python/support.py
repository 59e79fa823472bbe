# SPDX-License-Identifier: Apache-2.0
"""What tests of the package share: the binary beside it, a job that is quick to predict."""
import json
import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = os.environ["ORRERY_BINARY"]
JOB = {"model": "llama3-8b", "cluster": "dgx-h100", "gpus": 16, "seq": 4096, "global_batch": 64, "tp": 2}
SERVED = {"model": "llama3.3-70b", "cluster": "dgx-h100", "stack": "vllm", "engines": "TP8",
          "concurrency": 4, "requests": 20, "isl": "200", "osl": "20"}


def words(settings):
    """Settings as flags of the command line."""
    return [word for key, value in settings.items() for word in ("--" + key.replace("_", "-"), str(value))]


def printed(*line, codes=(0, 3)):
    """What the binary prints for a line, with --json."""
    done = subprocess.run([BINARY, *map(str, line), "--json"], capture_output=True, text=True, check=False)
    if done.returncode not in codes:
        raise AssertionError(f"{line}: exit code {done.returncode}: {done.stderr}")
    return done.stdout


def generated(count):
    """So many different questions to simulate, all of them good."""
    done = subprocess.run(["python3", ROOT / "tests/jsonl/generate.py", str(count)], capture_output=True,
                          text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]
