# SPDX-License-Identifier: Apache-2.0
# Draws the lengths and arrival times of the serving engine's traffic from fixed seeds.
"""Lengths: fixed, uniform, or pairs of serve_lengths.json, which names each source and licence. Pairs that
the context cannot hold are left out.
"""

import json
import os
import random

KINDS = ("fixed", "uniform", "azure-conversation", "azure-code", "mooncake-conversation")


def recorded(name):
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "serve_lengths.json")) as file:
        return json.load(file)[name]["pairs"]


def lengths(spec, count, seed, context):
    """`spec`: ("fixed", prompt, output), ("uniform", (low, high), (low, high)) or the name of a record."""
    chance = random.Random(seed)
    if spec[0] == "fixed":
        return [(spec[1], spec[2])] * count
    if spec[0] == "uniform":
        return [(chance.randint(*spec[1]), chance.randint(*spec[2])) for _ in range(count)]
    fits = [tuple(p) for p in recorded(spec[0]) if sum(p) <= context]
    return [chance.choice(fits) for _ in range(count)]


def label(spec):
    if spec[0] == "fixed":
        return f"i{spec[1]}-o{spec[2]}"
    if spec[0] == "uniform":
        return f"i{spec[1][0]}..{spec[1][1]}-o{spec[2][0]}..{spec[2][1]}"
    return spec[0]


def poisson(rate, count, seed):
    chance, at, times = random.Random(seed + 1), 0.0, []
    for _ in range(count):
        at += chance.expovariate(rate)
        times.append(at)
    return times
