# SPDX-License-Identifier: Apache-2.0
# Runs a small continuous-batching serving engine and logs every step: ground truth for predictions.
"""serve.py --output FILE [--part NAME]... [--model NAME]... : see README.md for the engine's rules, the
parts and the lines. `--replay FILE` checks a log instead: the scheduler, run again on its arrivals and step
times, must make the same steps. Parts tp2 and pair need two GPUs and torchrun.
"""

import argparse
import gzip
import json
import os
import signal
import sys

MODELS = (
    "llama-3.1-8b",
    "llama-3.2-1b",
    "qwen3-8b",
    "qwen3-30b-a3b",
    "llama-3.1-70b",
    "tiny",
    "tiny-experts",
)
PARTS = ("check", "grid", "kernels", "closed", "poisson", "traces", "small-pool", "memory", "tp2", "pair")
ONE_GPU = PARTS[:8]
ABOUT = """A serving engine on PyTorch and Triton with random weights: steps and kernels alone, and whole runs
under load with columns of every step and request. Times are microseconds of the host's clock since the
run's start, gpu_us between CUDA events around what a step launches. README.md of validation/microbench
holds the rules of the scheduler, the parts and the keys. Cases with held true are for judging, not for
fitting."""


class Parser(argparse.ArgumentParser):
    def error(self, message):
        print(f"serve.py: {message}", file=sys.stderr)
        sys.exit(2)


def parse():
    parser = Parser(description="A small serving engine and its measurements.")
    parser.add_argument("--part", action="append", help="one of " + ", ".join(PARTS))
    parser.add_argument("--model", action="append", help="one of " + ", ".join(MODELS))
    parser.add_argument("--output", help="file of JSON lines, compressed if it ends with .gz")
    parser.add_argument("--replay", metavar="FILE", help="check a log instead")
    parser.add_argument(
        "--seconds", type=float, default=3600.0, help="cases left after so long are not run"
    )
    parser.add_argument(
        "--scale", type=float, default=1.0, help="factor on the seconds of cases under load"
    )
    parser.add_argument(
        "--share", type=float, default=0.9, help="share of memory for weights, cache, workspace"
    )
    parser.add_argument("--context", type=int, default=32768)
    parser.add_argument("--max-sequences", type=int, default=256)
    parser.add_argument("--token-budget", type=int, default=2048)
    parser.add_argument(
        "--thin", action="store_true", help="every other case of grid, closed, poisson and traces"
    )
    parser.add_argument("--quick", action="store_true", help="a small sample of every part")
    parser.add_argument("--device", default="cuda", help="cuda, or cpu with TRITON_INTERPRET=1 for tests")
    parser.add_argument("--memory-child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.replay or options.memory_child:
        return options
    if not options.output:
        parser.error("--output FILE is missing")
    for given, known, flag in ((options.part, PARTS, "--part"), (options.model, MODELS, "--model")):
        for name in given or []:
            if name not in known:
                parser.error(f"{flag} {name} is not known; there are {', '.join(known)}")
    folder = os.path.dirname(os.path.abspath(options.output))
    if not os.path.isdir(folder):
        parser.error(f"--output: there is no folder {folder}")
    for value, low, high, flag in (
        (options.share, 0.05, 0.99, "--share"),
        (options.scale, 0.01, 100, "--scale"),
        (options.context, 64, 1 << 20, "--context"),
        (options.max_sequences, 1, 1024, "--max-sequences"),
        (options.token_budget, 1, 1 << 17, "--token-budget"),
    ):
        if not low <= value <= high:
            parser.error(f"{flag} {value} is not from {low} to {high}")
    if options.token_budget < options.max_sequences:
        parser.error("--token-budget must be at least --max-sequences")
    options.part = options.part or list(ONE_GPU)
    options.model = options.model or ["llama-3.1-8b"]
    return options


def check_log(path):
    """Exit code 0: every run of the log comes out the same."""
    from serve_engine import replay

    bad = count = 0
    try:
        with (gzip.open if path.endswith(".gz") else open)(path, "rt") as file:
            for line in file:
                record = json.loads(line)
                if record.get("record") == "run":
                    count += 1
                    differs = replay(record)
                    bad += differs is not None
                    if differs:
                        print(f"{record['id']}: {differs}")
    except (OSError, ValueError) as error:
        print(f"serve.py: --replay: {error}", file=sys.stderr)
        return 2
    print(f"{count - bad} of {count} runs come out the same")
    return 1 if bad else 0


def run_model(session, name, parts):
    from serve_cases import closed, poisson_part, small_pool, traces
    from serve_check import check
    from serve_steps import grid, kernel_part

    run = {
        "check": check,
        "grid": grid,
        "kernels": kernel_part,
        "closed": closed,
        "poisson": poisson_part,
        "traces": traces,
        "small-pool": small_pool,
    }
    runner = session.case(f"engine/{name}", lambda: session.runner(name))
    if runner is None:
        return
    for part in parts:
        session.note(f"{name}: {part}")
        run[part](session, runner)
    runner.close()


def main():
    options = parse()
    given = "--model" in sys.argv
    if options.replay:
        return check_log(options.replay)
    try:
        import torch
        import triton  # noqa: F401
    except ImportError as error:
        print(f"serve.py: needs PyTorch and Triton: {error}", file=sys.stderr)
        return 2
    if options.memory_child:
        from serve_memory import child

        child(options.memory_child)
        return 0
    if options.device == "cuda" and not torch.cuda.is_available():
        print("serve.py: there is no CUDA device", file=sys.stderr)
        return 2
    if {"tp2", "pair"} & set(options.part):
        from serve_ranks import run_ranks

        return run_ranks(options)
    from serve_memory import memory
    from serve_session import Session

    session = Session(options)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, session.interrupt)
    code = 0
    try:
        session.conditions(" ".join(ABOUT.split()))
        parts = [p for p in PARTS if p in options.part and p != "memory"]
        for name in options.model if parts else []:
            run_model(session, name, parts)
        if "memory" in options.part:
            memory(session, os.path.abspath(__file__), options.model if given else None)
        session.out.line("end", **session.sensors())
    except KeyboardInterrupt:
        session.note("interrupted: what was done is kept")
        code = 130
    except SystemExit as stop:
        session.note(str(stop))
        code = 1
    finally:  # whatever happened, what was done is kept
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        session.out.close()
    session.note(f"done: {options.output}")
    return code


if __name__ == "__main__":
    sys.exit(main())
