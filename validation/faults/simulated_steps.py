# SPDX-License-Identifier: Apache-2.0
"""Steps of a simulated run, from what the simulator says of kernels and collectives: events of a trace, rank by rank."""

import random
import re
from dataclasses import dataclass

# Class of kernels: those that a chip of the Hopper generation runs forward and backward, blocks and threads of one,
# where a prediction has it, and how far real kernels were off it.
CLASSES = {
    "product": (("nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_TNT", "nvjet_sm90_tst_128x256_64x4_2x1_v_bz_coopA_NTN"),
                ([2, 66, 1], [384, 1, 1]), ("gemm_s", "expert_s"), 0.08),
    "attention": (("cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x128_4x1x1_kernel0_0",
                   "cudnn_generated_fort_native_sdpa_sm90_flash_bprop_wgmma_f16_knob_26_64x64x128_1x4x1_kernel0_0"),
                  ([132, 1, 1], [384, 1, 1]), ("attention_s",), 0.15),
    "memory": (("triton_poi_fused_mul_silu_split_0", "triton_poi_fused_mul_silu_silu_backward_split_0"),
               ([8192, 1, 1], [512, 1, 1]), ("elementwise_s", "quantise_s"), 0.2),
    "loss": (("triton_red_fused__log_softmax__to_copy_0",) * 2, ([8192, 1, 1], [512, 1, 1]), ("loss_s",), 0.15),
    "optimizer": (("void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous namespace)::"
                   "FusedOptimizerTensorListMetadata<4>, at::native::FusedAdamMathFunctor<float, 4>>",) * 2,
                  ([320, 1, 1], [512, 1, 1]), ("optimizer_s",), 0.2),
}
OF_MEMORY = ("memory", "optimizer")  # bound by the memory, not by the clock
TILED = ([1024, 8, 1], [256, 1, 1])  # kernels before Hopper have a block for each tile
PIECES = 40
# What hidden traffic costs the kernels beside it, over its own time (overlap_cost of the stacks' catalogue).
BESIDE = 0.45
KINDS = {"all-gather": ("AllGather", "_allgather_base"), "reduce-scatter": ("ReduceScatter_Sum_f32", "_reduce_scatter_base"),
         "all-reduce": ("AllReduce_Sum_f32", "allreduce"), "all-to-all": ("SendRecv", "alltoallv")}


class Noise:
    """What healthy runs of real logs do from step to step."""

    def __init__(self, runs, seed):
        self.random, self.ratios = random.Random(seed), []
        for log in sorted(runs.glob("*healthy*/train.log")):
            steps = [float(x) for x in re.findall(r"per iteration \(ms\): ([\d.]+)", log.read_text())]
            middle = sorted(steps)[len(steps) // 2]
            self.ratios += [s / middle for s in steps]
        if not self.ratios:
            raise SystemExit(f"simulated.py: {runs}: found no healthy log; expected runs of faults.py")

    def step(self):
        return self.random.choice(self.ratios)

    def factor(self, deviation):
        return self.random.lognormvariate(0, deviation)


@dataclass
class Calls:
    """A step's collectives, one by one, with the seconds that each takes of every rank."""

    of: list
    seconds: list
    bursts: int = 0

    def where(self, data):
        return [(c, s) for c, s in zip(self.of, self.seconds) if (c["label"] == "data_comm") == data]


def key_of(collective):
    return collective["label"], collective["collective"], collective["ranks"], collective["bytes"]


def call_of(c, alone):
    kernel, name = KINDS[c["collective"]]
    whole, part = int(c["bytes"]), int(c["bytes"] / c["ranks"])
    return dict(kernel=kernel, name=name, ranks=c["ranks"], label=c["label"], seconds=c["time_s"], alone=alone,
                sent=part if c["collective"] == "all-gather" else whole,
                received=part if c["collective"] == "reduce-scatter" else whole)


def with_bursts(call, burst, noise):
    """A call of a port whose cable loses packets, and how many bursts of retries hit it: each lasts `burst` seconds in
    the mean, as many come as the simulator's mean asks for, and between them the link is as good as any."""
    longer = call["seconds"] - call["alone"]
    hits, at = 0, noise.random.expovariate(1)
    while at < longer / burst:
        hits, at = hits + 1, at + noise.random.expovariate(1)
    return call["alone"] * noise.factor(0.03) + sum(noise.random.expovariate(1 / burst) for _ in range(hits)), hits


def calls_of(network, healthy, fault, noise):
    """All ranks of a collective wait for its slowest flow, so that they have the same seconds."""
    alone = {key_of(c): c["time_s"] for c in healthy["collectives"]}
    out = Calls([], [])
    for c in network["collectives"]:
        if c["collective"] not in KINDS or c["ranks"] < 2:
            continue
        call = call_of(c, alone.get(key_of(c), c["time_s"]))
        for _ in range(max(1, round(c["count"]))):
            if fault.burst:
                seconds, hits = with_bursts(call, fault.burst, noise)
                out.bursts += hits
            else:
                seconds = call["seconds"] * noise.factor(fault.spread)
            out.of.append(call)
            out.seconds.append(seconds)
    return out


def exposed_of(answer, healthy, calls, fault, noise):
    """Seconds of data-parallel calls that nothing hides, and those that kernels lose to the hidden ones beside them.
    A prediction has both in one figure. Without a fault it is shown + BESIDE x hidden. Traffic that takes longer costs
    kernels no more than that: with one channel or without peer access this folder's real runs have collectives of 3
    to 10 times as long, and kernels up to 9%. Where nothing runs beside them, they lose nothing."""
    usual = sum(c["alone"] for c, _ in calls.where(data=True))
    mean = sum(c["seconds"] for c, _ in calls.where(data=True))
    total = sum(s for _, s in calls.where(data=True))
    if not fault.overlaps or not mean:
        return total, 0.0
    hidden = min((usual - paced(healthy)["data_comm_s"]) / (1 - BESIDE), usual)
    lost = BESIDE * max(hidden, 0.0)
    shown = min(max((paced(answer)["data_comm_s"] - lost) * noise.factor(0.1), 0.0), mean)
    return total * shown / mean, lost


def paced(answer):
    p = answer["prediction"]
    return p["stages"][p["bottleneck_stage"]]


def kernels_of(stage, head, shared, lost, noise):
    """Seconds of each class on one rank, longer by what they lose to collectives beside them. The loss has the head's
    products, `head` of the layers' dense ones."""
    again = 1 + stage["recompute_s"] / max(1e-9, stage["gemm_s"] + stage["attention_s"] + stage["elementwise_s"])
    out = {}
    for name, (_, _, keys, _) in CLASSES.items():
        seconds = sum(stage[k] for k in keys) * (again if name in ("product", "attention", "memory") else 1)
        seconds += dict(product=head, loss=-head).get(name, 0.0) * stage["gemm_s"]
        out[name] = seconds * shared[name] * noise.factor(0.02)
    beside = sum(out.values()) - out["optimizer"]
    return {k: v if k == "optimizer" else v * (1 + lost / beside) for k, v in out.items()}


def slowed(kernels, fault, has_fault):
    """Kernels of the GPU with the fault, or of all: by its clock, its memory, or other kernels than the chip's own."""
    speed, memory = (fault.speed, fault.memory) if has_fault else (1.0, 1.0)
    older = {name: of for name, (_, of) in fault.kernels.items()}
    return {k: v / (memory if k in OF_MEMORY else speed) / older.get(k, 1.0) for k, v in kernels.items()}


def stage_of(rank, answer, healthy, fault, faulty):
    """What the simulator says of a rank, and its experts' tokens over the mean. With an uneven gate it says what the rank
    with most tokens does; others have fewer."""
    if fault.tokens == 1:
        return paced(answer), 1.0
    if rank == faulty:
        return paced(answer), fault.tokens
    tokens = (answer["layout"]["ep"] - fault.tokens) / (answer["layout"]["ep"] - 1)
    return dict(paced(answer), expert_s=tokens * paced(healthy)["expert_s"]), tokens


class Trace:
    def __init__(self):
        self.events = []

    def add(self, cat, name, begin, seconds, **args):
        self.events.append(dict(ph="X", cat=cat, name=name, pid=0, tid=args.get("stream", 1), ts=round(1e6 * begin, 1),
                                dur=round(1e6 * seconds, 1), **({"args": args} if args else {})))

    def add_call(self, begin, seconds, kernel, name, sent, received, ranks, dtype="BFloat16"):
        self.add("kernel", f"ncclDevKernel_{kernel}_RING_LL(ncclDevKernelArgsStorage<4096ul>)", begin, seconds, stream=22,
                 grid=[24, 1, 1], block=[544, 1, 1],
                 **{"Collective name": name, "In msg nelems": sent, "Out msg nelems": received, "Group size": ranks,
                    "dtype": dtype})


def add_kernels(trace, kernels, tokens, fault, idle):
    """Compute on one stream, a third of it forward; returns its end. Every second kernel without products is of experts
    where their tokens are uneven, and has blocks for each token; products of the chip's own generation stay as many."""
    at = 0.0
    for i in range(PIECES):
        for name, seconds in kernels.items():
            if name == "optimizer" and i < PIECES - 1:
                continue
            length = seconds if name == "optimizer" else seconds / PIECES
            (names, (grid, block), _, _) = CLASSES[name]
            if name in fault.kernels:
                names, (grid, block) = fault.kernels[name][0], TILED
            if name == "memory" and i % 2:
                grid = [round(grid[0] * tokens), *grid[1:]]
            trace.add("kernel", names[i >= PIECES // 3], at, length, stream=7, grid=grid, block=block)
            at += length
        at += idle / PIECES
    return at


def trace_of(rank, world, kernels, tokens, calls, shown, late, idle, fault, noise):
    """Events of one step, as PyTorch's profiler has them: compute on one stream, collectives on another. Hidden calls
    run beside compute, the others after it; what other ranks are late is in the last call, or, where experts' tokens
    are uneven, in every exchange of theirs."""
    trace = Trace()
    at = add_kernels(trace, kernels, tokens, fault, idle)
    data, others = calls.where(data=True), calls.where(data=False)
    hidden = sum(s for _, s in data) - shown
    cursor = 0.0
    in_exchanges = late / len(others) if fault.tokens != 1 and others else 0.0
    for call, seconds in [(c, s) for c, s in data] + [(c, s + in_exchanges) for c, s in others]:
        length = seconds * noise.factor(0.01)
        if hidden <= 0 and cursor < at:
            cursor = at
        hidden -= length
        sent, received = call["sent"] // 2, call["received"] // 2
        trace.add_call(cursor, length, call["kernel"], call["name"], sent, received, call["ranks"])
        cursor += length
    end = max(at, cursor)
    if late > 0 and not in_exchanges:
        trace.add_call(end, late, "AllReduce_Sum_f32", "allreduce", 1, 1, world, "Float")
        end += late
    for i in range(int(20 * sum(kernels.values()) / 0.1)):
        trace.add("cuda_runtime", "cudaLaunchKernel", i * 0.004, 6e-6)
    trace.add("cuda_runtime", "cudaEventSynchronize", end, 1e-5)
    trace.add("user_annotation", "ProfilerStep#5", begin=0.0, seconds=end)
    device = dict(id=0, name="NVIDIA H100 80GB HBM3", computeMajor=9, computeMinor=0, numSms=132)
    return dict(schemaVersion=1, deviceProperties=[device], traceEvents=trace.events,
                distributedInfo=dict(backend="nccl", rank=rank, world_size=world)), end


def step_of(ranks, faulty, program, answer, healthy, fault, noise):
    """Traces of the profiled ranks, the step that the latest of them makes, and bursts of retries in it."""
    shared = {k: noise.factor(c[3] / 2) for k, c in CLASSES.items()}
    idle = paced(answer)["host_s"] + abs(noise.random.gauss(0, 0.02)) * answer["prediction"]["step_time_s"]
    calls = calls_of(answer["network"], healthy["network"], fault, noise)
    shown, lost = exposed_of(answer, healthy, calls, fault, noise)
    kernels, tokens = {}, {}
    for rank in ranks:
        stage, tokens[rank] = stage_of(rank, answer, healthy, fault, faulty)
        own = kernels_of(stage, program["head"], shared, lost, noise)
        kernels[rank] = slowed(own, fault, fault.everywhere or rank == faulty)
    slowest = max(sum(k.values()) for k in kernels.values())
    step, traces = 0.0, {}
    for rank in ranks:
        late = slowest - sum(kernels[rank].values())
        traces[rank], end = trace_of(rank, program["gpus"], kernels[rank], tokens[rank], calls, shown, late, idle, fault,
                                     noise)
        step = max(step, end)
    return traces, step, calls.bursts
