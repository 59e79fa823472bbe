#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Makes runs whose faults cannot be made on our machines: the flow simulator's steps, with noise of real logs.
"""simulated.py ORRERY --output DIR [--runs runs] [--seed N]

Writes DIR/runs/ID and DIR/programs/NAME.json in the form of this folder, for `orrery diagnose --runs DIR/runs`; and
DIR/bare/ID, other such runs without counters of ports, of which nothing tells a slow NIC from routes that collide.
A step is what `orrery simulate --network flow` says of a NIC with less of its rate, of another job's traffic, of slow
links in a domain; a GPU at a lower clock has longer kernels. Kernels and collectives become the events of a trace,
rank by rank. Nothing of the signatures that diagnose uses (sim/diagnose) is read here.

Noise: steps differ as those of healthy logs in `runs` do; kernels of a class differ from the prediction by a
factor that all ranks share and one of each rank, drawn as wide as those runs were off; hosts leave gaps as theirs.
"""

import argparse
import gzip
import json
import pathlib
import random
import re
import subprocess

PROGRAMS = {
    "fsdp-8b-32": dict(
        model="llama3.1-8b", cluster="dgx-h100", gpus=32, seq=8192, global_batch=64, zero=3,
        stack="pytorch-fsdp2", recompute="none",
    ),
    "fsdp-70b-128": dict(
        model="llama3.1-70b", cluster="dgx-h200", gpus=128, seq=8192, global_batch=128, zero=3,
        stack="pytorch-fsdp2", recompute="full",
    ),
    "moe-30b-32": dict(
        model="qwen3-30b-a3b", cluster="dgx-h100", gpus=32, seq=4096, global_batch=256, zero=1, ep=8,
        stack="nemo@25.09",
    ),
}
GPU = 11  # the one that has a fault; ranks beside it are profiled, too
PROFILED = (0, 8, GPU, 12)
# Class of a kernel, its name in the trace, where a prediction has it, and how far real ones were off it.
CLASSES = {
    "product": ("nvjet_sm90_gemm", ("gemm_s", "expert_s"), 0.08),
    "attention": ("flash_fwd_kernel", ("attention_s",), 0.15),
    "memory": ("triton_poi_fused_elementwise", ("elementwise_s", "quantise_s"), 0.2),
    "loss": ("log_softmax_kernel", ("loss_s",), 0.15),
    "optimizer": ("fusedadam_kernel", ("optimizer_s",), 0.2),
}
COMMUNICATION = ("tensor_comm_s", "context_comm_s", "expert_comm_s", "data_comm_s", "pipeline_comm_s")


def nic(remaining):
    return dict(faults=[dict(kind="nic", gpu=GPU, remaining=remaining)])


def faults():
    """Cause, settings of simulate, what counters show, relative spread of single collectives."""
    yield "", {}, {}, 0.03
    # A port that was trained at a part of its rate; one that is down, so that its neighbour sends for two.
    for left in (0.5, 0.25):
        yield "slow-nic", nic(left), dict(port_rate=left), 0.03
    yield "slow-nic", nic(0.5), dict(port_silent=True), 0.03
    # A bad cable: part of its rate goes to retries, unevenly, and the port counts them.
    yield "bad-cable", nic(0.6), dict(symbol_errors=4000), 0.25
    # Hashed routes of two of the run's own flows share a link, for as long as it runs; another job's come and go.
    yield "colliding-flows", nic(0.5), dict(marks=1), 0.03
    yield "colliding-flows", dict(background=[dict(pattern="all-to-all", first_gpu=0, gpus=32, load=1.0)]), dict(marks=8), 0.1
    yield "slow-scale-up", dict(faults=[dict(kind="scale-up", gpu=GPU, remaining=0.3)]), {}, 0.03
    for speed in (0.8, 0.65):
        yield "low-clock", dict(slow_gpus=[dict(gpu=GPU, speed=speed)]), dict(clock=speed), 0.03
    yield "slow-gpu", dict(slow_gpus=[dict(gpu=GPU, speed=0.7)]), {}, 0.03
    # Memory that corrects errors again and again: its driver counts them, and what it bounds is slow.
    yield "slow-memory", {}, dict(memory=0.6, corrected=9), 0.03


class Noise:
    """What healthy runs of real logs do from step to step."""

    def __init__(self, runs, seed):
        self.random, self.ratios = random.Random(seed), []
        for log in sorted(runs.glob("*healthy*/train.log")):
            steps = [float(x) for x in re.findall(r"per iteration \(ms\): ([\d.]+)", log.read_text())]
            middle = sorted(steps)[len(steps) // 2]
            self.ratios += [s / middle for s in steps]
        if not self.ratios:
            raise SystemExit(f"simulated.py: {runs}: found no healthy log; expected runs of faults.py")

    def step(self):
        return self.random.choice(self.ratios)

    def factor(self, deviation):
        return self.random.lognormvariate(0, deviation)


def predicted(orrery, settings, condition):
    words = [orrery, "simulate", "--json", "--ranges", "false", "--reasons", "false", "--network", "flow"]
    for key, value in {**settings, **condition}.items():
        text = json.dumps(value) if isinstance(value, (list, dict)) else str(value)
        words += ["--" + key.replace("_", "-"), text]
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode not in (0, 3):
        raise SystemExit(f"simulated.py: {' '.join(words)}: {done.stderr}")
    return json.loads(done.stdout)


def kernels_of(stage, noise, shared, speed, memory):
    """Seconds of each class on one rank; products, attention and the like slow down with the clock, others with the
    memory."""
    out = {}
    again = 1 + stage["recompute_s"] / max(1e-9, stage["gemm_s"] + stage["attention_s"] + stage["elementwise_s"])
    for name, (_, keys, _) in CLASSES.items():
        seconds = sum(stage[k] for k in keys) * (again if name in ("product", "attention", "memory") else 1)
        bound = name in ("memory", "optimizer")
        out[name] = seconds * shared[name] * noise.factor(0.02) / (memory if bound else speed)
    return out


def trace_of(rank, world, kernels, calls, exposed, waits, idle, noise, spread):
    """Events of one step, as PyTorch's profiler has them: compute on one stream, collectives on another."""
    events, at = [], 0.0
    pieces = 40

    def add(cat, name, begin, seconds, **args):
        events.append(dict(ph="X", cat=cat, name=name, pid=0, tid=args.get("stream", 1), ts=round(1e6 * begin, 1),
                           dur=round(1e6 * seconds, 1), **({"args": args} if args else {})))

    busy = sum(kernels.values())
    for i in range(pieces):
        for name, seconds in kernels.items():
            if name == "optimizer" and i < pieces - 1:
                continue
            length = seconds if name == "optimizer" else seconds / pieces
            add("kernel", CLASSES[name][0], at, length, stream=7, grid=[1024, 8, 1], block=[256, 1, 1])
            at += length
        at += idle / pieces
    total = sum(c["seconds"] * c["count"] for c in calls)
    hidden = max(0.0, total - exposed)
    # Hidden calls run beside compute, the others after it; what other ranks are late is in the last.
    begin, cursor, left = 0.0, 0.0, hidden
    for call in calls:
        for _ in range(call["count"]):
            length = call["seconds"] * noise.factor(spread)
            if left <= 0 and cursor < at:
                cursor = at
            left -= length
            add("kernel", f"ncclDevKernel_{call['kernel']}_RING_LL", cursor, length, stream=22, grid=[24, 1, 1],
                block=[544, 1, 1], **{"Collective name": call["name"], "In msg nelems": call["sent"] // 2,
                                      "Out msg nelems": call["received"] // 2, "Group size": call["ranks"],
                                      "dtype": "BFloat16"})
            cursor += length
    end = max(at, cursor)
    if waits > 0:
        add("kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", end, waits, stream=22, grid=[24, 1, 1],
            block=[544, 1, 1], **{"Collective name": "allreduce", "In msg nelems": 1, "Out msg nelems": 1,
                                  "Group size": world, "dtype": "Float"})
        end += waits
    for i in range(int(20 * busy / 0.1)):
        add("cuda_runtime", "cudaLaunchKernel", i * 0.004, 6e-6)
    add("cuda_runtime", "cudaEventSynchronize", end, 1e-5)
    add("user_annotation", "ProfilerStep#5", begin, end)
    return dict(schemaVersion=1, deviceProperties=[dict(id=0, name="NVIDIA H100 80GB HBM3", numSms=132)],
                distributedInfo=dict(backend="nccl", rank=rank, world_size=world), traceEvents=events), end


KINDS = {"all-gather": ("AllGather", "_allgather_base"), "reduce-scatter": ("ReduceScatter_Sum_f32", "_reduce_scatter_base"),
         "all-reduce": ("AllReduce_Sum_f32", "allreduce"), "all-to-all": ("SendRecv", "alltoallv")}


def calls_of(network):
    calls = []
    for c in network["collectives"]:
        if c["collective"] not in KINDS or c["ranks"] < 2:
            continue
        kernel, name = KINDS[c["collective"]]
        whole, part = int(c["bytes"]), int(c["bytes"] / c["ranks"])
        sent = part if c["collective"] == "all-gather" else whole
        received = part if c["collective"] == "reduce-scatter" else whole
        calls.append(dict(kernel=kernel, name=name, sent=sent, received=received, ranks=c["ranks"],
                          seconds=c["time_s"], count=max(1, round(c["count"]))))
    return calls


def ranks_of(program, answer, speed, memory, spread, noise):
    """The traces of the profiled ranks, and the step that the latest of them makes."""
    p, settings = answer["prediction"], PROGRAMS[program]
    stage = p["stages"][p["bottleneck_stage"]]
    shared = {k: noise.factor(c[2] / 2) for k, c in CLASSES.items()}
    idle = stage["host_s"] + abs(noise.random.gauss(0, 0.02)) * p["step_time_s"]
    exposed = sum(stage[k] for k in COMMUNICATION)
    calls = calls_of(answer["network"])
    slow = {GPU: (speed, memory)}
    ranks = {r: kernels_of(stage, noise, shared, *slow.get(r, (1.0, 1.0))) for r in PROFILED}
    slowest = max(sum(k.values()) for k in ranks.values())
    step, traces = 0.0, {}
    for rank, kernels in ranks.items():
        late = slowest - sum(kernels.values())
        traces[rank], end = trace_of(rank, settings["gpus"], kernels, calls, exposed * noise.factor(0.1), late, idle, noise, spread)
        step = max(step, end)
    return traces, step


def ports_of(shown, noise):
    """Counters of every port of four hosts, as an exporter's come out of a query of a range of a minute."""
    nic_rate, used, packet = 50e9, 0.3, 4096
    rows = ["timestamp,metric,node,device,port,value"]
    faulty = divmod(GPU, 8)
    for host in range(4):
        for device in range(8):
            is_faulty = (host, device) == faulty
            rate = nic_rate * (shown.get("port_rate", 1.0) if is_faulty else 1.0)
            sent = nic_rate * used * noise.factor(0.02) * 60
            if is_faulty and shown.get("port_silent"):
                sent = 1e5
            # Marks of a million packets: few where flows do not meet, thousands where they do (on so many ports).
            meets = shown.get("marks", 0) > (host * 8 + device - GPU) % 32
            marks = sent / packet * (5e-3 if meets else 1e-5) * noise.factor(1.0)
            errors = shown.get("symbol_errors", 0) if is_faulty else int(noise.random.random() < 30 / 15735)
            for second in range(0, 61, 15):
                of = second / 60
                for metric, value in (
                    ("rate_bytes_per_second", rate),
                    ("port_data_transmitted_bytes_total", sent * of),
                    ("np_congestion_notification_packets_sent_total", marks * of),
                    ("symbol_error_total", errors * of),
                ):
                    rows.append(f"{1795687200 + second},node_infiniband_{metric},host{host},mlx5_{device},1,{value:.0f}")
    return "\n".join(rows) + "\n"


def write_run(folder, name, program, truth, answer, healthy, shown, spread, noise, with_ports=True):
    folder.mkdir(parents=True, exist_ok=True)
    settings = PROGRAMS[program]
    # What the fault costs is the same run, with the same noise, without it: other draws of kernels differ by more.
    drawn = noise.random.getstate()
    without = ranks_of(program, healthy, 1.0, 1.0, 0.03, noise)[1]
    noise.random.setstate(drawn)
    traces, step = ranks_of(program, answer, shown.get("speed", 1.0), shown.get("memory", 1.0), spread, noise)
    for rank, trace in traces.items():
        with gzip.GzipFile(folder / f"rank{rank}.json.gz", "wb", compresslevel=6, mtime=0) as file:
            file.write(json.dumps(trace, separators=(",", ":")).encode())
    lines = []
    for i in range(1, 31):
        ms = 1e3 * step * noise.step()
        lines.append(f" [2026-11-26 10:00:{i:02d}.000000] iteration {i:8d}/    1000 | consumed samples: {i * 64:12d} | "
                     f"elapsed time per iteration (ms): {ms:.1f} | learning rate: 1.0E-05 | global batch size: "
                     f"{settings['global_batch']:5d} | lm loss: 8.0E+00 | loss scale: 1.0 | number of skipped "
                     "iterations:   0 | number of nan iterations:   0 |")
    (folder / "train.log").write_text("\n".join(lines) + "\n")
    rows = ["timestamp, index, clocks.current.sm [MHz], power.draw [W], temperature.gpu, memory.used [MiB], "
            "ecc.errors.corrected.volatile.total"]
    for second in range(10):
        for i, rank in enumerate(PROFILED):
            clock = 1700 * noise.factor(0.01) * (shown.get("clock", 1.0) if rank == GPU else 1.0)
            corrected = shown.get("corrected", 0) * second if rank == GPU else 0
            rows.append(f"2026/11/26 10:00:{second:02d}.000, {i}, {clock:.0f} MHz, {650 * noise.factor(0.02):.1f} W, 60, "
                        f"60000 MiB, {corrected}")
    (folder / "smi.csv").write_text("\n".join(rows) + "\n")
    if with_ports:
        (folder / "ports.csv").write_text(ports_of(shown, noise))
    record = dict(id=name, program=program, truth=truth, held=True, fault=shown, environment={}, running=settings,
                  healthy_step_s=without, step_s=step)
    (folder / "run.json").write_text(json.dumps(record) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("orrery")
    parser.add_argument("--output", type=pathlib.Path, required=True)
    parser.add_argument("--runs", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent / "runs")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--times", type=int, default=3, help="runs of each case, with other noise")
    options = parser.parse_args()
    (options.output / "programs").mkdir(parents=True, exist_ok=True)
    noise = Noise(options.runs, options.seed)
    for program, settings in PROGRAMS.items():
        (options.output / "programs" / f"{program}.json").write_text(json.dumps(settings) + "\n")
        healthy = predicted(options.orrery, settings, {})
        for number, (truth, condition, counters, spread) in enumerate(faults()):
            # The step of slow GPUs is predicted healthy and slowed rank by rank, so that ranks differ.
            slow = condition.get("slow_gpus")
            answer = healthy if slow or not condition else predicted(options.orrery, settings, condition)
            shown = dict(counters, speed=slow[0]["speed"] if slow else 1.0)
            for again in range(options.times * (3 if not truth else 1)):
                name = f"{program}-{truth or 'healthy'}-{number}-{again}"
                for kind in ("runs", "bare"):
                    write_run(options.output / kind / name, name, program, truth, answer, healthy, shown, spread, noise,
                              with_ports=kind == "runs")


if __name__ == "__main__":
    main()
