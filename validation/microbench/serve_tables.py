# SPDX-License-Identifier: Apache-2.0
# Makes the tables that `orrery validate` reads of the serving engine's logs.
"""serve_tables.py LOGS OUTPUT: runs.csv (a run under load a row: what came when, what it measured),
pairs.csv (the same with prefill on one GPU and decode on another), steps.csv, pools.csv, memory.csv and
*_kernels*.jsonl (kernels alone as lines of the microbenchmarks; held ones in files of their own). `tp`: GPUs
over which the model is cut. Lists in a cell are numbers with blanks between.
"""

import csv
import glob
import gzip
import hashlib
import json
import os
import sys

CONTEXT_BYTES = 625803264  # total less what was free before an engine of one GPU began: records `engine`


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


def add_run(table, gpu, r, ranks):
    requests, found = r["requests"], r["summary"]
    order = sorted(range(len(requests["id"])), key=lambda i: requests["id"][i])
    clients = r["traffic"].get("clients", 0)
    unfinished = len(requests["id"]) - found["finished"] - found["refused"]
    table.add(
        f"{gpu} {cut(ranks)}{r['id']}",
        gpu=gpu,
        model=catalogue_model(r["model"]),
        tp=ranks,
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


def add_pair(table, gpu, r, engine):
    """TTFT ends with the prefill, which makes the first token. TPOT is from there to the last token over the
    output less one, the way to the other GPU and all waiting included. The way: until the message is in the
    pool.
    """
    ended, last = ends(r["prefill"], "first"), ends(r["decode"], "last")
    requests, outputs = r["prefill"]["requests"], r["outputs"]
    arrived = dict(zip(requests["id"], requests["arrival_us"]))
    prompts = dict(zip(requests["id"], requests["prompt"]))
    order = sorted(arrived)
    made = dict(zip(r["decode"]["requests"]["id"], r["decode"]["requests"]["made"]))
    done = [i for i in order if made.get(i) == outputs[i]]
    there = {number: at for number, _, at in r["received"]}
    table.add(
        f"{gpu} {r['id']}",
        gpu=gpu,
        model=catalogue_model(r["model"]),
        held=int(r["held"]),
        blocks=engine["blocks"],
        max_sequences=engine["max_sequences"],
        token_budget=engine["token_budget"],
        unfinished=len(order) - len(done),
        ttft_mean_s=mean_seconds(ended[i] - arrived[i] for i in done),
        tpot_mean_s=mean_seconds((last[i] - ended[i]) / (outputs[i] - 1) for i in done if outputs[i] > 1),
        transfer_mean_s=mean_seconds(there[i] - ended[i] for i in done),
        prefill_steps=len(r["prefill"]["steps"]["end_us"]),
        decode_steps=len(r["decode"]["steps"]["end_us"]),
        preemptions=sum(r["decode"]["requests"]["preemptions"]),
        arrivals_us=listed(arrived[i] for i in order),
        prompts=listed(prompts[i] for i in order),
        outputs=listed(outputs[i] for i in order),
    )


def ends(side, which):
    """When the step ended in which each request made its first or last token, in microseconds."""
    return {
        i: side["steps"]["end_us"][step]
        for i, step in zip(side["requests"]["id"], side["requests"][which])
        if step >= 0
    }


def mean_seconds(microseconds):
    values = list(microseconds)
    return round(sum(values) / len(values) / 1e6, 7)


def cut(ranks):
    """What an id says of a model cut over several GPUs."""
    return f"tp{ranks} " if ranks > 1 else ""


def add_pool(table, gpu, r, ranks):
    name = f"pool/{r['model']}/t{r['token_budget']}-s{r['max_sequences']}"
    if f"{gpu} {cut(ranks)}{name}" in table.seen:
        return
    table.add(
        f"{gpu} {cut(ranks)}{name}",
        gpu=gpu,
        model=catalogue_model(r["model"]),
        tp=ranks,
        held=int(held(name)),
        max_sequences=r["max_sequences"],
        token_budget=r["token_budget"],
        pool_blocks=r["blocks"],
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
        "id gpu cluster stack model tp held part blocks max_sequences token_budget clients unfinished "
        "ttft_mean_s ttft_p99_s tpot_mean_s steps preemptions arrivals_us prompts outputs".split(),
    )
    pairs = Table(
        os.path.join(output, "pairs.csv"),
        "id gpu cluster stack model held blocks max_sequences token_budget unfinished ttft_mean_s "
        "tpot_mean_s transfer_mean_s prefill_steps decode_steps preemptions arrivals_us prompts "
        "outputs".split(),
    )
    grid = Table(
        os.path.join(output, "steps.csv"),
        "id gpu cluster stack model held decodes chunk context graph device_us wall_us pack_us launch_us".split(),
    )
    pools = Table(
        os.path.join(output, "pools.csv"),
        "id gpu cluster stack model tp held max_sequences token_budget pool_blocks".split(),
    )
    memory = Table(
        os.path.join(output, "memory.csv"),
        "id gpu cluster stack model held token_budget max_sequences blocks beside_bytes out_of_memory".split(),
    )
    kernels = {}
    for path in sorted(glob.glob(os.path.join(logs, "*.jsonl*"))):
        gpu = os.path.basename(path).split("_")[0]
        conditions, engine, ranks = None, None, 1
        for r in lines(path):
            record, one = r["record"], r.get("id", "")
            if record == "conditions":
                conditions = r
            elif record == "engine":
                SHAPES[r["model"]] = r["shape"]
                engine, ranks = r, r.get("ranks", 1)
                add_pool(pools, gpu, r, ranks)
            elif record == "run":
                add_run(runs, gpu, r, ranks)
            elif record == "pair":
                add_pair(pairs, gpu, r, engine)
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
    for table in (runs, pairs, grid, pools, memory):
        table.write()
    for name, found in kernels.items():
        with open(os.path.join(output, name), "w") as file:
            file.writelines(json.dumps(line) + "\n" for line in found)


if __name__ == "__main__":
    main(*sys.argv[1:])
