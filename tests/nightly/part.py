# SPDX-License-Identifier: Apache-2.0
"""What the parts of the nightly share: time, stamps of what is done, builds, batches of test cases.

A part keeps what it did in build-PART/nightly-PART.json: a step that passed on a commit (and on the same
changes that are not committed) is not run again there. Exit codes: 0 all passed, 1 something was
found, 3 the time is up and the same command goes on, 4 a tool is missing.
"""
import argparse
import hashlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Programs of the layers, the small ones first.
LAYERS = ["base", "hw_models", "topologies", "workloads", "paper", "fuzz", "engine", "outcome", "launch",
          "explain", "plan", "question", "calibrate", "advise", "validate", "app"]
BATCH = 12  # cases that one process runs


def options_of(description, minutes=55):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--minutes", type=float, default=minutes, help="then the part stops and can go on")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="of a build")
    return parser


def commit_stamp():
    """The commit, and a hash of what is changed since."""
    def git(*words):
        return subprocess.run(["git", "-C", ROOT, *words], capture_output=True, check=False).stdout
    head, changed = git("rev-parse", "--short=12", "HEAD").decode().strip(), git("diff", "HEAD")
    return head + (("+" + hashlib.sha1(changed).hexdigest()[:8]) if changed else "")


class TimeIsUp(Exception):
    """Raised where a step was stopped: what is built or passed is kept."""


def write_names(path, names):
    """A file of cases for a test program's --input-file. A comma would end a name."""
    escaped = [name.replace(",", "\\,") for name in names]
    path.write_text("".join(f'"{name}"\n' for name in escaped))


class Part:
    def __init__(self, name, minutes, jobs=1, preset=None):
        self.name, self.jobs, self.preset = name, jobs, preset or name
        self.end = time.monotonic() + 60 * minutes
        self.folder = ROOT / f"build-{self.preset}"
        self.logs = self.folder / "nightly-logs"
        self.logs.mkdir(parents=True, exist_ok=True)
        self.state_file = self.folder / f"nightly-{name}.json"
        self.stamp = commit_stamp()
        state = json.loads(self.state_file.read_text()) if self.state_file.exists() else {}
        self.steps = {name: step for name, step in state.items() if step["stamp"] == self.stamp}
        self.ran = 0
        print(f"{name}: commit {self.stamp}, {len(self.steps)} steps done before", flush=True)

    def need(self, tool, package):
        """The tool's path; ends the part where there is none."""
        found = shutil.which(tool)
        if found is None:
            print(f"{self.name}: found no {tool}; install it: apt-get install {package}", file=sys.stderr)
            sys.exit(4)
        return found

    def left(self):
        return self.end - time.monotonic()

    def command(self, words, log, **more):
        """Runs a command into a log until the time is up: its exit code."""
        if self.left() <= 0:
            raise TimeIsUp
        with open(log, "wb") as out:
            process = subprocess.Popen([str(w) for w in words], stdout=out, stderr=subprocess.STDOUT,
                                       stdin=subprocess.DEVNULL, cwd=ROOT, start_new_session=True, **more)
            try:
                return process.wait(timeout=self.left())
            except (subprocess.TimeoutExpired, KeyboardInterrupt) as stopped:
                os.killpg(process.pid, signal.SIGTERM)
                process.wait()
                if isinstance(stopped, KeyboardInterrupt):
                    raise
                raise TimeIsUp from None

    def step(self, name, run):
        """Runs `run`, which tells whether it passed, unless it passed before. Its result."""
        if self.steps.get(name, {}).get("passed"):
            return True
        start = time.monotonic()
        passed = bool(run())
        seconds = round(time.monotonic() - start, 1)
        self.steps[name] = {"stamp": self.stamp, "passed": passed, "seconds": seconds}
        self.ran += 1
        self.state_file.write_text(json.dumps(self.steps, indent=1))
        print(f"{'passed' if passed else 'FAILED'} {seconds:7.1f} s  {name}", flush=True)
        return passed

    def configure(self, *more):
        self.need("cmake", "cmake")
        self.need("ninja", "ninja-build")
        log = self.logs / "configure.log"
        if self.command(["cmake", "--preset", self.preset, *more], log) != 0:
            print(log.read_text(), file=sys.stderr)
            sys.exit(4)

    def build(self, *targets):
        """Builds all that can be built of the targets; the errors go to the console."""
        log = self.logs / f"build-{targets[0] if targets else 'all'}.log"
        code = self.command(["ninja", "-C", self.folder, "-k", "0", "-j", self.jobs, *targets], log)
        if code != 0:
            text = log.read_text(errors="replace").splitlines()
            errors = list(dict.fromkeys(line for line in text if " error: " in line or "rror:" in line))
            print("\n".join(errors[:40] or text[-20:]), f"\nwhole log: {log}", sep="", file=sys.stderr)
        return code == 0

    def cases(self, program):
        """The test cases of a program, hidden ones left out."""
        done = subprocess.run([program, "--list-test-names-only"], capture_output=True, text=True, cwd=ROOT,
                              check=False)
        return [line.strip() for line in done.stdout.splitlines() if line.strip()]

    def run_cases(self, layer, environment, keep=lambda case: True):
        """Runs a program's cases, a few a process, each batch a step."""
        program = self.folder / "tests" / f"test_{layer}"
        cases = [case for case in self.cases(program) if keep(case)]
        passed = True
        for first in range(0, len(cases), BATCH):
            batch = cases[first:first + BATCH]
            name = f"{layer} {first + 1} to {first + len(batch)} of {len(cases)}"
            listed, log = self.logs / f"{layer}-{first}.txt", self.logs / f"{layer}-{first}.log"
            write_names(listed, batch)
            words = [program, "--input-file", listed, "--durations", "no"]
            good = self.step(name, lambda w=words, l=log: self.command(
                w, l, env={**os.environ, **environment}) == 0)
            if not good:
                print(log.read_text(errors="replace")[-6000:], f"\nwhole log: {log}", file=sys.stderr)
            passed = passed and good
        return passed

    def finish(self, complete, what=""):
        """The summary, last; ends the program."""
        failed = [name for name, step in self.steps.items() if not step["passed"]]
        minutes = sum(step["seconds"] for step in self.steps.values()) / 60
        print(f"\n{self.name}: {len(self.steps) - len(failed)} steps passed, {len(failed)} failed, "
              f"{minutes:.1f} minutes in all, {self.ran} steps now{what}")
        for name in failed:
            print(f"  failed: {name}")
        if not complete:
            print("  not finished: the same command goes on where it stopped")
        sys.exit(1 if failed else 0 if complete else 3)


def run_part(part, work):
    """Runs the part's work and prints the summary, also where the time is up."""
    try:
        what = work(part) or ""
    except TimeIsUp:
        part.finish(False)
    part.finish(True, what)
