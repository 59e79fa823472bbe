# SPDX-License-Identifier: Apache-2.0
"""Job arrays that orrery writes run on a Slurm, lose tasks on the way, and merge to the bytes of one run.

Usage: ORRERY_BINARY=build/orrery python3 -m unittest discover -s tests/slurm
"""
import functools
import json
import os
import pathlib
import re
import resource
import signal
import subprocess
import sys
import tempfile
import unittest

from cluster import Slurm

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = os.environ.get("ORRERY_BINARY", str(ROOT / "build/orrery"))
ODD = "it's \"odd\" $HOME %j é"  # a folder's name that shells and Slurm would read in their own way
SHARDS = 8
VICTIM = 3  # the task that is stopped on its way
TASK_SECONDS = 1.8  # of one processor: results are written within one, so that a task is met while it works
PLAN = {"model": "llama3-8b", "cluster": "dgx-h100", "seq": 4096, "global_batch": 256, "tokens": "1T",
        "gpus": [8, 16, 32, 64, 128, 256]}
slurm = None


def setUpModule():
    global slurm
    slurm = unittest.enterModuleContext(Slurm())


def run(*words, code=0):
    """What orrery prints, as bytes."""
    done = subprocess.run([BINARY, *map(str, words)], capture_output=True, check=False)
    if done.returncode != code:
        raise AssertionError(f"orrery {' '.join(map(str, words))}: exit code {done.returncode}: {done.stderr.decode()}")
    return done.stdout


def processor_seconds():
    """Of the programs that this one has run."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def questions(count):
    return subprocess.run([sys.executable, ROOT / "tests/jsonl/generate.py", str(count)], capture_output=True,
                          check=True).stdout


@functools.cache
def slow():
    """So many lines that a task works for a while, however fast the machine is, and their answers."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "lines.jsonl"
        file.write_bytes(questions(200))
        before = processor_seconds()
        run("simulate", "--jsonl", file, "--threads", "1")
        each = (processor_seconds() - before) / 200
        file.write_bytes(questions(min(10000, max(200, int(TASK_SECONDS * SHARDS / each)))))
        return file.read_bytes(), run("simulate", "--jsonl", file)


class Arrays(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory())) / ODD
        self.folder.mkdir()
        self.results = self.folder / "results"
        self.script = self.folder / "sweep.sbatch"

    def write(self, command, file, *flags):
        """Has orrery write the array of a question."""
        run(command, *file, "--slurm-array", self.script, "--shards", SHARDS, "--results", self.results, *flags)

    def lines(self, count):
        file = self.folder / "lines.jsonl"
        file.write_bytes(questions(count))
        return file

    def slow_lines(self):
        """A file whose shards take a while each, and its answers."""
        lines, expected = slow()
        file = self.folder / "lines.jsonl"
        file.write_bytes(lines)
        return file, expected

    def submit(self):
        """Submits as a user does: the array's number and where the answer will be."""
        told = slurm.run("bash", self.script, cwd=self.folder).stdout
        array, merged = re.fullmatch(r"array (\d+);.* the answer is in (.*)\n", told).groups()
        return array, pathlib.Path(merged)

    def merge_of(self, array):
        """The job that was submitted after the array."""
        return max((job["ArrayJobId"] for job in slurm.jobs() if job.get("ArrayJobId") not in (None, array)), key=int)

    def working(self, array):
        """The process of the victim, once it works: its file of results has its number in its name."""
        slurm.wait_running(array, VICTIM)

        def process():
            for file in self.results.glob(f"part-{VICTIM}-of-{SHARDS}-*.jsonl"):
                number = int(file.stem.split("-")[-2])
                if pathlib.Path(f"/proc/{number}").exists():
                    return number
            return None
        return slurm.wait_for(process, f"shard {VICTIM} to work")

    def there(self):
        """How many points of the victim's shard have whole results."""
        return sum(file.read_bytes().count(b"\n") for file in self.results.glob(f"part-{VICTIM}-of-{SHARDS}-*.jsonl"))

    def expect_logs(self, *texts):
        logs = "".join(path.read_text(errors="replace") for path in sorted(self.results.glob("logs/*.log")))
        for text in texts:
            self.assertIn(text, logs)

    def test_a_task_that_is_queued_again_goes_on(self):
        file, expected = self.slow_lines()
        self.write("simulate", ["--jsonl", file])
        array, merged = self.submit()
        self.working(array)
        slurm.requeue(array, VICTIM)  # as a preemption: SIGTERM, and later again
        slurm.wait_for(lambda: slurm.task(array, VICTIM)["JobState"] == "PENDING", "the task to be queued again")
        before = self.there()
        self.assertGreater(before, 0)
        self.assertFalse(merged.exists())
        self.assertEqual(slurm.wait(array), ["COMPLETED"] * SHARDS)
        self.assertEqual(slurm.task(array, VICTIM)["Restarts"], "1")
        self.assertGreater(self.there(), before, "the task was done before it was queued again")
        self.expect_logs("DUE TO JOB REQUEUE", f"{before:,} there before")
        self.assertEqual(slurm.wait(self.merge_of(array)), ["COMPLETED"])
        self.assertEqual(merged.read_bytes(), expected)

    def test_a_task_that_is_killed_is_made_good_by_a_second_array(self):
        file, expected = self.slow_lines()
        self.write("simulate", ["--jsonl", file])
        array, merged = self.submit()
        process = self.working(array)
        slurm.wait_for(self.there, "results of the shard")
        os.kill(process, signal.SIGKILL)  # as the kernel does where memory is short
        self.assertEqual(sorted(slurm.wait(array)), ["COMPLETED"] * (SHARDS - 1) + ["FAILED"])
        self.assertEqual(slurm.wait(self.merge_of(array)), ["CANCELLED"])
        self.assertFalse(merged.exists())
        before = self.there()
        told = slurm.run("bash", self.script, "merge", check=False)
        self.assertEqual((told.returncode, told.stdout, merged.exists()), (1, "", False))
        self.assertIn(f"shard {VICTIM} of {SHARDS}", told.stderr)
        again, merged = self.submit()
        self.assertEqual(slurm.wait(again), ["COMPLETED"] * SHARDS)
        self.expect_logs(f"{before:,} there before")
        self.assertEqual(slurm.wait(self.merge_of(again)), ["COMPLETED"])
        self.assertEqual(merged.read_bytes(), expected)

    def test_another_number_of_tasks_takes_what_is_there(self):
        file = self.lines(200)
        self.write("simulate", ["--jsonl", file])
        # By the lines of the script alone, and without the job that merges: half of the tasks.
        half = slurm.run("sbatch", "--parsable", "--array=0-3", self.script).stdout.strip()
        self.assertEqual(slurm.wait(half), ["COMPLETED"] * 4)
        text = self.script.read_text()
        for old, new in ((f"\nSHARDS={SHARDS}\n", "\nSHARDS=3\n"), (f" --array=0-{SHARDS - 1}\n", " --array=0-2\n")):
            self.assertIn(old, text)
            text = text.replace(old, new)
        self.script.write_text(text)
        array, merged = self.submit()
        self.assertEqual(slurm.wait(array), ["COMPLETED"] * 3)
        self.assertEqual(slurm.wait(self.merge_of(array)), ["COMPLETED"])
        self.assertEqual(merged.read_bytes(), run("simulate", "--jsonl", file))
        files = {count: [file for file in self.results.glob(f"part-*-of-{count}-*.jsonl")] for count in (SHARDS, 3)}
        lines = {count: sum(file.read_bytes().count(b"\n") for file in found) for count, found in files.items()}
        self.assertGreater(lines[SHARDS], 0)
        self.assertEqual(sum(lines.values()), 200, "a point was computed twice")

    def test_a_plan(self):
        file = self.folder / "question.json"
        file.write_text(json.dumps(PLAN))
        for flags in ([], ["--json"]):
            with self.subTest(flags):
                self.results = self.folder / f"results{len(flags)}"
                self.write("plan", [file], *flags)
                array, merged = self.submit()
                self.assertEqual(slurm.wait(array), ["COMPLETED"] * SHARDS)
                self.assertEqual(slurm.wait(self.merge_of(array)), ["COMPLETED"])
                self.assertEqual(merged.read_bytes(), run("plan", file, *flags))


if __name__ == "__main__":
    unittest.main()
