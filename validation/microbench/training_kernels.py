"""Times the kernels that serving tables lack: the three GEMM layouts, attention backward, and the
memory-bound kernels of a training step; and the board's power while each of a few runs for seconds.

Writes CSV lines to the file named on the command line: kernel, library, the shape, milliseconds,
bytes (least traffic) and operations. Each time is the median of five bursts of about 8 ms with
pauses between, so that the power limit does not act; `sustained` lines run 2.5 s without pause.
"""
import subprocess
import sys
import threading
import time

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

torch.manual_seed(1)
device = "cuda"
out = open(sys.argv[1], "w")
out.write("kernel,library,shape,ms,bytes,flop,watts\n")


def burst_ms(call):
    for _ in range(3):
        call()
    torch.cuda.synchronize()
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    call()
    end.record()
    torch.cuda.synchronize()
    count = max(2, min(200, int(8 / max(begin.elapsed_time(end), 0.01))))
    times = []
    for _ in range(5):
        time.sleep(0.02)
        # Occupy the device while the host queues the calls: no launch gaps in the timed part.
        torch.cuda._sleep(2_000_000)
        begin.record()
        for _ in range(count):
            call()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) / count)
    return sorted(times)[2]


def write(kernel, library, shape, ms, nbytes, flop, watts=0):
    out.write(f"{kernel},{library},{shape},{ms:.6g},{nbytes:.6g},{flop:.6g},{watts:.4g}\n")
    out.flush()


def attempt(kernel, library, shape, nbytes, flop, call):
    try:
        write(kernel, library, shape, burst_ms(call), nbytes, flop)
    except Exception as error:  # a kernel that this build lacks
        print(f"{kernel} {library} {shape}: {str(error)[:100]}", flush=True)


def bf(*shape):
    return torch.randn(*shape, device=device, dtype=torch.bfloat16)


def gemms():
    for m, n, k in [(8192, 4096, 4096), (8192, 6144, 4096), (8192, 28672, 4096), (8192, 4096, 14336),
                    (4096, 10240, 8192), (4096, 8192, 8192), (4096, 57344, 8192),
                    (4096, 8192, 28672), (8192, 1280, 8192), (8192, 8192, 1024), (8192, 7168, 8192),
                    (8192, 8192, 3584), (2048, 4096, 4096), (2048, 28672, 4096), (16384, 2048, 2048),
                    (16384, 5632, 2048), (4096, 128256, 4096), (8192, 4608, 3072), (4096, 5120, 5120),
                    (4096, 13824, 5120), (8192, 8192, 8192), (2048, 12288, 12288)]:
        x, w, dy = bf(m, k), bf(n, k), bf(m, n)
        size, flop = m * n * k, 2.0 * m * n * k
        traffic = 2.0 * (m * k + n * k + m * n)
        shape = f"{m}x{n}x{k}"
        attempt("gemm-forward", "cublas", shape, traffic, flop, lambda: x @ w.t())
        attempt("gemm-input-gradient", "cublas", shape, traffic, flop, lambda: dy @ w)
        attempt("gemm-weight-gradient", "cublas", shape, traffic, flop, lambda: dy.t() @ x)
        main = torch.zeros(n, k, device=device, dtype=torch.float32)
        attempt("gemm-weight-gradient-fp32", "cublas", shape, traffic + 6.0 * n * k, flop,
                lambda: torch.addmm(main, dy.t(), x, out_dtype=torch.float32, out=main))
        if n % 16 == 0 and k % 16 == 0 and size < 3e12:
            x8, w8 = x.to(torch.float8_e4m3fn), w.to(torch.float8_e4m3fn)
            one = torch.ones((), device=device)
            attempt("gemm-forward-fp8", "cublas", shape, m * k + n * k + 2.0 * m * n, flop,
                    lambda: torch._scaled_mm(x8, w8.t(), one, one, out_dtype=torch.bfloat16,
                                             use_fast_accum=True))
            attempt("gemm-forward-fp8-slow-accumulate", "cublas", shape,
                    m * k + n * k + 2.0 * m * n, flop,
                    lambda: torch._scaled_mm(x8, w8.t(), one, one, out_dtype=torch.bfloat16,
                                             use_fast_accum=False))
    for m, n, k in [(4096, 4090, 4096), (4096, 4096, 4090), (4096, 4090, 4090), (8192, 50257, 2048)]:
        x, w = bf(m, k), bf(n, k)
        attempt("gemm-misaligned", "cublas", f"{m}x{n}x{k}", 2.0 * (m * k + n * k + m * n),
                2.0 * m * n * k, lambda: x @ w.t())
    for groups, m, n, k in [(64, 2048, 2048, 128), (64, 2048, 128, 2048), (256, 1024, 1024, 128),
                            (32, 4096, 4096, 64), (8, 4096, 4096, 2048)]:
        x, w = bf(groups, m, k), bf(groups, n, k)
        attempt("gemm-batched", "cublas", f"{groups}x{m}x{n}x{k}",
                2.0 * groups * (m * k + n * k + m * n), 2.0 * groups * m * n * k,
                lambda: torch.bmm(x, w.transpose(1, 2)))
    for groups, rows, n, k in [(8, 2048, 14336, 4096), (16, 2048, 4096, 7168), (32, 1024, 4096, 7168),
                               (32, 512, 7168, 2048), (64, 256, 2816, 2048)]:
        x, w = bf(groups * rows, k), bf(groups, n, k)
        ends = torch.arange(1, groups + 1, device=device, dtype=torch.int32) * rows
        attempt("gemm-grouped", "grouped-gemm", f"{groups}x{rows}x{n}x{k}",
                2.0 * groups * (rows * k + n * k + rows * n), 2.0 * groups * rows * n * k,
                lambda: torch._grouped_mm(x, w.transpose(1, 2), offs=ends))


def attentions():
    cases = [(b, s, h, kv, 128, 128) for h, kv in [(32, 8), (32, 32), (8, 1)]
             for b, s in [(8, 1024), (4, 2048), (2, 4096), (1, 8192), (1, 16384)]]
    cases += [(2, 4096, 32, 32, 64, 64), (1, 8192, 32, 8, 64, 64), (4, 2048, 16, 16, 256, 256),
              (2, 4096, 16, 16, 192, 128), (1, 8192, 32, 32, 192, 128), (1, 16384, 16, 16, 192, 128),
              (2, 4096, 32, 32, 96, 96)]
    for b, s, h, kv, dq, dv in cases:
        for name, backend in [("flash2", SDPBackend.FLASH_ATTENTION),
                              ("cudnn-attention", SDPBackend.CUDNN_ATTENTION)]:
            q = bf(b, h, s, dq).requires_grad_()
            k = bf(b, kv, s, dq).requires_grad_()
            v = bf(b, kv, s, dv).requires_grad_()
            shape = f"b{b}s{s}h{h}kv{kv}d{dq}v{dv}"
            flop = b * h * s * (s + 1) * (dq + dv) * 1.0
            traffic = 2.0 * b * s * (h + kv) * (dq + dv)
            try:
                with sdpa_kernel(backend):
                    def forward():
                        return F.scaled_dot_product_attention(q, k, v, is_causal=True,
                                                              enable_gqa=h != kv)
                    with torch.no_grad():
                        write("attention-forward", name, shape, burst_ms(forward), traffic, flop)
                    o = forward()
                    do = torch.randn_like(o)

                    def backward():
                        torch.autograd.grad(o, (q, k, v), do, retain_graph=True)
                    write("attention-backward", name, shape, burst_ms(backward), 3 * traffic,
                          2.5 * flop)
            except Exception as error:
                print(f"attention {name} {shape}: {str(error)[:100]}", flush=True)


def memory_bound():
    def rms(x, w):
        y = x.float()
        return (y * torch.rsqrt(y.square().mean(-1, keepdim=True) + 1e-5)).to(x.dtype) * w

    def swiglu(a, b):
        return F.silu(a) * b

    def rotary(x, cos, sin):
        a, b = x.chunk(2, -1)
        return x * cos + torch.cat((-b, a), -1) * sin

    for t in [1024, 8192, 32768]:
        h, f = 4096, 14336
        x = bf(t, h).requires_grad_()
        w = torch.ones(h, device=device, dtype=torch.bfloat16, requires_grad=True)
        g = bf(t, h)
        for name, call in [("inductor", torch.compile(rms)),
                           ("eager", lambda a, b: F.rms_norm(a, (a.shape[-1],), b, 1e-5))]:
            with torch.no_grad():
                attempt("norm-forward", name, f"{t}x{h}", 4.0 * t * h, 0, lambda: call(x, w))
            y = call(x, w)
            attempt("norm-backward", name, f"{t}x{h}", 6.0 * t * h, 0,
                    lambda: torch.autograd.grad(y, (x, w), g, retain_graph=True))
        ln = torch.nn.LayerNorm(h, device=device, dtype=torch.bfloat16)
        with torch.no_grad():
            attempt("layernorm-forward", "eager", f"{t}x{h}", 4.0 * t * h, 0, lambda: ln(x))
        y = ln(x)
        attempt("layernorm-backward", "eager", f"{t}x{h}", 6.0 * t * h, 0,
                lambda: torch.autograd.grad(y, (x, ln.weight, ln.bias), g, retain_graph=True))
        a, b = bf(t, f).requires_grad_(), bf(t, f).requires_grad_()
        ga = bf(t, f)
        for name, call in [("inductor", torch.compile(swiglu)), ("eager", swiglu)]:
            with torch.no_grad():
                attempt("swiglu-forward", name, f"{t}x{f}", 6.0 * t * f, 0, lambda: call(a, b))
            y = call(a, b)
            attempt("swiglu-backward", name, f"{t}x{f}", 10.0 * t * f, 0,
                    lambda: torch.autograd.grad(y, (a, b), ga, retain_graph=True))
        del a, b, ga, y
        with torch.no_grad():
            attempt("add", "eager", f"{t}x{h}", 6.0 * t * h, 0, lambda: x + g)
            attempt("copy", "eager", f"{t}x{h}", 4.0 * t * h, 0, lambda: g.clone())
            attempt("transpose", "eager", f"{t}x{h}", 4.0 * t * h, 0, lambda: g.t().contiguous())
            q = bf(1, 32, t, 128)
            cos, sin = bf(t, 128), bf(t, 128)
            for name, call in [("inductor", torch.compile(rotary)), ("eager", rotary)]:
                attempt("rotary", name, f"32x{t}x128", 4.0 * t * h, 0, lambda: call(q, cos, sin))
            quant = torch.compile(lambda z: (z.float() * 0.5).clamp(-448, 448).to(torch.float8_e4m3fn))
            attempt("quantise-delayed", "inductor", f"{t}x{h}", 3.0 * t * h, 0, lambda: quant(g))
            current = torch.compile(lambda z: (z.float() * (448 / z.abs().amax().float()))
                                    .clamp(-448, 448).to(torch.float8_e4m3fn))
            attempt("quantise-current", "inductor", f"{t}x{h}", 5.0 * t * h, 0, lambda: current(g))
            rows = torch.compile(lambda z: (z.float() * (448 / z.abs().amax(-1, keepdim=True).float()))
                                 .to(torch.float8_e4m3fn))
            attempt("quantise-rows", "inductor", f"{t}x{h}", 3.0 * t * h, 0, lambda: rows(g))
            index = torch.randint(0, t, (t * 8,), device=device)
            if t <= 8192:
                attempt("permute", "eager", f"{t}x8x{h}", 4.0 * t * 8 * h, 0,
                        lambda: g.index_select(0, index))
                big = g.index_select(0, index)
                sink = torch.zeros(t, h, device=device, dtype=torch.bfloat16)
                attempt("unpermute-add", "eager", f"{t}x8x{h}", 2.0 * t * 8 * h + 4.0 * t * h, 0,
                        lambda: sink.index_add_(0, index, big))
                del big
            logits = bf(t, 256)
            attempt("router", "eager", f"{t}x256", 2.0 * t * 256, 0,
                    lambda: torch.topk(torch.softmax(logits.float(), -1), 8))
            table = bf(128256, h)
            tokens = torch.randint(0, 128256, (t,), device=device)
            attempt("embedding-forward", "eager", f"{t}x{h}", 4.0 * t * h, 0,
                    lambda: F.embedding(tokens, table))
        table.requires_grad_()
        e = F.embedding(tokens, table)
        attempt("embedding-backward", "eager", f"{t}x{h}", 2.0 * t * h + 2.0 * 128256 * h, 0,
                lambda: torch.autograd.grad(e, table, g, retain_graph=True))
        del table, e
        if t <= 8192:
            v = 128256
            z = bf(t, v).requires_grad_()
            target = torch.randint(0, v, (t,), device=device)
            loss = lambda a: F.cross_entropy(a.float(), target)
            for name, call in [("inductor", torch.compile(loss)), ("eager", loss)]:
                with torch.no_grad():
                    attempt("cross-entropy-forward", name, f"{t}x{v}", 2.0 * t * v, 0,
                            lambda: call(z))
                y = call(z)
                attempt("cross-entropy-backward", name, f"{t}x{v}", 4.0 * t * v, 0,
                        lambda: torch.autograd.grad(y, z, retain_graph=True))
            del z, y
    for count in [1 << 24, 1 << 28, 1 << 30]:
        for dtype, each in [(torch.bfloat16, 14.0), (torch.float32, 28.0)]:
            p = torch.zeros(count, device=device, dtype=dtype, requires_grad=True)
            p.grad = torch.ones_like(p)
            adam = torch.optim.AdamW([p], fused=True)
            attempt(f"adamw-{'bf16' if each < 20 else 'fp32'}", "fused", str(count), each * count, 0,
                    adam.step)
            del p, adam
            torch.cuda.empty_cache()
    host = torch.empty(1 << 28, dtype=torch.uint8, pin_memory=True)
    card = torch.empty(1 << 28, dtype=torch.uint8, device=device)
    attempt("host-to-device", "eager", str(1 << 28), 1 << 28, 0,
            lambda: card.copy_(host, non_blocking=True))
    attempt("device-to-host", "eager", str(1 << 28), 1 << 28, 0,
            lambda: host.copy_(card, non_blocking=True))


def sustained(kernel, library, shape, nbytes, flop, call, seconds=2.5):
    readings, stop = [], threading.Event()

    def watch():
        while not stop.is_set():
            text = subprocess.run(["nvidia-smi", "--query-gpu=power.draw.instant,clocks.sm",
                                   "--format=csv,noheader,nounits", "-i", "0"],
                                  capture_output=True, text=True).stdout.split(",")
            readings.append([float(x) for x in text])
            time.sleep(0.1)
    for _ in range(3):
        call()
    torch.cuda.synchronize()
    watcher = threading.Thread(target=watch)
    watcher.start()
    begin, count = time.time(), 0
    marks = []
    while time.time() - begin < seconds:
        for _ in range(10):
            call()
        torch.cuda.synchronize()
        count += 10
        marks.append((time.time(), count))
    stop.set()
    watcher.join()
    half = [m for m in marks if m[0] - begin > seconds / 2]
    ms = (half[-1][0] - half[0][0]) / max(1, half[-1][1] - half[0][1]) * 1e3
    late = readings[len(readings) // 2:]
    watts = sum(r[0] for r in late) / max(1, len(late))
    clock = sum(r[1] for r in late) / max(1, len(late))
    print(f"sustained {kernel} {shape}: {ms:.4g} ms {watts:.0f} W {clock:.0f} MHz", flush=True)
    write("sustained-" + kernel, library, shape, ms, nbytes, flop, watts)


def powers():
    time.sleep(1)
    idle = subprocess.run(["nvidia-smi", "--query-gpu=power.draw.instant", "--format=csv,noheader,nounits",
                           "-i", "0"], capture_output=True, text=True).stdout
    write("idle", "eager", "", 0, 0, 0, float(idle.split()[0]))
    for m in [4096, 8192, 16384]:
        x, w = bf(m, 8192), bf(8192, 8192)
        sustained("gemm-forward", "cublas", f"{m}x8192x8192", 2.0 * (2 * m * 8192 + 8192**2),
                  2.0 * m * 8192**2, lambda: x @ w.t())
    x8, w8 = bf(8192, 8192).to(torch.float8_e4m3fn), bf(8192, 8192).to(torch.float8_e4m3fn)
    one = torch.ones((), device=device)
    sustained("gemm-forward-fp8", "cublas", "8192x8192x8192", 4.0 * 8192**2, 2.0 * 8192**3,
              lambda: torch._scaled_mm(x8, w8.t(), one, one, out_dtype=torch.bfloat16,
                                       use_fast_accum=True))
    q, k, v = bf(1, 32, 16384, 128), bf(1, 32, 16384, 128), bf(1, 32, 16384, 128)
    flop = 32 * 16384.0 * 16385 * 256
    with torch.no_grad(), sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
        sustained("attention-forward", "cudnn-attention", "b1s16384h32d128", 8.0 * 16384 * 32 * 128,
                  flop, lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True))
    g = bf(65536, 8192)
    other = torch.empty_like(g)
    sustained("copy", "eager", "65536x8192", 4.0 * 65536 * 8192, 0, lambda: other.copy_(g))


start = time.time()
for part in [gemms, attentions, memory_bound, powers]:
    try:
        part()
    except Exception as error:
        print(f"{part.__name__}: {error}", flush=True)
    torch.cuda.empty_cache()
    print(f"{part.__name__} done at {time.time() - start:.0f} s", flush=True)
