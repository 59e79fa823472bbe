# SPDX-License-Identifier: Apache-2.0
"""Draws the workloads of Pollux's evaluation from the Philly trace, at any load.

What is known of them (petuum/adaptdl, branch osdi21-artifact, simulator/workload.py): jobs of at least
60 s and below 1,000 GPU-hours that came between 02:00 and 10:00, on whichever day; as many of them as the
load asks for, without putting back, by numpy's generator; the application by GPU-hours, its tuned
configuration by Python's. Those configurations are the ones that elastic_jobs.csv holds.
"""
import csv
import datetime
import random

JOBS_AT_LOAD_1 = 160
# Upper ends in GPU-seconds; the shortest are one of two.
KINDS = [(3600, ["cifar10", "ncf"]), (36000, ["deepspeech2"]), (360000, ["yolov3"]), (3600000, ["imagenet"])]
FIRST_HOUR, HOURS = 2, 8


class LegacyGenerator:
    """numpy.random.RandomState(seed), as far as a permutation needs it: MT19937 with the seeding of 1998,
    bounded numbers by masks."""

    def __init__(self, seed):
        state = [seed & 0xFFFFFFFF]
        for i in range(1, 624):
            state.append((1812433253 * (state[-1] ^ (state[-1] >> 30)) + i) & 0xFFFFFFFF)
        self.bits = random.Random()
        self.bits.setstate((3, (*state, 624), None))

    def up_to(self, most):
        mask = (1 << most.bit_length()) - 1
        while True:
            value = self.bits.getrandbits(32) & mask
            if value <= most:
                return value

    def permutation(self, count):
        numbers = list(range(count))
        for last in range(count - 1, 0, -1):
            other = self.up_to(last)
            numbers[last], numbers[other] = numbers[other], numbers[last]
        return numbers


def read_trace(path):
    """(second of the window, GPU-seconds) of all jobs that may be drawn, in the order of the file."""
    jobs = []
    with open(path, newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            gpu_s = float(row["gpu_time"])
            if float(row["duration"]) < 60 or gpu_s >= KINDS[-1][0]:
                continue
            at = datetime.datetime.fromisoformat(row["timestamp"]) - datetime.timedelta(hours=FIRST_HOUR)
            if at.hour < HOURS:
                jobs.append((at.hour * 3600 + at.minute * 60 + at.second, gpu_s))
    return jobs


def configurations(tuned):
    """Sorted (GPUs, batch) by application."""
    all_of = {}
    for rows in tuned.values():
        for _, application, gpus, batch in rows:
            all_of.setdefault(application, set()).add((gpus, batch))
    return {application: sorted(found) for application, found in all_of.items()}


def draw(trace, tuned, workload, count):
    """(submission in s, application, GPUs, batch) of the workload of that number."""
    first, berts = random.Random(workload), random.Random(workload + 3)
    rows = []
    for number in LegacyGenerator(first.randint(0, 1 << 32)).permutation(len(trace))[:count]:
        at, gpu_s = trace[number]
        kinds = next(names for end, names in KINDS if gpu_s < end)
        application = first.choice(kinds) if len(kinds) > 1 else kinds[0]
        configuration = first.choice(tuned[application])
        if application == "deepspeech2" and berts.randint(0, 1):
            application = "bert"
            configuration = berts.choice(tuned[application])
        rows.append((at, application, *configuration))
    return sorted(rows, key=lambda row: row[0])


def read_tuned(path):
    """Rows of elastic_jobs.csv by workload."""
    workloads = {}
    with open(path, newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            workloads.setdefault(int(row["workload"]), []).append(
                (int(float(row["submit_s"])), row["application"], int(row["gpus"]), int(row["batch_size"])))
    return workloads


def write_jobs(path, workloads):
    with open(path, "w", newline="", encoding="utf-8") as file:
        out = csv.writer(file)
        out.writerow(["workload", "job", "submit_s", "application", "gpus", "batch_size"])
        for workload, rows in workloads.items():
            for number, (at, application, gpus, batch) in enumerate(rows):
                out.writerow([workload, f"{application}-{number}", at, application, gpus, batch])
