# SPDX-License-Identifier: Apache-2.0
"""Runs a candidate in Python (Triton, PyTorch) when the judge says so, as worker.cu does one in CUDA C++.

The candidate is a file with a function launch(inputs, outputs, sizes): tensors of torch in the order of the
specification, whose memory is the judge's; sizes by name. Nothing else is asked of it.

Usage: worker.py CANDIDATE.py SOCKET MEMORY BYTES FOLDER SECONDS [own-network]
"""
import ctypes
import importlib.util
import math
import mmap
import os
import resource
import socket
import sys

SIZES = {
    "product": ["m", "n", "k"], "grouped-product": ["rows", "n", "k", "groups"],
    "attention": ["batch", "heads", "kv_heads", "queries", "keys", "dim", "causal"],
    "rms-norm": ["rows", "width"], "softmax": ["rows", "width"], "top-k": ["rows", "width", "k"],
    "quantise": ["rows", "width"]}
CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000
PR_SET_PDEATHSIG, PR_SET_NO_NEW_PRIVS, SIGKILL = 1, 38, 9


def shapes_of(operation, s):
    """Tensors of an operation: shapes and types, inputs and outputs."""
    half, single, whole, byte = "bfloat16", "float32", "int32", "float8_e4m3fn"
    if operation == "product":
        return [((s["m"], s["k"]), half), ((s["n"], s["k"]), half)], [((s["m"], s["n"]), half)]
    if operation == "grouped-product":
        return ([((s["rows"], s["k"]), half), ((s["groups"], s["n"], s["k"]), half), ((s["groups"] + 1,), whole)],
                [((s["rows"], s["n"]), half)])
    if operation == "attention":
        query = (s["batch"], s["queries"], s["heads"], s["dim"])
        key = (s["batch"], s["keys"], s["kv_heads"], s["dim"])
        return [(query, half), (key, half), (key, half)], [(query, half)]
    row = (s["rows"], s["width"])
    if operation == "rms-norm":
        return [(row, half), ((s["width"],), half)], [(row, half)]
    if operation == "softmax":
        return [(row, half)], [(row, half)]
    if operation == "top-k":
        return [(row, single)], [((s["rows"], s["k"]), single), ((s["rows"], s["k"]), whole)]
    return [(row, half)], [(row, byte), ((s["rows"], -(-s["width"] // 128)), single)]


class Host:
    """Memory of the host, a file that the judge made."""

    def __init__(self, torch, name, size):
        self.torch, self.memory = torch, mmap.mmap(int(name), size)
        self.synchronise = lambda: None

    def tensor(self, offset, shape, kind):
        count = math.prod(shape)
        return self.torch.frombuffer(self.memory, dtype=kind, count=count, offset=offset).view(shape)

    def recorded(self, torch, run):
        return run


class IpcHandle(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_ubyte * 64)]


class Cuda:
    """Memory of the device, which the judge's handle opens."""

    def __init__(self, torch, name, size):
        torch.cuda.init()
        torch.zeros(1, device="cuda")  # makes the context current
        driver = ctypes.CDLL("libcuda.so.1")
        handle, place = IpcHandle(), ctypes.c_uint64()
        handle.bytes[:] = bytes.fromhex(name)
        driver.cuIpcOpenMemHandle_v2.argtypes = [ctypes.POINTER(ctypes.c_uint64), IpcHandle, ctypes.c_uint]
        code = driver.cuIpcOpenMemHandle_v2(ctypes.byref(place), handle, 1)
        if code != 0:
            raise OSError(f"the driver does not open the memory: {code}")
        self.torch, self.place = torch, place.value
        self.synchronise = torch.cuda.synchronize

    def tensor(self, offset, shape, kind):
        """A tensor with a storage of its own: compilers take views of one storage for aliases, and copy."""
        result = self.torch.empty(0, dtype=kind, device="cuda")
        size = math.prod(shape) * result.element_size()
        storage = self.torch._C._construct_storage_from_data_pointer(self.place + offset, result.device, size)
        stride = [math.prod(shape[i + 1:]) for i in range(len(shape))]
        return result.set_(storage, 0, shape, stride)

    def recorded(self, torch, run):
        """The launches as one graph, so that Python's own time does not count; as they are where that fails."""
        graph = torch.cuda.CUDAGraph()
        try:
            torch.cuda.synchronize()
            with torch.cuda.graph(graph):
                run()
            return graph.replay
        except Exception as error:  # whatever a candidate does
            print("no graph: " + " ".join(repr(error).split())[:300], file=sys.stderr, flush=True)
            return run


def limit(seconds, own_network):
    libc = ctypes.CDLL(None, use_errno=True)
    network = own_network and libc.unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0
    for what, most in ((resource.RLIMIT_CORE, 0), (resource.RLIMIT_FSIZE, 256 << 20), (resource.RLIMIT_CPU, seconds)):
        resource.setrlimit(what, (most, most))
    libc.prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0)
    libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    return network


class Plan:
    """Views of the memory for each set of tensors."""

    def __init__(self, torch, memory, operation, words):
        words = [int(word) for word in words]
        count = words[0]
        names = SIZES[operation]
        self.sizes = dict(zip(names, words[1:1 + count]))
        at = 1 + count
        n_in, n_out, sets = words[at:at + 3]
        shapes = sum(shapes_of(operation, self.sizes), [])
        offsets = words[at + 3:]
        self.sets = []
        for first in range(0, sets * (n_in + n_out), n_in + n_out):
            tensors = [memory.tensor(offset, shape, getattr(torch, kind))
                       for offset, (shape, kind) in zip(offsets[first:first + n_in + n_out], shapes)]
            self.sets.append((tensors[:n_in], tensors[n_in:]))


def main():
    candidate, file, name, size, folder, seconds = sys.argv[1:7]
    judge = socket.socket(fileno=int(file))
    lines = judge.makefile("r")

    def say(text):
        judge.sendall((text + "\n").encode())

    network = limit(int(seconds), "own-network" in sys.argv[7:])
    try:
        import torch
    except ImportError as error:
        say(f"failed no torch for {sys.executable}: {error}; pip install torch, or --python FILE")
        return
    try:
        memory = (Host if len(name) < 20 else Cuda)(torch, name, int(size))
    except OSError as error:
        say(f"failed memory {error}")
        return
    # Candidates in Python start compilers: no call is refused, nor files outside the folder.
    say(f"sandbox network {int(network)} files 0 capabilities 0 calls 0")
    try:
        spec = importlib.util.spec_from_file_location("candidate", candidate)
        module = importlib.util.module_from_spec(spec)
        sys.modules["candidate"] = module
        spec.loader.exec_module(module)
        launch = module.launch
    except Exception as error:  # whatever a candidate does
        say("failed load " + " ".join(repr(error).split()))
        return
    say("ready")
    run = None
    for line in lines:
        word, nonce, *words = line.split()
        if word == "end":
            break
        if word == "plan":
            try:
                run = launches(torch, memory, Plan(torch, memory, words[0], words[1:]), launch)
            except Exception as error:  # a torch without what is asked of it: the next run says so
                run = failing(error)
            say("planned " + nonce)
        if word == "go":
            status = 0
            try:
                if int(words[1]) > 0:
                    run()
                memory.synchronise()
            except Exception as error:  # whatever a candidate does
                print(" ".join(repr(error).split())[:500], file=sys.stderr, flush=True)
                status = 1
            say(f"done {nonce} {status}")


def failing(error):
    def run():
        raise error
    return run


def launches(torch, memory, plan, launch):
    """What a run does: every set once. Long runs are recorded; short ones come first, and compile."""
    def run():
        for inputs, outputs in plan.sets:
            launch(inputs, outputs, plan.sizes)
    return memory.recorded(torch, run) if len(plan.sets) > 2 else run


main()
