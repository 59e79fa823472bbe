# SPDX-License-Identifier: Apache-2.0
# Knows a Llama-like layer in plain PyTorch, compiled per half, and an expert layer run eagerly.
"""What framework.py takes apart. Sizes come as a dict: hidden, heads, kv_heads, head, ffn, vocab,
and for expert layers experts and topk."""
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint


def weight(device, *shape):
    return nn.Parameter(torch.randn(*shape, device=device, dtype=torch.bfloat16) * 0.02)


def rotary_table(length, head, device):
    rates = 10000.0 ** (-torch.arange(0, head, 2, device=device).float() / head)
    angles = torch.arange(length, device=device).float()[:, None] * rates
    return angles.cos().bfloat16(), angles.sin().bfloat16()


def rotate(x, cos, sin):
    """x: [batch, heads, length, head]."""
    low, high = x.chunk(2, -1)
    return torch.cat((low * cos - high * sin, high * cos + low * sin), -1)


def rms_norm(x, scale):
    return F.rms_norm(x, x.shape[-1:], scale, 1e-5)


def swiglu(both):
    gate, up = both.chunk(2, -1)
    return F.silu(gate) * up


class Attention(nn.Module):
    def __init__(self, c, device):
        super().__init__()
        self.heads, self.kv, self.head = c["heads"], c["kv_heads"], c["head"]
        self.scale = nn.Parameter(torch.ones(c["hidden"], device=device, dtype=torch.bfloat16))
        self.into = weight(device, (self.heads + 2 * self.kv) * self.head, c["hidden"])
        self.out = weight(device, c["hidden"], self.heads * self.head)

    def forward(self, x, cos, sin):
        batch, length, _ = x.shape
        widths = [n * self.head for n in (self.heads, self.kv, self.kv)]
        parts = F.linear(rms_norm(x, self.scale), self.into).split(widths, -1)
        q, k, v = (p.view(batch, length, -1, self.head).transpose(1, 2) for p in parts)
        y = F.scaled_dot_product_attention(rotate(q, cos, sin), rotate(k, cos, sin), v,
                                           is_causal=True, enable_gqa=self.heads != self.kv)
        return F.linear(y.transpose(1, 2).reshape(batch, length, -1), self.out)


class Dense(nn.Module):
    def __init__(self, c, device):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(c["hidden"], device=device, dtype=torch.bfloat16))
        self.up = weight(device, 2 * c["ffn"], c["hidden"])
        self.down = weight(device, c["hidden"], c["ffn"])

    def forward(self, x):
        return F.linear(swiglu(F.linear(rms_norm(x, self.scale), self.up)), self.down)


class Experts(nn.Module):
    """Balanced routing and batched products, one framework operation at a time."""

    def __init__(self, c, device):
        super().__init__()
        self.count, self.topk = c["experts"], c["topk"]
        self.scale = nn.Parameter(torch.ones(c["hidden"], device=device, dtype=torch.bfloat16))
        self.router = weight(device, self.count, c["hidden"])
        self.up = weight(device, self.count, c["hidden"], 2 * c["ffn"])
        self.down = weight(device, self.count, c["ffn"], c["hidden"])

    def forward(self, x):
        shape, hidden = x.shape, x.shape[-1]
        y = rms_norm(x, self.scale).view(-1, hidden)
        tokens = y.shape[0]
        gates = F.linear(y, self.router).float().softmax(-1)
        first = torch.arange(tokens, device=x.device)[:, None] * self.topk
        chosen = (first + torch.arange(self.topk, device=x.device)) % self.count
        gates = gates.gather(1, chosen).to(x.dtype)
        order = chosen.view(-1).argsort(stable=True)
        z = y.repeat_interleave(self.topk, 0)[order].view(self.count, -1, hidden)
        z = torch.bmm(swiglu(torch.bmm(z, self.up)), self.down).view(-1, hidden)
        back = torch.empty_like(z)
        back[order] = z
        return (back.view(tokens, self.topk, hidden) * gates[..., None]).sum(1).view(shape)


class Layer(nn.Module):
    def __init__(self, c, device, recompute=False):
        super().__init__()
        self.attention = Attention(c, device)
        self.ffn = Experts(c, device) if c.get("experts") else Dense(c, device)
        self.recompute = recompute
        self.attention.compile(dynamic=False)
        if not c.get("experts"):
            self.ffn.compile(dynamic=False)

    def run(self, x, cos, sin):
        x = x + self.attention(x, cos, sin)
        return x + self.ffn(x)

    def forward(self, x, cos, sin):
        if self.recompute:
            return checkpoint(self.run, x, cos, sin, use_reentrant=False)
        return self.run(x, cos, sin)


class Model(nn.Module):
    def __init__(self, c, layers, length, device, recompute=False):
        super().__init__()
        self.table = nn.Embedding(c["vocab"], c["hidden"], device=device, dtype=torch.bfloat16)
        self.layers = nn.ModuleList([Layer(c, device, recompute) for _ in range(layers)])
        self.scale = nn.Parameter(torch.ones(c["hidden"], device=device, dtype=torch.bfloat16))
        self.head = weight(device, c["vocab"], c["hidden"])
        self.cos, self.sin = rotary_table(length, c["head"], device)

    def forward(self, tokens):
        x = self.table(tokens)
        for layer in self.layers:
            x = layer(x, self.cos, self.sin)
        return F.linear(rms_norm(x, self.scale), self.head)


def loss_of(logits, targets):
    return F.cross_entropy(logits.view(-1, logits.shape[-1]).float(), targets.view(-1))
