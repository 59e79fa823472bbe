# SPDX-License-Identifier: Apache-2.0
# Asks what expert products in FP8 blocks take and draw in a Triton kernel as serving engines have.
"""Rows are routed to topk experts drawn without replacement and pass the up and gate and the down
product of the experts that have rows: e4m3 operands, a scale for each 128 columns of a row and for
each 128 x 128 of a weight, sums in fp32. Tiles are those of vLLM's tables for an H200: 64 rows from
1,024 tokens on, 16 below. First in bursts, then without a pause, when the power limit acts. A line a
shape, number of tokens and mode; `flop` counts no filling of tiles.
"""
import torch
import triton
import triton.language as tl

from bench import Bench, relative_error
from decode_experts import routing

# experts, topk, hidden, ffn of one rank
SHAPES = {"glm-5 tp8": (256, 8, 6144, 256), "deepseek-r1 tp8": (256, 8, 7168, 256),
          "qwen3-30b-a3b": (128, 8, 2048, 768)}
TOKENS = [32, 256, 2048, 8192]
BLOCK = 128  # columns of one scale
SECONDS = 3.0


@triton.jit
def expert_blocks(x, x_scale, w, w_scale, out, expert_of_block, row_of_slot, n, k, blocks,
                  BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr):
    program = tl.program_id(0)
    columns = tl.cdiv(n, BN)
    first = program // (GROUP * columns) * GROUP
    tall = min(blocks - first, GROUP)
    block = first + program % (GROUP * columns) % tall
    column = program % (GROUP * columns) // tall
    expert = tl.load(expert_of_block + block).to(tl.int64)
    rows = tl.load(row_of_slot + block * BM + tl.arange(0, BM)).to(tl.int64)
    there = rows >= 0
    wide, depth = column * BN + tl.arange(0, BN), tl.arange(0, BK)
    xs = x + rows[:, None] * k + depth[None, :]
    ws = w + expert * n * k + wide[None, :] * k + depth[:, None]
    scales = k // BK
    xs_scale = x_scale + rows * scales
    ws_scale = w_scale + expert * (n // BN) * scales + column * scales
    sums = tl.zeros((BM, BN), dtype=tl.float32)
    for i in range(0, scales):
        a = tl.load(xs, mask=there[:, None], other=0.0)
        part = tl.dot(a, tl.load(ws))
        left = tl.load(xs_scale + i, mask=there, other=0.0)
        sums += part * left[:, None] * tl.load(ws_scale + i)
        xs += BK
        ws += BK
    at = out + rows[:, None] * n + wide[None, :]
    tl.store(at, sums.to(tl.bfloat16), mask=there[:, None])


def tiles_of(tokens):
    """Rows of a tile, tiles that go through a weight together, and stages, by vLLM's tables."""
    return (64, 32, 4) if tokens >= 1024 else (16, 32, 3)


class Product:
    """One weight for each expert, with the rows that come to it."""

    def __init__(self, bench, experts, rows, n, k):
        def make(*shape):
            return torch.randn(*shape, device=bench.device).to(torch.float8_e4m3fn)
        self.n, self.k = n, k
        self.x, self.w = make(rows, k), torch.stack([make(n, k) for _ in range(experts)])
        self.x_scale = 0.5 + torch.rand(rows, k // BLOCK, device=bench.device)
        self.w_scale = 0.5 + torch.rand(experts, n // BLOCK, k // BLOCK, device=bench.device)
        self.out = torch.empty(rows, n, device=bench.device, dtype=torch.bfloat16)

    def run(self, blocks, slots, tiles):
        tile, group, stages = tiles
        expert_blocks[(blocks.shape[0] * (self.n // BLOCK),)](
            self.x, self.x_scale, self.w, self.w_scale, self.out, blocks, slots, self.n, self.k,
            blocks.shape[0], BM=tile, BN=BLOCK, BK=BLOCK, GROUP=group, num_warps=4,
            num_stages=stages)

    def error(self, blocks, slots, tiles):
        """Of the first expert's rows, against fp32."""
        self.run(blocks, slots, tiles)
        mine = slots.view(-1, tiles[0])[blocks == blocks[0]].flatten()
        mine = mine[mine >= 0].long()
        expert = int(blocks[0])
        x = self.x[mine].float() * self.x_scale[mine].repeat_interleave(BLOCK, 1)
        w = self.w[expert].float() * self.w_scale[expert].repeat_interleave(
            BLOCK, 0).repeat_interleave(BLOCK, 1)
        return relative_error(self.out[mine], x @ w.t())


def case(bench, name, tokens):
    experts, topk, hidden, ffn = SHAPES[name]
    rows, tiles = tokens * topk, tiles_of(tokens)
    _, blocks, slots, reached = routing(tokens, experts, topk, bench.device, tokens, tiles[0])
    up = Product(bench, experts, rows, 2 * ffn, hidden)
    down = Product(bench, experts, rows, hidden, ffn)
    error = max(p.error(blocks, slots, tiles) for p in (up, down))
    if error > 0.01:
        raise RuntimeError(f"relative error {error:.3g}, expected at most 0.01")

    def both(_):
        up.run(blocks, slots, tiles)
        down.run(blocks, slots, tiles)

    flop = 2.0 * rows * 3 * ffn * hidden
    for mode, timing in [("burst", bench.burst(both, repeats=7)),
                         ("sustained", bench.sustained(both, SECONDS))]:
        bench.out.line("sample", part=bench.program, kind="grouped_gemm", library="triton",
                       variant=name, mode=mode, input="fp8", rows=tokens, groups=experts,
                       reached=reached, tile=tiles[0], hidden=hidden, ffn=ffn,
                       flop=flop, filled=slots.shape[0] / rows, error=error, **timing)


def main():
    bench = Bench("block-experts", 200)
    bench.conditions()
    for name in SHAPES:
        for tokens in TOKENS:
            bench.attempt(f"{name} {tokens} tokens", lambda: case(bench, name, tokens))
            bench.free()
    bench.close()


if __name__ == "__main__":
    main()
