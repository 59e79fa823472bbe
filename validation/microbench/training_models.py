# SPDX-License-Identifier: Apache-2.0
# Knows small GPT and Llama models in plain PyTorch, whole training steps of them, and low-rank adapters.
"""GPT: learned positions, LayerNorm, biases, GELU (OPT: ReLU), dropout after the embedding, in attention and after each
half of a layer. Llama: rotary positions, RMSNorm, SwiGLU, grouped keys (Qwen3: norms of each head; Gemma: GeGLU). Embedding and output weights are
tied where the model's are.
"""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

from llama_layer import rotary_table, rotate

MODELS = {
    "gpt-125m": dict(
        kind="gpt", hidden=768, layers=12, heads=12, kv_heads=12, head=64, ffn=3072, vocab=50304, tied=True
    ),
    "gpt-350m": dict(
        kind="gpt", hidden=1024, layers=24, heads=16, kv_heads=16, head=64, ffn=4096, vocab=50304, tied=True
    ),
    "gpt-1.3b": dict(
        kind="gpt", hidden=2048, layers=24, heads=16, kv_heads=16, head=128, ffn=8192, vocab=50304, tied=True
    ),
    "llama-350m": dict(
        kind="llama", hidden=1024, layers=24, heads=16, kv_heads=4, head=64, ffn=2816, vocab=128256, tied=True
    ),
    "llama-3.2-1b": dict(
        kind="llama", hidden=2048, layers=16, heads=32, kv_heads=8, head=64, ffn=8192, vocab=128256, tied=True
    ),
    "llama-3.2-3b": dict(
        kind="llama",
        hidden=3072,
        layers=28,
        heads=24,
        kv_heads=8,
        head=128,
        ffn=8192,
        vocab=128256,
        tied=True,
    ),
    "opt-1.3b": dict(
        kind="gpt",
        hidden=2048,
        layers=24,
        heads=32,
        kv_heads=32,
        head=64,
        ffn=8192,
        vocab=50272,
        tied=True,
        activation="relu",
    ),
    "qwen3-1.7b": dict(
        kind="llama",
        hidden=2048,
        layers=28,
        heads=16,
        kv_heads=8,
        head=128,
        ffn=6144,
        vocab=151936,
        tied=True,
        head_norm=True,
    ),
    "gpt2-xl": dict(
        kind="gpt", hidden=1600, layers=48, heads=25, kv_heads=25, head=64, ffn=6400, vocab=50257, tied=True
    ),
    "gemma-2b": dict(
        kind="llama",
        hidden=2048,
        layers=18,
        heads=8,
        kv_heads=1,
        head=256,
        ffn=16384,
        vocab=256000,
        tied=True,
        activation="geglu",
    ),
    "mistral-7b": dict(
        kind="llama", hidden=4096, layers=32, heads=32, kv_heads=8, head=128, ffn=14336, vocab=32000, tied=False
    ),
    "smollm2-1.7b": dict(
        kind="llama", hidden=2048, layers=24, heads=32, kv_heads=32, head=64, ffn=8192, vocab=49152, tied=True
    ),
    "yi-6b": dict(
        kind="llama", hidden=4096, layers=32, heads=32, kv_heads=4, head=128, ffn=11008, vocab=64000, tied=False
    ),
    "phi-3-mini": dict(
        kind="llama", hidden=3072, layers=32, heads=32, kv_heads=32, head=96, ffn=8192, vocab=32064, tied=False
    ),
    "llama-3.1-8b": dict(
        kind="llama",
        hidden=4096,
        layers=32,
        heads=32,
        kv_heads=8,
        head=128,
        ffn=14336,
        vocab=128256,
        tied=False,
    ),
}


class LowRank(nn.Module):
    """A frozen linear layer and its adapter of `rank`."""

    def __init__(self, base, rank):
        super().__init__()
        self.base, self.rank = base, rank
        kind = dict(device=base.weight.device, dtype=base.weight.dtype)
        self.down = nn.Parameter(torch.randn(rank, base.in_features, **kind) * 0.01)
        self.up = nn.Parameter(torch.zeros(base.out_features, rank, **kind))

    def forward(self, x):
        return self.base(x) + F.linear(F.linear(x, self.down), self.up) * 2.0


class Block(nn.Module):
    def __init__(self, c, dropout, recompute):
        super().__init__()
        self.c, self.dropout, self.recompute, gpt = c, dropout, recompute, c["kind"] == "gpt"
        norm = nn.LayerNorm if gpt else nn.RMSNorm
        hidden, heads, kv, head, ffn = c["hidden"], c["heads"], c["kv_heads"], c["head"], c["ffn"]
        self.norm1, self.norm2 = norm(hidden, eps=1e-5), norm(hidden, eps=1e-5)
        if c.get("head_norm"):
            self.q_norm, self.k_norm = norm(head, eps=1e-6), norm(head, eps=1e-6)
        self.qkv = nn.Linear(hidden, (heads + 2 * kv) * head, bias=gpt)
        self.out = nn.Linear(heads * head, hidden, bias=gpt)
        self.up = nn.Linear(hidden, ffn if gpt else 2 * ffn, bias=gpt)
        self.down = nn.Linear(ffn, hidden, bias=gpt)

    def attention(self, x, cos, sin):
        c, (batch, length, _) = self.c, x.shape
        heads, kv = c["heads"], c["kv_heads"]
        q, k, v = (
            self.qkv(x)
            .view(batch, length, heads + 2 * kv, c["head"])
            .transpose(1, 2)
            .split([heads, kv, kv], 1)
        )
        if c.get("head_norm"):
            q, k = self.q_norm(q), self.k_norm(k)
        if c["kind"] != "gpt":
            q, k = rotate(q, cos, sin).to(v.dtype), rotate(k, cos, sin).to(v.dtype)
        y = F.scaled_dot_product_attention(
            q, k, v, dropout_p=self.dropout, is_causal=True, enable_gqa=heads != kv
        )
        return self.out(y.transpose(1, 2).reshape(batch, length, -1))

    def feed(self, x):
        y = self.up(x)
        if self.c.get("activation") == "relu":
            return self.down(F.relu(y))
        if self.c["kind"] == "gpt":
            return self.down(F.gelu(y, approximate="tanh"))
        gate, value = y.chunk(2, -1)
        if self.c.get("activation") == "geglu":
            return self.down(F.gelu(gate, approximate="tanh") * value)
        return self.down(F.silu(gate) * value)

    def run(self, x, cos, sin):
        x = x + F.dropout(self.attention(self.norm1(x), cos, sin), self.dropout, True)
        return x + F.dropout(self.feed(self.norm2(x)), self.dropout, True)

    def forward(self, x, cos, sin):
        if self.recompute:
            return checkpoint(self.run, x, cos, sin, use_reentrant=False)
        return self.run(x, cos, sin)


def loss_of(x, weight, targets):
    return F.cross_entropy(F.linear(x, weight).flatten(0, 1).float(), targets.flatten())


class Model(nn.Module):
    """Gives the loss; `compiled`: each layer, and the output layer with its loss, are compiled."""

    def __init__(self, c, length, dropout=0.0, recompute=False, compiled=False):
        super().__init__()
        self.c, self.dropout = c, dropout
        self.table = nn.Embedding(c["vocab"], c["hidden"])
        self.positions = nn.Embedding(length, c["hidden"]) if c["kind"] == "gpt" else None
        self.blocks = nn.ModuleList([Block(c, dropout, recompute) for _ in range(c["layers"])])
        self.norm = (nn.LayerNorm if c["kind"] == "gpt" else nn.RMSNorm)(c["hidden"], eps=1e-5)
        self.head = nn.Linear(c["hidden"], c["vocab"], bias=False)
        if c["tied"]:
            self.head.weight = self.table.weight
        nn.init.normal_(self.table.weight, std=0.02)
        self.loss = torch.compile(loss_of, dynamic=False) if compiled else loss_of
        cos, sin = rotary_table(length, c["head"], self.table.weight.device)
        self.register_buffer("cos", cos, persistent=False)
        self.register_buffer("sin", sin, persistent=False)
        if compiled:
            for block in self.blocks:
                block.compile(dynamic=False)

    def forward(self, tokens, targets):
        x = self.table(tokens)
        if self.positions is not None:
            x = F.dropout(x + self.positions.weight[: tokens.shape[1]], self.dropout, True)
        for block in self.blocks:
            x = block(x, self.cos, self.sin)
        return self.loss(self.norm(x), self.head.weight, targets)


def with_adapters(model, rank):
    """Freezes the model and puts an adapter on every linear layer of its blocks."""
    model.requires_grad_(False)
    for block in model.blocks:
        for name in ("qkv", "out", "up", "down"):
            setattr(block, name, LowRank(getattr(block, name), rank))
    return model


def flop_of(c, tokens, length, adapters=False):
    """Forward and backward: six a weight that multiplies and token, four where it is frozen; causal attention."""
    weights = (
        c["layers"]
        * c["hidden"]
        * ((2 * c["heads"] + 2 * c["kv_heads"]) * c["head"] + (2 if c["kind"] == "gpt" else 3) * c["ffn"])
    )
    attention = c["layers"] * c["heads"] * c["head"] * length
    return tokens * ((4.0 if adapters else 6.0) * (weights + c["hidden"] * c["vocab"]) + 6.0 * attention)


def median(values):
    return sorted(values)[len(values) // 2]


def timed_steps(forward, optimizer, warm=3, steps=8):
    """Times of steps that follow each other without a wait: from event to event on the device."""
    marks = []
    for i in range(warm + steps):
        if i == warm:
            torch.cuda.synchronize()
            torch.cuda.reset_peak_memory_stats()
        row = [torch.cuda.Event(enable_timing=True) for _ in range(3)]
        row[0].record()
        loss = forward()
        row[1].record()
        loss.backward()
        row[2].record()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        marks.append(row)
    end = torch.cuda.Event(enable_timing=True)
    end.record()
    torch.cuda.synchronize()
    rows = marks[warm:]
    starts = [row[0] for row in rows] + [end]
    times = sorted(1e3 * a.elapsed_time(b) for a, b in zip(starts, starts[1:]))
    parts = [
        [1e3 * a.elapsed_time(b) for a, b in pairs]
        for pairs in (
            [(r[0], r[1]) for r in rows],
            [(r[1], r[2]) for r in rows],
            [(r[2], s) for r, s in zip(rows, starts[1:])],
        )
    ]
    value = float(loss.detach())
    assert value == value, "the loss is not a number"
    return dict(
        time_us=median(times),
        low_us=times[0],
        high_us=times[-1],
        repeats=len(times),
        calls=1,
        forward_us=median(parts[0]),
        backward_us=median(parts[1]),
        optimizer_us=median(parts[2]),
        loss=value,
        peak_allocated=torch.cuda.max_memory_allocated(),
        peak_reserved=torch.cuda.max_memory_reserved(),
    )
