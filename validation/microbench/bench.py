# SPDX-License-Identifier: Apache-2.0
# Knows how the Python microbenchmarks time device and host work and write JSON lines.
"""Shared by attention.py and framework.py; bench.cuh does the same for the CUDA programs.

All work runs on one stream of its own, so that it can be captured into CUDA graphs: autograd runs a
backward on the stream of its forward. README.md holds the schema of the lines.
"""
import argparse
import datetime
import gc
import json
import math
import os
import subprocess
import sys
import time

import torch


class Out:
    """Lines on standard output; whatever libraries print goes to standard error instead."""

    def __init__(self):
        self.file = os.fdopen(os.dup(1), "w", buffering=1)
        os.dup2(2, 1)

    def line(self, record, **keys):
        plain = {k: round_number(v) for k, v in keys.items() if v is not None}
        self.file.write(json.dumps({"record": record, **plain}, separators=(",", ":")) + "\n")
        self.file.flush()


def round_number(value):
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    return value


class Nvml:
    """Sensors of the GPU: through nvidia-ml-py, or rarely through nvidia-smi, which is slow."""

    def __init__(self, gpu):
        self.gpu, self.lib, self.handle = gpu, None, None
        try:
            import pynvml
            pynvml.nvmlInit()
            self.lib = pynvml
            self.handle = self.find(gpu)
        except Exception as error:
            print(f"no nvidia-ml-py: {error}", file=sys.stderr)

    def find(self, gpu):
        visible = os.environ.get("CUDA_VISIBLE_DEVICES", "")
        name = visible.split(",")[gpu] if visible else str(gpu)
        if name.isdigit():
            return self.lib.nvmlDeviceGetHandleByIndex(int(name))
        return self.lib.nvmlDeviceGetHandleByUUID(name)

    def ask(self, function, *arguments, scale=1.0):
        if self.handle is None:
            return None
        try:
            return getattr(self.lib, function)(self.handle, *arguments) * scale
        except Exception:
            return None

    def smi(self, query):
        try:
            text = subprocess.run(
                ["nvidia-smi", "-i", str(self.gpu), f"--query-gpu={query}",
                 "--format=csv,noheader,nounits"], capture_output=True, text=True, timeout=30)
            return text.stdout.strip().splitlines()[0].strip()
        except Exception:
            return ""

    def clock(self):
        return self.ask("nvmlDeviceGetClockInfo", 1)

    def power(self):
        return self.ask("nvmlDeviceGetPowerUsage", scale=1e-3)

    def energy(self):
        """Joules since the driver was loaded, by the board's own counter."""
        return self.ask("nvmlDeviceGetTotalEnergyConsumption", scale=1e-3)

    def temperature(self):
        return self.ask("nvmlDeviceGetTemperature", 0)

    def used_bytes(self):
        try:
            return self.lib.nvmlDeviceGetMemoryInfo(self.handle).used
        except Exception:
            return None

    def limit_w(self):
        return self.ask("nvmlDeviceGetEnforcedPowerLimit", scale=1e-3) or number(
            self.smi("power.limit"))

    def max_clock(self, kind):  # 1: processors, 2: memory
        return self.ask("nvmlDeviceGetMaxClockInfo", kind)

    def driver(self):
        try:
            version = self.lib.nvmlSystemGetDriverVersion()
            return version.decode() if isinstance(version, bytes) else version
        except Exception:
            return self.smi("driver_version")


def number(text):
    try:
        return float(text)
    except ValueError:
        return None


def host_cpu():
    try:
        with open("/proc/cpuinfo") as info:
            for line in info:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return ""


class Bench:
    """One program on one GPU: its options, stream, sensors, clock budget and output."""

    def __init__(self, program, seconds):
        parser = argparse.ArgumentParser()
        parser.add_argument("--quick", action="store_true", help="a small sample of the cases")
        parser.add_argument("--gpu", type=int, default=0)
        parser.add_argument("--gpus", type=int, default=1)
        parser.add_argument("--seconds", type=float, default=seconds,
                            help="cases left after so long are not run")
        self.options = parser.parse_args()
        self.quick, self.program = self.options.quick, program
        self.start, self.out = time.time(), Out()
        self.nvml = Nvml(self.options.gpu)
        self.base_bytes = self.nvml.used_bytes()  # before this process has a context
        torch.cuda.set_device(self.options.gpu)
        self.device = torch.device("cuda", self.options.gpu)
        torch.manual_seed(1)
        self.stream = torch.cuda.Stream()
        torch.cuda.set_stream(self.stream)
        properties = torch.cuda.get_device_properties(self.device)
        self.cold_bytes = 3 * (getattr(properties, "L2_cache_size", 0) or 64 << 20)
        self.pool = None
        self.skipped = 0
        self.graph_pool = self.keeper = None
        self.make_graph_pool()

    def make_graph_pool(self):
        """One memory pool for all graphs, alive as long as the small graph that holds it."""
        x = torch.zeros(64, device=self.device)
        self.graph_pool = torch.cuda.graph_pool_handle()
        self.keeper = self.capture(lambda i: x.add_(1), 1)
        if self.keeper is None:
            self.graph_pool = None

    def conditions(self, **more):
        cudnn = torch.backends.cudnn.version() or 0
        libraries = {"torch": str(torch.__version__),
                     "cudnn": f"{cudnn // 10000}.{cudnn // 100 % 100}.{cudnn % 100}"}
        try:
            import triton
            libraries["triton"] = triton.__version__
        except Exception:
            pass
        libraries.update(more)
        self.out.line("conditions", program=self.program,
                      device=torch.cuda.get_device_name(self.device), gpu=self.options.gpu, gpus=1,
                      driver=self.nvml.driver(), cuda=str(torch.version.cuda), libraries=libraries,
                      power_limit_w=self.nvml.limit_w(), max_clock_mhz=self.nvml.max_clock(1),
                      memory_clock_mhz=self.nvml.max_clock(2), host=host_cpu(),
                      date=datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"))

    def elapsed(self):
        return time.time() - self.start

    def has_time(self, share=1.0):
        return self.elapsed() < share * self.options.seconds

    def note(self, text):
        print(f"{self.program} {self.elapsed():.1f} s: {text}", file=sys.stderr, flush=True)

    def attempt(self, what, call):
        """Runs one case; one that fails, such as a kernel that this build lacks, is said."""
        if not self.has_time():
            self.skipped += 1
            return None
        try:
            return call()
        except Exception as error:
            self.note(f"{what}: {type(error).__name__}: {str(error)[:160]}")
            return None

    def random(self, *shape, offset=0):
        """bf16 random numbers: a view into one large buffer, `offset` elements from its begin."""
        count = math.prod(shape)
        if self.pool is None or self.pool.numel() < offset + count:
            size = max(1 << 29, offset + count)
            self.pool = None
            self.pool = torch.randn(size, device=self.device, dtype=torch.bfloat16)
        return self.pool[offset:offset + count].view(*shape)

    def sets(self, nbytes, most=16):
        """How many sets of operands a kernel rotates over so that they come from memory."""
        return max(1, min(most, math.ceil(self.cold_bytes / max(1, nbytes))))

    def burst(self, operation, sets=1, repeats=5, burst_ms=5.0, in_graph=True):
        """Times operation(i): short bursts inside a CUDA graph, pauses between, so that the power
        limit does not act. Falls back to a stream whose queue the host fills ahead of time. The
        last `sets` results stay alive, so that results too rotate over memory."""
        kept = [None] * sets

        def call(i):
            kept[i % sets] = operation(i)

        call(0)
        self.stream.synchronize()
        once = self.events_us(lambda: (call(1), call(2))) / 2
        calls = int(max(2 if once < 8e3 else 1, min(200, 1e3 * burst_ms / max(once, 2.0))))
        graph = self.capture(call, calls) if in_graph else None
        kept[:] = [None] * sets
        before, times = self.nvml.clock(), []
        if graph is not None:
            graph.replay()
            self.stream.synchronize()
        for i in range(repeats):
            time.sleep(min(0.04, 2e-6 * once * calls))
            if graph is not None:
                call(i)  # the first after a pause finds cold instruction caches
                times.append(self.events_us(graph.replay) / calls)
            else:
                times.append(self.queued_us(call, calls))
        times.sort()
        result = {"time_us": times[len(times) // 2], "low_us": times[0], "high_us": times[-1],
                  "repeats": repeats, "calls": calls, "clock_before_mhz": before,
                  "clock_after_mhz": self.nvml.clock(), "power_w": self.nvml.power(),
                  "temperature_c": self.nvml.temperature()}
        del graph
        return result

    def sustained(self, operation, seconds, sets=1):
        """Runs operation(i) for `seconds` without a pause; time, power and clock are those of the
        last third, when the power limit, the cooling and the sensor have settled."""
        kept = [None] * sets

        def call(i):
            kept[i % sets] = operation(i)

        call(0)
        once = self.events_us(lambda: (call(1), call(2))) / 2
        calls = int(max(1, min(1000, 2e4 / max(once, 2.0))))  # 20 ms a replay
        graph = self.capture(call, calls)
        kept[:] = [None] * sets
        replay = graph.replay if graph is not None else lambda: [call(i) for i in range(calls)]
        before, times, watts, clocks, heat = self.nvml.clock(), [], [], [], []
        queue, start = [], time.perf_counter()
        while time.perf_counter() - start < seconds:
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            replay()
            end.record()
            queue.append((begin, end))
            if len(queue) < 3:  # two replays always wait in the queue
                continue
            begin, end = queue.pop(0)
            end.synchronize()
            if time.perf_counter() - start > 2 / 3 * seconds:
                times.append(1e3 * begin.elapsed_time(end) / calls)
                watts.append(self.nvml.power())
                clocks.append(self.nvml.clock())
                heat.append(self.nvml.temperature())
        self.stream.synchronize()
        del graph
        times.sort()
        if not times or None in watts:
            raise RuntimeError("no readings: the power sensor is silent or one call is too long")
        mean = [sum(x) / len(x) for x in (watts, clocks, heat)]
        return {"time_us": times[len(times) // 2], "low_us": times[0], "high_us": times[-1],
                "repeats": len(times), "calls": calls, "clock_before_mhz": before,
                "clock_after_mhz": mean[1], "power_w": mean[0], "temperature_c": mean[2],
                "seconds": time.perf_counter() - start}

    def events_us(self, work):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        work()
        end.record()
        end.synchronize()
        return 1e3 * begin.elapsed_time(end)

    def queued_us(self, call, calls):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        calls = min(calls, 40)  # the queue holds about a thousand launches
        start = time.perf_counter()
        call(0)
        host = time.perf_counter() - start
        # The device sleeps, counting its own cycles, until the host has queued all calls.
        torch.cuda._sleep(min(400_000_000, int(3e9 * host * calls) + 1_000_000))
        begin.record()
        for i in range(calls):
            call(i)
        end.record()
        end.synchronize()
        return 1e3 * begin.elapsed_time(end) / calls

    def capture(self, call, calls):
        graph = torch.cuda.CUDAGraph()
        try:
            self.stream.synchronize()
            graph.capture_begin(pool=self.graph_pool, capture_error_mode="thread_local")
            try:
                for i in range(calls):
                    call(i)
            finally:
                graph.capture_end()
            return graph
        except Exception as error:
            self.note(f"not captured, timed in a stream: {str(error).splitlines()[0][:100]}")
            try:
                torch.cuda.synchronize()
            except Exception:
                pass
            return None

    def host_us(self, work, count, repeats=7):
        """Host time of one of `count` operations that work() queues; the device keeps pace."""
        work()
        torch.cuda.synchronize()
        times = []
        for _ in range(repeats):
            begin = time.perf_counter()
            work()
            times.append(1e6 * (time.perf_counter() - begin) / count)
            torch.cuda.synchronize()
        times.sort()
        return {"value": times[len(times) // 2], "low": times[0], "high": times[-1], "unit": "us",
                "repeats": repeats, "calls": count}

    def sample(self, kind, library, variant, timing, **shape):
        self.out.line("sample", part=self.program, kind=kind, library=library, variant=variant,
                      mode="burst", **shape, **timing)

    def software(self, variant, value, unit, low=None, high=None, **keys):
        self.out.line("sample", part=self.program, kind="software", variant=variant, value=value,
                      low=low, high=high, unit=unit, **keys)

    def free(self):
        self.pool = None
        gc.collect()  # compiled modules refer to themselves: their memory must go now
        torch.cuda.synchronize()
        torch.cuda.empty_cache()

    def close(self):
        if self.skipped:
            self.note(f"{self.skipped} cases skipped after {self.options.seconds:.0f} s")
        self.note("done")
        # Process groups and compile workers must not keep the program from ending.
        self.out.file.flush()
        sys.stderr.flush()
        os._exit(0)


def relative_error(found, expected):
    difference = torch.linalg.vector_norm(found.float() - expected.float())
    return float(difference / torch.linalg.vector_norm(expected.float()))
