# SPDX-License-Identifier: Apache-2.0
"""Builds the tests with sanitizers and runs them, layer by layer, a few cases a process.

Usage: tests/nightly/run asan|tsan [--layers base,engine] [--cases TEXT] [--minutes M] [--jobs N]
asan: addresses, leaks and undefined behaviour. tsan: races, of the layers that use threads.
"""
import sys

from part import LAYERS, Part, options_of, run_part

ENVIRONMENT = {
    "asan": {
        "ASAN_OPTIONS": "detect_stack_use_after_return=1:strict_string_checks=1:check_initialization_order=1",
        "UBSAN_OPTIONS": "print_stacktrace=1",
    },
    "tsan": {"TSAN_OPTIONS": "halt_on_error=1:second_deadlock_stack=1"},
}
# Layers that call parallel_for, or hold what it calls.
THREADED = ["base", "engine", "outcome", "explain", "plan", "calibrate", "advise", "validate", "app"]
# Rules of the tree and pages say nothing of the program; nor does a compiler that is started.
NO_NEED = ("the source tree is tidy", "what a page", "README", "every console block")
# Enumerations of layouts on one thread: there is nothing to race, and they take tsan half an hour each.
ONE_THREAD = ("every choice of the grid can be started", "what is offered on 64 accelerators",
              "every layout of the full grid")


def main():
    name = sys.argv.pop(1)
    parser = options_of(__doc__.splitlines()[0])
    parser.add_argument("--layers", help="with commas; all by default")
    parser.add_argument("--cases", default="", help="only those with this text in their name")
    options = parser.parse_args()
    part = Part(name, options.minutes, options.jobs)
    layers = options.layers.split(",") if options.layers else LAYERS if name == "asan" else THREADED

    def wanted(case):
        left_out = NO_NEED + (ONE_THREAD if name == "tsan" else ())
        return options.cases in case and not case.startswith(left_out)

    def work(part):
        part.need("g++", "g++")
        part.configure()
        for layer in layers:
            if part.step(f"build {layer}", lambda l=layer: part.build(f"test_{l}")):
                part.run_cases(layer, ENVIRONMENT[name], wanted)

    run_part(part, work)


main()
