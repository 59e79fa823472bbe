# SPDX-License-Identifier: Apache-2.0
# Asks how fast processes run that share one GPU.
"""Ten kinds of work, each a process of its own, alone, two by two, three and four of a kind; in three modes:

  slice  processes take turns, as a GPU does without more
  mps    processes run side by side (CUDA's Multi-Process Service)
  half   likewise, each on half of the processors at most (CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=50)

A speed is the rate in a window of a second beside the others over the rate alone in the same mode. Lines:
`conditions`, then `work` with what a kind takes alone (floating-point operations and bytes of an iteration by its
shapes; from PyTorch's profiler the share of time in which kernels run, the mean share of processors that their
blocks reach, and kernels an iteration), then `sample` with the rates of each group, and those of both halves of
the window.

Usage: colocate.py [--quick] > FILE    (needs PyTorch; MPS where nvidia-cuda-mps-control starts)
"""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

WARM, WINDOW = 0.35, 1.0  # s
CHUNK = 0.02              # s of work in a queue before the host looks again
MODES = ("slice", "mps", "half")
WORKERS = {"slice": 4, "mps": 4, "half": 2}
KINDS = ("product-large", "product-small", "product-thin", "copy", "norm", "attention", "half-busy", "step-small",
         "step-large", "decode")


def make(name):
    """(run one iteration, floating-point operations, bytes, host pause after an iteration in its own times)"""
    import torch
    import torch.nn.functional as F

    half = {"device": "cuda", "dtype": torch.bfloat16}

    def product(m, n, k, count=1):
        a, out = torch.randn(m, k, **half), torch.empty(m, n, **half)
        weights = [torch.randn(k, n, **half) for _ in range(count)]

        def run():
            for w in weights:
                torch.mm(a, w, out=out)

        return run, 2.0 * m * n * k * count, 2.0 * (m * k + k * n + m * n) * count, 0.0

    if name == "product-large":
        return product(8192, 8192, 8192)
    if name == "product-small":
        return product(1024, 1024, 1024)
    if name == "product-thin":
        return product(64, 28672, 8192)
    if name == "half-busy":
        run, flop, size, _ = product(8192, 8192, 8192)
        return run, flop, size, 1.0
    if name == "copy":
        x = torch.randn(1 << 28, **half)
        y = torch.empty_like(x)
        return lambda: y.copy_(x), 0.0, 4.0 * x.numel(), 0.0
    if name == "norm":
        x, y = torch.randn(16384, 8192, **half), torch.empty(16384, 8192, **half)
        return lambda: torch.softmax(x, -1, out=y), 0.0, 4.0 * x.numel(), 0.0
    if name == "attention":
        q, k, v = (torch.randn(2, 32, 4096, 128, **half) for _ in range(3))
        return (lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True), 2.0 * 2 * 32 * 4096 * 4096 * 128,
                8.0 * q.numel(), 0.0)
    if name == "decode":
        return decode()
    return training(*((1024, 4, 2, 512) if name == "step-small" else (4096, 4, 2, 4096)))


def decode():
    """Products of four layers of Llama 3.1 8B for 16 rows, in a CUDA graph."""
    import torch
    rows, half = 16, {"device": "cuda", "dtype": torch.bfloat16}
    shapes = [(4096, 6144), (4096, 4096), (4096, 28672), (14336, 4096)] * 4
    weights = [torch.randn(k, n, **half) for k, n in shapes]
    inputs = {k: torch.randn(rows, k, **half) for k in (4096, 14336)}

    def body():
        for w in weights:
            torch.mm(inputs[w.shape[0]], w)

    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        body()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        body()
    count = sum(k * n for k, n in shapes)
    return graph.replay, 2.0 * rows * count, 2.0 * count, 0.0


def training(width, layers, batch, length):
    """Forward, backward and AdamW of a plain decoder, launched operation by operation."""
    import torch
    from torch import nn
    import torch.nn.functional as F

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.two = nn.RMSNorm(width), nn.RMSNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False)
            self.up, self.down = nn.Linear(width, 4 * width, bias=False), nn.Linear(4 * width, width, bias=False)

        def forward(self, x):
            q, k, v = (t.view(batch, length, -1, 128).transpose(1, 2) for t in self.qkv(self.one(x)).chunk(3, -1))
            seen = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(seen.transpose(1, 2).reshape(batch, length, width))
            return x + self.down(F.gelu(self.up(self.two(x))))

    model = nn.Sequential(*(Layer() for _ in range(layers))).to(device="cuda", dtype=torch.bfloat16)
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    x = torch.randn(batch, length, width, device="cuda", dtype=torch.bfloat16)

    def run():
        model(x).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()

    weights = sum(p.numel() for p in model.parameters())
    tokens = batch * length
    return run, 6.0 * weights * tokens + 6.0 * layers * batch * length * length * width, 22.0 * weights, 0.0


class Work:
    """A kind that is ready to run: how many iterations fill a chunk."""

    def __init__(self, name):
        import torch
        self.torch = torch
        self.run, self.flop, self.bytes, self.pause = make(name)
        for _ in range(5):
            self.run()
        torch.cuda.synchronize()
        begin, count = time.monotonic(), 0
        while time.monotonic() - begin < 0.1:
            self.run()
            torch.cuda.synchronize()
            count += 1
        self.alone = (time.monotonic() - begin) / count
        self.chunk = 1 if self.pause else max(1, int(CHUNK / self.alone))

    def until(self, end):
        """Times at which chunks were done."""
        if self.pause:
            return self.with_pauses(end)
        done, waiting = [], []
        while time.monotonic() < end:
            for _ in range(self.chunk):
                self.run()
            event = self.torch.cuda.Event()
            event.record()
            waiting.append(event)
            if len(waiting) > 1:
                waiting.pop(0).synchronize()
                done.append(time.monotonic())
        self.torch.cuda.synchronize()
        return done

    def with_pauses(self, end):
        done = []
        while time.monotonic() < end:
            self.run()
            self.torch.cuda.synchronize()
            done.append(time.monotonic())
            time.sleep(self.pause * self.alone)
        return done

    def profile(self):
        """Share of time in kernels, mean share of processors reached, kernels an iteration."""
        from torch.profiler import ProfilerActivity, profile
        count = max(3, min(50, int(0.1 / self.alone)))
        with profile(activities=[ProfilerActivity.CUDA]) as seen:
            for _ in range(count):
                self.run()
            self.torch.cuda.synchronize()
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "trace.json"
            seen.export_chrome_trace(str(path))
            events = json.loads(path.read_text())["traceEvents"]
        device = [e for e in events if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]
        ran = sum(e["dur"] for e in device)
        span = max(e["ts"] + e["dur"] for e in device) - min(e["ts"] for e in device)
        reached = sum(e["dur"] * min(1.0, e["args"].get("blocks per SM", 1.0)) for e in device)
        return {"busy": ran / span, "processors": reached / ran, "kernels": len(device) / count,
                "kernel_s": ran / count * 1e-6}


def rate(done, chunk, begin, end):
    inside = [t for t in done if begin <= t <= end]
    if len(inside) < 2:
        return None
    return chunk * (len(inside) - 1) / (inside[-1] - inside[0])


def worker():
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    works = {}
    out.write("ready\n")
    for line in sys.stdin:
        order = json.loads(line)
        name = order["name"]
        if name not in works:
            works[name] = Work(name)
        work = works[name]
        if order["do"] == "prepare":
            answer = {}
        elif order["do"] == "profile":
            answer = {"flop": work.flop, "bytes": work.bytes, "pause": work.pause, **work.profile()}
        else:
            begin = order["begin"]
            while time.monotonic() < begin:
                pass
            done = work.until(begin + WARM + WINDOW)
            middle = begin + WARM + WINDOW / 2
            answer = {"rate": rate(done, work.chunk, begin + WARM, begin + WARM + WINDOW),
                      "first": rate(done, work.chunk, begin + WARM, middle),
                      "second": rate(done, work.chunk, middle, begin + WARM + WINDOW)}
        out.write(json.dumps(answer) + "\n")


class Worker:
    def __init__(self, environment):
        self.process = subprocess.Popen([sys.executable, __file__, "--worker"], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, env={**os.environ, **environment})
        assert self.process.stdout.readline() == "ready\n"

    def send(self, **order):
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()

    def answer(self):
        return json.loads(self.process.stdout.readline())


def smi(query):
    text = subprocess.run(["nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader,nounits"],
                          capture_output=True, text=True).stdout
    return [cell.strip() for cell in text.splitlines()[0].split(",")]


def start_mps(folder):
    """The environment of its clients; none where it does not start."""
    if shutil.which("nvidia-cuda-mps-control") is None:
        return None
    environment = {"CUDA_MPS_PIPE_DIRECTORY": f"{folder}/pipe", "CUDA_MPS_LOG_DIRECTORY": f"{folder}/log"}
    for path in environment.values():
        os.makedirs(path)
    started = subprocess.run(["nvidia-cuda-mps-control", "-d"], env={**os.environ, **environment})
    return environment if started.returncode == 0 else None


def together(workers, names):
    for worker_, name in zip(workers, names):
        worker_.send(do="prepare", name=name)
    for worker_, _ in zip(workers, names):
        worker_.answer()
    begin = time.monotonic() + 0.02
    for worker_, name in zip(workers, names):
        worker_.send(do="run", name=name, begin=begin)
    time.sleep(max(0.0, begin + WARM + WINDOW * 0.8 - time.monotonic()))
    clock, power, temperature = (float(x) for x in smi("clocks.sm,power.draw,temperature.gpu"))
    answers = [worker_.answer() for worker_, _ in zip(workers, names)]
    return {"rates": [a["rate"] for a in answers], "first": [a["first"] for a in answers],
            "second": [a["second"] for a in answers], "clock_mhz": clock, "power_w": power,
            "temperature_c": temperature}


def groups(kinds, workers):
    yield from ([a] for a in kinds)
    yield from ([a, b] for i, a in enumerate(kinds) for b in kinds[i:])
    yield from ([a] * n for n in range(3, workers + 1) for a in kinds)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--worker", action="store_true")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    if options.worker:
        return worker()
    import torch
    name, driver, limit, most = smi("name,driver_version,power.limit,clocks.max.sm")
    out = lambda record, **keys: print(json.dumps({"record": record, **keys}, separators=(",", ":")), flush=True)
    out("conditions", program="colocate", device=name, gpu=0, gpus=1, driver=driver, cuda=torch.version.cuda,
        libraries={"torch": torch.__version__}, power_limit_w=float(limit), max_clock_mhz=float(most),
        date=time.strftime("%Y-%m-%d"), warm_s=WARM, window_s=WINDOW)
    kinds = KINDS[:3] if options.quick else KINDS
    folder = tempfile.mkdtemp()
    for mode in MODES:
        environment = {}
        if mode != "slice":
            environment = start_mps(folder) if mode == "mps" else mps
            mps = environment
            if environment is None:
                print(f"{mode}: MPS does not start here", file=sys.stderr)
                continue
            if mode == "half":
                environment = {**environment, "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": "50"}
        workers = [Worker(environment) for _ in range(WORKERS[mode])]
        if mode == "slice":
            for kind in kinds:
                workers[0].send(do="profile", name=kind)
                out("work", kind=kind, **workers[0].answer())
        for names in groups(kinds, len(workers)):
            out("sample", part="colocate", mode=mode, jobs=names, **together(workers, names))
        for each in workers:
            each.process.stdin.close()
            each.process.wait()
    subprocess.run(["nvidia-cuda-mps-control"], input="quit\n", text=True, env={**os.environ, **(mps or {})})
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
