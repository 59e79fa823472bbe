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

# Jobs of every kind on a cluster that breaks, by several policies.
SCHEDULED = {"cluster": "dgx-h100", "gpus": 64, "days": 2, "policy": ["fifo", "easy"], "reliability": "llama3-h100",
             "queues": {"research": {"gpus": 32, "borrows": True}}, "seeds": 2,
             "jobs": [{"id": "t", "length": "20 h", "model": "llama3-8b", "gpus": 16, "seq": 4096,
                       "global_batch": 64, "tp": 2},
                      {"mix": "acme-kalos", "per_day": 40, "queue": "research"}]}


def text_of(value):
    """A value as the command line takes it: lists with commas, what has members as JSON."""
    if isinstance(value, list) and not any(isinstance(one, (dict, list)) for one in value):
        return ",".join(map(str, value))
    return json.dumps(value) if isinstance(value, (dict, list)) else str(value)


def words(settings):
    """Settings as flags of the command line."""
    return [word for key, value in settings.items() for word in ("--" + key.replace("_", "-"), text_of(value))]


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
