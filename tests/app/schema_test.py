# SPDX-License-Identifier: Apache-2.0
"""Every answer for machines keeps the contract of docs/schema (JSON Schema, draft 2020-12).

Usage: schema_test.py BINARY SOURCE_FOLDER. Needs Debian's python3-jsonschema.
"""

import copy
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import jsonschema

binary, root = sys.argv[1], pathlib.Path(sys.argv[2])
KEY = re.compile(r"^[a-z][a-z0-9_]*$")
# Quantities end in their unit: these are words for one without it.
WORDS = re.compile(r"(^|_)(seconds|dollars|watts|joules|kilograms|per_second|days)(_|$)")
# What a user or a catalogue spells, inside of which keys are not ours.
CONTENTS = {"question", "entry", "calibration"}
JOB = "--model llama3-8b --cluster dgx-h100 --gpus 16 --seq 8192 --global-batch 64".split()

failures = []


def fail(text):
    failures.append(text)
    print(text, file=sys.stderr)


def load_schema(name):
    schema = json.loads((root / "docs/schema" / f"{name}.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


schemas = {p.name.split(".")[0]: load_schema(p.name.split(".")[0])
           for p in (root / "docs/schema").glob("*.schema.json")}


def run(*words, codes=(0, 3)):
    done = subprocess.run([binary, *map(str, words), "--json"], capture_output=True, text=True, cwd=root)
    if done.returncode not in codes:
        fail(f"{words}: exit code {done.returncode}: {done.stderr}")
    return json.loads(done.stdout)


def keys(value, path=""):
    if isinstance(value, dict):
        for key, below in value.items():
            yield f"{path}/{key}", key
            if key not in CONTENTS:
                yield from keys(below, f"{path}/{key}")
    elif isinstance(value, list):
        for below in value:
            yield from keys(below, path + "[]")


def check(name, answer, what):
    for error in list(schemas[name].iter_errors(answer))[:5]:
        place = "/".join(map(str, error.absolute_path))
        fail(f"{name}: {what}: {place}: {error.message[:200]}")
    for path, key in keys(answer):
        if not KEY.match(key) or (WORDS.search(key) and not key.startswith("scale")):
            fail(f"{name}: {what}: {path}: a key is small letters, digits and _, its unit last")


def check_diagnose():
    faults = root / "validation/faults"
    for program, name in (("fsdp-1b", "fsdp-1b-healthy-1"), ("ddp-1b", "ddp-1b-busy-gpu-2")):
        files = [faults / "runs" / name / file for file in ("train.log", "rank0.json.gz", "smi.csv")]
        answer = run("diagnose", "--like", faults / "programs" / f"{program}.json", *files, codes=(0, 1))
        check("diagnose", answer, name)
    check("diagnose", run("diagnose", "--runs", faults / "runs"), "runs")


def check_replay():
    with tempfile.TemporaryDirectory() as folder:
        run("simulate", *JOB, "--tp", 2, "--pp", 2, "--ranges", "false", "--chakra-out", folder)
        check("replay", run("replay", folder, "--cluster", "dgx-h100", "--gpus", 16), "traces")


def check_schedule():
    with tempfile.TemporaryDirectory() as folder:
        jobs = pathlib.Path(folder) / "jobs.csv"
        jobs.write_text("id,submit_s,length_s,gpus\na,0,60,8\nb,1,60,16\nc,2,5,1\n")
        answer = run("schedule", "--cluster", "dgx-h100", "--gpus", 16, "--trace", jobs, "--policy", "fifo,easy",
                     "--place", "pack,random", "--job", "b")
        check("schedule", answer, "jobs")
        if answer["points"][0]["first"]["job"]["short_s"] != 59:
            fail(f"schedule: b waits for a's end: {answer['points'][0]['first']['job']}")
        # A search has points that are left out; of no job a figure is null.
        now = pathlib.Path(folder) / "now.json"
        now.write_text('{"policy": "easy"}')
        searched = run("schedule", "--cluster", "dgx-h100", "--gpus", 16, "--trace", jobs, "--search", "policy,place",
                       "--like", now, "--time-limit", 60)
        check("schedule", searched, "a search")
        if searched["search"]["now"] is None or not searched["search"]["left_out"]:
            fail(f"schedule: a search: {searched['search']}")
        check("schedule", run("schedule", "--cluster", "dgx-h100", "--gpus", 16, "--trace", jobs, "--horizon", "1 s"),
              "no job ends")


def check_fill():
    answer = run("fill", "--hosts", "openb", "--tasks", "openb-default", "--seeds", 1, "--rule", "random,best-fit")
    check("fill", answer, "openb")


# A program that does not run there: an answer without a prediction.
def check_refused():
    words = ("--model", "llama3-8b", "--cluster", "tpu-v5p", "--gpus", 8, "--seq", 4096,
             "--global-batch", 64, "--stack", "nemo")
    for command in ("simulate", "advise"):
        answer = run(command, *words, codes=(3,))
        check(command, answer, "refused")
        if answer["verdict"]["runs"] is not False or not answer["verdict"]["why"]:
            fail(f"{command}: a program that does not run: {answer['verdict']}")


def check_scenarios():
    last = {}
    for file in [*sorted((root / "tests/scenarios").glob("*.json")), *sorted((root / "tests/schedule").glob("*.json"))]:
        if file.name.endswith(".expected.json"):
            continue
        command = "advise" if file.name.startswith("advise") else "simulate"
        if file.parent.name == "schedule":
            command = "schedule"
        last[command] = run(command, file)
        check(command, last[command], file.name)
    return last


def check_others(last):
    last["advise"] = run("advise", *JOB, "--like", '{"tp": 8, "pp": 2}', "--changes", "1",
                         "--pareto", "time,energy")
    check("advise", last["advise"], "like")
    check("advise", run("advise", *JOB[:2], "--cluster", "dgx-h100,tpu-v5p", *JOB[4:]),
          "several clusters")
    nothing = run("advise", "--model", "llama3.1-405b", *JOB[2:])
    check("advise", nothing, "nothing fits")
    for question in ("100t-dense", "faster-kernels"):
        last["plan"] = run("plan", question)
        check("plan", last["plan"], question)
    served = ("--model", "llama3.3-70b", "--cluster", "dgx-h100", "--stack", "vllm",
              "--concurrency", "4", "--requests", "20", "--isl", "200", "--osl", "20", "--slo", "ttft.p95=1s")
    last["serve"] = run("serve", *served, "--prefill", "TP4", "--decode", "TP4")
    check("serve", last["serve"], "prompts apart")
    check("serve", run("serve", *served, "--engines", "TP1,TP8"), "a point that does not fit")
    check("serve", run("serve", *served, "--engines", "TP8", "--spec", "ngram:3", "--accept", "0.6"),
          "tokens guessed ahead")
    load = ("--model", "llama3.3-70b", "--cluster", "dgx-h100", "--stack", "vllm", "--engines",
            "1..2xTP4", "--for", "2/s", "--requests", "50", "--slo", "ttft.p95=1s", "--classes",
            '[{"name": "a", "isl": 500, "osl": 20}, {"name": "b", "isl": 90, "osl": 9}]')
    check("serve", run("serve", *load), "a load of two kinds")
    for name in ("dgx-h100", "gb300-nvl72", "tpu-v5p"):
        last["topology"] = run("topology", name)
        check("topology", last["topology"], name)
    check("topology", run("topology", "dgx-h100", "--gpus", 512, "--traffic", "all-to-all"),
          "traffic")
    last["calibrate"] = run("calibrate", "show", "--device", "h100-sxm")
    check("calibrate", last["calibrate"], "show")
    check("calibrate", run("calibrate", "compare",
                           next((root / "hw_models/calibration").glob("h200*/measured")),
                           codes=(0, 1)), "compare")
    kept = root / "validation/kernels/runs/h100/search-rms-norm.json"
    check("calibrate", run("calibrate", "kernel", "--kept", kept), "kernel, kept")
    check("calibrate", run("calibrate", "kernel", "softmax", "--host", "--candidate",
                           root / "validation/kernels/candidates/softmax/good.cu"), "kernel")
    for words in (("list",), ("list", "cluster"), ("show", "accelerator", "h100-sxm"),
                  ("show", "stack", "nemo", "--recipe", "gemma3-27b"),
                  ("show", "stack", "nemo", "--recipe", "llama3-8b"), ("check",)):
        last["catalog"] = run("catalog", *words)
        check("catalog", last["catalog"], " ".join(words))
    measured = root / "validation/measurements"
    tables = [next((measured / "training").glob("*.csv")), next(measured.rglob("operators/*.csv"))]
    last["validate"] = run("validate", *tables)
    check("validate", last["validate"], "two tables")
    check("validate", run("validate", measured / "serving/token_position.csv"), "served runs")
    check("validate", run("validate", "--free", tables[0]), "free values")
    check("validate", run("validate", "--nested"), "nested errors")


# One scenario is told by the same names in every command that predicts it.
def check_same_names(last):
    simulated, advised = last["simulate"], last["advise"]
    if set(simulated["layout"]) != set(advised["best"][0]["layout"]):
        fail("a layout of advise is not one of simulate")
    point = next(p for p in last["plan"]["points"] if p["fits"])
    if set(simulated["layout"]) != set(point["layout"]):
        fail("a layout of plan is not one of simulate")
    for place in (simulated["prediction"], advised["best"][0], advised["winner"], point):
        if "step_time_s" not in place:
            fail("step_time_s is missing where a step is predicted")


# The schemas can fail: without any one of its keys, and with one too many, no answer passes.
def check_strictness(last):
    for name, answer in last.items():
        for key in ("orrery", "question", "verdict"):
            damaged = copy.copy(answer)
            del damaged[key]
            if schemas[name].is_valid(damaged):
                fail(f"{name}: the schema passes an answer without {key}")
        if schemas[name].is_valid({**answer, "seconds": 1}):
            fail(f"{name}: the schema passes a key too many")
        damaged = copy.deepcopy(answer)
        damaged["verdict"]["probability"] = "likely"
        if schemas[name].is_valid(damaged):
            fail(f"{name}: the schema passes a probability that is no number")


def check_errors():
    with tempfile.TemporaryDirectory() as scratch:
        broken = pathlib.Path(scratch) / "broken.json"
        broken.write_text('{"model": ')
        bad = [("simulate", broken), ("simulate", "--model", "lama3-8b", *JOB[2:]),
               ("advise", *JOB, "--tp", "x"), ("plan", "no-such-question"), ("topology", "no-such"),
               ("validate", broken), ("simulate", "--no-such-flag"), ("simulat",)]
        for words in bad:
            answer = run(*words, codes=(2,))
            check("error", answer, " ".join(map(str, words)))
        lines = pathlib.Path(scratch) / "lines.jsonl"
        lines.write_text('{"model": "lama3-8b"}\n[]\n')
        done = subprocess.run([binary, "simulate", "--jsonl", str(lines)], capture_output=True,
                              text=True)
        for line in done.stdout.splitlines():
            check("error", json.loads(line), "a bad line")
        answer = pathlib.Path(scratch) / "answer.json"
        answer.write_text(json.dumps(run("simulate", *JOB)))
        check("rerun", run("rerun", answer, "--anyway"), "rerun --anyway")
        check("simulate", run("simulate", *JOB, "--ranges", "false", "--reasons", "false"), "bare")
    named = run("simulate", "--model", "lama3-8b", *JOB[2:], codes=(2,))["error"]
    if named["nearest"] != "llama3-8b" or named["kind"] != "bad_input":
        fail(f"the error of an unknown model: {named}")


def main():
    last = check_scenarios()
    check_others(last)
    check_same_names(last)
    check_strictness(last)
    check_errors()
    check_refused()
    check_diagnose()
    check_replay()
    check_schedule()
    check_fill()
    print(f"{len(failures)} failures")
    sys.exit(1 if failures else 0)


main()
