# SPDX-License-Identifier: Apache-2.0
# Asks how much longer kernels of training take while some processors wait for messages.
"""A receive of a collective library that was posted ahead keeps its thread blocks on processors until
its message comes. Here blocks of as many threads and registers spin on a flag meanwhile: 0 to 32 of them,
each on a processor of its own, beside products (cuBLAS, BF16 and FP8), attention (flash and cuDNN, forward and
backward) and an element-wise kernel. Times are medians of events around ten calls. Lines: `conditions`,
then `occupied` with the seconds of one call, and the spread over the repetitions.

Usage: occupied.py > FILE    (needs PyTorch and nvcc)
"""

import ctypes
import datetime
import json
import pathlib
import statistics
import subprocess
import tempfile
import time

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

SPIN = r"""
// 544 threads and 96 registers a thread, like the blocks of NCCL's primitives: beside one no block of a
// product has room.
extern "C" __global__ void __launch_bounds__(544, 1) spin(volatile int* flag, int* sink) {
  extern __shared__ int room[];
  room[threadIdx.x] = threadIdx.x;
  while (*flag == 0) {}
  if (room[threadIdx.x] < 0) *sink = 1;
}
extern "C" int start(int blocks, int shared, int* flag, int* sink, cudaStream_t stream) {
  cudaFuncSetAttribute(spin, cudaFuncAttributeMaxDynamicSharedMemorySize, shared);
  spin<<<blocks, 544, shared, stream>>>(flag, sink);
  return cudaGetLastError();
}
"""
BLOCKS = [0, 1, 2, 4, 8, 16, 24, 32]
SHARED = 160 << 10  # one block a processor, and no room beside it
CALLS, REPEATS = 10, 9
PRODUCTS = [  # m, n, k: of a layer's products as tensor parallelism leaves them
    (8192, 4096, 4096),
    (8192, 14336, 4096),
    (8192, 4096, 14336),
    (4096, 5120, 8192),
    (4096, 8192, 7168),
    (4096, 5120, 16384),
    (4096, 26624, 16384),
    (4096, 16384, 13312),
    (2048, 7168, 8192),
]
ATTENTION = [(1, 8192, 32, 128), (1, 4096, 32, 128), (2, 4096, 16, 128), (1, 8192, 8, 128)]


def library():
    folder = pathlib.Path(tempfile.mkdtemp())
    (folder / "spin.cu").write_text(SPIN)
    capability = "".join(str(x) for x in torch.cuda.get_device_capability())
    subprocess.run(
        ["nvcc", "-O2", "-shared", "-Xcompiler", "-fPIC", f"-arch=sm_{capability}", "-o", folder / "spin.so",
         folder / "spin.cu"],
        check=True,
    )
    return ctypes.CDLL(str(folder / "spin.so"))


class Occupier:
    def __init__(self):
        self.library, self.side = library(), torch.cuda.Stream()
        self.flag = torch.zeros(1, dtype=torch.int32, device="cuda")
        self.sink = torch.zeros(1, dtype=torch.int32, device="cuda")

    def seconds(self, call, blocks):
        """Of one call, with so many processors occupied."""
        main = torch.cuda.current_stream()
        self.flag.zero_()
        torch.cuda.synchronize()
        if blocks:
            error = self.library.start(
                blocks, SHARED, ctypes.c_void_p(self.flag.data_ptr()), ctypes.c_void_p(self.sink.data_ptr()),
                ctypes.c_void_p(self.side.cuda_stream),
            )
            assert error == 0, f"CUDA error {error}"
            time.sleep(0.002)
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        call()
        begin.record(main)
        for _ in range(CALLS):
            call()
        end.record(main)
        self.flag.fill_(1)
        torch.cuda.synchronize()
        return begin.elapsed_time(end) * 1e-3 / CALLS


def say(record, **values):
    print(json.dumps({"record": record, **values}), flush=True)


def measure(occupier, kernel, shape, call, **about):
    for _ in range(5):
        call()
    times = {n: [] for n in BLOCKS}
    for _ in range(REPEATS):  # in turn, so that clocks are alike
        for n in BLOCKS:
            times[n].append(occupier.seconds(call, n))
    for n in BLOCKS:
        middle = statistics.median(times[n])
        say("occupied", kernel=kernel, shape=shape, blocks=n, time_s=middle,
            over_none=middle / statistics.median(times[0]),
            spread=(max(times[n]) - min(times[n])) / middle, repeats=REPEATS, **about)


def conditions():
    smi = subprocess.run(
        ["nvidia-smi", "--query-gpu=name,driver_version,power.limit,clocks.max.sm,clocks.max.memory",
         "--format=csv,noheader"], capture_output=True, text=True, check=True).stdout.strip().split("\n")[0]
    say("conditions", program="occupied", gpu=smi, processors=torch.cuda.get_device_properties(0).multi_processor_count,
        cuda=torch.version.cuda, torch=str(torch.__version__), cudnn=torch.backends.cudnn.version(),
        date=datetime.date.today().isoformat(), threads=544, shared_bytes=SHARED)


def main():
    torch.manual_seed(1)
    conditions()
    occupier = Occupier()
    for m, n, k in PRODUCTS:
        a = torch.randn(m, k, device="cuda", dtype=torch.bfloat16)
        b = torch.randn(n, k, device="cuda", dtype=torch.bfloat16)
        out = torch.empty(m, n, device="cuda", dtype=torch.bfloat16)
        measure(occupier, "gemm", [m, n, k], lambda: torch.mm(a, b.t(), out=out), input="bf16")
        a8, b8 = a.to(torch.float8_e4m3fn), b.to(torch.float8_e4m3fn)
        one = torch.ones((), device="cuda")
        measure(occupier, "gemm", [m, n, k],
                lambda: torch._scaled_mm(a8, b8.t(), one, one, out_dtype=torch.bfloat16, use_fast_accum=True),
                input="fp8")
    for name, backend in (("flash2", SDPBackend.FLASH_ATTENTION), ("cudnn-attention", SDPBackend.CUDNN_ATTENTION)):
        for b, s, h, d in ATTENTION:
            q, k, v = (torch.randn(b, h, s, d, device="cuda", dtype=torch.bfloat16, requires_grad=True)
                       for _ in range(3))
            with sdpa_kernel(backend):
                measure(occupier, "attention-forward", [b, s, h, d],
                        lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True), library=name)
                found = F.scaled_dot_product_attention(q, k, v, is_causal=True)
                grad = torch.randn_like(found)
                measure(occupier, "attention-backward", [b, s, h, d],
                        lambda: torch.autograd.grad(found, (q, k, v), grad, retain_graph=True), library=name)
    x = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    y = torch.empty_like(x)
    measure(occupier, "elementwise", [8192, 8192], lambda: torch.add(x, x, out=y))


main()
