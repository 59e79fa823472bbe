#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Seconds and memory to read a large trace: tests/bench/big_trace.py BENCH [MEBIBYTES] [--keep FILE]

Writes a trace as PyTorch's profiler does (operations, Python functions, calls, kernels, flows), plain and packed, and
reads both with BENCH, the program bench_observe. Targets: a gigabyte in less than 20 s and 2 GB.
"""
import argparse
import gzip
import os
import pathlib
import resource
import subprocess
import tempfile
import time

HEAD = """{
  "schemaVersion": 1,
  "deviceProperties": [
    {
      "id": 0, "name": "NVIDIA H200", "totalGlobalMem": 150109880320,
      "computeMajor": 9, "computeMinor": 0, "numSms": 132
    }
  ],
  "record_shapes": 1,
  "with_stack": 1,
  "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 8, "nccl_version": "2.28.9"},
  "displayTimeUnit": "ms",
  "baseTimeNanoseconds": 1790857026000000000,
  "traceEvents": [
"""
TAIL = """
  ],
  "traceName": "trace.json"
}
"""
KERNELS = [
    "nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_NNT",
    "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x64_4x1x1_cga1x1x1_kernel0_0",
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul> >"
    "(int, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul>)",
    "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float, false>(int, float)",
]
OPERATIONS = ["aten::mm", "aten::add_", "aten::to", "aten::copy_", "aten::native_layer_norm", "aten::linear"]
STEP_US = 50_000.0


def event(kind, name, pid, tid, begin, length, args):
    return (f'  {{\n    "ph": "X", "cat": "{kind}", "name": "{name}", "pid": {pid}, "tid": {tid},\n'
            f'    "ts": {begin:.3f}, "dur": {length:.3f},\n    "args": {{\n      {args}\n    }}\n  }}')


def step(number, first):
    """Events of one step: a launch and a kernel every 20 us, an all-reduce beside every hundredth."""
    begin = 4819083315561.302 + number * STEP_US
    parts = [event("user_annotation", f"ProfilerStep#{number}", 661, 661, begin, STEP_US, '"External id": 1')]
    for i in range(int(STEP_US / 20) - 50):
        at, call = begin + 20 * i, first + i
        name = OPERATIONS[i % len(OPERATIONS)]
        parts.append(event("python_function", f"torch/nn/modules/module.py({i % 2000}): _call_impl", 661, 661, at, 19.5,
                           f'"Python parent id": {i}, "Python id": {call}, "Ev Idx": {call}'))
        parts.append(event("cpu_op", name, 661, 661, at + 1, 17.0,
                           f'"External id": {call},"Record function id": 0, "Concrete Inputs": ["", ""], '
                           '"Input type": ["c10::BFloat16", "c10::BFloat16"], "Input Strides": [[4096, 1], [1, 4096]], '
                           f'"Input Dims": [[4096, 4096], [4096, 1024]], "Ev Idx": {call}'))
        parts.append(event("cuda_runtime", "cudaLaunchKernel", 661, 661, at + 3, 5.0,
                           f'"External id": {call}, "cbid": 211, "correlation": {call}'))
        for phase, where in (("s", 661), ("f", 0)):
            parts.append(f'  {{\n    "ph": "{phase}", "id": {call}, "pid": {where}, "tid": 7, "ts": {at + 3:.3f},\n'
                         '    "cat": "ac2g", "name": "ac2g"\n  }')
        parts.append(event("kernel", KERNELS[i % len(KERNELS)], 0, 7, at + 12, 15.0 + i % 3,
                           f'"External id": {call}, "queued": 0, "device": 0, "context": 1,\n      "stream": 7, '
                           f'"correlation": {call},\n      "registers per thread": 168, "shared memory": 213504,\n'
                           '      "blocks per SM": 0.97, "warps per SM": 11.6,\n      "grid": [128, 1, 1], '
                           '"block": [384, 1, 1],\n      "est. achieved occupancy %": 18'))
        if i % 100 == 0:
            parts.append(event("kernel", "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096>)", 0,
                               17, at + 10, 400.0, f'"External id": {call}, "device": 0, "context": 1, "stream": 17, '
                               f'"correlation": {call}, "Collective name": "allreduce", "In msg nelems": 4196352, '
                               '"Out msg nelems": 4196352, "Group size": 8, "dtype": "BFloat16", '
                               '"Process Group Name": "0", "Process Group Description": "default_pg"'))
    return ",\n".join(parts), first + int(STEP_US / 20)


def write_trace(file, size):
    written, number, first = 0, 0, 1
    with open(file, "w", encoding="utf-8") as out:
        out.write(HEAD)
        while written < size:
            text, first = step(number, first)
            written += out.write((",\n" if number else "") + text)
            number += 1
        out.write(TAIL)
    return number


def read_with(bench, file):
    began = time.perf_counter()
    subprocess.run([bench, "--benchmark_filter=trace_of_file"], check=True, stdout=subprocess.DEVNULL,
                   env={**os.environ, "ORRERY_TRACE": str(file)})
    seconds = time.perf_counter() - began
    # The most of all children so far: the plain file is read first, and either has the same events.
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"{file.name}: {file.stat().st_size / 2**20:,.0f} MiB, {seconds:.1f} s, at most {peak:,.0f} MiB of memory")
    return seconds, peak


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bench")
    parser.add_argument("mebibytes", nargs="?", type=int, default=1024)
    parser.add_argument("--keep", help="the trace is written there, and stays")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        plain = pathlib.Path(arguments.keep or f"{folder}/trace.json")
        steps = write_trace(plain, arguments.mebibytes * 2**20)
        print(f"a trace of {steps} steps")
        packed = pathlib.Path(folder) / "trace.json.gz"
        with open(plain, "rb") as source, gzip.open(packed, "wb", compresslevel=1) as out:
            while piece := source.read(1 << 24):
                out.write(piece)
        results = [read_with(arguments.bench, file) for file in (plain, packed)]
    if arguments.mebibytes <= 1024 and any(seconds > 20 or peak > 2048 for seconds, peak in results):
        raise SystemExit("slower than 20 s or more than 2 GiB")


if __name__ == "__main__":
    main()
