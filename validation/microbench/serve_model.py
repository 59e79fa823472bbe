# SPDX-License-Identifier: Apache-2.0
# Builds the serving engine's models by shape, with random weights, and runs one step's rows through them.
"""A step's rows are decodes first, then chunks. Kernels of a layer, in order: add + norm; product of
queries, keys and values; rotary with the write to the cache; decode attention (two kernels where keys are
split) and chunk attention; output product; add + norm; product of gate and up; SwiGLU; down product. Before
them the embedding, after them add + norm, the head on sampled rows and an argmax. Under tensor parallelism
the output and down products are followed by an all-reduce, and each device argmaxes its part of the
vocabulary.
"""

from dataclasses import dataclass

import torch
import torch.distributed as dist
import torch.nn.functional as F

import serve_kernels as kernels
from serve_experts import BLOCKED, expert_layer


@dataclass(frozen=True)
class Shape:
    name: str
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    size: int
    ffn: int
    vocab: int
    theta: float = 500000.0
    qk_norm: bool = False
    tied: bool = False
    experts: int = 0
    topk: int = 0

    def parameters(self):
        attention = self.hidden * self.size * (2 * self.heads + 2 * self.kv_heads)
        ffn = 3 * self.hidden * self.ffn * max(1, self.experts) + self.hidden * self.experts
        norms = 2 * self.hidden + (2 * self.size if self.qk_norm else 0)
        return (
            self.layers * (attention + ffn + norms)
            + self.hidden
            + self.vocab * self.hidden * (1 if self.tied else 2)
        )

    def token_bytes(self, ranks=1):
        """Bytes of keys and values of one token on one device."""
        return 2 * 2 * self.layers * self.kv_heads // ranks * self.size


SHAPES = {
    s.name: s
    for s in (
        Shape("llama-3.1-8b", 32, 4096, 32, 8, 128, 14336, 128256),
        Shape("llama-3.2-1b", 16, 2048, 32, 8, 64, 8192, 128256, tied=True),
        Shape("qwen3-8b", 36, 4096, 32, 8, 128, 12288, 151936, theta=1e6, qk_norm=True),
        Shape(
            "qwen3-30b-a3b", 48, 2048, 32, 4, 128, 768, 151936, theta=1e6, qk_norm=True, experts=128, topk=8
        ),
        Shape("llama-3.1-70b", 80, 8192, 64, 8, 128, 28672, 128256),
        Shape("tiny", 2, 128, 8, 8, 32, 256, 512),
        Shape("tiny-experts", 2, 128, 8, 4, 32, 128, 512, qk_norm=True, experts=8, topk=2),
    )
}


@dataclass
class Batch:
    """Device tensors of one step: int32, one number a row; `tiles` of chunks; rows whose token is sampled."""

    tokens: torch.Tensor
    positions: torch.Tensor
    slots: torch.Tensor
    keys: torch.Tensor
    seats: torch.Tensor
    lengths: torch.Tensor
    decodes: int = 0
    tiles: torch.Tensor = None
    chunk_rows: int = 0
    sampled: torch.Tensor = None  # None: every row


class Layer:
    __slots__ = ("norm1", "qkv", "out", "norm2", "up", "down", "q_norm", "k_norm", "router")


class Model:
    def __init__(self, shape, device, context, rank=0, ranks=1, fill=True, seed=1):
        if shape.kv_heads % (4 * ranks) or shape.heads % (4 * ranks):
            raise ValueError(f"{shape.name}: four key-value heads must stay on each device")
        self.shape, self.device, self.rank, self.ranks = shape, device, rank, ranks
        self.heads, self.kv = shape.heads // ranks, shape.kv_heads // ranks
        self.ffn, self.vocab = shape.ffn // ranks, shape.vocab // ranks
        self.fill, self.generator = fill, torch.Generator(device=device)
        self.processors = (
            torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 4
        )
        self.generator.manual_seed(seed)  # the same embedding on every rank
        self.embedding = self.weight(shape.vocab, shape.hidden)
        self.generator.manual_seed(seed + 1000 * (rank + 1))
        self.layers = [self.layer() for _ in range(shape.layers)]
        self.norm = self.ones(shape.hidden)
        self.head = self.embedding if shape.tied and ranks == 1 else self.weight(self.vocab, shape.hidden)
        self.rotary = self.rotary_table(context)
        if shape.experts:
            self.numbers = torch.arange(1, shape.experts + 1, device=device, dtype=torch.int32)
            self.identity = torch.arange(BLOCKED * shape.topk, device=device, dtype=torch.int32)

    def weight(self, *size):
        if not self.fill:
            return torch.zeros(*size, device=self.device, dtype=torch.bfloat16)
        empty = torch.empty(*size, device=self.device, dtype=torch.bfloat16)
        return empty.normal_(0.0, 0.02, generator=self.generator)

    def ones(self, size):
        return torch.ones(size, device=self.device, dtype=torch.bfloat16)

    def layer(self):
        s, one = self.shape, Layer()
        one.norm1, one.norm2 = self.ones(s.hidden), self.ones(s.hidden)
        one.q_norm = self.ones(s.size) if s.qk_norm else None
        one.k_norm = self.ones(s.size) if s.qk_norm else None
        one.qkv = self.weight((self.heads + 2 * self.kv) * s.size, s.hidden)
        one.out = self.weight(s.hidden, self.heads * s.size)
        if s.experts:
            one.router = self.weight(s.experts, s.hidden)
            one.up = self.weight(s.experts, 2 * self.ffn, s.hidden)
            one.down = self.weight(s.experts, s.hidden, self.ffn)
        else:
            one.up = self.weight(2 * self.ffn, s.hidden)
            one.down = self.weight(s.hidden, self.ffn)
        return one

    def rotary_table(self, context):
        half = self.shape.size // 2
        turns = self.shape.theta ** (-torch.arange(half, device=self.device, dtype=torch.float32) / half)
        angle = torch.arange(context, device=self.device, dtype=torch.float32)[:, None] * turns[None, :]
        return angle.cos().contiguous(), angle.sin().contiguous()

    def weight_bytes(self):
        found = {}
        for one in [self] + self.layers:
            names = one.__slots__ if isinstance(one, Layer) else ("embedding", "norm", "head")
            for name in names:
                value = getattr(one, name, None)
                if isinstance(value, torch.Tensor):
                    found[value.data_ptr()] = value.nbytes
        return sum(found.values())

    def attention(self, qkv, one, cache, table, batch):
        s = self.shape
        keys, values = cache
        kernels.rotary_write(
            qkv,
            batch.positions,
            batch.slots,
            self.rotary,
            keys,
            values,
            one.q_norm,
            one.k_norm,
            self.heads,
            self.kv,
            s.size,
        )
        out = torch.empty(qkv.shape[0], self.heads * s.size, device=qkv.device, dtype=qkv.dtype)
        if batch.decodes:
            splits = kernels.splits_for(batch.decodes, self.kv, self.processors)
            kernels.decode_attention(
                qkv,
                keys,
                values,
                table,
                batch.seats,
                batch.lengths,
                out,
                self.heads,
                self.kv,
                s.size,
                splits,
            )
        if batch.tiles is not None:
            kernels.chunk_attention(
                qkv, keys, values, table, batch.tiles, out, self.heads, self.kv, s.size, batch.chunk_rows
            )
        return out

    def reduce(self, x):
        if self.ranks > 1:
            dist.all_reduce(x)
        return x

    def forward(self, batch, cache, table):
        """The tokens of sampled rows (int64). cache[layer] are keys and values of that layer."""
        logits = self.logits(batch, cache, table)
        return self.sample(logits) if logits.shape[0] else logits.long()[:, 0]

    def logits(self, batch, cache, table):
        x = torch.index_select(self.embedding, 0, batch.tokens)
        delta = None
        for i, one in enumerate(self.layers):
            qkv = F.linear(kernels.add_norm(x, delta, one.norm1), one.qkv)
            a = self.attention(qkv, one, cache[i], table, batch)
            y = kernels.add_norm(x, self.reduce(F.linear(a, one.out)), one.norm2)
            if self.shape.experts:
                delta = self.reduce(
                    expert_layer(
                        y,
                        batch.keys,
                        i,
                        one.router,
                        one.up,
                        one.down,
                        self.shape.topk,
                        self.numbers,
                        self.identity,
                    )
                )
            else:
                delta = self.reduce(F.linear(kernels.swiglu(F.linear(y, one.up)), one.down))
        if batch.sampled is not None:
            if batch.sampled.shape[0] == 0:
                return x[:0]
            x, delta = torch.index_select(x, 0, batch.sampled), torch.index_select(delta, 0, batch.sampled)
        return F.linear(kernels.add_norm(x, delta, self.norm), self.head)

    def sample(self, logits):
        if self.ranks == 1:
            return torch.argmax(logits, 1)
        value, index = torch.max(logits, 1)
        mine = torch.stack([value.double(), (index + self.rank * self.vocab).double()])
        every = torch.empty(2 * self.ranks, mine.shape[1], device=mine.device, dtype=mine.dtype)
        dist.all_gather_into_tensor(every, mine)
        values, indices = every.view(self.ranks, 2, -1).unbind(1)
        best = torch.argmax(values, 0)
        return torch.gather(indices, 0, best[None, :])[0].long()
