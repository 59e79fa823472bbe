# SPDX-License-Identifier: Apache-2.0
"""Runs the laws and the tests of random layouts and damaged files with fresh seeds, then layouts
against the advice.

Usage: tests/nightly/run seeds [--seed N] [--rounds R] [--minutes M]
Each round has a seed, printed with the command that runs it again. The programs are those of build/.
"""
import os
import random
import re
import subprocess
import sys
import time

from part import LAYERS, ROOT, Part, TimeIsUp, options_of, run_part, write_names

# Sources whose cases draw from a seed: laws, fresh(...), rapidcheck.
DRAWS = re.compile(r'TEST_CASE\("law|fresh\(|rc::')
CASE = re.compile(r'^TEST_CASE\(\s*"((?:[^"\\]|\\.)*)"', re.M)


def cases_that_draw(layer):
    """Names of the cases in the sources of a layer that draw; those without numbers of their own
    cost little."""
    names = []
    for source in sorted((ROOT / "tests" / layer).glob("*.cpp")):
        text = source.read_text()
        if DRAWS.search(text):
            names += [name.replace('\\"', '"') for name in CASE.findall(text)]
    return names


def main():
    parser = options_of(__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, help="of the first round; by default the time")
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--layers", default=",".join(LAYERS), help="with commas")
    parser.add_argument("--layouts", type=int, default=40, help="drawn in each round; 0: none")
    options = parser.parse_args()
    part = Part("seeds", options.minutes, options.jobs)
    first = options.seed if options.seed is not None else int(time.time())

    def round_of(seed):
        environment = {**os.environ, "ORRERY_SEED": str(seed), "RC_PARAMS": f"seed={seed}"}
        for layer in options.layers.split(","):
            names = cases_that_draw(layer)
            program = ROOT / "build" / "tests" / f"test_{layer}"
            if not names or not program.exists():
                continue
            listed, log = part.logs / f"{layer}.txt", part.logs / f"{layer}-{seed}.log"
            write_names(listed, names)
            command = [program, "--input-file", listed]
            if not part.step(f"seed {seed}, {layer}: {len(names)} cases",
                             lambda: part.command(command, log, env=environment) == 0):
                print(log.read_text(errors="replace")[-4000:])
                print(f"again: ORRERY_SEED={seed} RC_PARAMS=seed={seed} build/tests/test_{layer} "
                      f"--input-file {listed.relative_to(ROOT)}")
            else:
                log.unlink(missing_ok=True)
        if options.layouts:
            log = part.logs / f"layouts-{seed}.log"
            words = [sys.executable, ROOT / "tests/nightly/layouts.py", "--seed", seed, "--questions", 1,
                     "--layouts", options.layouts, "--state", part.logs / f"layouts-{seed}.jsonl"]
            # A question that no layout of the draw suits says nothing.
            if not part.step(f"seed {seed}, layouts", lambda: part.command(words, log) == 0 or
                             "nothing was tried" in log.read_text()):
                print(log.read_text()[-4000:])

    def work(part):
        if not (ROOT / "build" / "orrery").exists():
            print("seeds: found no build/orrery; expected a build: ./orrery test builds it", file=sys.stderr)
            sys.exit(4)
        for seed in range(first, first + options.rounds):
            if part.left() <= 0:
                break
            try:
                round_of(seed)
            except TimeIsUp:
                return f"; the round of seed {seed} was cut"
        return ""

    run_part(part, work)


main()
