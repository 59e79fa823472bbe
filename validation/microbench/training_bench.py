# SPDX-License-Identifier: Apache-2.0
# Knows what the parts of training_parts.py share: options, one timed sample, failures as lines, kernels by name.
"""A case that fails writes a line of record `failed` with its reason, and the program goes on with the next
case. After an error that leaves the device unusable the program starts itself anew with the parts that are
left. The kernels of the first sample of each kind, library and variant are named in a line of record
`kernels`.
"""

import argparse
import datetime
import os
import sys
import time

import torch

from bench import Bench, host_cpu

FATAL = (
    "illegal memory access",
    "device-side assert",
    "unspecified launch failure",
    "misaligned address",
    "CUDA error: an illegal",
)


class TrainingBench(Bench):
    def __init__(self, program, parts):
        parser = argparse.ArgumentParser(add_help=False)
        parser.add_argument(
            "--part", action="append", choices=list(parts), help="only this part; may be repeated"
        )
        parser.add_argument(
            "--once",
            action="store_true",
            help="calls every compiled case once and times nothing: fills the compilers' caches",
        )
        own, rest = parser.parse_known_args()
        self.parts, self.once = own.part or list(parts), own.once
        self.command = [a for a in rest] + (["--once"] if own.once else [])
        sys.argv[1:] = rest
        super().__init__(program, 0.0)
        self.asked_seconds, self.named, self.left = self.options.seconds, set(), []

    def begin(self, part, seconds, left):
        """From here on samples are of `part`, which has so many seconds; `left`: the parts after it."""
        self.program, self.left, self.start = part, left, time.time()
        self.options.seconds = self.asked_seconds or seconds
        self.free()
        torch._dynamo.reset()

    def conditions(self, gpus=1, about=""):
        cudnn = torch.backends.cudnn.version() or 0
        libraries = {
            "torch": str(torch.__version__),
            "cudnn": f"{cudnn // 10000}.{cudnn // 100 % 100}.{cudnn % 100}",
        }
        for name in ("triton", "mamba_ssm"):
            try:
                libraries[name] = __import__(name).__version__
            except Exception:
                pass
        try:
            libraries["nccl"] = ".".join(str(x) for x in torch.cuda.nccl.version())
        except Exception:
            pass
        self.out.line(
            "conditions",
            program=self.program,
            about=about or None,
            device=torch.cuda.get_device_name(self.device),
            gpu=self.options.gpu,
            gpus=gpus,
            driver=self.nvml.driver(),
            cuda=str(torch.version.cuda),
            libraries=libraries,
            power_limit_w=self.nvml.limit_w(),
            max_clock_mhz=self.nvml.max_clock(1),
            memory_clock_mhz=self.nvml.max_clock(2),
            host=host_cpu(),
            date=datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"),
        )

    def case(self, what, call, **keys):
        """Runs one case; a failure is a line."""
        if not self.has_time():
            self.skipped += 1
            return None
        try:
            return call()
        except Exception as error:
            text = " ".join(f"{type(error).__name__}: {error}".split())[:240]
            self.out.line("failed", part=self.program, what=what, reason=text, **keys)
            self.note(f"{what}: {text[:160]}")
        if any(word in text for word in FATAL):
            self.restart()
        self.free()
        return None

    def restart(self):
        self.note("the device is lost: starts anew with what is left")
        if not self.left:
            os._exit(1)
        words = [word for part in self.left for word in ("--part", part)]
        os.dup2(self.out.file.fileno(), 1)
        sys.stderr.flush()
        os.execv(sys.executable, [sys.executable, sys.argv[0], *self.command, *words])

    def measure(
        self,
        kind,
        library,
        variant,
        operation,
        sets=1,
        compiled=False,
        in_graph=True,
        repeats=5,
        burst_ms=5.0,
        **keys,
    ):
        """Times operation(i), writes its sample, and names its kernels where it is the first of its variant."""
        if self.once:
            if compiled:
                operation(0)
                torch.cuda.synchronize()
            return None
        timing = self.burst(operation, sets, repeats=repeats, burst_ms=burst_ms, in_graph=in_graph)
        self.sample(kind, library, variant, timing, **keys)
        key = (self.program, kind, library, variant)
        if key not in self.named:
            self.named.add(key)
            self.name_kernels(kind, library, variant, operation)
        return timing["time_us"]

    def name_kernels(self, kind, library, variant, operation):
        from framework_steps import trace

        try:
            found = trace(self, lambda: operation(0))
        except Exception as error:
            self.note(f"{variant}: kernels not named: {error}")
            return
        self.out.line(
            "kernels",
            part=self.program,
            kind=kind,
            library=library,
            variant=variant,
            kernels=[[name[:90], round(us, 2)] for name, us in found[:24]],
            count=len(found),
        )


def gradients(outputs, inputs, grads):
    """operation(i): the backward of outputs[i] alone, which stays ready for the next call."""
    count = len(outputs)

    def operation(i):
        j = i % count
        return torch.autograd.grad(outputs[j], inputs[j], grads[j % len(grads)], retain_graph=True)

    return operation


def leaf(x):
    return x.detach().requires_grad_()
