# SPDX-License-Identifier: Apache-2.0
"""What `schedule` writes of a run, row by row and for Perfetto, is what its answer says.

Usage: schedule_files_test.py BINARY
"""
import collections
import csv
import json
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

binary = sys.argv[1]
QUESTION = {"cluster": "dgx-h100", "gpus": 512, "days": 20, "policy": "preempt", "place": "least-level",
            "reliability": "llama3-h100", "spares": 16, "failure_rate": 5,
            "jobs": [{"mix": "acme-kalos", "per_day": 200}, {"mix": "acme-seren", "per_day": 100, "priority": 2},
                     {"id": "a, \"b\"", "model": "llama3-8b", "gpus": 64, "seq": 8192, "global_batch": 128,
                      "length": "10 day"}]}
FIRST_GROUP = 3  # processes of the trace from here on are leaf groups


def run(*words, code=0):
    done = subprocess.run([binary, "schedule", *map(str, words)], capture_output=True, text=True)
    assert done.returncode == code, done
    return done


def microseconds(text):
    return int(text.replace(".", ""))


def hosts_of(text):
    hosts = {}
    for part in text.split():
        span, gpus = part.split(":")
        first, _, last = span.partition("-")
        for host in range(int(first), int(last or first) + 1):
            assert host not in hosts, text
            hosts[host] = int(gpus)
    return hosts


def follow(rows):
    """GPU-microseconds that jobs held by the rows, which never take what is not free."""
    held, total, last, free = {}, 0, 0, collections.defaultdict(lambda: 8)
    for row in rows:
        at, gpus, hosts = microseconds(row["time_s"]), int(row["gpus"]), hosts_of(row["hosts"])
        assert at >= last, row
        last = at
        if row["hosts"]:
            assert sum(hosts.values()) == gpus, row
        if row["event"] == "start":
            assert row["job"] not in held, row
            held[row["job"]] = at
            for host, number in hosts.items():
                free[host] -= number
                assert free[host] >= 0, row
        elif row["event"] in ("stop", "end", "cut"):
            total += (at - held.pop(row["job"])) * gpus
            for host, number in hosts.items():
                free[host] += number
    assert not held, held
    return total, last


def spans(trace, groups):
    return [e for e in trace if e["ph"] == "X" and (e["pid"] >= FIRST_GROUP) == groups]


def check_lanes(trace):
    """No two slices of a row overlap, and every arrow has both ends, each in a slice."""
    rows, ends = collections.defaultdict(list), collections.defaultdict(dict)
    for event in trace:
        if event["ph"] == "X":
            rows[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
        elif event["ph"] in "sf":
            ends[event["id"]][event["ph"]] = event
    for slices in rows.values():
        slices.sort()
        for before, after in zip(slices, slices[1:]):
            assert before[1] <= after[0], (before, after)
    for arrow in ends.values():
        assert set(arrow) == {"s", "f"}, arrow
        assert arrow["s"]["ts"] < arrow["f"]["ts"], arrow
        for end in arrow.values():
            assert any(a <= end["ts"] <= b for a, b in rows[end["pid"], end["tid"]]), end
    return len(ends)


def area(trace, name, key, end):
    points = [e for e in trace if e["ph"] == "C" and e["name"] == name]
    assert points, name
    points.append({"ts": end, "args": points[-1]["args"]})
    return sum((b["ts"] - a["ts"]) * a["args"][key] for a, b in zip(points, points[1:]))


def check_sums(folder):
    question = folder / "lab.json"
    question.write_text(json.dumps(QUESTION))
    plain = run(question, "--json").stdout
    files = ["--events-out", folder / "events.csv", "--trace-out", folder / "trace.json",
             "--jobs-out", folder / "jobs.csv"]
    assert run(question, "--json", *files).stdout == plain, "files change the answer"
    answer = json.loads(plain)["points"][0]["first"]
    with open(folder / "events.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    held, last = follow(rows)
    assert held / 3.6e9 == answer["gpu_hours"], (held / 3.6e9, answer["gpu_hours"])
    events = collections.Counter(row["event"] for row in rows)
    assert events["end"] == answer["jobs"]["finished"] and events["reject"] == answer["jobs"]["rejected"], events
    causes = collections.Counter(row["cause"] for row in rows if row["event"] in ("stop", "restart"))
    assert causes["preempted"] == answer["preemptions"] > 0, causes
    assert events["out"] == sum(1 for row in rows if row["event"] == "repaired") > 0, events
    stopped = collections.Counter()
    for kind in answer["breakdowns"]:
        stopped[kind["name"]] = causes[kind["name"]] - kind["stopped"]
    assert not any(stopped.values()), stopped
    with open(folder / "jobs.csv", newline="") as file:
        starts = {row["id"]: row["start_s"] for row in csv.DictReader(file) if row["start_s"]}
    first = {}
    for row in rows:
        if row["event"] == "start":
            first.setdefault(row["job"], row["time_s"])
    assert first == starts and 'a, "b"' in first, "jobs start at other times in the two files"
    trace = json.loads((folder / "trace.json").read_text())["traceEvents"]
    assert sum(e["dur"] * e["args"]["gpus here"] for e in spans(trace, True)) == held
    assert area(trace, "GPUs", "held", last) == held
    assert abs(area(trace, "MW", "MW", last) / answer["energy_j"] - 1) < 1e-9
    waits = sum(e["dur"] for e in spans(trace, False) if e["cat"] == "wait")
    assert waits == area(trace, "jobs that wait", "jobs", last) > 0
    assert check_lanes(trace) > 50
    return question, held


def check_window(folder, question):
    """A part of a run has what the whole has then."""
    day = 86_400_000_000
    parts = []
    for i in range(3):
        file = folder / f"part{i}.json"
        ends = [["--trace-to", "3 day"], ["--trace-from", "3 day", "--trace-to", "9 day"], ["--trace-from", "9 day"]][i]
        run(question, "--trace-out", file, *ends)
        parts.append(json.loads(file.read_text())["traceEvents"])
        check_lanes(parts[-1])
    for i, (low, high) in enumerate([(0, 3), (3, 9), (9, 10_000)]):
        for event in parts[i]:
            if "ts" in event:
                assert low * day <= event["ts"] and event["ts"] + event.get("dur", 0) <= high * day, event
    return sum(e["dur"] * e["args"]["gpus here"] for part in parts for e in spans(part, True))


def check_bad(folder, question):
    for words, part in ((["--policy", "fifo,easy", "--events-out", folder / "x.csv"], "one point"),
                        (["--trace-from", "2 day"], "--trace-out"),
                        (["--trace-out", folder / "x.json", "--trace-from", "2"], "--trace-from"),
                        (["--trace-out", folder / "x.json", "--trace-from", "2 day", "--trace-to", "1 day"],
                         "--trace-to"),
                        (["--trace-out", folder / "no/such/x.json"], "no/such"),
                        (["--events-out", folder], "directory"),
                        (["--results", folder / "r", "--shard", "0/2", "--events-out", folder / "x.csv"], "shard")):
        said = run(question, *words, code=2).stderr
        assert part in said and len(said.splitlines()) == 1, said
    lines = folder / "lines.jsonl"
    lines.write_text(json.dumps(QUESTION) + "\n")
    assert "--events-out" in run("--jsonl", lines, "--events-out", folder / "x.csv", code=2).stderr
    assert not list(folder.glob("x.*")), list(folder.glob("x.*"))


def check_kept(folder, question):
    """Of a run that a folder has the same is written: it runs again."""
    results = ["--results", folder / "kept"]
    run(question, *results)
    run(question, *results, "--events-out", folder / "again.csv")
    assert (folder / "again.csv").read_bytes() == (folder / "events.csv").read_bytes()


def check_interrupted(folder):
    """Ctrl-C leaves whole files of what was simulated, and no result that is none; a kill leaves none."""
    long = folder / "long.json"
    long.write_text(json.dumps({**QUESTION, "days": 3000, "horizon": "3000 day"}))
    words = [binary, "schedule", long, "--json", "--results", folder / "cut", "--events-out", folder / "cut.csv"]
    for number in (signal.SIGKILL, signal.SIGINT):
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        deadline, partial = time.monotonic() + 30, folder / f"cut.csv.partial{process.pid}"
        while time.monotonic() < deadline and not (partial.exists() and partial.stat().st_size > 0):
            time.sleep(0.02)
        process.send_signal(number)
        said = process.communicate()[0]
        assert (folder / "cut.csv").exists() == (number == signal.SIGINT), number
    assert process.returncode == 130 and json.loads(said)["stopped"], process.returncode
    with open(folder / "cut.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    held, _ = follow(rows)
    assert held / 3.6e9 == json.loads(said)["points"][0]["first"]["gpu_hours"]
    assert rows[-1]["event"] == "cut" and not list(folder.glob("cut/part-*")), "a run that was cut is kept as a result"


with tempfile.TemporaryDirectory() as name:
    place = pathlib.Path(name)
    asked, held_time = check_sums(place)
    assert check_window(place, asked) == held_time, "parts of a trace do not make the whole"
    check_bad(place, asked)
    check_kept(place, asked)
    check_interrupted(place)
