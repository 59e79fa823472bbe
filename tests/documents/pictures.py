#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws the pictures of docs/pictures from what the program prints and from the tree of includes.

Usage: pictures.py BINARY ROOT
"""
import html
import json
import math
import pathlib
import re
import subprocess
import sys
import tempfile

BINARY, ROOT = sys.argv[1], pathlib.Path(sys.argv[2])
OUT = ROOT / "docs/pictures"

# A card of its own ground: readable on light and dark pages.
STYLE = """
:root { --ground: #ffffff; --ink: #1f2328; --soft: #59636e; --line: #d1d9e0; --box: #f6f8fa;
  --blue: #0969da; --teal: #1b7c83; --orange: #bc4c00; --grey: #8c959f; --violet: #8250df; }
@media (prefers-color-scheme: dark) { :root { --ground: #151b23; --ink: #e6edf3; --soft: #9198a1;
  --line: #3d444d; --box: #212830; --blue: #4493f8; --teal: #39c5cf; --orange: #f0883e;
  --grey: #6e7681; --violet: #ab7df8; } }
text { font: 13px system-ui, sans-serif; fill: var(--ink); }
.soft { fill: var(--soft); } .small { font-size: 11px; } .title { font-weight: 600; }
.mid { text-anchor: middle; } .end { text-anchor: end; }
.on { fill: var(--ground); }
"""


class Picture:
    def __init__(self, width, height, title):
        self.width, self.height, self.title, self.parts = width, height, title, []

    def add(self, name, text=None, **attributes):
        pairs = "".join(
            f' {key.rstrip("_").replace("_", "-")}="{html.escape(str(value), quote=True)}"'
            for key, value in attributes.items()
        )
        body = f">{html.escape(text)}</{name}>" if text is not None else "/>"
        self.parts.append(f"<{name}{pairs}{body}")

    def text(self, x, y, text, style=""):
        self.add("text", text, x=round(x, 1), y=round(y, 1), class_=style)

    def box(self, x, y, width, height, fill="box", line="line", radius=4):
        self.add("rect", x=round(x, 1), y=round(y, 1), width=round(width, 1),
                 height=round(height, 1), rx=radius,
                 style=f"fill:var(--{fill});stroke:var(--{line})")

    def arrow(self, points, colour="grey"):
        path = "M" + " L".join(f"{round(x, 1)} {round(y, 1)}" for x, y in points)
        self.add("path", d=path, marker_end="url(#tip)", style=f"fill:none;stroke:var(--{colour})")

    def write(self, name):
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" '
            f'width="{self.width}" height="{self.height}" role="img" '
            f'aria-label="{html.escape(self.title, quote=True)}">\n'
            f"<style>{STYLE}</style>\n"
            '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
            'markerHeight="7" orient="auto"><path d="M0 0 L8 4 L0 8 z" style="fill:var(--grey)"/>'
            "</marker></defs>\n"
            f'<rect width="{self.width}" height="{self.height}" rx="8" '
            'style="fill:var(--ground)"/>\n'
        )
        OUT.mkdir(parents=True, exist_ok=True)
        (OUT / name).write_text(head + "\n".join(self.parts) + "\n</svg>\n")


def run(*arguments):
    command = [BINARY, arguments[0], "--quiet", *arguments[1:]]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    if done.returncode not in (0, 3):
        sys.exit(f"pictures: {' '.join(command)}: {done.stderr}")
    return done.stdout


def answer(*arguments):
    return json.loads(run(*arguments, "--json"))


# The house: folders as boxes, includes as arrows.

FACTS = ("hw_models", "topologies", "workloads")


def rooms():
    """Source files by folder: sim/x, and the three folders of facts."""
    found = {}
    for top in ("sim", *FACTS):
        for file in sorted((ROOT / top).rglob("*")):
            if file.suffix in (".h", ".cpp"):
                parts = file.relative_to(ROOT).parts
                room = "/".join(parts[:2]) if top == "sim" else top
                found.setdefault(room, []).append(file)
    return found


def includes(found):
    """How often files of one room include files of another."""
    edges = {}
    for room, files in found.items():
        for file in files:
            for target in re.findall(r'^#include "([^"]+)"', file.read_text(), re.M):
                other = next((r for r in found if target.startswith(r + "/")), room)
                if other != room:
                    edges.setdefault(room, {}).setdefault(other, 0)
                    edges[room][other] += 1
    return edges


def reaches(edges, start, goal, without):
    stack, seen = [start], set()
    while stack:
        at = stack.pop()
        for to in edges.get(at, {}):
            if (at, to) == without or to in seen:
                continue
            if to == goal:
                return True
            seen.add(to)
            stack.append(to)
    return False


def house():
    found = rooms()
    edges = includes(found)
    level = {}

    def level_of(room):
        if room not in level:
            level[room] = 1 + max((level_of(to) for to in edges.get(room, {})), default=-1)
        return level[room]

    for room in found:
        level_of(room)
    top = max(level.values())
    width, step = 760, 84
    picture = Picture(width, (top + 1) * step + 44, "Folders of the code and which include which")
    place = {}
    for floor in range(top + 1):
        row = sorted(room for room in found if level[room] == floor)
        for i, room in enumerate(row):
            place[room] = ((i + 1) * width / (len(row) + 1), 44 + (top - floor) * step)
    for room, targets in sorted(edges.items()):
        for to in sorted(targets):
            if reaches(edges, room, to, (room, to)):
                continue  # an arrow for what other arrows say already
            (x, y), (u, v) = place[room], place[to]
            picture.arrow([(x, y + 40), (u, v - 2)])
    for room, (x, y) in place.items():
        fact = room in FACTS
        picture.box(x - 72, y, 144, 40, line="teal" if fact else "line")
        picture.text(x, y + 17, room, "mid title")
        picture.text(x, y + 32, f"{len(found[room])} files", "mid small soft")
    picture.text(16, 22, "An arrow: files of the upper folder include files of the lower one. "
                 "None points upwards.", "soft")
    picture.write("house.svg")


# The flow of one prediction, with the figures of one.

def flow():
    result = answer("simulate", "--model", "llama3.1-405b", "--cluster", "dgx-h100", "--gpus",
                    "1024", "--seq", "8192", "--global-batch", "512", "--tp", "8", "--pp", "16",
                    "--vpp", "8", "--cp", "2")
    p = result["prediction"]
    stage = p["stages"][p["bottleneck_stage"]]
    share = lambda *keys: sum(stage[k + "_s"] for k in keys) / p["step_time_s"]
    exposed = share("tensor_comm", "context_comm", "expert_comm", "data_comm", "pipeline_comm")
    gib = p["memory"]["needed_bytes"] / 2**30
    width = 860
    picture = Picture(width, 330, "The way from a question to a prediction")
    columns = [
        ("Question", [
            ("model", "405B parameters"), ("machine", "1,024 H100, network"),
            ("layout", "TP8 PP16 VPP8 CP2"), ("stack", result["stack"])]),
        ("Work", [("program", "operations of each layer"),
                                   ("placement", "which ranks lie where")]),
        ("Time of each part", [("kernels", "tiles, waves, power"),
                                  ("collectives", "latency, bytes, flows"),
                                  ("host", "dispatch, launches")]),
        ("Order in time", [("pipeline", "passes, in picoseconds"),
                          ("end of the step", "gradients, optimizer")]),
        ("Prediction", [
            ("step", f"{p['step_time_s']:.2f} s"),
            ("90% range", f"{p['step_time_low_s']:.1f} to {p['step_time_high_s']:.1f} s"),
            ("exposed", f"{100 * exposed:.0f}% of the step"),
            ("bubble", f"{100 * share('bubble'):.0f}% of the step"),
            ("memory", f"{gib:.0f} GiB needed")]),
    ]
    cell, height, gap = 148, 36, 8
    step = (width - 24 - cell) / (len(columns) - 1)
    for i, (title, boxes) in enumerate(columns):
        x = 12 + i * step
        last = i + 1 == len(columns)
        picture.text(x, 28, title, "title")
        block = len(boxes) * (height + gap) - gap
        y = 46 + (5 * (height + gap) - gap - block) / 2
        for name, what in boxes:
            picture.box(x, y, cell, height, line="blue" if last else "line")
            picture.text(x + 8, y + 15, name, "title small")
            picture.text(x + 8, y + 29, what, "small soft")
            y += height + gap
        if not last:
            picture.arrow([(x + cell + 3, 150), (x + step - 4, 150)])
    notes = ["Facts and values that are not facts come from the catalogues, each with its source.",
             "Each value that is not a fact is moved to both ends of its range, and the whole way "
             "is gone again: that makes the range."]
    for i, note in enumerate(notes):
        picture.text(12, 290 + 18 * i, note, "soft small")
    picture.write("flow.svg")


# A pipeline with its bubbles, from the trace of a simulated step.

def traced(*arguments):
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "trace.json"
        run("simulate", "--model", "llama3-8b", "--cluster", "dgx-h100", "--gpus", "4", "--seq",
            "8192", "--global-batch", "8", "--dp", "1", "--tp", "1", "--pp", "4", "--stack",
            "megatron-core", "--ranges", "false", "--reasons", "false", "--trace-out", str(file),
            *arguments)
        return [e for e in json.loads(file.read_text())["traceEvents"] if e["ph"] == "X"]


def pipeline():
    panels = [("1F1B: four stages, eight microbatches", traced("--schedule", "1f1b")),
              ("Interleaved: two chunks a stage",
               traced("--schedule", "interleaved", "--vpp", "2"))]
    width, left, row = 820, 62, 26
    end = max(e["ts"] + e["dur"] for _, events in panels for e in events)
    scale = (width - left - 14) / end
    picture = Picture(width, 348, "Passes of a pipeline in time, with bubbles")
    top = 20
    for title, events in panels:
        passes = [e for e in events if e["cat"] in ("forward", "backward")]
        last = max(e["ts"] + e["dur"] for e in events)
        busy = sum(e["dur"] for e in passes)
        bubble = 1 - busy / (4 * max(e["ts"] + e["dur"] for e in passes))
        picture.text(14, top, f"{title}, {last * 1e-6:.2f} s; {100 * bubble:.0f}% of the passes' "
                     "time is bubble", "title")
        for stage in range(4):
            y = top + 12 + stage * row
            picture.text(14, y + 15, f"stage {stage}", "small soft")
            picture.box(left, y, last * scale, row - 4, fill="box", radius=0)
        for e in events:
            y = top + 12 + e["tid"] * row
            colour = {"forward": "blue", "backward": "teal"}.get(e["cat"], "orange")
            x, wide = left + e["ts"] * scale, e["dur"] * scale
            picture.add("rect", x=round(x, 2), y=y, width=round(wide, 2), height=row - 4,
                        style=f"fill:var(--{colour});stroke:var(--ground)")
            found = re.match(r"\w+ (\d+)", e["name"])
            if found and wide > 9:
                picture.text(x + wide / 2, y + 15, found[1], "mid small on")
        top += 4 * row + 42
    x = left
    for colour, name in (("blue", "forward pass of a microbatch"), ("teal", "backward pass"),
                         ("orange", "end of the step: communication, optimizer"),
                         ("box", "bubble")):
        picture.box(x, top - 6, 14, 14, fill=colour, radius=0)
        picture.text(x + 20, top + 5, name, "small")
        x += 46 + 6.1 * len(name)
    picture.height = top + 24
    picture.write("pipeline.svg")


# Predicted against measured speed of every published run.

def accuracy():
    rows = [r for r in answer("validate")["rows"]
            if r["quantity"] == "tokens_s_gpu" and r["predicted"] and r["measured"]]
    sweeps = ("nanotron", "vTrain single")
    published = [r for r in rows if not any(s in r["group"]["source"] for s in sweeps)]
    others = [r for r in rows if r not in published]
    exponents = [math.log10(r[k]) for r in rows for k in ("measured", "predicted")]
    low, high = 10 ** (min(exponents) - 0.05), 10 ** (max(exponents) + 0.05)
    size, left, top = 470, 78, 46
    at = lambda v: (math.log10(v) - math.log10(low)) / (math.log10(high) - math.log10(low)) * size
    picture = Picture(620, 590, "Predicted against measured speed")
    picture.text(14, 26, f"{len(published)} published runs and {len(others):,} rows of sweeps, "
                 "tokens/s/GPU", "title")
    picture.box(left, top, size, size, fill="ground", radius=0)
    for exponent in range(math.ceil(min(exponents)), math.floor(max(exponents)) + 1):
        v = 10.0**exponent
        x, y = left + at(v), top + size - at(v)
        picture.add("path", d=f"M{x:.1f} {top} V{top + size} M{left} {y:.1f} H{left + size}",
                    style="stroke:var(--line);fill:none")
        picture.text(x, top + size + 18, f"{int(v):,}", "mid small soft")
        picture.text(left - 6, y + 4, f"{int(v):,}", "end small soft")
    for share, dash in ((1.0, "none"), (1.1, "4 4"), (1 / 1.1, "4 4")):
        a, b = low * max(1.0, 1 / share), high * min(1.0, 1 / share)
        picture.add("path", d=f"M{left + at(a):.1f} {top + size - at(a * share):.1f} "
                    f"L{left + at(b):.1f} {top + size - at(b * share):.1f}", stroke_dasharray=dash,
                    style="stroke:var(--soft);fill:none")
    for group, colour, wide in ((others, "grey", 2.4), (published, "blue", 4)):
        dots = sorted({(round(left + at(r["measured"]), 1),
                        round(top + size - at(r["predicted"]), 1)) for r in group})
        path = "".join(f"M{x:g} {y:g}h0" for x, y in dots)
        picture.add("path", d=path, stroke_linecap="round", stroke_width=wide, opacity=0.6,
                    style=f"stroke:var(--{colour});fill:none")
    picture.text(left + size / 2, top + size + 40, "measured", "mid soft")
    picture.add("text", "predicted", x=0, y=0, class_="mid soft",
                transform=f"translate(18 {top + size / 2}) rotate(-90)")
    picture.text(left + 12, top + 20, "dashed: 10% too fast, 10% too slow", "small soft")
    for i, (colour, name) in enumerate((("blue", "published"), ("grey", "sweeps"))):
        picture.add("circle", cx=left + 17, cy=top + 37 + 18 * i, r=4,
                    style=f"fill:var(--{colour})")
        picture.text(left + 28, top + 41 + 18 * i, name, "small soft")
    picture.write("accuracy.svg")


# The search as a tree of counts.

def search():
    a = answer("advise", "--model", "llama3.1-405b", "--cluster", "dgx-h100", "--gpus", "1024",
               "--seq", "8192", "--global-batch", "512", "--top", "1")
    picture = Picture(820, 250, "How a search disposes of its layouts")
    picture.text(14, 26, "Llama 3.1 405B on 1,024 H100: every layout of the grid", "title")
    fit = a["considered"] - a["rejected_for_memory"]
    # By column and row: count, words, colour, and the node that it branches from.
    nodes = {
        "all": (0, 0.5, a["considered"], "valid layouts", "split into parts", "blue", None),
        "memory": (1, 0, a["rejected_for_memory"], "rejected for memory", "most as whole parts",
                   "grey", "all"),
        "fit": (1, 1, fit, "fit, or may fit", "bounded from below", "blue", "all"),
        "bound": (2, 0, a["pruned"], "ruled out by a bound", "proven slower", "grey", "fit"),
        "run": (2, 1, a["simulated"], "run", "to the picosecond", "blue", "fit"),
        "best": (3, 1, 1, "best", f"{a['best'][0]['step_time_s']:.3f} s a step", "teal", "run"),
    }
    wide, high, step = 168, 62, 207
    place = {k: (14 + n[0] * step, 62 + n[1] * 100) for k, n in nodes.items()}
    for key, (_, _, count, name, how, colour, source) in nodes.items():
        x, y = place[key]
        picture.box(x, y, wide, high, line=colour)
        picture.text(x + 10, y + 20, f"{count:,}", "title")
        picture.text(x + 10, y + 37, name, "small")
        picture.text(x + 10, y + 52, how, "small soft")
        if source:
            u, v = place[source]
            picture.arrow([(u + wide + 2, v + high / 2), (x - 3, y + high / 2)])
    picture.write("search.svg")


# Months as a bar of shares.

def months():
    plan = answer("plan", "faster-kernels")
    shares = plan["detail"]["time_shares"]
    effective = shares.pop("effective")
    losses = sorted(((k, v) for k, v in shares.items() if v >= 0.0005), key=lambda kv: -kv[1])
    rest = sum(v for v in shares.values() if v < 0.0005)
    width, left, full = 820, 20, 780
    picture = Picture(width, 232, "Where the time of months goes")
    counts = f"{100 * effective:.1f}% of the time counts"
    picture.text(left, 26, f"Llama 3.1 405B on 8,192 H100: {counts}", "title")
    picture.add("rect", x=left, y=40, width=round(full * effective, 1), height=26,
                style="fill:var(--teal)")
    picture.text(left + 8, 58, "steps that count", "on small")
    picture.add("rect", x=round(left + full * effective, 1), y=40,
                width=round(full * (1 - effective), 1), height=26, style="fill:var(--orange)")
    lost = 1 - effective
    picture.add("path", d=f"M{left + full * effective:.1f} 66 L{left} 96 M{left + full} 66 V96",
                style="stroke:var(--line);fill:none")
    picture.text(left + full - 8, 90,
                 f"the other {100 * lost:.1f}%, enlarged, in the order of the list",
                 "end small soft")
    colours = ("orange", "violet", "blue", "grey")
    x, names = float(left), []
    for i, (key, value) in enumerate([*losses, ("other", rest)]):
        wide = full * value / lost
        picture.add("rect", x=round(x, 1), y=96, width=round(wide, 1), height=26,
                    style=f"fill:var(--{colours[i % 4]});stroke:var(--ground)")
        names.append((colours[i % 4], f"{key.replace('_', ' ')} {100 * value:.2f}%"))
        x += wide
    for i, (colour, name) in enumerate(names):
        column, line = i % 4, i // 4
        picture.box(left + 196 * column, 134 + 22 * line, 12, 12, fill=colour, radius=0)
        picture.text(left + 18 + 196 * column, 144 + 22 * line, name, "small")
    picture.height = 146 + 22 * ((len(names) + 3) // 4)
    picture.write("months.svg")


for draw in (house, flow, pipeline, accuracy, search, months):
    draw()
