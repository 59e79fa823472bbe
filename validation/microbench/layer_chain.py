# SPDX-License-Identifier: Apache-2.0
# Asks whether kernels of a decode layer take as long one after the other as each among its like.
"""A rank's part (TP8) of a latent-attention layer with experts, in bf16 and without attention over a
history: norms, products, a router, a routed and a shared feed-forward part, random weights of their
own in each layer. In one CUDA graph each time: every operation alone over all layers, one layer after
the other (`chain`), the same without the shared part (`routed`), and with it in a second stream
(`two-streams`). One line an operation and number of rows: value in us a layer, `sum` of all alone. Weights
come from memory, activations from L2.
"""
import torch

from bench import Bench
from serve_experts import route
from serve_kernels import add_norm, swiglu

HIDDEN, Q_LORA, LATENT, HEADS, NOPE, ROPE, VALUE = 7168, 1536, 512, 16, 128, 64, 128
EXPERTS, TOPK, SHARED, ROUTED, LAYERS = 256, 8, 256, 4096, 24
ROWS = [1, 4, 16, 64, 256]
SHARED_PART = ("shared-up", "shared-swiglu", "shared-down")


class Layer:
    def __init__(self, device):
        def make(*shape):
            return 0.02 * torch.randn(*shape, device=device, dtype=torch.bfloat16)
        self.norm, self.lora_norm, self.out_norm = (
            torch.ones(n, device=device, dtype=torch.bfloat16) for n in (HIDDEN, Q_LORA, HIDDEN))
        self.down = make(HIDDEN, Q_LORA + LATENT + ROPE)
        self.queries = make(Q_LORA, HEADS * (NOPE + ROPE))
        self.absorb, self.expand = make(HEADS, NOPE, LATENT), make(HEADS, LATENT, VALUE)
        self.out = make(HEADS * VALUE, HIDDEN)
        self.gate = make(HIDDEN, EXPERTS)
        self.up, self.back = make(HIDDEN, 2 * ROUTED), make(ROUTED, HIDDEN)
        self.shared_up, self.shared_back = make(HIDDEN, 2 * SHARED), make(SHARED, HIDDEN)


def operations(rows, device):
    """Name and call(layer, values) of each, in order; values are kept by name. What would be a slice of a
    value, or of attention's results, is a buffer of its own (fresh): a slice may cost a copy."""
    keys = torch.rand(1 << 14, device=device)

    def heads(values, name, width):
        return values[name].view(rows, HEADS, width).transpose(0, 1)
    return [
        ("norm", lambda w, v: add_norm(v["x"], v["last"], w.norm)),
        ("down", lambda w, v: v["norm"] @ w.down),
        ("lora-norm", lambda w, v: add_norm(v["lora"], None, w.lora_norm)),
        ("queries", lambda w, v: v["lora-norm"] @ w.queries),
        ("absorb", lambda w, v: torch.bmm(heads(v, "nope", NOPE), w.absorb)),
        ("expand", lambda w, v: torch.bmm(v["absorb"], w.expand)),
        ("out", lambda w, v: v["values"] @ w.out),
        ("out-norm", lambda w, v: add_norm(v["x"], v["out"], w.out_norm)),
        ("router", lambda w, v: v["out-norm"] @ w.gate),
        ("route", lambda w, v: route(v["router"], keys, 0, TOPK)),
        ("up", lambda w, v: v["out-norm"] @ w.up),
        ("swiglu", lambda w, v: swiglu(v["up"])),
        ("back", lambda w, v: v["swiglu"] @ w.back),
        ("shared-up", lambda w, v: v["out-norm"] @ w.shared_up),
        ("shared-swiglu", lambda w, v: swiglu(v["shared-up"])),
        ("shared-down", lambda w, v: v["shared-swiglu"] @ w.shared_back),
        ("add", lambda w, v: torch.add(v["back"], v["shared-down"])),
    ]


def one_layer(ops, layer, values, skip=(), second=None, main=None):
    for name, call in ops:
        if name in skip or (second is not None and name in SHARED_PART):
            continue
        if name == "add" and second is not None:
            main.wait_stream(second)
        values[name] = call(layer, values)
        if name == "out-norm" and second is not None:
            second.wait_stream(main)
            with torch.cuda.stream(second):
                for shared, shared_call in ops:
                    if shared in SHARED_PART:
                        values[shared] = shared_call(layer, values)
    values["last"] = values["add"]


def fresh(rows, device):
    def make(*shape):
        return torch.randn(*shape, device=device, dtype=torch.bfloat16)
    return {"x": make(rows, HIDDEN), "last": make(rows, HIDDEN), "lora": make(rows, Q_LORA),
            "nope": make(rows, HEADS * NOPE), "values": make(rows, HEADS * VALUE)}


def rows_case(bench, layers, rows):
    ops = operations(rows, bench.device)
    values = fresh(rows, bench.device)
    second = torch.cuda.Stream()

    def say(name, **us):
        bench.software("layer-chain", unit="us", name=name, rows=rows, layers=LAYERS, **us)

    def timed(name, work):
        timing = bench.burst(lambda _: [work(w) for w in layers], repeats=9, burst_ms=15.0)
        us = {key: timing[of] / LAYERS
              for key, of in [("value", "time_us"), ("low", "low_us"), ("high", "high_us")]}
        say(name, **us)
        return us["value"]

    def alone(name, call):
        def work(layer):
            values[name] = call(layer, values)
        return timed(name, work)

    with torch.no_grad():
        one_layer(ops, layers[0], values)
        say("sum", value=sum(alone(name, call) for name, call in ops))
        for name, keys in [("chain", {}), ("routed", {"skip": SHARED_PART}),
                           ("two-streams", {"second": second, "main": bench.stream})]:
            timed(name, lambda layer: one_layer(ops, layer, values, **keys))


def main():
    bench = Bench("layer-chain", 240)
    bench.conditions()
    layers = [Layer(bench.device) for _ in range(LAYERS)]
    for rows in ROWS:
        bench.attempt(f"{rows} rows", lambda: rows_case(bench, layers, rows))
    bench.close()


if __name__ == "__main__":
    main()
