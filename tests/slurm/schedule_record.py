# SPDX-License-Identifier: Apache-2.0
"""Records what a real Slurm does with a list of jobs: `python3 schedule_record.py recorded/NAME.csv --seed 1`.

It starts slurmctld and 64 slurmd on this machine (cluster.py), hosts of 8 GPUs that do not exist,
under 8 leaf switches and a spine, submits 300 jobs that sleep, and reads in slurmctld's log when each
was submitted, started and ended, where it ran, and which of Slurm's two loops started it. Three files
are written: NAME.csv, a row a job; NAME-passes.csv, when the loops woke up; NAME.conf, what the daemons
read. slurm_reference.py says which rules explain them.

Times are seconds after the first submission, to a millisecond; `zero` in the head is that instant in
seconds of the epoch, which matters because Slurm plans in whole ones. Jobs are eligible as they are
submitted.

Time runs ten times as fast as on a cluster: intervals are a tenth of Slurm's defaults, jobs run for
seconds that would be minutes. But a limit is a minute at least. `--defaults` leaves the intervals as
they are. A recording takes six minutes, thirteen with `--defaults`, and a tenth of a core.

Debian's slurm-wlm-emulator is of no use here: its slurmctld wants a FrontendName, which the library
that it shares with the other packages refuses. This slurmctld is of the same release, unchanged.
"""
import argparse
import csv
import datetime
import math
import pathlib
import random
import re
import sys
import time

import cluster

HOSTS, GPUS, LEAF = 64, 8, 8  # hosts, GPUs of a host, hosts of a leaf
CPUS_OF_GPU = 8
# Slurm's own intervals, and a tenth of them: of the last one that is less than the second it counts in.
DEFAULTS = {"bf_interval": 30, "sched_interval": 60, "bf_resolution": 60, "batch_sched_delay": 3}
TENTH = {"bf_interval": 3, "sched_interval": 6, "bf_resolution": 6, "batch_sched_delay": 0}
# Jobs of so many GPUs, and their share of all jobs.
SIZES = {1: 0.30, 2: 0.10, 4: 0.11, 8: 0.24, 16: 0.10, 32: 0.08, 64: 0.05, 128: 0.02}
SHORTEST, LONGEST = 5, 120  # seconds a job sleeps, log-uniform; twice as long with Slurm's own intervals
# Shares of the jobs, and of the GPUs that those ask for while they come.
PHASES = [(0.5, 2.0), (0.5, 0.9)]
USUAL = [1, 2, 2, 3, 4]  # minutes that users ask for, whatever they need
MARGIN = 3  # seconds that a limit leaves at least
COLUMNS = ["id", "gpus", "hosts", "limit_s", "submit_s", "start_s", "end_s", "by", "nodes"]


def make_jobs(seed, count, tight=False, stretch=1):
    """Dictionaries in order of submission. tight: limits are the least that suffice."""
    draw = random.Random(seed)
    jobs = []
    for number in range(count):
        gpus = draw.choices(list(SIZES), list(SIZES.values()))[0]
        length = round(math.exp(draw.uniform(math.log(SHORTEST), math.log(LONGEST))) * stretch, 2)
        least = math.ceil((length + MARGIN) / 60)
        minutes = least if tight else max(least, draw.choice(USUAL))
        jobs.append({"id": number + 1, "gpus": gpus, "hosts": max(1, gpus // GPUS), "limit_s": 60 * minutes,
                     "sleep_s": length})
    mean = sum(job["gpus"] * job["sleep_s"] for job in jobs) / count
    at, first = 0.0, 0
    for share, load in PHASES:
        last = min(count, first + round(share * count))
        for job in jobs[first:last]:
            job["at"] = at
            at += draw.expovariate(load * HOSTS * GPUS / mean)
        first = last
    return jobs


class Recorder(cluster.Slurm):
    """A Slurm with a tree of switches, GPUs that bring their processors, and a log that tells what decided."""

    def __init__(self, intervals):
        super().__init__(nodes=HOSTS, cpus=GPUS * CPUS_OF_GPU, gpus=GPUS)
        parameters = ",".join(f"{key}={value}" for key, value in intervals.items())
        lines = (f"SchedulerParameters={parameters}\nPriorityType=priority/basic\nTopologyPlugin=topology/tree\n"
                 "SlurmctldDebug=debug\nDebugFlags=Backfill\n")
        self.template = re.sub("SchedulerParameters=.*\n", lines, self.template)
        self.template = self.template.replace("OverSubscribe=NO", f"OverSubscribe=NO DefCpuPerGPU={CPUS_OF_GPU}")

    def _devices(self):
        leaves = HOSTS // LEAF
        (self.folder / "topology.conf").write_text("".join(
            f"SwitchName=leaf{leaf} Nodes=node[{LEAF * leaf}-{LEAF * leaf + LEAF - 1}]\n" for leaf in range(leaves)) +
            f"SwitchName=spine Switches=leaf[0-{leaves - 1}]\n")
        return super()._devices()

    def configuration(self):
        """All that the daemons read, without what differs between two starts."""
        text = (self.folder / "slurm.conf").read_text()
        first, last = re.search("(NodeName=.*\n)+", text).span()
        node = re.sub(r"NodeName=\S+", f"NodeName=node[0-{HOSTS - 1}]", text[first:last].split("\n")[0])
        text = text[:first] + re.sub(r" Port=\d+", "", node) + "\n" + text[last:]
        text = re.sub("SlurmctldHost=.*", "SlurmctldHost=localhost", re.sub("SlurmctldPort=.*\n", "", text))
        for name in ("topology.conf", "gres.conf"):
            text += f"\n# {name}\n{(self.folder / name).read_text()}"
        return text.replace(str(self.folder), "FOLDER")


def submit(slurm, jobs):
    """Submits each job at its time, or as soon after it as that is possible."""
    started = time.monotonic()
    for job in jobs:
        time.sleep(max(0.0, started + job["at"] - time.monotonic()))
        number = slurm.run(
            "sbatch", "--parsable", f"--nodes={job['hosts']}", f"--gpus-per-node={job['gpus'] // job['hosts']}",
            f"--time={job['limit_s'] // 60}", "--output=/dev/null",
            f"--wrap=exec sleep {job['sleep_s']}").stdout.strip()
        if number != str(job["id"]):
            raise RuntimeError(f"Slurm calls job {job['id']} {number}")


# The log ------------------------------------------------------------------------------------------

LINE = re.compile(r"\[(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3})\] (.*)")
SUBMITTED = re.compile(r"_slurm_rpc_submit_batch_job: JobId=(\d+) ")
STARTED = {"main": re.compile(r"sched: Allocate JobId=(\d+) NodeList=node(\S+)"),
           "backfill": re.compile(r"sched/backfill: _start_job: Started JobId=(\d+) in \S+ on node(\S+)")}
ENDED = re.compile(r"_job_complete: JobId=(\d+) done")
WOKE = {"main": re.compile("sched: Running job scheduler"),
        "backfill": re.compile("sched/backfill: _attempt_backfill: beginning")}


def read_log(text, jobs):
    """Fills in what happened to the jobs; the instant of the first submission, and the passes of the loops."""
    by_id = {str(job["id"]): job for job in jobs}
    zero, passes = None, []
    for line in text.splitlines():
        found = LINE.fullmatch(line)
        if not found:
            continue
        at, said = datetime.datetime.fromisoformat(found[1]).timestamp(), found[2]
        if event := SUBMITTED.search(said):
            zero = at if zero is None else zero
            by_id[event[1]]["submit_s"] = f"{at - zero:.3f}"
        if zero is None:
            continue
        if event := ENDED.search(said):
            by_id[event[1]]["end_s"] = f"{at - zero:.3f}"
        for loop in WOKE:
            if WOKE[loop].search(said):
                passes.append({"at_s": f"{at - zero:.3f}", "loop": loop})
            elif event := STARTED[loop].search(said):
                by_id[event[1]].update(start_s=f"{at - zero:.3f}", by=loop,
                                       nodes=event[2].strip("[]").replace(",", " "))
    return zero, passes


def write(path, head, columns, rows):
    with open(path, "w", encoding="ascii", newline="") as out:
        out.writelines(f"# {line}\n" for line in head)
        writer = csv.DictWriter(out, columns, lineterminator="\n", extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("output", type=pathlib.Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=300)
    parser.add_argument("--tight", action="store_true", help="limits are the least whole minutes that suffice")
    parser.add_argument("--defaults", action="store_true", help="Slurm's own intervals, and jobs twice as long")
    parser.add_argument("--log", type=pathlib.Path, help="keeps slurmctld's log")
    options = parser.parse_args()
    intervals = DEFAULTS if options.defaults else TENTH
    jobs = make_jobs(options.seed, options.jobs, options.tight, 2 if options.defaults else 1)
    with Recorder(intervals) as slurm:
        version = slurm.run("sbatch", "--version").stdout.strip()
        submit(slurm, jobs)
        slurm.wait_for(lambda: not slurm.run("squeue", "--noheader").stdout.strip(), "all jobs to end", 1800)
        time.sleep(1)  # what ended last is in the log
        configuration, log = slurm.configuration(), (slurm.folder / "slurmctld.log").read_text(errors="replace")
    if options.log:
        options.log.write_text(log)
    zero, passes = read_log(log, jobs)
    told = "".join(f" --{name}" for name in ("tight", "defaults") if getattr(options, name))
    head = [f"What {version} did, recorded by schedule_record.py --seed {options.seed} --jobs {options.jobs}{told}",
            f"configuration: {options.output.stem}.conf", f"hosts: {HOSTS}", f"gpus_of_host: {GPUS}", f"leaf: {LEAF}",
            f"zero: {zero:.3f}", *(f"{key}: {value}" for key, value in intervals.items())]
    write(options.output, head, COLUMNS, jobs)
    write(options.output.with_name(f"{options.output.stem}-passes.csv"), head[:1], ["at_s", "loop"], passes)
    options.output.with_suffix(".conf").write_text(configuration)
    waits = [float(job["start_s"]) - float(job["submit_s"]) for job in jobs]
    print(f"{len(jobs)} jobs, mean wait {sum(waits) / len(waits):.1f} s, the last ended after "
          f"{max(float(job['end_s']) for job in jobs):.0f} s")


if __name__ == "__main__":
    sys.exit(main())
