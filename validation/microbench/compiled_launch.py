# SPDX-License-Identifier: Apache-2.0
# Asks what a host takes to launch an operation of a compiled forward pass that no graph holds, and one the compiler cannot see.
"""Run: python3 compiled_launch.py --output FILE, on one GPU.

Layers as an engine serves them: norms of the residual and of heads, rotary, SwiGLU, four products, and in three places what
the compiler is not shown: attention that writes keys and values to a cache, and two all-reduces (here a copy). 64 rows and a
hidden size of 512, so that the device has next to nothing to do. `eager`: nothing is compiled. `whole`: the pass is one
compiled function, with any number of rows. `pieces`: it is cut at attention, as vLLM does, and Python calls the pieces.
More operations go into each layer (`extra`: products and element-wise kernels that cannot be fused, by turns, or opaque ones):
the difference is what one takes. A line's value is the host's time to issue one more layer after the device went idle; depths
take turns. `launches`: kernels that the profiler sees in one more layer.
"""

import argparse
import datetime
import json
import pathlib
import statistics
import sys
import time

import torch
import torch.nn.functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from bench import Nvml, host_cpu

FEW, MANY, ROUNDS, ROWS = 6, 18, 60, 64
HIDDEN, HEADS, HEAD, INNER = 512, 8, 64, 1024
KINDS = ("eager", "whole", "pieces")
EXTRAS = {"none": (0, 0), "4 in sight": (4, 0), "2 opaque": (0, 2)}  # to a layer: operations seen, not seen


@torch.library.custom_op("launch::attention", mutates_args=("out", "keys", "values"))
def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, slots: torch.Tensor, keys: torch.Tensor,
              values: torch.Tensor, out: torch.Tensor) -> None:  # fmt: skip
    keys.index_copy_(0, slots, k)
    values.index_copy_(0, slots, v)
    heads = [t.view(-1, HEADS, HEAD).transpose(0, 1)[None] for t in (q, k, v)]
    out.copy_(F.scaled_dot_product_attention(*heads, is_causal=True)[0].transpose(0, 1).reshape(out.shape))


@torch.library.custom_op("launch::reduce", mutates_args=())
def reduce(x: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(x).copy_(x)


@reduce.register_fake
def _(x):
    return torch.empty_like(x)


def norm(x, weight):
    wide = x.float()
    return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype) * weight


def rotated(x, cos, sin):
    a, b = x.chunk(2, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


class Layer(torch.nn.Module):
    def __init__(self, seen, opaque):
        super().__init__()
        weight = lambda *shape: torch.nn.Parameter(torch.randn(*shape) / shape[0] ** 0.5, requires_grad=False)
        self.first, self.second = weight(HIDDEN), weight(HIDDEN)
        self.of_q, self.of_k = weight(HEAD), weight(HEAD)
        self.qkv, self.out = weight(HIDDEN, 3 * HIDDEN), weight(HIDDEN, HIDDEN)
        self.up, self.down = weight(HIDDEN, 2 * INNER), weight(INNER, HIDDEN)
        self.more = torch.nn.ParameterList(weight(HIDDEN, HIDDEN) for _ in range(seen // 2))
        self.opaque = opaque

    def before(self, x, residual, cos, sin):
        residual = residual + x
        q, k, v = (norm(residual, self.first) @ self.qkv).chunk(3, -1)
        heads = [norm(t.reshape(-1, HEADS, HEAD), w) for t, w in ((q, self.of_q), (k, self.of_k))]
        q, k = (rotated(t, cos, sin).reshape(-1, HIDDEN) for t in heads)
        return q, k, v.contiguous(), residual

    def after(self, seen, residual):
        residual = residual + reduce(seen @ self.out)
        gate, up = (norm(residual, self.second) @ self.up).chunk(2, -1)
        x = (F.silu(gate) * up) @ self.down
        for weight in self.more:
            x = F.gelu(x @ weight)
        for _ in range(self.opaque):
            x = reduce(x)
        return reduce(x), residual


class Pass(torch.nn.Module):
    def __init__(self, layers, seen, opaque, kind):
        super().__init__()
        self.layers = torch.nn.ModuleList(Layer(seen, opaque) for _ in range(layers))
        compiled = lambda f: torch.compile(f, fullgraph=True, dynamic=True)
        self.first = compiled(self.layers[0].before) if kind == "pieces" else self.layers[0].before
        self.between = []
        for one, next in zip(self.layers, list(self.layers[1:]) + [None]):
            def piece(seen, residual, cos, sin, one=one, next=next):
                x, residual = one.after(seen, residual)
                return next.before(x, residual, cos, sin) if next else (x, residual)
            self.between.append(compiled(piece) if kind == "pieces" else piece)

    def forward(self, x, cos, sin, slots, keys, values):
        q, k, v, residual = self.first(x, torch.zeros_like(x), cos, sin)
        for i, piece in enumerate(self.between):
            seen = torch.empty_like(q)
            attention(q, k, v, slots, keys[i], values[i], seen)
            made = piece(seen, residual, cos, sin)
            if len(made) == 2:
                return made[0]
            q, k, v, residual = made


class Case:
    def __init__(self, layers, seen, opaque, kind):
        torch._dynamo.reset()
        self.run = Pass(layers, seen, opaque, kind).to(torch.bfloat16).cuda()
        if kind == "whole":
            self.run = torch.compile(self.run, fullgraph=True, dynamic=True)
        cache = lambda: [torch.zeros(4096, HIDDEN, dtype=torch.bfloat16, device="cuda") for _ in range(layers)]
        self.caches = cache(), cache()
        self.times = []
        for rows in (ROWS + 16, ROWS, ROWS, ROWS):
            self.step(rows)
        self.times.clear()

    def step(self, rows=ROWS):
        x = torch.randn(rows, HIDDEN, dtype=torch.bfloat16, device="cuda")
        angle = torch.rand(rows, 1, HEAD // 2, dtype=torch.bfloat16, device="cuda")
        inputs = x, angle.cos(), angle.sin(), torch.arange(rows, device="cuda")
        torch.cuda.synchronize()
        begin = time.perf_counter()
        self.run(*inputs, *self.caches)
        self.times.append(1e6 * (time.perf_counter() - begin))
        torch.cuda.synchronize()

    def launches(self):
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
            self.step()
        self.times.pop()
        return sum(e.device_type == torch.autograd.DeviceType.CUDA for e in profile.events())


@torch.inference_mode()
def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--output", type=pathlib.Path)
    options = parser.parse_args()
    torch._dynamo.config.cache_size_limit = torch._dynamo.config.accumulated_cache_size_limit = 4096
    lines = [{
        "record": "conditions", "program": "compiled_launch", "device": torch.cuda.get_device_name(0),
        "driver": Nvml(0).driver(), "cuda": torch.version.cuda, "torch": str(torch.__version__), "host": host_cpu(),
        "date": datetime.date.today().isoformat(),
    }]  # fmt: skip
    cases = {}
    for kind in KINDS:
        for extra, more in EXTRAS.items():
            begin = time.perf_counter()
            for layers in (FEW, MANY):
                cases[kind, extra, layers] = Case(layers, *more, kind)
            print(f"{kind}, {extra}: ready after {time.perf_counter() - begin:.0f} s", file=sys.stderr, flush=True)
    for _ in range(ROUNDS):
        for case in cases.values():
            case.step()
    for kind in KINDS:
        for extra in EXTRAS:
            few, many = cases[kind, extra, FEW], cases[kind, extra, MANY]
            each = sorted((b - a) / (MANY - FEW) for a, b in zip(few.times, many.times))
            value, low, high = statistics.median(each), each[len(each) // 10], each[-1 - len(each) // 10]
            launches = (many.launches() - few.launches()) / (MANY - FEW)
            lines.append({
                "record": "sample", "part": "compiled_launch", "kind": "software", "variant": kind, "extra": extra,
                "value": round(value, 1), "low": round(low, 1), "high": round(high, 1), "launches": round(launches, 1),
                "unit": "us",
            })  # fmt: skip
            print(f"{kind:8} {extra:12} {value:8.1f} us a layer ({low:.0f} to {high:.0f}), {launches:.1f} kernels", flush=True)
    if options.output:
        options.output.write_text("".join(json.dumps(line) + "\n" for line in lines))


if __name__ == "__main__":
    main()
