# SPDX-License-Identifier: Apache-2.0
# Knows how each fault is made on a GPU or its host, and how it is taken away again.
"""A fault has `on()`, in which it holds, and hooks between the parts of a step. `shape` says what the model
must be built with. Strengths are shares of a healthy step (`run.base`, seconds).
"""

import contextlib
import os
import subprocess
import sys
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F

SPIN = r"""
extern "C" __global__ void spin(unsigned long long nanoseconds) {
  extern __shared__ char block[];
  unsigned long long start, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
  do asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now)); while (now - start < nanoseconds);
  if (now == 1) block[0] = 1;
}
"""
NOISE = """
import sys, time, torch
duty = float(sys.argv[2]); torch.cuda.set_device(int(sys.argv[1]))
a = torch.randn(4096, 4096, device='cuda', dtype=torch.bfloat16)
for _ in range(20): b = a @ a
torch.cuda.synchronize(); print('ready', flush=True)
while True:
    start = time.perf_counter()
    for _ in range(20): b = a @ a
    torch.cuda.synchronize()
    time.sleep((time.perf_counter() - start) * (1 / duty - 1))
"""


class Fault:
    """None at all."""

    def __init__(self, run, **_):
        self.run = run

    @classmethod
    def shape(cls, strength):
        return ()

    def batch(self, batch):
        return batch

    @contextlib.contextmanager
    def on(self):
        yield

    def before_forward(self, step):
        pass

    def before_backward(self, step):
        pass

    def after_backward(self, step):
        pass

    def after_step(self, step):
        pass


class Sleep(Fault):
    def __init__(self, run, rank, share):
        super().__init__(run)
        self.seconds = share * run.base if run.rank == rank else 0.0

    def before_forward(self, step):
        time.sleep(self.seconds)


class SleepInLayers(Sleep):
    """A host that is slow everywhere, not once."""

    def before_forward(self, step):
        pass

    @contextlib.contextmanager
    def on(self):
        blocks = self.run.blocks()
        each = self.seconds / (2 * len(blocks))

        def wait(*_):
            if each:
                time.sleep(each)

        handles = [b.register_forward_pre_hook(wait) for b in blocks]
        handles += [b.register_full_backward_pre_hook(wait) for b in blocks]
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()


class Busy(Fault):
    """Another process computes on the same GPU, `duty` of the time."""

    def __init__(self, run, rank, duty):
        super().__init__(run)
        self.rank, self.duty = rank, duty

    @contextlib.contextmanager
    def on(self):
        other = None
        if self.run.rank == self.rank:
            words = [sys.executable, "-c", NOISE, str(torch.cuda.current_device()), str(self.duty)]
            clean = {k: v for k, v in os.environ.items() if k not in ("RANK", "LOCAL_RANK", "WORLD_SIZE")}
            other = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=clean)
            other.stdout.readline()
        if dist.is_initialized():
            dist.barrier()
        try:
            yield
        finally:
            if other:
                other.kill()
                other.wait()


class FewSms(Fault):
    """A kernel that waits holds so many processors of the GPU through each step."""

    kernel = None

    def __init__(self, run, rank, sms):
        super().__init__(run)
        self.sms = sms if run.rank == rank else 0
        self.longest = 0.95 * run.base * 132 / (132 - sms)

    @contextlib.contextmanager
    def on(self):
        if self.sms:
            import cupy

            cupy.cuda.Device(torch.cuda.current_device()).use()
            self.cupy, self.shared = cupy, 200 * 1024
            if FewSms.kernel is None:
                FewSms.kernel = cupy.RawKernel(SPIN, "spin")
                FewSms.kernel.max_dynamic_shared_size_bytes = self.shared
            self.stream = cupy.cuda.Stream(non_blocking=True)
        yield
        if self.sms:
            self.stream.synchronize()

    def before_forward(self, step):
        if self.sms and step >= 1000:  # a step that is profiled has the fault from its start
            self.stream.synchronize()
        if self.sms and self.stream.done:
            with self.stream:
                ns = int(1e9 * self.longest)
                FewSms.kernel((self.sms,), (1024,), (self.cupy.uint64(ns),), shared_mem=self.shared)


class Sync(Fault):
    """The host waits for the device after every layer, every module, or each phase of a step."""

    def __init__(self, run, every):
        super().__init__(run)
        self.every = every

    @contextlib.contextmanager
    def on(self):
        def wait(*_):
            torch.cuda.current_stream().synchronize()

        blocks = [] if self.every == "phase" else list(self.run.blocks())
        modules = [m for b in blocks for m in b.modules()] if self.every == "module" else blocks
        handles = [m.register_forward_hook(wait) for m in modules]
        handles += [m.register_full_backward_pre_hook(wait) for m in blocks]
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    def before_backward(self, step):
        torch.cuda.current_stream().synchronize()

    def after_backward(self, step):
        torch.cuda.current_stream().synchronize()


class SyncKernels(Fault):
    """The same of the serving engine, whose model is one function: after every layer."""

    @contextlib.contextmanager
    def on(self):
        model = self.run.model()
        plain = model.attention

        def waiting(*words, **keys):
            out = plain(*words, **keys)
            torch.cuda.current_stream().synchronize()
            return out

        model.attention = waiting
        try:
            yield
        finally:
            model.attention = plain


class Data(Fault):
    """Reading a batch takes a while: every step, or every few steps."""

    def __init__(self, run, share, every):
        super().__init__(run)
        self.seconds, self.every, self.count = share * run.base, every, 0

    @contextlib.contextmanager
    def on(self):
        def stall():
            self.count += 1
            if self.count % self.every == 0:
                time.sleep(self.seconds)

        self.run.data.stall = stall
        yield


class Longer(Fault):
    """One rank has more sequences than the others."""

    def __init__(self, run, rank, more):
        super().__init__(run)
        self.more = more if run.rank == rank else 0

    def batch(self, batch):
        return batch + self.more


class Fp32(Fault):
    def __init__(self, run, tf32):
        super().__init__(run)
        self.tf32 = tf32

    @classmethod
    def shape(cls, strength):
        return (("fp32", True),)

    @contextlib.contextmanager
    def on(self):
        torch.backends.cuda.matmul.allow_tf32 = self.tf32
        yield
        torch.backends.cuda.matmul.allow_tf32 = False


class EmptyCache(Fault):
    """Memory goes back to the driver in every step and is asked for again."""

    def before_backward(self, step):
        torch.cuda.empty_cache()

    def after_backward(self, step):
        torch.cuda.empty_cache()


class Attention(Fault):
    """The library has no fast attention kernel for the chip: an older one runs."""

    @contextlib.contextmanager
    def on(self):
        from torch.nn.attention import SDPBackend, sdpa_kernel

        plain = F.scaled_dot_product_attention

        def older(q, k, v, enable_gqa=False, **keys):
            if enable_gqa:
                times = q.shape[1] // k.shape[1]
                k, v = k.repeat_interleave(times, 1), v.repeat_interleave(times, 1)
            return plain(q, k, v, **keys)

        torch._dynamo.reset()
        F.scaled_dot_product_attention = older
        try:
            with sdpa_kernel([SDPBackend.EFFICIENT_ATTENTION]):
                yield
        finally:
            F.scaled_dot_product_attention = plain
            torch._dynamo.reset()


class Anomaly(Fault):
    @contextlib.contextmanager
    def on(self):
        with torch.autograd.set_detect_anomaly(True):
            yield


class Checkpoint(Fault):
    """The weights of a rank go to memory of the host's file system, every few steps."""

    def __init__(self, run, every):
        super().__init__(run)
        self.every = every

    def after_step(self, step):
        if 0 < step < 1000 and step % self.every == 0:
            local = [getattr(p, "_local_tensor", p.data) for p in self.run.model.parameters()]
            torch.save(local, f"/dev/shm/checkpoint{self.run.rank}")
            os.remove(f"/dev/shm/checkpoint{self.run.rank}")
            dist.barrier()


class BusyHost(Fault):
    """Other processes compete for the processors of every rank's host process."""

    def __init__(self, run, processes):
        super().__init__(run)
        self.processes = processes

    @contextlib.contextmanager
    def on(self):
        before = os.sched_getaffinity(0)
        cores = sorted(before)
        mine = set(cores[2 * self.run.rank : 2 * self.run.rank + 2])
        threads = [int(t) for t in os.listdir("/proc/self/task")]
        others = []
        for thread in threads:
            os.sched_setaffinity(thread, mine)
        try:
            for _ in range(self.processes):
                others.append(subprocess.Popen([sys.executable, "-c", "while True: pass"]))
            time.sleep(0.2)
            yield
        finally:
            for other in others:
                other.kill()
                other.wait()
            for thread in threads:
                with contextlib.suppress(ProcessLookupError):
                    os.sched_setaffinity(thread, before)


class Buckets(Fault):
    def __init__(self, run, megabytes):
        super().__init__(run)

    @classmethod
    def shape(cls, strength):
        return (("buckets", strength["megabytes"]),)


class NoOverlap(Fault):
    """One bucket, or one unit, holds the whole model: nothing is left to hide its traffic."""

    @classmethod
    def shape(cls, strength):
        return (("buckets", 100000), ("wrap_blocks", False))


FAULTS = {
    "none": Fault,
    "sleep": Sleep,
    "sleep-in-layers": SleepInLayers,
    "busy": Busy,
    "few-sms": FewSms,
    "sync": Sync,
    "sync-kernels": SyncKernels,
    "data": Data,
    "longer": Longer,
    "fp32": Fp32,
    "empty-cache": EmptyCache,
    "attention": Attention,
    "anomaly": Anomaly,
    "checkpoint": Checkpoint,
    "busy-host": BusyHost,
    "buckets": Buckets,
    "no-overlap": NoOverlap,
}
