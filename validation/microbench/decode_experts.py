# SPDX-License-Identifier: Apache-2.0
# Asks which experts' weights a decode step reads: expert layers of one to 512 rows, routed by chance.
"""Rows are routed to topk experts drawn without replacement, sorted by expert, and pass the up, gate
and down products of the experts that have rows, in one CUDA graph; every layer has weights and a
routing of its own, so that nothing stays in L2. Two kernels: PyTorch's grouped_mm (CUTLASS), and one
in Triton that takes blocks of 16 rows, as serving engines' do. One line a shape, kernel and number of
rows: value in us a layer, `reached` the mean number of experts with rows.
"""
import torch
import torch.nn.functional as F
import triton
import triton.language as tl

from bench import Bench

# experts, topk, hidden, ffn, layers with weights of their own
SHAPES = {"qwen3-30b-a3b": (128, 8, 2048, 768, 8), "qwen3-235b-a22b": (128, 8, 4096, 1536, 6),
          "mixtral-8x7b": (8, 2, 4096, 14336, 4)}
ROWS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]
BLOCK = 16


@triton.jit
def expert_rows(x, w, out, expert_of_block, row_of_slot, n, k, BM: tl.constexpr, BN: tl.constexpr,
                BK: tl.constexpr):
    block, column = tl.program_id(0), tl.program_id(1)
    expert = tl.load(expert_of_block + block).to(tl.int64)
    if expert < 0:
        return
    slots = block * BM + tl.arange(0, BM)
    rows = tl.load(row_of_slot + slots)
    columns = column * BN + tl.arange(0, BN)
    depth = tl.arange(0, BK)
    xs = x + rows[:, None] * k + depth[None, :]
    ws = w + expert * n * k + columns[None, :] * k + depth[:, None]
    sums = tl.zeros((BM, BN), dtype=tl.float32)
    for _ in range(0, k, BK):
        a = tl.load(xs, mask=rows[:, None] >= 0, other=0.0)
        sums += tl.dot(a, tl.load(ws))
        xs += BK
        ws += BK
    at = out + rows[:, None] * n + columns[None, :]
    tl.store(at, sums.to(tl.bfloat16), mask=rows[:, None] >= 0)


def by_blocks(x, w, blocks, slots, n, k):
    out = torch.empty(x.shape[0], n, device=x.device, dtype=x.dtype)
    grid = (blocks.shape[0], n // 64)
    expert_rows[grid](x, w, out, blocks, slots, n, k, BM=BLOCK, BN=64, BK=128, num_warps=4,
                      num_stages=4)
    return out


def routing(rows, experts, topk, device, seed, tile=BLOCK):
    """Ends of the experts' sorted rows, blocks and slots of `tile` rows, experts that have rows."""
    generator = torch.Generator().manual_seed(seed)
    chosen = torch.stack([torch.randperm(experts, generator=generator)[:topk]
                          for _ in range(rows)]).flatten().sort().values
    counts = torch.bincount(chosen, minlength=experts)
    blocks, slots, first = [], [], 0
    for expert, count in enumerate(counts.tolist()):
        for start in range(0, count, tile):
            blocks.append(expert)
            slots += [first + start + i if start + i < count else -1 for i in range(tile)]
        first += count
    def there(values):
        return torch.tensor(values, device=device, dtype=torch.int32)
    return (there(counts.cumsum(0).tolist()), there(blocks), there(slots),
            int((counts > 0).sum()))


def layers_of(bench, experts, hidden, ffn, layers):
    def make(*shape):
        return (0.02 * torch.randn(*shape, device=bench.device)).to(torch.bfloat16)
    return [(make(experts, 2 * ffn, hidden), make(experts, hidden, ffn)) for _ in range(layers)]


def grouped(x, weights, ends):
    up, down = weights
    y = torch._grouped_mm(x, up.transpose(-2, -1), offs=ends)
    gate, value = y.chunk(2, -1)
    return torch._grouped_mm(F.silu(gate) * value, down.transpose(-2, -1), offs=ends)


def blocked(x, weights, blocks, slots, hidden, ffn):
    up, down = weights
    gate, value = by_blocks(x, up, blocks, slots, 2 * ffn, hidden).chunk(2, -1)
    return by_blocks((F.silu(gate) * value).contiguous(), down, blocks, slots, hidden, ffn)


def reference(x, weights, ends):
    """In fp32, expert by expert."""
    up, down = weights
    out, first = torch.zeros(x.shape[0], down.shape[1], device=x.device), 0
    for expert, end in enumerate(ends.tolist()):
        gate, value = (x[first:end].float() @ up[expert].float().t()).chunk(2, -1)
        out[first:end] = (F.silu(gate) * value) @ down[expert].float().t()
        first = end
    return out


def case(bench, name, weights, rows):
    experts, topk, hidden, ffn, layers = SHAPES[name]
    routes = [routing(rows, experts, topk, bench.device, 1000 * i + rows) for i in range(layers)]
    x = torch.randn(rows * topk, hidden, device=bench.device).to(torch.bfloat16)
    kernels = {"grouped-mm": lambda w, r: grouped(x, w, r[0]),
               "triton": lambda w, r: blocked(x, w, r[1], r[2], hidden, ffn)}
    exact = reference(x, weights[0], routes[0][0])
    for variant, kernel in kernels.items():
        difference = kernel(weights[0], routes[0]).float() - exact
        error = float(difference.abs().max() / exact.abs().max())
        def work(_):
            for w, r in zip(weights, routes):
                kept = kernel(w, r)
            return kept
        with torch.no_grad():
            timing = bench.burst(work, 1, burst_ms=20.0)
        bench.software(variant, timing["time_us"] / layers, "us", low=timing["low_us"] / layers,
                       high=timing["high_us"] / layers, shape=name, rows=rows, experts=experts,
                       topk=topk, hidden=hidden, ffn=ffn, layers=layers,
                       reached=sum(r[3] for r in routes) / layers, error=error)


def main():
    bench = Bench("decode-experts", 200)
    bench.conditions()
    for name, (experts, _, hidden, ffn, layers) in SHAPES.items():
        weights = layers_of(bench, experts, hidden, ffn, layers)
        for rows in ROWS:
            bench.attempt(f"{name} {rows} rows", lambda: case(bench, name, weights, rows))
        del weights
        bench.free()
    bench.close()


if __name__ == "__main__":
    main()
