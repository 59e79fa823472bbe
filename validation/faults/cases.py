# SPDX-License-Identifier: Apache-2.0
# Lists the runs of faults.py: which program, which fault, how strong.
"""A run is healthy or has one fault, made on purpose. `truth` is the cause that `orrery diagnose` should name
(sim/diagnose/causes.json), "" for a healthy run. A run is `held` where the first byte of its id's SHA-256 is
odd, and always where its program is one of `HELD_PROGRAMS`: nothing is set by those.
"""

import hashlib

# What runs: model of training_models.py, how it is sharded, sequences of a rank and their length. `set`: runs that
# were made at one time; "first" where it is not named.
PROGRAMS = {
    "fsdp-1b": dict(model="llama-3.2-1b", sharding="fsdp2", batch=2, sequence=4096, compiled=False),
    "ddp-1b": dict(model="llama-3.2-1b", sharding="ddp", batch=2, sequence=2048, compiled=True),
    "fsdp-3b": dict(model="llama-3.2-3b", sharding="fsdp2", batch=1, sequence=4096, compiled=True),
    # Blind runs on four GPUs: families of models that no other run has.
    "ddp-opt": dict(model="opt-1.3b", sharding="ddp", batch=4, sequence=2048, compiled=False, gpus=4, set="blind"),
    "fsdp-qwen": dict(
        model="qwen3-1.7b", sharding="fsdp2", batch=2, sequence=4096, compiled=True, gpus=4, log="torchtitan", set="blind"
    ),
    # Blind runs on two GPUs, with other strengths.
    "ddp-qwen": dict(model="qwen3-1.7b", sharding="ddp", batch=2, sequence=2048, compiled=True, set="fresh"),
    "fsdp-opt": dict(model="opt-1.3b", sharding="fsdp2", batch=2, sequence=2048, compiled=False, set="fresh"),
    "fsdp-qwen-2": dict(model="qwen3-1.7b", sharding="fsdp2", batch=4, sequence=2048, compiled=True, set="second"),
    "ddp-opt-2": dict(model="opt-1.3b", sharding="ddp", batch=4, sequence=2048, compiled=False, set="second"),
    # Blind runs on two GPUs, of two more families.
    "fsdp-phi": dict(model="phi-3-mini", sharding="fsdp2", batch=2, sequence=2048, compiled=True, set="third"),
    "ddp-gpt2": dict(model="gpt2-xl", sharding="ddp", batch=6, sequence=1024, compiled=False, set="third"),
    # And of two more.
    "ddp-gemma": dict(model="gemma-2b", sharding="ddp", batch=2, sequence=2048, compiled=True, set="fourth"),
    "fsdp-mistral": dict(model="mistral-7b", sharding="fsdp2", batch=1, sequence=2048, compiled=False, set="fourth"),
    # And once more.
    "ddp-yi": dict(model="yi-6b", sharding="ddp", batch=1, sequence=2048, compiled=False, set="fifth"),
    "fsdp-smollm": dict(model="smollm2-1.7b", sharding="fsdp2", batch=4, sequence=2048, compiled=True, set="fifth"),
}
BLIND_PROGRAMS = ("ddp-opt", "fsdp-qwen")
FRESH_PROGRAMS = ("ddp-qwen", "fsdp-opt", "decode-qwen-32", "decode-qwen-48-eager")
SECOND_PROGRAMS = ("fsdp-qwen-2", "ddp-opt-2", "decode-qwen-24", "decode-qwen-64-eager")
THIRD_PROGRAMS = ("fsdp-phi", "ddp-gpt2")
FOURTH_PROGRAMS = ("ddp-gemma", "fsdp-mistral")
FIFTH_PROGRAMS = ("ddp-yi", "fsdp-smollm")
HELD_PROGRAMS = ("fsdp-3b", *BLIND_PROGRAMS, *FRESH_PROGRAMS, *SECOND_PROGRAMS, *THIRD_PROGRAMS, *FOURTH_PROGRAMS, *FIFTH_PROGRAMS)
# Decoding that values may be set by, whatever the hash says.
SET_BY_PROGRAMS = ("decode-1b-64", "decode-8b-8", "decode-8b-32-eager")

# id, program, fault, its strength, environment of the processes
_FAULTS = [
    ("straggling-host", dict(fault="sleep", rank=1, share=0.15), "straggling-host"),
    ("straggling-host", dict(fault="sleep", rank=0, share=0.4), "straggling-host"),
    ("straggling-host", dict(fault="sleep-in-layers", rank=1, share=0.3), "straggling-host"),
    ("busy-gpu", dict(fault="busy", rank=1, duty=0.3), "busy-gpu"),
    ("busy-gpu", dict(fault="busy", rank=0, duty=0.8), "busy-gpu"),
    ("few-sms", dict(fault="few-sms", rank=1, sms=44), "few-sms"),
    ("few-sms", dict(fault="few-sms", rank=0, sms=88), "few-sms"),
    ("forced-sync", dict(fault="sync", every="layer"), "forced-sync"),
    ("forced-sync", dict(fault="sync", every="module"), "forced-sync"),
    ("forced-sync", dict(fault="sync", every="phase"), "forced-sync"),
    ("data-stall", dict(fault="data", share=0.25, every=1), "data-stall"),
    ("data-stall", dict(fault="data", share=2.0, every=6), "data-stall-at-times"),
    ("imbalance", dict(fault="longer", rank=1, more=1), "imbalance"),
    ("fp32", dict(fault="fp32", tf32=False), "fp32-by-mistake"),
    ("fp32", dict(fault="fp32", tf32=True), "fp32-by-mistake"),
    ("allocator", dict(fault="empty-cache"), "allocator-retries"),
    ("slow-attention", dict(fault="attention"), "mismatched-attention"),
    ("anomaly", dict(fault="anomaly"), "checked-calls"),
    ("checkpoint", dict(fault="checkpoint", every=6), "checkpoint"),
    ("busy-host", dict(fault="busy-host", processes=6), "busy-host"),
    ("no-overlap", dict(fault="no-overlap"), "one-bucket"),
]
_OF_DDP = [
    ("small-buckets", dict(fault="buckets", megabytes=0.25), "small-buckets"),
    ("small-buckets", dict(fault="buckets", megabytes=1), "small-buckets"),
]
_BLIND = [
    ("straggling-host", dict(fault="sleep", rank=2, share=0.2), "straggling-host"),
    ("straggling-host", dict(fault="sleep-in-layers", rank=3, share=0.35), "straggling-host"),
    ("busy-gpu", dict(fault="busy", rank=1, duty=0.5), "busy-gpu"),
    ("busy-gpu", dict(fault="busy", rank=3, duty=0.9), "busy-gpu"),
    ("few-sms", dict(fault="few-sms", rank=2, sms=66), "few-sms"),
    ("forced-sync", dict(fault="sync", every="layer"), "forced-sync"),
    ("forced-sync", dict(fault="sync", every="module"), "forced-sync"),
    ("data-stall", dict(fault="data", share=0.3, every=1), "data-stall"),
    ("data-stall", dict(fault="data", share=1.5, every=4), "data-stall-at-times"),
    ("imbalance", dict(fault="longer", rank=2, more=1), "imbalance"),
    ("fp32", dict(fault="fp32", tf32=False), "fp32-by-mistake"),
    ("fp32", dict(fault="fp32", tf32=True), "fp32-by-mistake"),
    ("allocator", dict(fault="empty-cache"), "allocator-retries"),
    ("slow-attention", dict(fault="attention"), "mismatched-attention"),
    ("anomaly", dict(fault="anomaly"), "checked-calls"),
    ("checkpoint", dict(fault="checkpoint", every=5), "checkpoint"),
    ("busy-host", dict(fault="busy-host", processes=12), "busy-host"),
]
_FRESH = {
    "ddp-yi": [
        ("straggling-host", dict(fault="sleep", rank=1, share=0.22), "straggling-host"),
        ("straggling-host", dict(fault="sleep-in-layers", rank=0, share=0.3), "straggling-host"),
        ("busy-gpu", dict(fault="busy", rank=0, duty=0.45), "busy-gpu"),
        ("busy-gpu", dict(fault="busy", rank=1, duty=0.7), "busy-gpu"),
        ("few-sms", dict(fault="few-sms", rank=1, sms=70), "few-sms"),
        ("forced-sync", dict(fault="sync", every="module"), "forced-sync"),
        ("data-stall", dict(fault="data", share=0.2, every=1), "data-stall"),
        ("data-stall", dict(fault="data", share=1.2, every=4), "data-stall-at-times"),
        ("imbalance", dict(fault="longer", rank=1, more=1), "imbalance"),
        ("fp32", dict(fault="fp32", tf32=True), "fp32-by-mistake"),
        ("anomaly", dict(fault="anomaly"), "checked-calls"),
        ("slow-attention", dict(fault="attention"), "mismatched-attention"),
        ("busy-host", dict(fault="busy-host", processes=10), "busy-host"),
        ("small-buckets", dict(fault="buckets", megabytes=0.3), "small-buckets"),
    ],
    "fsdp-smollm": [
        ("straggling-host", dict(fault="sleep", rank=0, share=0.28), "straggling-host"),
        ("busy-gpu", dict(fault="busy", rank=1, duty=0.35), "busy-gpu"),
        ("busy-gpu", dict(fault="busy", rank=0, duty=0.65), "busy-gpu"),
        ("few-sms", dict(fault="few-sms", rank=0, sms=50), "few-sms"),
        ("forced-sync", dict(fault="sync", every="layer"), "forced-sync"),
        ("data-stall", dict(fault="data", share=0.35, every=1), "data-stall"),
        ("imbalance", dict(fault="longer", rank=0, more=1), "imbalance"),
        ("allocator", dict(fault="empty-cache"), "allocator-retries"),
        ("checkpoint", dict(fault="checkpoint", every=5), "checkpoint"),
        ("busy-host", dict(fault="busy-host", processes=7), "busy-host"),
    ],
    "ddp-qwen": [
        ("straggling-host", dict(fault="sleep", rank=0, share=0.25), "straggling-host"),
        ("straggling-host", dict(fault="sleep-in-layers", rank=0, share=0.2), "straggling-host"),
        ("busy-gpu", dict(fault="busy", rank=0, duty=0.4), "busy-gpu"),
        ("busy-gpu", dict(fault="busy", rank=1, duty=0.6), "busy-gpu"),
        ("few-sms", dict(fault="few-sms", rank=1, sms=60), "few-sms"),
        ("forced-sync", dict(fault="sync", every="layer"), "forced-sync"),
        ("data-stall", dict(fault="data", share=0.15, every=1), "data-stall"),
        ("data-stall", dict(fault="data", share=1.0, every=5), "data-stall-at-times"),
        ("imbalance", dict(fault="longer", rank=0, more=1), "imbalance"),
        ("allocator", dict(fault="empty-cache"), "allocator-retries"),
        ("checkpoint", dict(fault="checkpoint", every=4), "checkpoint"),
        ("busy-host", dict(fault="busy-host", processes=8), "busy-host"),
        ("fp32", dict(fault="fp32", tf32=True), "fp32-by-mistake"),
        ("small-buckets", dict(fault="buckets", megabytes=0.5), "small-buckets"),
    ],
    "fsdp-opt": [
        ("straggling-host", dict(fault="sleep", rank=1, share=0.3), "straggling-host"),
        ("busy-gpu", dict(fault="busy", rank=1, duty=0.25), "busy-gpu"),
        ("busy-gpu", dict(fault="busy", rank=0, duty=0.7), "busy-gpu"),
        ("few-sms", dict(fault="few-sms", rank=0, sms=33), "few-sms"),
        ("few-sms", dict(fault="few-sms", rank=1, sms=77), "few-sms"),
        ("forced-sync", dict(fault="sync", every="module"), "forced-sync"),
        ("data-stall", dict(fault="data", share=0.4, every=1), "data-stall"),
        ("imbalance", dict(fault="longer", rank=1, more=1), "imbalance"),
        ("slow-attention", dict(fault="attention"), "mismatched-attention"),
        ("anomaly", dict(fault="anomaly"), "checked-calls"),
        ("checkpoint", dict(fault="checkpoint", every=7), "checkpoint"),
        ("busy-host", dict(fault="busy-host", processes=10), "busy-host"),
    ],
}
_FRESH["fsdp-qwen-2"] = [
    ("straggling-host", dict(fault="sleep", rank=1, share=0.22), "straggling-host"),
    ("straggling-host", dict(fault="sleep-in-layers", rank=0, share=0.32), "straggling-host"),
    ("busy-gpu", dict(fault="busy", rank=0, duty=0.35), "busy-gpu"),
    ("busy-gpu", dict(fault="busy", rank=1, duty=0.75), "busy-gpu"),
    ("few-sms", dict(fault="few-sms", rank=0, sms=55), "few-sms"),
    ("forced-sync", dict(fault="sync", every="layer"), "forced-sync"),
    ("data-stall", dict(fault="data", share=0.2, every=1), "data-stall"),
    ("imbalance", dict(fault="longer", rank=1, more=2), "imbalance"),
    ("fp32", dict(fault="fp32", tf32=True), "fp32-by-mistake"),
    ("allocator", dict(fault="empty-cache"), "allocator-retries"),
    ("checkpoint", dict(fault="checkpoint", every=5), "checkpoint"),
    ("busy-host", dict(fault="busy-host", processes=7), "busy-host"),
]
_FRESH["ddp-opt-2"] = [
    ("straggling-host", dict(fault="sleep", rank=0, share=0.35), "straggling-host"),
    ("busy-gpu", dict(fault="busy", rank=1, duty=0.45), "busy-gpu"),
    ("few-sms", dict(fault="few-sms", rank=1, sms=70), "few-sms"),
    ("forced-sync", dict(fault="sync", every="module"), "forced-sync"),
    ("data-stall", dict(fault="data", share=1.2, every=4), "data-stall-at-times"),
    ("imbalance", dict(fault="longer", rank=0, more=2), "imbalance"),
    ("slow-attention", dict(fault="attention"), "mismatched-attention"),
    ("anomaly", dict(fault="anomaly"), "checked-calls"),
    ("small-buckets", dict(fault="buckets", megabytes=0.5), "small-buckets"),
]
_FRESH["fsdp-phi"] = [
    ("straggling-host", dict(fault="sleep", rank=0, share=0.28), "straggling-host"),
    ("straggling-host", dict(fault="sleep-in-layers", rank=1, share=0.26), "straggling-host"),
    ("busy-gpu", dict(fault="busy", rank=1, duty=0.55), "busy-gpu"),
    ("busy-gpu", dict(fault="busy", rank=0, duty=0.85), "busy-gpu"),
    ("few-sms", dict(fault="few-sms", rank=1, sms=50), "few-sms"),
    ("forced-sync", dict(fault="sync", every="layer"), "forced-sync"),
    ("data-stall", dict(fault="data", share=0.35, every=1), "data-stall"),
    ("data-stall", dict(fault="data", share=1.8, every=5), "data-stall-at-times"),
    ("imbalance", dict(fault="longer", rank=0, more=1), "imbalance"),
    ("allocator", dict(fault="empty-cache"), "allocator-retries"),
    ("checkpoint", dict(fault="checkpoint", every=6), "checkpoint"),
    ("busy-host", dict(fault="busy-host", processes=9), "busy-host"),
]
_FRESH["ddp-gpt2"] = [
    ("straggling-host", dict(fault="sleep", rank=1, share=0.25), "straggling-host"),
    ("busy-gpu", dict(fault="busy", rank=0, duty=0.6), "busy-gpu"),
    ("few-sms", dict(fault="few-sms", rank=0, sms=80), "few-sms"),
    ("forced-sync", dict(fault="sync", every="module"), "forced-sync"),
    ("data-stall", dict(fault="data", share=0.25, every=1), "data-stall"),
    ("imbalance", dict(fault="longer", rank=1, more=2), "imbalance"),
    ("fp32", dict(fault="fp32", tf32=True), "fp32-by-mistake"),
    ("slow-attention", dict(fault="attention"), "mismatched-attention"),
    ("anomaly", dict(fault="anomaly"), "checked-calls"),
    ("small-buckets", dict(fault="buckets", megabytes=0.25), "small-buckets"),
]
_FRESH["ddp-gemma"] = [
    ("straggling-host", dict(fault="sleep", rank=1, share=0.3), "straggling-host"),
    ("straggling-host", dict(fault="sleep-in-layers", rank=0, share=0.24), "straggling-host"),
    ("busy-gpu", dict(fault="busy", rank=1, duty=0.5), "busy-gpu"),
    ("few-sms", dict(fault="few-sms", rank=1, sms=64), "few-sms"),
    ("forced-sync", dict(fault="sync", every="layer"), "forced-sync"),
    ("data-stall", dict(fault="data", share=0.3, every=1), "data-stall"),
    ("data-stall", dict(fault="data", share=1.4, every=5), "data-stall-at-times"),
    ("imbalance", dict(fault="longer", rank=0, more=1), "imbalance"),
    ("fp32", dict(fault="fp32", tf32=True), "fp32-by-mistake"),
    ("allocator", dict(fault="empty-cache"), "allocator-retries"),
    ("checkpoint", dict(fault="checkpoint", every=5), "checkpoint"),
    ("busy-host", dict(fault="busy-host", processes=10), "busy-host"),
    ("no-overlap", dict(fault="no-overlap"), "one-bucket"),
]
_FRESH["fsdp-mistral"] = [
    ("straggling-host", dict(fault="sleep", rank=0, share=0.2), "straggling-host"),
    ("busy-gpu", dict(fault="busy", rank=0, duty=0.65), "busy-gpu"),
    ("busy-gpu", dict(fault="busy", rank=1, duty=0.35), "busy-gpu"),
    ("few-sms", dict(fault="few-sms", rank=0, sms=58), "few-sms"),
    ("forced-sync", dict(fault="sync", every="layer"), "forced-sync"),
    ("forced-sync", dict(fault="sync", every="module"), "forced-sync"),
    ("data-stall", dict(fault="data", share=0.22, every=1), "data-stall"),
    ("imbalance", dict(fault="longer", rank=1, more=1), "imbalance"),
    ("slow-attention", dict(fault="attention"), "mismatched-attention"),
    ("anomaly", dict(fault="anomaly"), "checked-calls"),
    ("allocator", dict(fault="empty-cache"), "allocator-retries"),
    ("busy-host", dict(fault="busy-host", processes=11), "busy-host"),
]
# Settings of the whole process: a start of its own each.
_ENVIRONMENTS = [
    ("launch-blocking", {"CUDA_LAUNCH_BLOCKING": "1"}, "launch-blocking"),
    ("distributed-debug", {"TORCH_DISTRIBUTED_DEBUG": "DETAIL"}, "checked-collectives"),
    ("no-peer-access", {"NCCL_P2P_DISABLE": "1"}, "slow-scale-up"),
    ("one-channel", {"NCCL_MAX_NCHANNELS": "1", "NCCL_MIN_NCHANNELS": "1"}, "slow-scale-up"),
]
_FRESH_ENVIRONMENTS = {"ddp-qwen": ("launch-blocking", "no-peer-access"), "fsdp-opt": ("one-channel",), "fsdp-qwen-2": ("no-peer-access",), "ddp-opt-2": ("launch-blocking",),
                       "fsdp-phi": ("one-channel",), "ddp-gpt2": ("no-peer-access",),
                       "ddp-gemma": ("launch-blocking", "no-peer-access"), "fsdp-mistral": ("launch-blocking", "one-channel"),
                       "ddp-yi": ("no-peer-access",), "fsdp-smollm": ("launch-blocking", "one-channel")}
_HEALTHY = {"fsdp-1b": 7, "ddp-1b": 7, "fsdp-3b": 7, "ddp-opt": 4, "fsdp-qwen": 4, "ddp-qwen": 4, "fsdp-opt": 4,
            "fsdp-qwen-2": 4, "ddp-opt-2": 4, "fsdp-phi": 4, "ddp-gpt2": 4, "ddp-gemma": 4, "fsdp-mistral": 4,
            "ddp-yi": 4, "fsdp-smollm": 4}
_ONLY = {"fsdp-3b": ("sleep-in-layers", "busy", "few-sms", "sync", "data", "longer", "checkpoint", "no-overlap")}


def _suits(program, fault):
    """Compiled programs have no modules left inside of a layer, and would compile attention anew."""
    compiled, kind = PROGRAMS[program]["compiled"], fault["fault"]
    if program in _ONLY and kind not in _ONLY[program]:
        return False
    if compiled and kind == "attention":
        return False
    return fault.get("every") != ("module" if compiled else "phase")


def held(name, program):
    if program in SET_BY_PROGRAMS:
        return False
    return program in HELD_PROGRAMS or hashlib.sha256(name.encode()).digest()[0] % 2 == 1


def cases():
    """Every run: id, program, truth, held, fault {name and strength}, environment."""
    made, seen = [], {}

    def add(program, kind, truth, fault, environment):
        number = seen[program, kind] = seen.get((program, kind), 0) + 1
        name = f"{program}-{kind}-{number}"
        made.append(
            dict(
                id=name,
                program=program,
                truth=truth,
                held=held(name, program),
                fault=fault,
                environment=environment,
            )
        )

    for program, count in _HEALTHY.items():
        of_ddp = _OF_DDP if PROGRAMS[program]["sharding"] == "ddp" else []
        faults = _FRESH.get(program, (_BLIND if program in BLIND_PROGRAMS else _FAULTS) + of_ddp)
        chosen = [f for f in faults if _suits(program, f[1])]
        for i in range(count):  # healthy runs lie among the others
            add(program, "healthy", "", dict(fault="none"), {})
            for kind, fault, truth in chosen[i * len(chosen) // count : (i + 1) * len(chosen) // count]:
                add(program, kind, truth, fault, {})
        if program not in _ONLY:
            for kind, environment, truth in _ENVIRONMENTS:
                if kind not in _FRESH_ENVIRONMENTS.get(program, (kind,)):
                    continue
                add(program, kind, truth, dict(fault="none"), environment)
    return made


if __name__ == "__main__":
    for case in cases():
        print(case)
