"""What sustained work draws: rate, board power and clock of kernels that run for seconds on one GPU.

python3 power.py OUT.jsonl: one JSON line per kernel with its conditions. `burst` is the rate of a few
launches after a pause, `sustained` that of the last seconds of a long run; dynamic energy per operation is
(power - idle) / rate. Random normal data, three buffers in rotation.
"""
import functools, json, subprocess, sys, threading, time
import torch
import torch.nn.functional as F

device = torch.device("cuda", 0)
torch.manual_seed(0)


class Sampler(threading.Thread):
    """Power and SM clock every 50 ms, as nvidia-smi reports them."""

    def __init__(self):
        super().__init__(daemon=True)
        self.samples = []
        self.process = subprocess.Popen(
            ["nvidia-smi", "-i", "0", "--query-gpu=power.draw.instant,clocks.sm,temperature.gpu",
             "--format=csv,noheader,nounits", "-lms", "50"], stdout=subprocess.PIPE, text=True)

    def run(self):
        for line in self.process.stdout:
            try:
                self.samples.append((time.time(), *[float(x) for x in line.split(",")]))
            except ValueError:
                pass

    def mean(self, begin, end):
        rows = [s for s in self.samples if begin <= s[0] <= end] or self.samples[-1:]
        return [sum(r[i] for r in rows) / len(rows) for i in (1, 2, 3)]


def randn(*shape, dtype=torch.bfloat16):
    return torch.randn(*shape, device=device, dtype=torch.float32).to(dtype)


def gemm(m, n, k, dtype=torch.bfloat16):
    a = [randn(m, k, dtype=dtype) for _ in range(3)]
    b = [randn(k, n, dtype=dtype) for _ in range(3)]
    c = torch.empty(m, n, device=device, dtype=dtype)
    return lambda i: torch.mm(a[i % 3], b[i % 3], out=c), {"flop": 2.0 * m * n * k}


def gemm_fp8(m, n, k):
    a = [randn(m, k).to(torch.float8_e4m3fn) for _ in range(3)]
    b = [randn(n, k).to(torch.float8_e4m3fn).t() for _ in range(3)]
    one = torch.ones((), device=device)
    return (lambda i: torch._scaled_mm(a[i % 3], b[i % 3], scale_a=one, scale_b=one,
                                       out_dtype=torch.bfloat16)), {"flop": 2.0 * m * n * k}


def copy(gigabytes):
    n = int(gigabytes * 1e9 / 2)
    a = [randn(n) for _ in range(2)]
    b = torch.empty_like(a[0])
    return lambda i: b.copy_(a[i % 2]), {"bytes": 4.0 * n}


def read(gigabytes):
    n = int(gigabytes * 1e9 / 2)
    a = [randn(n) for _ in range(2)]
    return lambda i: a[i % 2].amax(), {"bytes": 2.0 * n}


def attention(b, h, s, d, backward):
    q, k, v = [randn(b, h, s, d).requires_grad_(backward) for _ in range(3)]
    g = randn(b, h, s, d)

    def run(_):
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        if backward:
            torch.autograd.grad(y, (q, k, v), g)

    return run, {"flop": 2.0 * b * h * s * s * d * (3.5 if backward else 1.0)}


def layer(tokens, hidden, ffn, heads):
    """The products, attention and element-wise work of one Llama layer, forward and backward."""
    w = [randn(hidden, 3 * hidden // 2), randn(hidden, hidden), randn(hidden, 2 * ffn), randn(ffn, hidden)]
    w = [(0.02 * x).requires_grad_(True) for x in w]
    x0 = randn(tokens, hidden).requires_grad_(True)
    g = randn(tokens, hidden)
    d = hidden // heads

    def run(_):
        y = F.rms_norm(x0, (hidden,)) @ w[0]
        q, k, v = y.split([hidden, hidden // 4, hidden // 4], -1)
        shape = lambda t: t.view(1, tokens, -1, d).transpose(1, 2)
        y = F.scaled_dot_product_attention(shape(q), shape(k), shape(v), is_causal=True,
                                           enable_gqa=True)
        x = x0 + y.transpose(1, 2).reshape(tokens, hidden) @ w[1]
        a, b = (F.rms_norm(x, (hidden,)) @ w[2]).chunk(2, -1)
        x = x + (F.silu(a) * b) @ w[3]
        torch.autograd.grad(x, [x0, *w], g)

    flop = 6.0 * tokens * sum(t.numel() for t in w) + 3.5 * 2.0 * tokens * tokens * hidden
    return run, {"flop": flop}


def norm(tokens, hidden, backward):
    x = randn(tokens, hidden).requires_grad_(backward)
    w = randn(hidden).requires_grad_(backward)
    g = randn(tokens, hidden)

    def run(_):
        y = F.rms_norm(x, (hidden,), w)
        if backward:
            torch.autograd.grad(y, (x, w), g)

    return run, {"bytes": (10.0 if backward else 4.0) * tokens * hidden}


def quantise(tokens, hidden):
    x = [randn(tokens, hidden) for _ in range(3)]
    return (lambda i: (x[i % 3] * (448.0 / x[i % 3].abs().amax())).to(torch.float8_e4m3fn),
            {"bytes": 5.0 * tokens * hidden})


def transpose(n):
    a = [randn(n, n) for _ in range(2)]
    b = torch.empty_like(a[0])
    return lambda i: b.copy_(a[i % 2].t()), {"bytes": 4.0 * n * n}


def cached_add(megabytes):
    a = randn(int(megabytes * 1e6 / 2))
    return lambda i: a.add_(1), {"bytes": 2 * megabytes * 1e6}


def swiglu(tokens, width):
    a, b = randn(tokens, width), randn(tokens, width)
    return lambda i: F.silu(a) * b, {"bytes": 10.0 * tokens * width}


def spin(blocks):
    """Arithmetic without memory traffic: what busy processors draw."""
    x = torch.randn(blocks * 1024, device=device)
    f = torch.compile(lambda t: functools.reduce(lambda u, _: u * 0.999 + 0.001, range(256), t))
    return lambda i: f(x), {"flop": 512.0 * blocks * 1024}


CASES = [
    ("norm forward t16384 h8192", lambda: norm(16384, 8192, False)),
    ("norm forward+backward t16384 h8192", lambda: norm(16384, 8192, True)),
    ("quantise to fp8, current scale t16384 h8192", lambda: quantise(16384, 8192)),
    ("transpose 16384", lambda: transpose(16384)),
    ("add in cache 16 MB", lambda: cached_add(16)),
    ("swiglu eager t16384 w14336", lambda: swiglu(16384, 14336)),
    ("arithmetic without traffic", lambda: spin(132 * 64)),
    ("gemm bf16 8192^3", lambda: gemm(8192, 8192, 8192)),
    ("gemm bf16 4096x28672x4096", lambda: gemm(4096, 28672, 4096)),
    ("gemm bf16 4096x4096x14336", lambda: gemm(4096, 4096, 14336)),
    ("gemm fp16 8192^3", lambda: gemm(8192, 8192, 8192, torch.float16)),
    ("gemm fp8 8192^3", lambda: gemm_fp8(8192, 8192, 8192)),
    ("gemm fp8 4096x28672x4096", lambda: gemm_fp8(4096, 28672, 4096)),
    ("copy 4 GB", lambda: copy(4)),
    ("read 4 GB", lambda: read(4)),
    ("attention forward s8192 d128", lambda: attention(1, 32, 8192, 128, False)),
    ("attention forward+backward s8192 d128", lambda: attention(1, 32, 8192, 128, True)),
    ("llama layer forward+backward t8192 h4096", lambda: layer(8192, 4096, 14336, 32)),
]


def timed(run, count):
    begin, end = torch.cuda.Event(True), torch.cuda.Event(True)
    begin.record()
    for i in range(count):
        run(i)
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end) * 1e-3 / count


def measure(name, make, sampler, conditions, idle):
    run, work = make()
    for i in range(3):
        run(i)
    torch.cuda.synchronize()
    bursts = []
    for _ in range(5):
        time.sleep(0.3)
        bursts.append(timed(run, 4))
    once = timed(run, 10)
    chunk = max(1, int(0.25 / once))
    begin = time.time()
    times = []
    while time.time() - begin < 5:
        times.append((time.time(), timed(run, chunk)))
    late = [t for at, t in times if at - begin > 2]
    sustained = sorted(late)[len(late) // 2]
    power, clock, temperature = sampler.mean(begin + 2, time.time())
    burst = sorted(bursts)[2]
    row = dict(name=name, burst_s=burst, burst_low_s=min(bursts), burst_high_s=max(bursts),
               sustained_s=sustained, sustained_low_s=min(late), sustained_high_s=max(late),
               power_w=power, idle_w=idle, clock_mhz=clock, temperature_c=temperature, **work, **conditions)
    per = work.get("flop") or work["bytes"]
    row["burst_per_s"], row["sustained_per_s"] = per / burst, per / sustained
    row["dynamic_energy_j_per_unit"] = (power - idle) * sustained / per
    return row


def main():
    query = lambda f: subprocess.check_output(
        ["nvidia-smi", "-i", "0", "--query-gpu=" + f, "--format=csv,noheader,nounits"], text=True).strip()
    conditions = dict(device=torch.cuda.get_device_name(0), driver=query("driver_version"),
                      cuda=torch.version.cuda, torch=torch.__version__,
                      power_limit_w=float(query("power.limit")), max_clock_mhz=float(query("clocks.max.sm")),
                      date=time.strftime("%Y-%m-%d"))
    sampler = Sampler()
    sampler.start()
    time.sleep(4)
    idle = sampler.mean(time.time() - 2, time.time())[0]
    torch.zeros(1, device=device)
    with open(sys.argv[1], "w") as out:
        for name, make in CASES:
            try:
                row = measure(name, make, sampler, conditions, idle)
            except Exception as error:  # a format that this library lacks must not end the run
                row = dict(name=name, error=repr(error)[:200], **conditions)
            out.write(json.dumps(row) + "\n")
            out.flush()
            torch.cuda.empty_cache()
    for line in open(sys.argv[1]):
        r = json.loads(line)
        if "error" in r:
            print(r["name"], r["error"])
        else:
            print(f"{r['name']:42s} burst {r['burst_per_s']/1e12:8.2f} T/s sustained {r['sustained_per_s']/1e12:8.2f} T/s "
                  f"{r['power_w']:5.0f} W {r['clock_mhz']:5.0f} MHz {1e12*r['dynamic_energy_j_per_unit']:8.3f} pJ")
    sampler.process.kill()


main()
