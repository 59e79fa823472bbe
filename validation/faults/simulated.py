#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Makes runs whose faults cannot be made on our machines: the flow simulator's steps, with noise of real logs.
"""simulated.py ORRERY --output DIR [--runs runs] [--seed N]

Writes DIR/runs/ID and DIR/programs/NAME.json in the form of this folder, for `orrery diagnose --runs DIR/runs`; and
DIR/bare/ID, other such runs without counters of ports, of which nothing tells a slow NIC from routes that collide.
A step is what `orrery simulate --network flow` says of a NIC with less of its rate, of hashed routes that collide, of
another job's traffic, of slow links in a domain, of a power cap, of an uneven gate; a GPU at a lower clock and older
kernels take longer. Kernels and collectives become the events of a trace, rank by rank (simulated_steps.py), and flows
the counters of ports (simulated_ports.py). Nothing of the signatures that diagnose uses (sim/diagnose) is read here.

Noise: steps differ as those of healthy logs in `runs` do; kernels of a class differ from the prediction by a
factor that all ranks share and one of each rank, drawn as wide as those runs were off; hosts leave gaps as theirs.
"""

import argparse
import gzip
import json
import pathlib
import subprocess
from dataclasses import dataclass, field

from simulated_ports import met_shares, ports_of
from simulated_steps import Noise, step_of

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
    # Two hosts under a leaf: of each leaf, the flows of one host cross the spine, over links that are hashed.
    "fsdp-8b-64-hashed": dict(
        model="llama3.1-8b", cluster="h100-roce", gpus=64, seq=8192, global_batch=64, zero=3,
        stack="pytorch-fsdp2", recompute="none",
    ),
}
# Parameters of the head over those of the layers' dense products.
HEADS = {"llama3.1-8b": 0.075, "llama3.1-70b": 0.0153, "qwen3-30b-a3b": 0.34}
# Where leaves hash: GPUs under one, which has as many links up, and queue pairs of a flow (nvlink4-roce).
HASHED = {"fsdp-8b-64-hashed": dict(leaf=16, queue_pairs=16)}
GPU = 11  # the one that has a fault; ranks beside it are profiled, too
PROFILED = (0, 8, GPU, 12)
CLOCK = 1830  # MHz, of which a prediction's throttle is a part

# Kernels of an older chip on Hopper: forward, backward, and speed over the chip's own.
# mma.sync, all that they have, reaches 62.9% of the peak in the mean, wgmma 95% and more (arXiv 2402.13499); grouped
# products of CUTLASS for sm80 have 109 to 117 TFLOP/s where those for sm90 have 152 to 161 (tgale96/grouped_gemm, pull
# request 37).
SLOW_PRODUCTS = ("ampere_bf16_s16816gemm_bf16_256x128_ldg8_f2f_stages_64x3_tn",
                 "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_nt"), 0.62
GROUPED_PRODUCTS = ("cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_256x128_32x3_tn_align8",
                    "cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_128x256_32x3_nt_align8"), 0.73
# FlashAttention 3 is 1.5 to 2 times as fast as 2 on an H100 (arXiv 2407.08608); PyTorch's memory-efficient kernels took
# 3.5 to 3.6 times as long as cuDNN's in this folder's slow-attention runs (blind, fourth, fifth).
FLASH_2 = ("void flash::flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64, 4, false, false, cutlass::bfloat16_t>>",
           "void flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<Flash_bwd_kernel_traits<128, 64, 128, 8>>"), 0.6
MEMORY_EFFICIENT = ("fmha_cutlassF_bf16_aligned_64x128_rf_sm80(PyTorchMemEffAttention::AttentionKernel)",
                    "fmha_cutlassB_bf16_aligned_128x128_k128_sm80(PyTorchMemEffAttention::AttentionBackwardKernel)"), 0.28


@dataclass(frozen=True)
class Fault:
    cause: str = ""
    condition: dict = field(default_factory=dict)  # settings of simulate
    queue_pairs: int = 0  # of a flow, where they are not those of the cluster
    speed: float = 1.0  # over the usual clock, of the GPU with the fault or `everywhere`
    memory: float = 1.0
    everywhere: bool = False
    kernels: dict = field(default_factory=dict)  # class: names, speed of other kernels than the chip's own
    tokens: float = 1.0  # busiest expert rank's over the mean
    overlaps: bool = True
    burst: float = 0.0  # mean seconds of a burst of retries
    spread: float = 0.03  # of single collectives
    shown: dict = field(default_factory=dict)  # what counters say


def nic(remaining, **more):
    return dict(faults=[dict(kind="nic", gpu=GPU, remaining=remaining)], **more)


def network_faults(program):
    # A port that was trained at a part of its rate; one that is down, so that its neighbour sends for two.
    for left in (0.5, 0.25):
        yield Fault("slow-nic", nic(left), shown=dict(port_rate=left))
    yield Fault("slow-nic", nic(0.5), shown=dict(port_silent=True))
    # A bad cable leaves 60% of a rate in the mean: packets are lost in bursts, and all that was sent after them is sent
    # again (go-back-N): after a round trip or two, or after a timeout of milliseconds. Bursts have wrong symbols.
    yield Fault("bad-cable", nic(0.6), burst=2e-3, shown=dict(symbols=20))
    yield Fault("bad-cable", nic(0.6), burst=2e-4, shown=dict(symbols=4))
    # Another job on the same hosts, which comes and goes.
    other = dict(pattern="all-to-all", first_gpu=0, gpus=32, load=1.0)
    yield Fault("colliding-flows", dict(background=[other]), spread=0.1)
    yield Fault("slow-scale-up", dict(faults=[dict(kind="scale-up", gpu=GPU, remaining=0.3)]))
    if program in HASHED:
        # Hashed routes meet: fewer queue pairs than the cluster has (NCCL opens one a connection unless
        # NCCL_IB_QPS_PER_CONNECTION asks for more), and one link to the spine that lost part of its rate.
        for pairs, seed in ((4, 4), (1, 2), (1, 11)):
            yield Fault("colliding-flows", dict(seed=seed), queue_pairs=pairs)
        for left, seed in ((0.5, 3), (0.25, 3), (0.25, 11)):
            broken = dict(kind="leaf-spine", leaf=1, spine=0, remaining=left)
            yield Fault("colliding-flows", dict(seed=seed, faults=[broken]))


def faults_of(program):
    """All cases of a program, the healthy run first."""
    yield Fault()
    yield from network_faults(program)
    if program in HASHED:  # the others are those of the same model elsewhere
        return
    yield Fault("low-clock", speed=0.8, shown=dict(reason=0x20, heat=27))  # heat
    yield Fault("low-clock", speed=0.65, shown=dict(reason=0x2))  # a limit that was left
    yield Fault("slow-gpu", speed=0.7, shown=dict(clock=1.0))
    # Memory that corrects errors again and again: its driver counts them, and what it bounds is slow.
    yield Fault("slow-memory", memory=0.6, shown=dict(corrected=9, clock=1.0))
    yield Fault("low-clocks", dict(power_cap="400 W"), shown=dict(power=400))
    yield Fault("low-clocks", speed=0.75, everywhere=True, shown=dict(reason=0x2))
    yield Fault("mismatched-products", kernels=dict(product=SLOW_PRODUCTS))
    yield Fault("mismatched-products", kernels=dict(product=GROUPED_PRODUCTS))
    yield Fault("mismatched-attention", kernels=dict(attention=FLASH_2))
    yield Fault("mismatched-attention", kernels=dict(attention=MEMORY_EFFICIENT))
    yield Fault("no-overlap", overlaps=False)
    if "ep" in PROGRAMS[program]:
        for tokens in (1.3, 2.0):
            yield Fault("imbalance", dict(expert_imbalance=tokens), tokens=tokens)


def with_queue_pairs(pairs, output):
    """The cluster of hashed routes with other queue pairs, as a file."""
    root, folder = pathlib.Path(__file__).resolve().parents[2], output / "clusters"
    folder.mkdir(parents=True, exist_ok=True)
    wiring = json.loads((root / "topologies/catalog/nvlink4-roce.json").read_text())
    wiring["name"] = f"nvlink4-roce-{pairs}"
    wiring["scale_out"]["paths_per_flow"] = pairs
    (folder / f"wiring-{pairs}.json").write_text(json.dumps(wiring) + "\n")
    cluster = json.loads((root / "sim/engine/catalog/clusters/h100-roce.json").read_text())
    cluster.update(name=f"h100-roce-{pairs}", fabric=str((folder / f"wiring-{pairs}.json").resolve()))
    (folder / f"cluster-{pairs}.json").write_text(json.dumps(cluster) + "\n")
    return dict(cluster=str(folder / f"cluster-{pairs}.json"))


def predicted(orrery, settings, fault, output):
    words = [orrery, "simulate", "--json", "--ranges", "false", "--reasons", "false", "--network", "flow"]
    other = with_queue_pairs(fault.queue_pairs, output) if fault.queue_pairs else {}
    for key, value in {**settings, **fault.condition, **other}.items():
        text = json.dumps(value) if isinstance(value, (list, dict)) else str(value)
        words += ["--" + key.replace("_", "-"), text]
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode not in (0, 3):
        raise SystemExit(f"simulated.py: {' '.join(words)}: {done.stderr}")
    return json.loads(done.stdout)


def log_of(step, batch, noise):
    lines = []
    for i in range(1, 31):
        ms = 1e3 * step * noise.step()
        lines.append(f" [2026-11-26 10:00:{i:02d}.000000] iteration {i:8d}/    1000 | consumed samples: {i * 64:12d} | "
                     f"elapsed time per iteration (ms): {ms:.1f} | learning rate: 1.0E-05 | global batch size: "
                     f"{batch:5d} | lm loss: 8.0E+00 | loss scale: 1.0 | number of skipped "
                     "iterations:   0 | number of nan iterations:   0 |")
    return "\n".join(lines) + "\n"


def smi_of(prediction, fault, noise):
    """nvidia-smi of the profiled GPUs: clocks and power as the simulator has them, and what holds clocks down (a power
    cap where its model has one)."""
    rows = ["timestamp, index, clocks.current.sm [MHz], clocks.current.memory [MHz], power.draw [W], temperature.gpu, "
            "utilization.gpu [%], memory.used [MiB], clocks_event_reasons.active, ecc.errors.corrected.volatile.total, "
            "power.limit [W]"]
    usual = CLOCK / prediction["throttle"]
    for second in range(10):
        for i, rank in enumerate(PROFILED):
            shown = fault.shown if fault.everywhere or rank == GPU else {}
            speed = shown.get("clock", fault.speed) if shown else 1.0
            reason = shown.get("reason", 0x4 if prediction["throttle"] > 1 else 0x0)
            power = fault.shown.get("power", prediction["mean_power_per_gpu_w"]) * (0.4 + 0.6 * speed)
            rows.append(f"2026/11/26 10:00:{second:02d}.000, {i}, {usual * speed * noise.factor(0.01):.0f} MHz, 3201 MHz, "
                        f"{power * noise.factor(0.02):.1f} W, {60 + shown.get('heat', 0)}, 98 %, 60000 MiB, "
                        f"0x{reason:016x}, {shown.get('corrected', 0) * second}, {fault.shown.get('power', 700):.2f} W")
    return "\n".join(rows) + "\n"


def write_run(folder, program, fault, answer, healthy, noise, with_ports=True):
    folder.mkdir(parents=True, exist_ok=True)
    settings = PROGRAMS[program]
    full = {**settings, "head": HEADS[settings["model"]], **HASHED.get(program, {})}
    # What the fault costs is the same run, with the same noise, without it: other draws of kernels differ by more.
    drawn = noise.random.getstate()
    without = step_of(PROFILED, GPU, full, healthy, healthy, Fault(), noise)[1]
    noise.random.setstate(drawn)
    traces, step, bursts = step_of(PROFILED, GPU, full, answer, healthy, fault, noise)
    for rank, trace in traces.items():
        with gzip.GzipFile(folder / f"rank{rank}.json.gz", "wb", compresslevel=6, mtime=0) as file:
            file.write(json.dumps(trace, separators=(",", ":")).encode())
    (folder / "train.log").write_text(log_of(step, settings["global_batch"], noise))
    (folder / "smi.csv").write_text(smi_of(answer["prediction"], fault, noise))
    if with_ports:
        shares = met_shares(full, fault, GPU, answer["network"])
        sent = answer["prediction"]["scale_out_bytes"] / step
        (folder / "ports.csv").write_text(ports_of(settings["gpus"], fault, GPU, shares, sent, bursts / step, noise))
    shown = dict(fault.shown, speed=fault.speed)
    record = dict(id=folder.name, program=program, truth=fault.cause, held=True, fault=shown, environment={},
                  running=settings, healthy_step_s=without, step_s=step)
    (folder / "run.json").write_text(json.dumps(record) + "\n")
    return step / without - 1


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
        healthy = predicted(options.orrery, settings, Fault(), options.output)
        for number, fault in enumerate(faults_of(program)):
            answer = predicted(options.orrery, settings, fault, options.output) if fault.condition else healthy
            for again in range(options.times * (1 if fault.cause else 3)):
                name = f"{program}-{fault.cause or 'healthy'}-{number}-{again}"
                for kind in ("runs", "bare"):
                    write_run(options.output / kind / name, program, fault, answer, healthy, noise, kind == "runs")


if __name__ == "__main__":
    main()
