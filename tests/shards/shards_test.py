# SPDX-License-Identifier: Apache-2.0
"""Questions that many processes share: --results, --shard, `orrery shard` and `orrery merge`.

Usage: shards_test.py BINARY SOURCE_FOLDER
"""
import json
import os
import pathlib
import random
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time

binary, root = sys.argv[1], pathlib.Path(sys.argv[2])
JOB = {"model": "llama3-8b", "cluster": "dgx-h100", "gpus": 16, "seq": 4096, "global_batch": 64}
PLAN = {"model": "llama3-8b", "tokens": "1T", "cluster": ["dgx-h100", "dgx-b200"], "seq": 8192, "global_batch": 512,
        "gpus": [64, 128], "electricity_price": [0.05, 0.1]}
SERVE = ["serve", "--model", "llama3-8b", "--cluster", "dgx-h100", "--stack", "vllm", "--engines", "TP1,TP2",
         "--concurrency", "1..16x4", "--isl", "512", "--osl", "128"]
ADVISE = ["advise", *[w for k, v in JOB.items() for w in ("--" + k.replace("_", "-"), str(v))]]
failures = []


def expect(true, text):
    if not true:
        failures.append(text)
        print(text, file=sys.stderr)


def run(*words, **how):
    return subprocess.run([binary, *map(str, words)], capture_output=True, text=True, **how)


def write_lines(folder, count, bad=False):
    """Questions that differ, two of them twice; and lines that are none."""
    lines = [json.dumps({**JOB, "tp": 2 ** (i % 4), "micro_batch": 1 + i % 2, "global_batch": 64 * (1 + i // 8)})
             for i in range(count)]
    lines += lines[:2]
    if bad:
        lines[3:3] = ["{\"model\": ", json.dumps({**JOB, "model": "llama3-8c"}), json.dumps({**JOB, "tp": 3})]
        lines += ["{\"model\": "]
    file = folder / "questions.jsonl"
    file.write_text("\n".join(lines) + "\n")
    return file


def part_lines(results):
    return [line for file in sorted(results.glob("part-*.jsonl")) for line in file.read_text().splitlines()]


def points_of(results):
    return [json.loads(line)["point"] for line in part_lines(results)]


def share(words, results, count, order=None):
    for i in order or range(count):
        done = run(*words, "--results", results, "--shard", f"{i}/{count}")
        expect(done.returncode == 0 and done.stdout == "", f"shard {i}/{count} of {words[0]}: {done}")
        expect(f"shard {i}/{count}: " in done.stderr.splitlines()[-1], f"summary: {done.stderr}")


def check_same(name, words, forms, folder, same=True):
    """The merged answer is what one process prints, in every form, for any number of shards."""
    for count in (1, 3):
        results = folder / f"{name}-{count}"
        share(words, results, count, order=list(reversed(range(count))))
        points = points_of(results)
        expect(len(points) == len(set(points)) > 0, f"{name}: a point twice, or none")
        for form in forms:
            alone, merged = run(*words, *form), run("merge", results, *form)
            if not same:
                alone = run(*words, *form, "--results", folder / f"{name}-whole")
            expect(merged.stdout == alone.stdout != "", f"{name} {form} of {count} shards is another answer")
            expect(merged.returncode == alone.returncode, f"{name} {form}: {merged.returncode}, {alone.returncode}")
        # Every point is there: nothing is done again, and one process takes what is there.
        again = run(*words, "--results", results)
        expect(again.stdout == run("merge", results).stdout, f"{name}: --results alone prints another answer")
        status = run("merge", results, "--status", "--json")
        state = json.loads(status.stdout)
        expect(len(state["shards"]) == count, f"{name}: not each shard is told apart: {state}")
        expect(status.returncode == 0 and state["missing"] == 0, f"{name}: {state}")
        expect(state["points"] == state["done"] + state["failed"], f"{name}: {state}")


def check_commands(folder):
    lines = write_lines(folder, 40, bad=True)
    check_same("lines", ["simulate", "--jsonl", lines], [[]], folder)
    check_same("rows", ["simulate", "--csv", "--jsonl", lines], [[]], folder)
    one_job = folder / "jobs.jsonl"
    one_job.write_text("".join(json.dumps({**JOB, "gpus": gpus}) + "\n" for gpus in (8, 16, 32)))
    check_same("searches", ["advise", "--jsonl", one_job, "--seq", "2048"], [[]], folder)
    question = folder / "plan.json"
    question.write_text(json.dumps(PLAN))
    check_same("plan", ["plan", question], [[], ["--json"], ["--markdown"]], folder)
    question = folder / "count.json"
    question.write_text(json.dumps({**{k: v for k, v in PLAN.items() if k != "gpus"}, "deadline": "60 days"}))
    check_same("count", ["plan", question, "--seed", "7"], [["--json"]], folder)
    check_same("serve", SERVE, [[], ["--json"]], folder)
    check_same("load", [*SERVE[:SERVE.index("--concurrency")], "--for", "2/s", "--isl", "512", "--osl", "128"],
               [["--json"]], folder)
    table = root / "validation/measurements/training/llama3-herd.csv"
    tables = [table] if table.exists() else sorted((root / "validation/measurements/training").glob("*.csv"),
                                                   key=lambda file: file.stat().st_size)[-3:-2]
    check_same("fits", ["validate", *tables, "--leave-out", "model"], [[], ["--json"]], folder)


def check_search(folder):
    """A search cut over shards has the layouts of one search, in its order."""
    check_same("advise", ADVISE, [["--json"]], folder, same=False)
    one, cut = (json.loads(run(*words).stdout) for words in
                ([*ADVISE, "--json"], ["merge", folder / "advise-3", "--json"]))
    for key in ("best", "considered", "invalid", "why", "prediction", "differences"):
        expect(one.get(key) == cut.get(key), f"advise: {key} of shards differs")
    layouts = cut["considered"] - cut["rejected_for_memory"] - cut["pruned"] - cut["simulated"]
    expect(layouts == 0 and not cut["stopped_early"], f"advise: {layouts} layouts neither run nor ruled out")


def check_stopped(folder):
    """A shard that is killed or told to stop leaves whole lines; the next one goes on after them."""
    lines = write_lines(folder, 1500)
    words = ["simulate", "--jsonl", lines, "--threads", "1", "--ranges", "true"]
    results, before = folder / "stopped", 0
    for number in (signal.SIGTERM, signal.SIGKILL):
        process = subprocess.Popen([binary, *map(str, words), "--results", results, "--shard", "0/2"],
                                   stderr=subprocess.PIPE, text=True)
        deadline = time.monotonic() + 20
        while len(part_lines(results)) <= before and time.monotonic() < deadline:
            time.sleep(0.02)
        process.send_signal(number)
        said = process.communicate()[1]
        if number == signal.SIGTERM:
            expect(process.returncode == 143, f"SIGTERM: exit code {process.returncode}")
            expect(" left" in said, f"SIGTERM: {said}")
        for file in results.glob("part-*"):
            expect(file.read_bytes().endswith(b"\n"), f"{file} ends in half a line")
        kept = part_lines(results)
        expect(before < len(kept), f"{number}: nothing new was kept")
        before = len(kept)
    missing = run("merge", results)
    expect(missing.returncode == 1 and missing.stdout == "" and "missing" in missing.stderr, f"{missing}")
    # Half a line, as a machine that loses power leaves it, is not there.
    with open(next(iter(results.glob("part-*"))), "a") as torn:
        torn.write(kept[-1][:100])
    share(words, results, 2)
    points = points_of_whole(results)
    expect(len(points) == len(set(points)) == len(set(lines.read_text().splitlines())), "lost or done twice")
    expect(run("merge", results).stdout == run(*words).stdout, "stopped shards: another answer")


def cluster_question(folder, **more):
    """Jobs of a file and jobs that are drawn, on a cluster that breaks, by three rules."""
    trace = folder / "jobs.csv"
    draw = random.Random(3)
    rows = [f"{draw.randrange(2_000_000)},{draw.randrange(60, 90_000)},{draw.choice([1, 2, 8, 32])},j{i}\n"
            for i in range(800)]
    trace.write_text("submit_s,length_s,gpus,id\n" + "".join(rows))
    question = folder / "cluster.json"
    question.write_text(json.dumps({
        "cluster": "dgx-h100", "gpus": 256, "days": 30, "seeds": 3, "policy": ["fifo", "easy", "preempt"],
        "place": "least-level", "reliability": "llama3-h100", "job": "jobs.csv:j7",
        "jobs": [{"trace": str(trace), "priority": 1}, {"mix": "acme-kalos", "per_day": 100},
                 {"id": "training", "submit": "3 day", "steps": 300_000, "model": "llama3-8b", "gpus": 64,
                  "global_batch": 256, "seq": 8192, "dp": 64, "zero": 3, "stack": "pytorch-fsdp"}], **more}))
    text = question.read_text().replace("jobs.csv:j7", f"{trace}:j7")
    question.write_text(text)
    return ["schedule", question]


def check_cluster(folder):
    """Runs of a schedule are points: of a part, of a race, and with what files held."""
    words = cluster_question(folder)
    check_same("schedule", words, [[], ["--json"], ["--markdown"]], folder)
    check_same("lines-of-schedule", ["schedule", "--jsonl", words[1].rename(folder / "one.jsonl")], [[]], folder)
    words = cluster_question(folder, seeds=24, confidence=0.9)
    race, alone = folder / "race", run(*words, "--json")
    for shard in (["--results", race, "--shard", "0/2"], ["--slurm-array", folder / "x.sbatch", "--shards", "2"]):
        refused = run(*words, *shard)
        expect(refused.returncode == 2 and "confidence" in refused.stderr, f"a part of a race: {refused}")
    expect(run(*words, "--json", "--results", race).stdout == alone.stdout != "", "a race with --results differs")
    expect(run("merge", race, "--json").stdout == alone.stdout, "a race that is merged differs")
    rows = folder / "rows.csv"
    run(*words, "--jobs-out", rows)
    again = folder / "again.csv"
    run(*words, "--jobs-out", again, "--results", race)
    expect(again.read_text() == rows.read_text() != "", "rows of jobs of kept runs differ")
    # All stands in the folder: the user's files may be gone.
    for file in ("jobs.csv", "cluster.json"):
        (folder / file).unlink()
    expect(run("merge", folder / "schedule-3").returncode == 0, "a merge needs the user's files")
    repeated = folder / "answer.json"
    repeated.write_text(alone.stdout)
    expect(run("rerun", repeated).stdout == alone.stdout, "rerun needs the user's files")


def check_killed_cluster(folder):
    """Killed at random moments and begun again: the same bytes, and nothing that was kept is done twice."""
    words, results, kills = cluster_question(folder, seeds=60, days=250), folder / "killed", 0
    began = time.monotonic()
    alone = run(*words, "--json", "--threads", "1")
    took = time.monotonic() - began
    draw = random.Random(int(os.environ.get("ORRERY_SEED", "5")))
    while True:
        process = subprocess.Popen([binary, *map(str, words), "--json", "--threads", "1", "--results", results],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            said = process.communicate(timeout=None if kills == 8 else draw.uniform(0.1, 0.4) * took)[0]
            break
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            kills += 1
    expect(kills >= 2, f"it was killed {kills} times only")
    expect(said == alone.stdout != "", f"another answer after {kills} kills")
    points = points_of_whole(results)
    expect(len(points) == len(set(points)) == 180, f"{len(points)} runs are kept, {len(set(points))} of them once")


def points_of_whole(results):
    return [json.loads(line)["point"] for file in results.glob("part-*")
            for line in file.read_text().split("\n")[:-1]]


def check_full_disk(folder):
    lines = write_lines(folder, 400)
    words, results = ["simulate", "--jsonl", lines], folder / "full"
    limit = 200_000
    done = run(*words, "--results", results, "--shard", "0/1",
               preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
    expect(done.returncode == 4 and len(done.stderr.splitlines()) == 1, f"full disk: {done}")
    expect("part-0-of-1" in done.stderr and "File too large" in done.stderr, f"full disk: {done.stderr}")
    for file in results.glob("part-*"):
        expect(file.read_bytes().endswith(b"\n"), "a full disk leaves half a line")
    share(words, results, 1)
    expect(run("merge", results).stdout == run(*words).stdout, "after a full disk: another answer")
    written = run("merge", results, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
    expect(written.returncode == 0, f"a merge writes no file: {written.stderr}")


def check_two_at_once(folder):
    lines = write_lines(folder, 200)
    words, results = ["simulate", "--jsonl", lines], folder / "both"
    # All begin in an empty folder, two do the same shard.
    started = [subprocess.Popen([binary, *map(str, words), "--results", results, "--shard", shard],
                                stderr=subprocess.PIPE) for shard in ("0/2", "1/2", "1/2", "0/2")]
    for process in started:
        process.communicate()
        expect(process.returncode == 0, f"shards that begin at once: {process.returncode}")
    answers = [None] * 2

    def merge(i):
        answers[i] = run("merge", results)

    threads = [threading.Thread(target=merge, args=(i,)) for i in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    alone = run(*words)
    for answer in answers:
        expect(answer.stdout == alone.stdout and answer.returncode == 0, "two merges at once differ")
    # Shards of another number: what is there counts.
    more = run(*words, "--results", results, "--shard", "2/3")
    expect(" 0 done now" in more.stderr, f"done again as another shard: {more.stderr}")


def check_errors(folder):
    lines = write_lines(folder, 20)
    words, results = ["simulate", "--jsonl", lines], folder / "errors"
    share(words, results, 2)
    other = folder / "other.jsonl"
    other.write_text(json.dumps(JOB) + "\n")

    def refused(done, *parts):
        expect(done.returncode == 2 and len(done.stderr.splitlines()) == 1 and done.stdout == "", f"{done}")
        for part in parts:
            expect(part in done.stderr, f"{part!r} is not in: {done.stderr}")

    refused(run("simulate", "--jsonl", other, "--results", results), "run.json", "another question")
    refused(run(*words, "--tp", "2", "--results", results), "another question")
    refused(run("plan", "--jsonl", lines, "--results", results), "another question of simulate")
    refused(run(*words, "--shard", "0/2"), "--shard", "no --results")
    for shard in ("2/2", "-1/2", "0", "a/b", "0/0", "0/2/3", "1/", "99999999999999999999/2"):
        refused(run(*words, "--results", results, "--shard", shard), "--shard")
    question = folder / "plan.json"
    question.write_text(json.dumps(PLAN))
    refused(run("plan", question, "--results", folder / "p", "--shard", "0/2", "--html", folder / "x.html"),
            "orrery merge")
    refused(run("simulate", "--jsonl", "-", "--results", results), "stdin")
    refused(run("simulate", *ADVISE[1:], "--tp", "2", "--results", folder / "one"), "--results")
    refused(run(*SERVE[:SERVE.index("--engines")], "--engines", "TP1", "--concurrency", "4", "--isl", "64", "--osl",
                "64", "--results", folder / "one"), "one point")
    refused(run("validate", "--results", folder / "one"), "--leave-out")
    refused(run(*ADVISE, "--time-limit", "10", "--results", folder / "one-search"), "time_limit")
    refused(run("merge"), "merge")
    refused(run("merge", folder / "nowhere"), "nothing")
    refused(run("merge", folder), "run.json")
    refused(run("merge", results, "--html", folder / "x.html"), "--html")
    refused(run("shard", results), "no shard")
    expect(not (folder / "x.html").exists(), "a refused page was written")
    run_json = results / "run.json"
    kept = run_json.read_text()
    for old, new, part in (('"version": "', '"version": "0.0', "version"),
                           ('"catalogue": "', '"catalogue": "00', "catalogue"),
                           ('"command": "simulate"', '"command": "web"', "command"),
                           ('"form": "lines"', '"form": "columns"', "form"),
                           ('"question"', '"questions"', "question"), ("{", "[", "")):
        run_json.write_text(kept.replace(old, new, 1))
        refused(run("merge", results), "run.json", part)
        refused(run(*words, "--results", results), "run.json")
    run_json.write_text(kept)
    part = next(iter(sorted(results.glob("part-*"))))
    text = part.read_text()
    for old, new, word in (('"version":"', '"version":"0.0', "version"), ('"question":"', '"question":"0', "question"),
                           ('"catalogue":"', '"catalogue":"0', "catalogue"), ('{"point":"', '{"point":"x', ""),
                           ('"result":', '"results":', ""), ('"seconds":', '"seconds":x', "")):
        part.write_text(text.replace(old, new, 1))
        refused(run("merge", results), part.name, word)
    part.write_text(text + text.splitlines()[0].replace('"fits":true', '"fits":false').replace('"seed":null', '"seed":1')
                    + "\n")
    refused(run("merge", results), "differs from the first")
    part.write_text(text)
    expect(run("merge", results).stdout == run(*words).stdout, "the folder was changed by a refusal")


def check_damage(folder):
    """Results that were changed by hand are an error or an answer, never a crash."""
    plan = folder / "damaged.json"
    plan.write_text(json.dumps(PLAN))
    sources = [(["plan", plan], folder / "damage-plan"), (SERVE, folder / "damage-serve"),
               (ADVISE, folder / "damage-advise")]
    draw = random.Random(11)
    for words, results in sources:
        share(words, results, 1)
        part = next(iter(results.glob("part-*")))
        text = part.read_text()
        for _ in range(40):
            at = draw.randrange(len(text))
            cut = draw.choice(["", "0", "9", "[", "]", "null", "\"", "-", "1e999", "{}"])
            part.write_text(text[:at] + cut + text[at + draw.choice([0, 1, 1, 5]):])
            done = run("merge", results, "--json", "--threads", "1")
            expect(done.returncode in (0, 1, 2, 3), f"{words[0]}: damage at {at}, {cut!r}: {done.returncode} {done.stderr}")
            expect(len(done.stderr.splitlines()) <= 1, f"{words[0]}: damage at {at}, {cut!r}: {done.stderr}")
        part.write_text(text)


def check_jobs(folder):
    """Scripts hold what they need; started from anywhere they run the shards of the question."""
    odd = folder / "it's \"odd\" $HOME %j"
    odd.mkdir()
    lines = write_lines(odd, 30)
    script = odd / "sweep.sbatch"
    done = run("simulate", "--jsonl", lines, "--slurm-array", script, "--kubernetes-job", odd / "job.yaml",
               "--shards", "3")
    expect(done.returncode == 0 and "3 shards" in done.stdout, f"{done}")
    expect(os.access(script, os.X_OK), "the script may not be run")
    for i in range(3):
        task = subprocess.run(["bash", script], env={**os.environ, "SLURM_ARRAY_TASK_ID": str(i)}, cwd="/",
                              capture_output=True, text=True)
        expect(task.returncode == 0, f"task {i}: {task}")
    merged = subprocess.run(["bash", script, "merge"], cwd="/", capture_output=True, text=True)
    expect(merged.returncode == 0, f"{merged}")
    answer = odd / "sweep.results/merged.jsonl"
    expect(answer.read_text() == run("simulate", "--jsonl", lines).stdout, "the script's answer is another")
    # The manifest's own question and arguments, as a pod has them.
    manifest = (odd / "job.yaml").read_text()
    question, results = folder / "question", folder / "volume"
    question.mkdir()
    for name in ("run.json", "lines.jsonl"):
        text = next(line for line in manifest.splitlines() if line.startswith(f"  {name}: "))
        (question / name).write_text(json.loads(text.split(": ", 1)[1]))
    args = json.loads(next(line for line in manifest.splitlines() if line.startswith("          args: [")).split(": ", 1)[1])
    for i in range(3):
        words = [word.replace("$(JOB_COMPLETION_INDEX)", str(i)).replace("/question", str(question))
                 .replace("/results", str(results)) for word in args]
        shard = run(*words)
        expect(shard.returncode == 0, f"{shard}")
    expect(run("merge", results).stdout == answer.read_text(), "the pods' answer is another")
    again = run("simulate", "--jsonl", lines, "--kubernetes-job", odd / "job.yaml", "--shards", "4")
    expect(again.returncode == 0, f"a second manifest beside its own Dockerfile: {again}")
    (odd / "Dockerfile").write_text("FROM scratch\n")
    refused = run("simulate", "--jsonl", lines, "--kubernetes-job", odd / "job.yaml", "--shards", "5")
    expect(refused.returncode == 2 and "Dockerfile" in refused.stderr, f"{refused}")
    expect("completions: 4" in (odd / "job.yaml").read_text(), "half of what was asked for was written")
    for words in (["--slurm-array", script], ["--shards", "3"], ["--slurm-array", script, "--shards", "0"],
                  ["--slurm-array", script, "--shards", "2", "--shard", "0/2", "--results", folder / "x"],
                  ["--slurm-array", folder / "no/such/file", "--shards", "2"]):
        bad = run("simulate", "--jsonl", lines, *words)
        expect(bad.returncode == 2 and len(bad.stderr.splitlines()) == 1, f"{words}: {bad}")


for check in (check_commands, check_search, check_stopped, check_full_disk, check_two_at_once, check_errors,
              check_damage, check_jobs, check_cluster, check_killed_cluster):
    with tempfile.TemporaryDirectory() as name:
        began = time.monotonic()
        check(pathlib.Path(name))
        print(f"{check.__name__}: {time.monotonic() - began:.1f} s")
if failures:
    sys.exit(f"{len(failures)} failures")
