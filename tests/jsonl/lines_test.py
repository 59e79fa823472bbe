# SPDX-License-Identifier: Apache-2.0
"""Many questions in one process: --jsonl and --csv of simulate, advise and plan.

Usage: lines_test.py BINARY SOURCE_FOLDER
"""

import csv
import io
import json
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

binary, root = sys.argv[1], pathlib.Path(sys.argv[2])
JOB = {"model": "llama3-8b", "cluster": "dgx-h100", "gpus": 16, "seq": 4096, "global_batch": 64}
failures = []


def expect(true, text):
    if not true:
        failures.append(text)
        print(text, file=sys.stderr)


def run(*words, text=None):
    return subprocess.run([binary, *map(str, words)], input=text, capture_output=True, text=True)


def ask(command, questions, *flags):
    lines = "".join(json.dumps(q) + "\n" for q in questions)
    return run(command, "--jsonl", "-", *flags, text=lines)


def generated(count):
    done = subprocess.run([sys.executable, root / "tests/jsonl/generate.py", str(count)],
                          capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


# Every answer is that of its own line, whatever stands before it and on any number of threads.
def check_order():
    questions = generated(300)
    done = ask("simulate", questions, "--ranges", "false")
    answers = done.stdout.splitlines()
    expect(done.returncode == 0, f"generated lines: exit code {done.returncode}: {done.stderr}")
    expect(len(answers) == len(questions), f"{len(answers)} answers to {len(questions)} lines")
    for question, answer in zip(questions, map(json.loads, answers)):
        expect("error" not in answer, f"a generated line is refused: {question}: {answer}")
        same = {k: answer.get("question", {}).get(k) for k in question}
        expect(same == question, f"the answer is of another line: {question}")
    order = list(range(len(questions)))
    random.Random(7).shuffle(order)
    shuffled = ask("simulate", [questions[i] for i in order], "--ranges", "false", "--threads", "1")
    expect(shuffled.stdout.splitlines() == [answers[i] for i in order],
           "answers depend on the lines before them")
    alone = [run("simulate", "--json", "--ranges", "false", "--reasons", "false",
                 *[w for k, v in q.items() for w in (f"--{k.replace('_', '-')}", str(v))])
             for q in questions[:5]]
    for one, line in zip(alone, answers):
        expect(json.loads(one.stdout) == json.loads(line), "a line's answer is not simulate's own")


def check_bad_lines():
    lines = [json.dumps(JOB), "{\"model\": ", "[1]", "", json.dumps({**JOB, "tp": 3}),
             json.dumps({**JOB, "nonsense": 1}), json.dumps({**JOB, "trace_out": "x"}),
             json.dumps({**JOB, "model": "llama3.1-405b"}), json.dumps(JOB)]
    done = run("simulate", "--jsonl", "-", text="\n".join(lines) + "\n")
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    expect(done.returncode == 1, f"bad lines: exit code {done.returncode}")
    expect(len(done.stderr.splitlines()) == 1, f"bad lines: {done.stderr}")
    expect(len(answers) == len(lines), "a bad line has no answer")
    for number, answer in enumerate(answers, 1):
        bad = 2 <= number <= 7
        expect(("error" in answer) == bad, f"line {number}: {answer}")
        if bad:
            expect(answer["error"]["line"] == number, f"line {number}: {answer}")
    expect(answers[-1] == answers[0], "a line after bad ones has another answer")
    expect(answers[7]["verdict"]["fits"] is False, "a line that does not fit is no answer")
    fits = ask("simulate", [{**JOB, "model": "llama3.1-405b"}])
    expect(fits.returncode == 0, "a line that does not fit is a bad line")
    expect(run("simulate", "--jsonl", "/nowhere.jsonl").returncode == 2, "a missing file")
    expect(run("simulate", "--jsonl", "-", "x.json", text="").returncode == 2, "a file too")
    expect(run("simulate", "--jsonl", "-", text="").returncode == 0, "no lines")


def check_other_commands():
    advised = ask("advise", [{**JOB, "tp": tp} for tp in (1, 2, 99)])
    answers = [json.loads(line) for line in advised.stdout.splitlines()]
    expect([a.get("best", [{}])[0].get("layout", {}).get("tp") for a in answers[:2]] == [1, 2],
           "advise answers other lines")
    question = {"model": "llama3-8b", "cluster": "dgx-h100", "seq": 4096, "global_batch": 256,
                "tokens": "1T", "gpus": 64}
    planned = ask("plan", [question, {**question, "gpus": 128}])
    points = [json.loads(line)["points"][0]["gpus"] for line in planned.stdout.splitlines()]
    expect(points == [64, 128], f"plan answers other lines: {points}: {planned.stderr}")


def check_csv():
    for command, questions in (("simulate", [JOB, {**JOB, "tp": 3}, {**JOB, "tp": 2}]),
                               ("advise", [JOB])):
        done = ask(command, questions, "--csv")
        rows = list(csv.reader(io.StringIO(done.stdout)))
        expect(len({len(row) for row in rows}) == 1, f"{command} --csv: rows differ in length")
        table = list(csv.DictReader(io.StringIO(done.stdout)))
        expect({row["line"] for row in table} == {str(i + 1) for i in range(len(questions))},
               f"{command} --csv: lines are missing")
        expect(all(row["step_time_s"] or row["error"] for row in table), f"{command} --csv: empty")
        expect(float(table[0]["step_time_s"]) > 0 and table[0]["tp"] != "", f"{command} --csv")
    one = run("simulate", "--csv", *[w for k, v in JOB.items()
                                     for w in (f"--{k.replace('_', '-')}", str(v))])
    expect(len(one.stdout.splitlines()) == 2, f"simulate --csv: {one.stdout}{one.stderr}")
    plan = run("plan", "100t-dense", "--csv")
    table = list(csv.DictReader(io.StringIO(plan.stdout)))
    expect(len(table) > 0 and "step_time_s" in table[0], f"plan --csv: {plan.stderr}")


# Ctrl-C leaves whole lines, in order.
def check_interrupt():
    with tempfile.TemporaryDirectory() as scratch:
        lines = pathlib.Path(scratch) / "in.jsonl"
        questions = generated(10000)
        lines.write_text("".join(json.dumps(q) + "\n" for q in questions))
        process = subprocess.Popen([binary, "simulate", "--jsonl", str(lines)],
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        first = process.stdout.readline()
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        rest = process.stdout.read()  # communicate() would lose what readline() has read ahead
        process.wait(timeout=60)
        expect(process.returncode == 130, f"Ctrl-C: exit code {process.returncode}")
        answers = [json.loads(line) for line in (first + rest).splitlines()]
        expect(0 < len(answers) < len(questions), f"Ctrl-C: {len(answers)} answers")
        for question, answer in zip(questions, answers):
            expect(answer["question"]["model"] == question["model"], "Ctrl-C: out of order")


check_order()
check_bad_lines()
check_other_commands()
check_csv()
check_interrupt()
print(f"{len(failures)} failures")
sys.exit(1 if failures else 0)
