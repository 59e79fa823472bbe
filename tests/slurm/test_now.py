# SPDX-License-Identifier: Apache-2.0
"""The command that orrery asks for tells it what a Slurm runs and queues, whatever the jobs ask with.

Usage: ORRERY_BINARY=build/orrery python3 -m unittest discover -s tests/slurm
"""
import csv
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

from cluster import Slurm

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = os.environ.get("ORRERY_BINARY", str(ROOT / "build/orrery"))


def orrery(*words, code=0):
    done = subprocess.run([BINARY, "schedule", "--cluster", "dgx-h100", "--gpus", "16", *map(str, words)],
                          capture_output=True, text=True, check=False)
    if done.returncode != code:
        raise AssertionError(f"exit code {done.returncode}: {done.stderr}")
    return done.stdout + done.stderr


class Now(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def asked_for(self):
        """The command, as an error has it."""
        file = self.folder / "bad.txt"
        file.write_text("JOBID|STATE|\n1|RUNNING|\n")
        return re.search('squeue .*"', orrery("--trace", file, code=2)).group()

    def test_pages_have_the_command(self):
        for page in ("docs/schedule/jobs.md", "workloads/catalog/job_traces/README.md"):
            text = re.sub(r"\\\n *", "", (ROOT / page).read_text())
            self.assertIn(self.asked_for() + " > now.txt", text, page)

    def test_a_slurm(self):
        with Slurm(nodes=2, cpus=16, gpus=8) as slurm:
            def submit(*words):
                return slurm.run("sbatch", "--parsable", "--output=/dev/null", *words, "--wrap=sleep 1000").stdout.strip()
            runs = {submit("--gpus-per-node=8", "--nodes=2", "--time=20"): 16}
            waits = {submit("--gpus=3", "--time=1-0"): 3}
            array = submit("--gres=gpu:2", "--array=1-3%2", "--time=5")
            waits |= {f"{array}_{task}": 2 for task in (1, 2, 3)}
            waits[submit("--gpus-per-task=1", "--ntasks=5", "--time=7")] = 5
            submit("--gpus=1", "--hold", "--time=5")
            submit("--gpus=1", f"--dependency=afterok:{array}", "--time=5")
            submit("--time=5")  # without GPUs
            parts = slurm.run("sbatch", "--parsable", "--gpus=2", "--time=5", ":", "--gpus=4", "--time=5", "--wrap=true")
            waits[parts.stdout.strip()] = 6
            slurm.wait_for(lambda: "RUNNING" in slurm.states(next(iter(runs))), "the first job to run")
            file = self.folder / "now.txt"
            file.write_text(slurm.run("bash", "-c", self.asked_for()).stdout)
        rows = self.folder / "rows.csv"
        told = orrery("--trace", file, "--jobs-out", rows)
        with open(rows, encoding="utf-8", newline="") as lines:
            found = list(csv.DictReader(lines))
        self.assertEqual({row["id"]: int(row["gpus"]) for row in found}, runs | waits)
        self.assertEqual([row["id"] for row in found if float(row["start_s"]) == 0], list(runs))
        for text in ("1 job runs now", "6 jobs wait now", "1 job without GPUs", "1 job on hold", "1 job depending",
                     "1 heterogeneous job"):
            self.assertIn(text, told)


if __name__ == "__main__":
    unittest.main()
