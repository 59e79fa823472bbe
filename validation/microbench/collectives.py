"""Times NCCL collectives on the GPUs of one host, as CUDA graphs of many calls: no host time in them.

Run: torchrun --nproc_per_node N validation/microbench/collectives.py OUT.jsonl [--largest BYTES]
One JSON line per collective and size: median, least and most of the repeats, with its conditions.
Sizes are bytes as NCCL counts them (all-gather: the result, reduce-scatter: the input, all-to-all:
what one rank sends in all). Random data; sums are checked once. PyTorch is needed, nothing else.
"""
import argparse
import datetime
import json
import os
import statistics
import subprocess

import torch
import torch.distributed as dist


def calls_for(nbytes):
    return 100 if nbytes <= 1 << 20 else 30 if nbytes <= 1 << 26 else 8


def operation(kind, rank, world, elements, tensors):
    """The call, its buffers kept in `tensors`, and its check."""
    def fresh(n):
        t = torch.randn(n, device="cuda", dtype=torch.bfloat16)
        tensors.append(t)
        return t
    if kind == "all-reduce":
        x = fresh(elements)
        return lambda: dist.all_reduce(x)
    if kind == "all-gather":
        part, whole = fresh(elements // world), fresh(elements)
        return lambda: dist.all_gather_into_tensor(whole, part)
    if kind == "reduce-scatter":
        whole, part = fresh(elements), fresh(elements // world)
        return lambda: dist.reduce_scatter_tensor(part, whole)
    if kind == "all-to-all":
        a, b = fresh(elements), fresh(elements)
        return lambda: dist.all_to_all_single(b, a)
    if kind == "broadcast":
        x = fresh(elements)
        return lambda: dist.broadcast(x, 0)
    x = fresh(elements)  # send-receive: rank 0 to rank 1, and so on in pairs
    if rank % 2 == 0:
        return lambda: dist.send(x, rank + 1)
    return lambda: dist.recv(x, rank - 1)


def check(rank, world):
    ones = torch.full((1000,), float(rank), device="cuda", dtype=torch.bfloat16)
    dist.all_reduce(ones)
    assert ones.eq(world * (world - 1) / 2).all().item(), "all-reduce sums wrongly"


def timed(call, calls, repeats):
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            call()
    torch.cuda.synchronize()
    dist.barrier()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        for _ in range(calls):
            call()
    times = []
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    for repeat in range(repeats + 2):
        torch.cuda.synchronize()
        dist.barrier()
        with torch.cuda.stream(stream):
            start.record(stream)
            graph.replay()
            end.record(stream)
        torch.cuda.synchronize()
        if repeat >= 2:
            times.append(start.elapsed_time(end) * 1e3 / calls)
    slowest = torch.tensor(times, device="cuda", dtype=torch.float64)
    dist.all_reduce(slowest, op=dist.ReduceOp.MAX)
    del graph
    return slowest.tolist()


def conditions():
    fields = "driver_version,clocks.sm,power.draw,temperature.gpu"
    text = subprocess.run(["nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader,nounits",
                           "-i", "0"], capture_output=True, text=True).stdout.strip().split(", ")
    return {"gpu": torch.cuda.get_device_name(0), "driver": text[0], "sm_clock_mhz": text[1],
            "power_w": text[2], "temperature_c": text[3], "cuda": torch.version.cuda,
            "nccl": ".".join(map(str, torch.cuda.nccl.version())), "torch": torch.__version__,
            "nvls": os.environ.get("NCCL_NVLS_ENABLE", "default"),
            "date": datetime.date.today().isoformat()}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("output")
    parser.add_argument("--largest", type=int, default=1 << 30)
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args()
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", rank)))
    dist.init_process_group("nccl")
    check(rank, world)
    for kind in ["all-reduce", "all-gather", "reduce-scatter", "all-to-all", "broadcast",
                 "send-receive"]:
        nbytes = 1024
        while nbytes <= options.largest:
            tensors = []
            calls = calls_for(nbytes)
            times = timed(operation(kind, rank, world, nbytes // 2, tensors), calls,
                          options.repeats)
            if rank == 0:
                row = {"collective": kind, "ranks": 2 if kind == "send-receive" else world,
                       "world": world, "bytes": nbytes, "time_us": statistics.median(times),
                       "least_us": min(times), "most_us": max(times), "calls": calls,
                       "repeats": len(times), **conditions()}
                with open(options.output, "a") as out:
                    out.write(json.dumps(row) + "\n")
                print(f"{kind:15s} {world} ranks {nbytes:11d} B {row['time_us']:10.2f} us "
                      f"({row['least_us']:.2f} .. {row['most_us']:.2f})", flush=True)
            nbytes *= 4 if nbytes < 1 << 18 else 2
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
