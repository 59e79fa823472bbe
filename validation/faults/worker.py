# SPDX-License-Identifier: Apache-2.0
# Trains a small model on every rank, once a run, each with the fault that the run is to have.
"""Started by faults.py under torchrun: worker.py OUTPUT CASES.json [--quick]. A run leaves a folder of its own:

train.log       as rank 0 prints it, lines and timers in the form of Megatron-LM's logs
smi.csv         nvidia-smi --query-gpu, five samples a second, while the steps ran
rankN.json.gz   one step as torch.profiler writes it, without operators of the host that took under 0.1 ms
run.json        the case, conditions and what the program was
"""

import datetime
import gc
import gzip
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "microbench"))

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.nn.parallel import DistributedDataParallel

from bench import Nvml, host_cpu
from cases import PROGRAMS
from making import FAULTS
from training_models import MODELS, Model, flop_of

WARM, LEAST, MOST, SECONDS = 4, 8, 20, 3.0
SMI = (
    "timestamp,index,clocks.sm,clocks.mem,power.draw,temperature.gpu,utilization.gpu,memory.used,"
    "clocks_event_reasons.active,ecc.errors.corrected.volatile.total,pcie.link.gen.current"
)


# Calls of the host that launch nothing, wait for nothing and allocate nothing.
QUIET = re.compile("IsCapturing|CaptureMode|CaptureInfo|EventQuery|EventRecord|StreamWaitEvent|ErrorString|LastError|"
                   "FuncBySymbol|GetAttribute|SetAttribute|INVALID|MaxActiveBlocks|EventCreate|EventDestroy")
ARGUMENTS = ("stream", "grid", "block", "bytes", "Collective name", "In msg nelems", "Out msg nelems", "Group size",
             "dtype")


def thinned(trace):
    """The trace without what a reader of steps does not ask for; times in tenths of microseconds from its start."""
    events = [e for e in trace["traceEvents"] if not QUIET.search(e["name"])]
    timed = ("kernel", "gpu_memcpy", "gpu_memset", "cuda_runtime", "cuda_driver", "user_annotation")
    events = [
        e
        for e in events
        if e.get("ph") == "M" or e.get("cat") in timed or (e.get("cat") == "cpu_op" and e.get("dur", 0) > 100)
    ]
    begin = min(e["ts"] for e in events if e.get("ph") == "X")
    for e in events:
        if "ts" in e and e.get("ph") == "X":
            e["ts"], e["dur"] = round(e["ts"] - begin, 1), round(e.get("dur", 0), 1)
        if e.get("ph") == "X":
            kept = {k: v for k, v in e.pop("args", {}).items() if k in ARGUMENTS}
            if kept and e["cat"] in ("kernel", "gpu_memcpy"):
                e["args"] = kept
    return dict(trace, traceEvents=events)


class Tokens(torch.utils.data.Dataset):
    """Random sequences; `stall` is what a fault makes of reading one batch."""

    def __init__(self, vocabulary, batch, length):
        self.words = torch.randint(0, vocabulary, (8, batch, length + 1))
        self.stall = lambda: None

    def __len__(self):
        return 1 << 30

    def __getitem__(self, i):
        self.stall()
        return self.words[i % len(self.words)]


def built(program, device, fp32=False, buckets=25, wrap_blocks=True):
    """The model and its optimizer, sharded as the program says."""
    p = PROGRAMS[program]
    c, ddp = MODELS[p["model"]], p["sharding"] == "ddp"
    torch.set_default_dtype(torch.bfloat16 if ddp and not fp32 else torch.float32)
    with torch.device(device):
        model = Model(c, p["sequence"])
    torch.set_default_dtype(torch.float32)
    if p["compiled"]:
        for i, block in enumerate(model.blocks):
            model.blocks[i] = torch.compile(block, dynamic=False)
        model.loss = torch.compile(model.loss, dynamic=False)
    if ddp:
        whole = DistributedDataParallel(
            model, device_ids=[device.index], bucket_cap_mb=buckets, gradient_as_bucket_view=True
        )
    else:
        mesh = init_device_mesh("cuda", (dist.get_world_size(),))
        policy = (
            MixedPrecisionPolicy()
            if fp32
            else MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
        )
        for block in model.blocks if wrap_blocks else ():
            fully_shard(block, mesh=mesh, mp_policy=policy)
        whole = fully_shard(model, mesh=mesh, mp_policy=policy)
    optimizer = torch.optim.AdamW(whole.parameters(), lr=1e-5, fused=True)
    return whole, optimizer


class Run:
    """One run: steps, their times on every rank, the lines of rank 0."""

    def __init__(self, case, model, optimizer, folder, quick, base):
        self.case, self.model, self.optimizer = case, model, optimizer
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        self.folder, self.quick, self.base = folder, quick, base
        self.program = PROGRAMS[case["program"]]
        self.c = MODELS[self.program["model"]]
        fault = dict(case["fault"])
        self.fault = FAULTS[fault.pop("fault")](self, **fault)
        batch = self.fault.batch(self.program["batch"])
        self.data = Tokens(self.c["vocab"], batch, self.program["sequence"])
        self.loader = iter(torch.utils.data.DataLoader(self.data, batch_size=None, num_workers=0))
        self.log, self.rows, self.stream = [], [], torch.cuda.current_stream()

    def blocks(self):
        inner = self.model.module if hasattr(self.model, "module") else self.model
        return inner.blocks

    def step(self, number):
        marks = [torch.cuda.Event(enable_timing=True) for _ in range(4)]
        start = time.perf_counter()
        words = next(self.loader)
        words = words.to("cuda", non_blocking=True)
        generated = time.perf_counter()
        marks[0].record()
        self.fault.before_forward(number)
        loss = self.model(words[:, :-1].contiguous(), words[:, 1:].contiguous())
        marks[1].record()
        self.fault.before_backward(number)
        loss.backward()
        marks[2].record()
        self.fault.after_backward(number)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        marks[3].record()
        mean = loss.detach().clone()
        dist.all_reduce(mean)
        done = torch.cuda.Event()
        done.record()
        done.synchronize()  # programs that print their loss wait here, too
        saved = time.perf_counter()
        self.fault.after_step(number)
        end = time.perf_counter()
        times = [1e3 * (generated - start)] + [a.elapsed_time(b) for a, b in zip(marks, marks[1:])]
        return 1e3 * (end - start), times, 1e3 * (end - saved), float(mean) / self.world

    def line(self, text):
        self.log.append(text)

    def report(self, number, ms, times, saving, loss):
        """Gathers what every rank timed, and prints it as Megatron-LM does."""
        mine = torch.tensor([ms, *times, saving, 0.0], device="cuda")
        every = [torch.empty_like(mine) for _ in range(self.world)]
        dist.all_gather(every, mine)
        every = [row.tolist() for row in every]
        self.rows.append(every)
        if self.rank:
            return
        p, now = self.program, datetime.datetime.now()
        tokens = self.program["batch"] * p["sequence"]
        tflops = flop_of(self.c, tokens, p["sequence"]) / ms / 1e9
        if p.get("log") == "torchtitan":  # which has no timers of single ranks
            used = torch.cuda.max_memory_reserved() / 2**30
            share = 100 * used / (torch.cuda.get_device_properties(0).total_memory / 2**30)
            self.line(
                f"[rank0]:[titan] {now:%Y-%m-%d %H:%M:%S},{now.microsecond // 1000:03d} - root - INFO - "
                f"step: {number:2d}  loss: {loss:8.5f}  grad_norm:  1.0000  memory: {used:5.2f}GiB({share:.2f}%)  "
                f"tps: {round(1e3 * tokens / ms):,}  tflops: {tflops:,.2f}  mfu: {tflops / 9.89:.2f}%"
            )
            return
        self.line(
            f" [{now:%Y-%m-%d %H:%M:%S}.{now.microsecond:06d}] iteration {number:8d}/{1000:8d} | consumed samples: "
            f"{number * p['batch'] * self.world:12d} | elapsed time per iteration (ms): {ms:.1f} | throughput per "
            f"GPU (TFLOP/s/GPU): {tflops:.1f} | learning rate: 1.000000E-05 | global batch size: "
            f"{p['batch'] * self.world:5d} | lm loss: {loss:.6E} | loss scale: 1.0 | number of skipped iterations: "
            f"  0 | number of nan iterations:   0 |"
        )
        self.line("times across ranks (ms):")
        for i, name in enumerate(("batch-generator", "forward-compute", "backward-compute", "optimizer")):
            self.line(f"  {name}:")
            for rank, row in enumerate(every):
                self.line(f"     rank {rank:2d}: {row[1 + i]:.2f}")
        if saving > 1.0:
            self.line(f"  successfully saved checkpoint from iteration {number:7d} to checkpoints [ t 1/1, p 1/1 ]")
            self.line("(min, max) time across ranks (ms):")
            low, high = min(r[5] for r in every), max(r[5] for r in every)
            self.line(f"    {'save-checkpoint ':.<48}: ({low:.2f}, {high:.2f})")

    def memory_line(self):
        m = torch.cuda.memory_stats()
        if self.rank == 0 and self.program.get("log") != "torchtitan":
            mb = 1 / 2**20
            self.line(
                f"[Rank 0] (after {len(self.rows)} iterations) memory (MB) | allocated: "
                f"{m['allocated_bytes.all.current'] * mb} | max allocated: {m['allocated_bytes.all.peak'] * mb} | "
                f"reserved: {m['reserved_bytes.all.current'] * mb} | max reserved: "
                f"{m['reserved_bytes.all.peak'] * mb} | alloc retries: {m['num_alloc_retries']}"
            )

    def go(self):
        gc.collect()
        torch.cuda.reset_peak_memory_stats()
        with self.fault.on():
            for number in range(WARM):
                self.step(-WARM + number)
            dist.barrier()
            smi = None
            if self.rank == 0:
                smi = subprocess.Popen(
                    ["nvidia-smi", f"--query-gpu={SMI}", "--format=csv", "-lms", "200", "-f", str(self.folder / "smi.csv")],
                    stderr=subprocess.DEVNULL,
                )
            begin, number, most = time.perf_counter(), 0, 6 if self.quick else MOST
            while number < most:
                number += 1
                self.report(number, *self.step(number))
                late = torch.tensor(float(time.perf_counter() - begin > SECONDS), device="cuda")
                dist.all_reduce(late)
                if float(late) and number >= LEAST:
                    break
            if smi:
                smi.terminate()
            self.memory_line()
            self.profile()
        dist.barrier()

    def profile(self):
        raw = os.path.join(tempfile.gettempdir(), f"trace{self.rank}.json")
        with torch.profiler.profile(
            activities=[torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA],
            schedule=torch.profiler.schedule(wait=0, warmup=1, active=1, repeat=1),
        ) as profiler:
            for i in range(2):
                self.step(1000 + i)
                profiler.step()
        profiler.export_chrome_trace(raw)
        with open(raw) as file:
            trace = thinned(json.load(file))
        with gzip.GzipFile(self.folder / f"rank{self.rank}.json.gz", "wb", compresslevel=9, mtime=0) as file:
            file.write(json.dumps(trace, separators=(",", ":")).encode())

    def write(self):
        if self.rank == 0:
            (self.folder / "train.log").write_text("\n".join(self.log) + "\n")
            steps = sorted(row[0][0] for row in self.rows)
            self.median = steps[len(steps) // 2]
            return self.median
        return 0.0


def conditions(gpus):
    nvml = Nvml(0)
    return dict(
        device=torch.cuda.get_device_name(),
        gpus=gpus,
        driver=nvml.driver(),
        cuda=str(torch.version.cuda),
        torch=str(torch.__version__),
        nccl=".".join(str(x) for x in torch.cuda.nccl.version()),
        power_limit_w=nvml.limit_w(),
        max_clock_mhz=nvml.max_clock(1),
        host=host_cpu(),
        date=datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"),
    )


def main():
    output, file = pathlib.Path(sys.argv[1]), sys.argv[2]
    quick = "--quick" in sys.argv
    local = int(os.environ["LOCAL_RANK"])
    device = torch.device("cuda", local)
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", device_id=device)
    torch._dynamo.config.recompile_limit = 64
    cases, model, kept, base = json.load(open(file)), None, None, {}
    known = conditions(dist.get_world_size())
    for case in cases:
        fault = case["fault"]["fault"]
        shape = FAULTS[fault].shape(case["fault"])
        if kept != (case["program"], shape):
            model = optimizer = None
            gc.collect()
            torch.cuda.empty_cache()
            model, optimizer = built(case["program"], device, **dict(shape))
            kept = (case["program"], shape)
        folder = output / case["id"]
        folder.mkdir(parents=True, exist_ok=True)
        started = time.perf_counter()
        failed = ""
        try:
            run = Run(case, model, optimizer, folder, quick, base.get(case["program"], 0.2))
            run.go()
            median = run.write()
        except Exception as error:  # the next run goes on, on every rank
            failed, median = " ".join(f"{type(error).__name__}: {error}".split())[:300], 0.0
            kept = None
        every = [None] * dist.get_world_size()
        dist.all_gather_object(every, (median, failed))
        if fault == "none" and not case["environment"] and every[0][0]:
            base[case["program"]] = every[0][0] / 1e3
        if dist.get_rank() == 0:
            record = dict(case, conditions=known, running=PROGRAMS[case["program"]], failed=[f for _, f in every if f])
            (folder / "run.json").write_text(json.dumps(record, indent=1) + "\n")
            print(
                f"{case['id']:32} {every[0][0]:8.1f} ms  {time.perf_counter() - started:5.1f} s  {' '.join(record['failed'])}",
                flush=True,
            )
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
