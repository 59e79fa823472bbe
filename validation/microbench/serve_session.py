# SPDX-License-Identifier: Apache-2.0
# Knows what the parts of serve.py share: options, JSON lines that survive an interrupt, conditions, clocks.
"""Lines go to a file beside the wanted one (`.part`), which takes its name when the program ends, also
after Ctrl-C or SIGTERM. Records of cases carry an `id` and `held`: true where the first byte of the id's
SHA-256 is odd. Fits may read the others alone.
"""

import datetime
import gzip
import hashlib
import json
import math
import os
import platform
import sys
import time

import torch

from bench import Nvml, host_cpu
from serve_model import SHAPES
from serve_runner import Runner


def held(name):
    return hashlib.sha256(name.encode()).digest()[0] % 2 == 1


def seed_of(name):
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[1:5], "big")


def plain(value):
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return value


def asked(arguments):
    """The command line without where its output goes."""
    return " ".join(
        a for i, a in enumerate(arguments) if "--output" not in (a, (arguments[i - 1 : i] or [""])[0])
    )


class Output:
    def __init__(self, path):
        self.path, self.beside = path, path + ".part"
        self.file = (
            gzip.open(self.beside, "wt", compresslevel=6)
            if path.endswith(".gz")
            else open(self.beside, "w")
        )

    def line(self, record, **keys):
        kept = {k: plain(v) for k, v in keys.items() if v is not None}
        self.file.write(json.dumps({"record": record, **kept}, separators=(",", ":")) + "\n")
        self.file.flush()

    def close(self):
        self.file.close()
        os.replace(self.beside, self.path)


class Session:
    def __init__(self, options):
        self.options, self.out = options, Output(options.output)
        self.start, self.quick = time.perf_counter(), options.quick
        self.nvml, self.capacity, self.interrupted = Nvml(0), {}, False
        self.device = torch.device(options.device)
        if self.device.type == "cuda":
            torch.cuda.set_device(self.device.index or 0)
            self.device = torch.device("cuda", self.device.index or 0)
            torch.cuda.set_stream(torch.cuda.Stream())  # graphs cannot be captured on the default one
        torch.set_grad_enabled(False)

    def note(self, text):
        try:
            print(f"serve {time.perf_counter() - self.start:.1f} s: {text}", file=sys.stderr, flush=True)
        except OSError:  # nobody reads it any more; the file matters
            pass

    def interrupt(self, *_):
        """The first interrupt ends the running case with what it has; the second ends the program at once."""
        if self.interrupted:
            raise KeyboardInterrupt
        self.interrupted = True

    def stopped(self):
        return self.interrupted

    def has_time(self):
        return time.perf_counter() - self.start < self.options.seconds

    def seconds(self, wanted):
        """So many seconds of a case under --scale."""
        return wanted * self.options.scale * (0.2 if self.quick else 1.0)

    def runner(self, name, **keys):
        options = self.options
        size = dict(
            context=options.context,
            max_sequences=options.max_sequences,
            token_budget=options.token_budget,
            share=options.share,
        )
        size.update(keys)
        runner = Runner(SHAPES[name], self.device, note=self.note, **size)
        self.engine_line(runner)
        if runner.cuda:
            runner.warm()
        self.note(f"{name}: ready")
        return runner

    def engine_line(self, runner, **keys):
        shape = runner.shape
        self.out.line(
            "engine",
            model=shape.name,
            parameters=shape.parameters(),
            blocks=runner.blocks,
            page=16,
            context=runner.context,
            max_sequences=runner.max_sequences,
            token_budget=runner.token_budget,
            graph_sizes=runner.sizes,
            memory_bytes=runner.memory,
            shape={k: v for k, v in vars(shape).items() if k != "name"},
            **keys,
        )

    def sensors(self):
        n = self.nvml
        return {"clock_mhz": n.clock(), "power_w": n.power(), "temperature_c": n.temperature()}

    def conditions(self, about, gpus=1):
        libraries = {"torch": str(torch.__version__), "python": platform.python_version()}
        try:
            import triton

            libraries["triton"] = triton.__version__
            libraries["nccl"] = ".".join(str(x) for x in torch.cuda.nccl.version())
        except Exception:
            pass
        cuda = self.device.type == "cuda"
        properties = torch.cuda.get_device_properties(self.device) if cuda else None
        self.out.line(
            "conditions",
            program="serve",
            about=about,
            device=properties.name if cuda else "cpu",
            gpus=gpus,
            processors=properties.multi_processor_count if cuda else None,
            memory_bytes=properties.total_memory if cuda else None,
            driver=self.nvml.driver(),
            cuda=str(torch.version.cuda),
            libraries=libraries,
            power_limit_w=self.nvml.limit_w(),
            max_clock_mhz=self.nvml.max_clock(1),
            memory_clock_mhz=self.nvml.max_clock(2),
            host=host_cpu(),
            host_cores=os.cpu_count(),
            command=asked(sys.argv[1:]),
            parts=self.options.part,
            date=datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"),
            **self.sensors(),
        )

    def case(self, what, call):
        """Runs one case; a failure is a line, and the program goes on."""
        if self.interrupted:
            raise KeyboardInterrupt
        if not self.has_time():
            self.out.line("skipped", id=what, reason="no time was left")
            return None
        try:
            return call()
        except (RuntimeError, ValueError, KeyError, AssertionError) as error:
            text = " ".join(f"{type(error).__name__}: {error}".split())[:240]
            self.out.line("failed", id=what, reason=text)
            self.note(f"{what}: {text}")
            if "CUDA error" in text or "illegal" in text:
                raise SystemExit(f"serve.py: the device is lost at {what}")
        return None

    def sample(self, name, part, **keys):
        self.out.line("sample", id=name, part=part, held=held(name), **keys)
