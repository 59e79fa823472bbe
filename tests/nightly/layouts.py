# SPDX-License-Identifier: Apache-2.0
"""Draws random layouts that `simulate` accepts and the program can be told to run, and fails when one
of them beats what `advise` recommends.

Each question (a model on a cluster with a stack) is drawn from a seed. What is finished stands in the
state file, so that a stopped run goes on. A layout counts where it fits in memory and its launch
settings lack nothing. Usage: tests/nightly/run layouts [--seed N] [--minutes M] [--layouts N]
"""
import argparse
import json
import pathlib
import random
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Steps that differ by less are one: `advise` prefers simpler layouts among them, within its `tie`.
TIE = 0.005

CLUSTERS = ["dgx-h100", "dgx-h200", "dgx-b200", "gb200-nvl72", "dgx-a100"]
MODELS = {  # accelerators to choose from
    "llama3.1-8b": [8, 16, 32, 64],
    "llama3.1-70b": [64, 128, 256, 512],
    "llama3.1-405b": [512, 1024, 2048],
    "qwen3-30b-a3b": [16, 32, 64],
    "qwen3-235b-a22b": [128, 256],
    "mixtral-8x7b": [32, 64, 128],
}
STACKS = ["nemo", "nemo", "megatron-core", "pytorch-fsdp2", "automodel", "deepspeed-zero"]
MODULES = ["core_attn", "mlp", "moe", "moe_act", "layernorm", "mla_up_proj", "shared_experts"]


def divisors(n):
    return [d for d in range(1, n + 1) if n % d == 0]


def draw_question(rng):
    model = rng.choice(list(MODELS))
    gpus = rng.choice(MODELS[model])
    return {
        "model": model,
        "cluster": rng.choice(CLUSTERS),
        "gpus": gpus,
        "seq": rng.choice([4096, 8192, 8192, 16384, 32768]),
        "global_batch": gpus * rng.choice([1, 2, 4, 8]),
        "stack": rng.choice(STACKS),
    }


def draw_layout(rng, question):
    """Any layout whose sizes multiply to the accelerators; most are refused."""
    left = question["gpus"]
    layout = {}
    for key, most in (("tp", 8), ("cp", 32), ("pp", 64)):
        layout[key] = rng.choice([d for d in divisors(left) if d <= most])
        left //= layout[key]
    layout["micro_batch"] = rng.choice([1, 1, 1, 2, 2, 4, 8])
    layout["zero"] = rng.choice([0, 1, 1, 2, 3])
    if layout["tp"] > 1:
        layout["sequence_parallel"] = rng.choice(["true", "true", "false"])
    if layout["cp"] > 1:
        layout["context_parallel"] = rng.choice(["ring", "all-gather", "all-to-all"])
    if "-a" in question["model"] or "mixtral" in question["model"]:
        layout["ep"] = rng.choice([1, 2, 4, 8, 16, 32])
    if layout["pp"] > 1 and rng.random() < 0.6:
        layout["schedule"] = "interleaved"
        layout["vpp"] = rng.choice([2, 3, 4, 5, 6, 8])
    kind = rng.choice(["none", "none", "full", "selective", "part"])
    if kind == "selective":
        layout["recompute"] = ",".join(rng.sample(MODULES, rng.choice([1, 1, 2, 3])))
    else:
        layout["recompute"] = "none" if kind == "none" else "full"
    if kind == "part":
        layout["recompute_layers"] = rng.randint(1, 20)
    offloads = [o for o in ("activations", "optimizer", "weights") if rng.random() < 0.15]
    if offloads:
        layout["offload"] = ",".join(offloads)
    if layout["zero"] == 3 and rng.random() < 0.4:
        layout["shard_group"] = rng.choice([2, 4, 8, 16])
    return layout


def flags(values):
    return [word for key, value in values.items()
            for word in ("--" + key.replace("_", "-"), str(value))]


def ask(binary, command, values):
    """The answer, or None where the question is refused or cannot be."""
    done = subprocess.run([binary, command, *flags(values), "--json"], capture_output=True, text=True,
                          check=False)
    if done.returncode not in (0, 3) or not done.stdout.startswith("{"):
        return None
    return json.loads(done.stdout)


def found(value, keys):
    """The first of the keys that stands anywhere in an answer."""
    if isinstance(value, dict):
        for key in keys:
            if key in value:
                return value[key]
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            inner = found(item, keys)
            if inner is not None:
                return inner
    return None


def step_of(answer):
    return found(answer, ["step_time_s", "step_s"])


def is_lack(note):
    """Whether a note on the settings says that the program cannot do what was predicted."""
    return note["key"] != "" and any(
        words in note["sentence"] for words in ("has no flag for", "has no setting for", "refuse"))


def can_run(answer):
    verdict = answer.get("verdict") or {}
    launch = found(answer, ["launch"]) or {}
    return (verdict.get("fits", True) and verdict.get("runs", True) and
            not any(is_lack(note) for note in launch.get("missing", [])) and
            bool(launch.get("flags")))


def look_at(binary, seed, layouts):
    """One question: the layouts that beat its advice."""
    rng = random.Random(seed)
    question = draw_question(rng)
    advice = ask(binary, "advise", question)
    outcome = {"seed": seed, "question": question, "tried": 0, "beaten": []}
    if not advice or not advice.get("best"):
        return outcome
    best = step_of(advice["best"][0])
    for _ in range(layouts):
        layout = draw_layout(rng, question)
        answer = ask(binary, "simulate", {**question, **layout})
        if answer is None or not can_run(answer):
            continue
        outcome["tried"] += 1
        if step_of(answer) < best * (1 - TIE):
            outcome["beaten"].append({"layout": layout, "step_s": step_of(answer), "advised_s": best})
    return outcome


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", default=str(ROOT / "build" / "orrery"))
    parser.add_argument("--state", default=str(ROOT / "build" / "nightly-layouts.jsonl"))
    parser.add_argument("--seed", type=int, default=1, help="of the first question")
    parser.add_argument("--questions", type=int, default=100000)
    parser.add_argument("--layouts", type=int, default=150, help="drawn for each question")
    parser.add_argument("--minutes", type=float, default=50)
    options = parser.parse_args()
    state = pathlib.Path(options.state)
    done = {}
    if state.exists():
        for line in state.read_text(encoding="utf-8").splitlines():
            outcome = json.loads(line)
            done[outcome["seed"]] = outcome
    end = time.monotonic() + 60 * options.minutes
    for seed in range(options.seed, options.seed + options.questions):
        if time.monotonic() > end:
            break
        if seed in done:
            continue
        done[seed] = look_at(options.binary, seed, options.layouts)
        with state.open("a", encoding="utf-8") as file:
            file.write(json.dumps(done[seed]) + "\n")
    tried = sum(outcome["tried"] for outcome in done.values())
    beaten = [(outcome["question"], one) for outcome in done.values() for one in outcome["beaten"]]
    print(f"{len(done)} questions, {tried} layouts that run: {len(beaten)} beat the advice")
    for question, one in beaten:
        words = " ".join(flags({**question, **one["layout"]}))
        print(f"orrery simulate {words}: {one['step_s']:.4f} s, advised {one['advised_s']:.4f} s")
    if tried == 0:
        print("nothing was tried: is the program built?", file=sys.stderr)
    sys.exit(1 if beaten or tried == 0 else 0)


if __name__ == "__main__":
    main()
