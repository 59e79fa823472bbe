# SPDX-License-Identifier: Apache-2.0
"""An answer repeats byte for byte from the question that it carries, without the files it named.

Usage: rerun_test.py BINARY SOURCE_FOLDER
"""

import json
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

binary, root = sys.argv[1], pathlib.Path(sys.argv[2])
JOB = ["--gpus", "16", "--seq", "4096", "--global-batch", "64"]
failures = []


def expect(true, text):
    if not true:
        failures.append(text)
        print(text, file=sys.stderr)


def run(*words, folder="."):
    return subprocess.run([binary, *map(str, words)], capture_output=True, text=True, cwd=folder)


def write(folder, name, value):
    path = pathlib.Path(folder) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))
    return path


# What a user keeps in files: a model, a cluster over an accelerator of its own, a stack, a layout.
def add_files(folder):
    catalog = root / "workloads/catalog/models/llama3-8b.json"
    model = json.loads(catalog.read_text())
    model["name"] = "mine"
    write(folder, "my-model.json", model)
    write(folder, "hub/config.json", {
        "model_type": "llama", "hidden_size": 2048, "intermediate_size": 8192,
        "num_attention_heads": 32, "num_key_value_heads": 8, "num_hidden_layers": 16,
        "vocab_size": 128256, "max_position_embeddings": 131072, "hidden_act": "silu",
        "tie_word_embeddings": True})
    write(folder, "parts/gpu.json", {"based_on": "h100-sxm", "name": "my-gpu",
                                     "title": "An H100 of ours"})
    write(folder, "my-cluster.json", {"based_on": "dgx-h100", "title": "A cluster of ours",
                                      "accelerator": str(pathlib.Path(folder) / "parts/gpu.json")})
    stack = json.loads((root / "workloads/catalog/stacks/megatron-core.json").read_text())
    write(folder, "my-stack.json", {"name": "my-stack", "title": "Ours",
                                    "framework": stack["framework"],
                                    "based_on": "megatron-core", "base": {},
                                    "releases": [{"release": "1.0", "date": "2026-01",
                                                  "changes": ["nothing"]}]})
    write(folder, "runs-now.json", {"tp": 8, "pp": 2})


def questions():
    files = ["--model", "my-model.json", "--cluster", "my-cluster.json", *JOB]
    yield ["simulate", *files, "--tp", "4"]
    yield ["simulate", *files, "--tp", "4", "--stack", "my-stack.json"]
    yield ["simulate", "--model", "hub/config.json", "--cluster", "dgx-h200", *JOB]
    yield ["simulate", "--model", "hub", "--cluster", "dgx-h200", *JOB]
    yield ["simulate", "--model", "llama3-8b", "--cluster", "dgx-h100", *JOB, "--tp", "2",
           "--network", "flow", "--seed", "7"]
    yield ["simulate", "--model", "llama3-8b", "--cluster", "dgx-h100", "--gpus", "8", "--phase",
           "decode", "--batch", "8", "--context", "4096", "--ranges", "false"]
    yield ["advise", *files, "--like", "runs-now.json"]
    yield ["advise", "--model", "llama3-8b", "--cluster", "my-cluster.json,dgx-h200", *JOB]
    yield ["advise", "--model", "llama3.1-405b", "--cluster", "dgx-h100", "--gpus", "4096", "--seq",
           "8192", "--global-batch", "1024", "--precision", "any", "--time-limit", "0.2"]
    yield ["plan", "--model", "my-model.json", "--cluster", "my-cluster.json", "--tokens", "1T",
           "--seq", "4096", "--global-batch", "256", "--gpus", "64"]
    yield ["topology", "dgx-h100", "--gpus", "256"]
    yield ["topology", "my-cluster.json"]
    yield ["topology", "dgx-h100", "--gpus", "256", "--traffic", "all-to-all", "--seed", "3"]


def check_repeats():
    for words in questions():
        with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as other:
            add_files(folder)
            done = run(*words, "--json", folder=folder)
            what = " ".join(words)
            if done.returncode not in (0, 3):
                expect(False, f"{what}: {done.stderr}")
                continue
            answer = pathlib.Path(other) / "answer.json"
            answer.write_text(done.stdout)
            shutil.rmtree(folder)
            pathlib.Path(folder).mkdir()
            again = run("rerun", answer, "--threads", "1", folder=other)
            expect(again.returncode == done.returncode,
                   f"{what}: rerun: exit code {again.returncode}: {again.stderr}")
            expect(again.stdout == done.stdout, f"{what}: rerun says something else")
            text = json.dumps(json.loads(done.stdout)["question"])
            expect(".json" not in text, f"{what}: the question names a file: {text[:300]}")


# Commands whose question is a line; the table that validate was given stands in its question.
def check_commands():
    measured = root / "validation/measurements"
    for words in (["catalog", "list", "cluster", "--search", "h100"],
                  ["catalog", "show", "model", "llama3-8b"],
                  ["calibrate", "show", "--device", "h100-sxm"],
                  ["validate", "mine.csv"]):
        with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as other:
            shutil.copy(measured / "training/h200.csv", pathlib.Path(folder) / "mine.csv")
            done = run(*words, "--json", folder=folder)
            answer = pathlib.Path(other) / "answer.json"
            answer.write_text(done.stdout)
            again = run("rerun", answer, folder=other)
            expect(done.returncode == 0 and again.stdout == done.stdout,
                   f"{words}: {again.returncode}: {done.stderr}{again.stderr}")


def check_lines():
    with tempfile.TemporaryDirectory() as folder:
        line = {"model": "llama3-8b", "cluster": {"based_on": "dgx-h100", "name": "mine"},
                "gpus": 16, "seq": 4096, "global_batch": 64, "tp": 2}
        source = write(folder, "in.jsonl", line)
        done = run("simulate", "--jsonl", source)
        answer = pathlib.Path(folder) / "answer.json"
        answer.write_text(done.stdout)
        again = run("rerun", answer)
        expect(done.returncode == 0 and again.stdout == done.stdout,
               f"a line's answer does not repeat: {done.stderr}{again.stderr}")


def check_interrupted(name, seconds, *words):
    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.Popen([binary, *words, "--json"], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        time.sleep(seconds)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
        # It may have been ready before; 3: nothing fits, but on a larger count that it names.
        if process.returncode == 0 or (process.returncode == 3 and json.loads(out)["fits_from_gpus"]):
            return
        expect(process.returncode == 130, f"{name}, Ctrl-C: exit code {process.returncode}: {err}")
        answer = pathlib.Path(folder) / "answer.json"
        answer.write_text(out)
        again = run("rerun", answer)
        expect(again.stdout == out, f"{name}: what Ctrl-C ended does not repeat: {again.stderr}")


def check_refusals():
    with tempfile.TemporaryDirectory() as folder:
        words = ["simulate", "--model", "llama3-8b", "--cluster", "dgx-h100", *JOB]
        was = json.loads(run(*words, "--json").stdout)
        for key in ("version", "catalogue"):
            other = write(folder, f"{key}.json", {**was, "orrery": {**was["orrery"], key: "other"}})
            done = run("rerun", other)
            expect(done.returncode == 2 and not done.stdout, f"another {key}: {done.returncode}")
            expect(len(done.stderr.splitlines()) == 1 and "--anyway" in done.stderr, done.stderr)
            anyway = run("rerun", other, "--anyway")
            both = json.loads(anyway.stdout)
            expect([d["path"] for d in both["differences"]] == [f"/orrery/{key}"],
                   f"--anyway: {both['differences']}")
            expect(both["before"]["orrery"][key] == "other", "--anyway has no answer of before")
        changed = {**was, "prediction": {**was["prediction"], "mfu": 0.123}}
        done = run("rerun", write(folder, "changed.json", changed))
        expect(done.returncode == 1, f"an answer that was changed: exit code {done.returncode}")
        plan = json.loads(run("plan", "--model", "llama3-8b", "--cluster", "dgx-h100", "--gpus", "8",
                              "--tokens", "1T", "--seq", "4096", "--global-batch", "64", "--json").stdout)
        for parts in ([1, 2, 3, 4], ["x"], 7):
            file = write(folder, "parts.json", {**plan, "stopped_after": parts})
            done = run("rerun", file)
            expect(done.returncode == 2 and not done.stdout and
                   done.stderr.startswith(f"orrery: {file}: stopped_after"), f"{parts}: {done.stderr}")
        for name, value in (("empty", {}), ("list", []), ("error", {"error": {}})):
            expect(run("rerun", write(folder, name + ".json", value)).returncode == 2, name)
        expect(run("rerun").returncode == 2, "no file")


check_repeats()
check_commands()
check_lines()
LARGE = ["--model", "llama3.1-405b", "--gpus", "16384", "--seq", "8192", "--global-batch", "2048",
         "--precision", "any", "--optimizer", "any"]
check_interrupted("a search", 0.7, "advise", "--cluster", "dgx-h100", *LARGE)
check_interrupted("several clusters", 1.5, "advise", "--cluster", "dgx-h200,dgx-h100,dgx-b200",
                  *LARGE)
check_interrupted("small steps", 1.5, "advise", "--model", "llama3-70b", "--cluster", "dgx-h100",
                  "--gpus", "1024", "--seq", "8192", "--global-batch", "512", "--changes", "4",
                  "--like", '{"tp": 8, "pp": 4}')
check_interrupted("a larger count", 4, "advise", "--model", "10t-moe", "--cluster", "dgx-h100",
                  "--gpus", "64", "--seq", "8192", "--global-batch", "2048", "--precision", "any",
                  "--optimizer", "any")
check_interrupted("a plan", 3, "plan", "--model", "deepseek-v3", "--cluster", "gb200-nvl72,dgx-h100",
                  "--seq", "4096", "--global-batch", "15360", "--tokens", "14.8e12", "--deadline", "60 days",
                  "--objective", "gpus")
check_refusals()
print(f"{len(failures)} failures")
sys.exit(1 if failures else 0)
