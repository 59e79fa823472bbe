# SPDX-License-Identifier: Apache-2.0
# Makes the tables that `orrery validate` reads of the serving engine's logs.
"""serve_tables.py LOGS OUTPUT: runs.csv (a run under load a row: what came when, what it measured),
steps.csv, pools.csv, memory.csv and *_kernels*.jsonl (kernels alone as lines of the microbenchmarks; held
ones in files of their own). Lists in a cell are numbers with blanks between.
"""

import csv
import glob
import gzip
import hashlib
import json
import os
import sys

CONTEXT_BYTES = 625803264  # total less what was free before the engine began, in every record `engine`


def held(name):
    """As serve_session.py says it, which needs PyTorch."""
    return hashlib.sha256(name.encode()).digest()[0] % 2 == 1


def catalogue_model(name):
    return name.replace("llama-3", "llama3")


def lines(path):
    opened = gzip.open(path, "rt") if path.endswith(".gz") else open(path)
    with opened as file:
        return [json.loads(line) for line in file]


def listed(values):
    return " ".join(str(v) for v in values)


class Table:
    def __init__(self, path, columns):
        self.path, self.columns, self.rows = path, columns, []
        self.seen = {}

    def add(self, one, **cells):
        count = self.seen[one] = self.seen.get(one, 0) + 1
        cells |= {"cluster": f"dgx-{cells['gpu']}", "stack": "pytorch-serve"}
        cells["id"] = one if count == 1 else f"{one}#{count}"
        self.rows.append([cells[c] for c in self.columns])

    def write(self):
        with open(self.path, "w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(self.columns)
            writer.writerows(self.rows)


def add_run(table, gpu, r):
    requests, found = r["requests"], r["summary"]
    order = sorted(range(len(requests["id"])), key=lambda i: requests["id"][i])
    clients = r["traffic"].get("clients", 0)
    unfinished = len(requests["id"]) - found["finished"] - found["refused"]
    table.add(
        f"{gpu} {r['id']}",
        gpu=gpu,
        model=catalogue_model(r["model"]),
        held=int(r["held"]),
        part=r["part"],
        blocks=r["engine"]["blocks"],
        max_sequences=r["engine"]["max_sequences"],
        token_budget=r["engine"]["token_budget"],
        clients=clients,
        unfinished=unfinished,
        ttft_mean_s=round(found["ttft_s"]["mean"], 7),
        ttft_p99_s=round(found["ttft_s"]["p99"], 7) if "p99" in found["ttft_s"] else "",
        tpot_mean_s=round(found["tpot_s"]["mean"], 7),
        steps=found["steps"],
        preemptions=found["preemptions"],
        arrivals_us="" if clients else listed(requests["arrival_us"][i] for i in order),
        prompts=listed(requests["prompt"][i] for i in order),
        outputs=listed(requests["output"][i] for i in order),
    )


def kernel_line(r):
    """A kernel alone as a line of measure's programs; bytes as a serving step counts them."""
    kind, rows = r["kind"], r.get("rows", r.get("m", r.get("batch")))
    line = {
        "record": "sample",
        "part": "serve",
        "kind": kind,
        "library": "triton-paged",
        "variant": "",
        "mode": "burst",
        "input": "bf16",
        "output": "bf16",
    }
    shape = SHAPES[r["model"]]
    width, heads, kv, size = shape["hidden"], shape["heads"], shape["kv_heads"], shape["size"]
    if kind == "gemm":
        line |= {"library": "cublas", "role": "forward", "m": r["m"], "n": r["n"], "k": r["k"]}
    elif kind in ("attention-decode", "attention-chunk"):
        decode = kind == "attention-decode"
        line |= {
            "kind": "attention-decode" if decode else "attention-forward",
            "batch": r["batch"] if decode else 1,
            "heads": heads,
            "kv_heads": kv,
            "q_length": 1 if decode else rows,
            "kv_length": r["context"] if decode else r["history"] + rows,
            "qk_dim": size,
            "v_dim": size,
            "causal": 1,
        }
    else:
        rotated, cached = 2 * rows * (heads + kv) * size, 4 * rows * kv * size
        name, read, written = {
            "add-norm": ("norm", 4 * rows * width, 4 * rows * width),
            "rotary-write": ("rotary", rotated + cached, rotated + cached),
            "swiglu": ("elementwise", 4 * rows * shape["ffn"], 2 * rows * shape["ffn"]),
            "argmax": ("softmax", 2 * rows * shape["vocab"], 0),
            "embedding": ("embedding", 2 * rows * width, 2 * rows * width),
        }[kind]
        line |= {"kind": name, "bytes_read": read, "bytes_written": written}
        if name != "elementwise" and name != "rotary":
            line |= {"rows": rows}
    times = {k: r[k] for k in ("time_us", "low_us", "high_us", "calls")}
    return line | times | {"repeats": 5, "error": None}


SHAPES = {}


def main(logs, output):
    runs = Table(
        os.path.join(output, "runs.csv"),
        "id gpu cluster stack model held part blocks max_sequences token_budget clients unfinished ttft_mean_s ttft_p99_s "
        "tpot_mean_s steps preemptions arrivals_us prompts outputs".split(),
    )
    grid = Table(
        os.path.join(output, "steps.csv"),
        "id gpu cluster stack model held decodes chunk context graph device_us wall_us pack_us launch_us".split(),
    )
    pools = Table(
        os.path.join(output, "pools.csv"),
        "id gpu cluster stack model held max_sequences token_budget pool_blocks".split(),
    )
    memory = Table(
        os.path.join(output, "memory.csv"),
        "id gpu cluster stack model held token_budget max_sequences blocks beside_bytes out_of_memory".split(),
    )
    kernels = {}
    for path in sorted(glob.glob(os.path.join(logs, "*.jsonl*"))):
        gpu = os.path.basename(path).split("_")[0]
        conditions = None
        for r in lines(path):
            record, one = r["record"], r.get("id", "")
            if record == "conditions":
                conditions = r
            elif record == "engine":
                SHAPES[r["model"]] = r["shape"]
                name = f"pool/{r['model']}/t{r['token_budget']}-s{r['max_sequences']}"
                if f"{gpu} {name}" not in pools.seen:
                    pools.add(
                        f"{gpu} {name}",
                        gpu=gpu,
                        model=catalogue_model(r["model"]),
                        held=int(held(name)),
                        max_sequences=r["max_sequences"],
                        token_budget=r["token_budget"],
                        pool_blocks=r["blocks"],
                    )
            elif record == "run":
                add_run(runs, gpu, r)
            elif record == "sample" and r["part"] == "grid":
                grid.add(
                    f"{gpu} {one}",
                    gpu=gpu,
                    model=catalogue_model(r["model"]),
                    held=int(r["held"]),
                    decodes=r["decodes"],
                    chunk=r["chunk"],
                    context=r["context"],
                    graph=r["graph"],
                    **{f"{k}_us": r[f"{k}_us"][0] for k in ("wall", "pack", "launch")},
                    device_us=r["queued_us"][0],
                )
            elif record == "sample" and r["part"] == "memory":
                memory.add(
                    f"{gpu} {one}",
                    gpu=gpu,
                    model=catalogue_model(r["model"]),
                    held=int(r["held"]),
                    token_budget=r["token_budget"],
                    max_sequences=r["sequences"],
                    blocks=r.get("blocks", 0),
                    beside_bytes=CONTEXT_BYTES,
                    out_of_memory=int(r["outcome"] != "ran"),
                )
            elif record == "sample" and r["part"] == "kernels" and r["kind"] != "expert-layer":
                name = f"{gpu}_kernels{'_held' if r['held'] else ''}.jsonl"
                mine = kernels.setdefault(name, [])
                if not mine:
                    mine.append(conditions | {"about": "Kernels of serve.py alone (serve_tables.py)."})
                mine.append(kernel_line(r))
    for table in (runs, grid, pools, memory):
        table.write()
    for name, found in kernels.items():
        with open(os.path.join(output, name), "w") as file:
            file.writelines(json.dumps(line) + "\n" for line in found)


if __name__ == "__main__":
    main(*sys.argv[1:])
