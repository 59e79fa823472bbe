# SPDX-License-Identifier: Apache-2.0
"""Slurm's rules in plain Python, held against recordings: `python3 slurm_reference.py recorded/*.csv`.

These are the rules of Slurm 22.05 with sched/backfill, priority/basic, select/cons_tres,
topology/tree and one partition, as its manual tells them (sched_config, topology, slurm.conf) and as
schedule_record.py saw them. The manual leaves much open. What is marked "seen" was guessed and then held
against slurmctld's log, which tells what each pass tested, planned and started; its source was not opened.

Time
- Slurm plans in whole seconds of the epoch. `now` of a pass is the second in which it began. A job that
  starts is expected to end at the second of its start plus its limit. A limit is whole minutes, rounded
  up as it is submitted; recordings have it in seconds.
- A pass takes 0.4 ms a test and 0.7 ms a start (seen, on the machine that recorded). It matters where the
  second changes meanwhile, and to when the backfill loop wakes up next. What was submitted or is free at
  its beginning counts.
- A job's hosts are free 3 ms after its end, all at once (seen; there is no epilog, and CompleteWait is
  0). Until then it counts as running. Limits are never reached in the recordings: KillWait and
  OverTimeLimit say nothing here.

Order
- Jobs stand in the order of their submission, in both loops.

When the loops wake up
- Submission starts no batch job (seen: it tests that the job could ever run, and asks for the main loop).
- Main loop: slurmctld looks once a second whether to run it: 1 s of sleep and 1.7 ms, more when the
  loops are busy (seen). It runs at such a tick if sched_interval seconds went by since the last run
  over the whole queue (then over the whole queue again), or if a job was submitted or ended since its
  last run and batch_sched_delay seconds went by since the last tick that ran it; both count whole
  seconds. What backfill starts does not ask for it (seen). One to three ends of a hundred run it at
  once, 4 to 16 ms later, beside the ticks (seen; which ones is up to the processes of the hosts).
- Backfill loop: it sleeps bf_interval seconds from the end of a pass to the beginning of the next. If no
  job was submitted, started or ended since the last pass began, it looks again every second (seen).
- Both hold the lock of all jobs: one waits for the other.

Place of a job that asks for `hosts` hosts and `of_host` GPUs on each (seen; "best fit" in the manual)
1. A host is eligible if it has of_host free GPUs, and, for backfill, is not barred. How many more it has
   does not matter.
2. Fewer eligible hosts than asked for: no place.
3. Of the leaves with at least as many eligible hosts as are still needed, take the one with fewest; if no
   leaf has as many, the one with most. Of equals the first in the order of topology.conf.
4. Of that leaf take eligible hosts in order of their number, as many as are needed. If hosts are still
   needed, go on at 3 without that leaf.
So a gang that fits under one leaf is placed under one, jobs of part of a host go to the leaf with fewest
hosts that could take them, and there to the first such host, not to the fullest.

A pass of the main loop
- In order, at most default_queue_depth (100) jobs, or all of them: a job with a place starts. The first
  that has none ends the pass.

A pass of the backfill loop
- It keeps a plan: spans of time from `now` to bf_window (a day) later, each with the hosts that are
  reserved in it. At first one span, nothing reserved. In order, for each job (at most bf_max_job_test,
  500), with earliest = now:
1. Look at the spans from the one that holds `earliest` (it begins at or before it, and ends after it) to
   the last one that begins at or before earliest + limit (at, not only before). Barred is each host that
   is reserved in one of them.
2. later = the end of the first of them, or of the one span behind them, that has a reserved host which
   its next span has not: the next instant that frees something (seen). None if there is none.
3. Test: when could the job start on hosts that are not barred (below)? Never: go on at 1 with
   earliest = later, or with the next job if there is none.
4. start = the later of what the test said and `earliest`. start = now: the job starts, on the hosts of
   the test. It reserves nothing; it is a running job from here on.
5. If start > later: nothing is kept, go on at 1 with earliest = later.
6. start > now + bf_window: the next job.
7. The reservation is of whole hosts, from start to start + limit, both rounded down to multiples of
   bf_resolution of the epoch. If one of its hosts is reserved in a span that overlaps it (touching is
   no overlap): go on at 1 with earliest = start, which is not rounded.
8. Else reserve: spans are split at both ends, and spans that are equal now become one, which step 2 can
   tell. (A begin before `now`, by rounding, is `now`.) This start is what squeue --start shows.
So every job that waits has a reservation, as in conservative backfill, but all are made anew each time.

The test: when would a job start if running jobs ended at their limits?
- Now, if it has a place among what is free.
- Else running jobs are removed in the order of their expected ends, a group at a time, and the job is
  placed after each group, on what is free then. It starts at the expected end of the last job removed
  (not before now), so a start may be told too late by the span of a group, and even where an earlier
  one of its group would have been enough.
- Jobs none of whose hosts are usable (all barred) are passed over: they are not removed.
- A group ends after a job that was removed (not: passed over) if the next running job in order, usable
  or not, is expected to end after `until`. Of the first group until = the expected end of the first job
  removed, rounded down to a multiple of 30 s of the epoch, plus 60 s (seen; bf_resolution does not change
  it). Before each further group: while until < the expected end of the next job in order, usable or not,
  until += step, step *= 2; step is 30 s at first, and stays as it is from group to group (the manual says
  of it: 30 s, doubled with each evaluation).

How well
- The rules were found on two lighter recordings that are not kept, and on usual-1. tight-3 was looked at
  after that (RELEASE was 5 ms then, which makes no difference to it), defaults-5 was recorded last, and
  nothing was changed for it.
- Each pass from Slurm's own state before it: all 1,248 passes of the four start the same jobs on the same
  hosts, and the 7,173 reservations that slurmctld told in its logs are the same, hosts and end.
- Replay from an empty cluster, the loops waking up when they did (RecordedClock): every start and every
  host of the four is Slurm's. A fifth, usual-1's list again, has 97.3% of starts within bf_interval and
  a mean wait of -0.7%: a second changed while a pass went on.
- Replay by the rules of wakes above (OwnClock): 54 to 79% within 3 s and a mean wait of -11 to +4% with a
  tenth of the intervals, 93% within 30 s and +0.5% with Slurm's own. That is no fault of the rules: Slurm
  itself, given usual-1's list twice, has 57% of starts within 3 s of each other and means 4.8% apart. A few
  ms between an end and a wake decide who goes first, and another schedule follows. So a replay that is
  to be held against a recording has to be told NAME-passes.csv.
- Not seen: limits that are reached, more than 100 jobs that wait, groups of more than 200 running jobs,
  several partitions, hosts of different kinds, preemption, reservations, dependencies.
"""
import argparse
import bisect
import csv
import math
import pathlib

WINDOW = 24 * 3600  # bf_window
DEPTH = 100  # default_queue_depth
TICK = 1.0017  # seconds from one look at the main loop to the next
START_COST, TEST_COST = 0.0007, 0.0004  # seconds: of a start, of a test of the backfill loop
RELEASE = 0.003  # seconds from a job's end to its hosts being free


class Job:
    def __init__(self, row):
        self.id, self.gpus, self.hosts = int(row["id"]), int(row["gpus"]), int(row["hosts"])
        self.of_host = self.gpus // self.hosts
        self.limit, self.submit = int(row["limit_s"]), float(row["submit_s"])
        self.start, self.end, self.by = float(row["start_s"]), float(row["end_s"]), row["by"]
        self.nodes = [host for part in row["nodes"].split() for host in range(int(part.split("-")[0]),
                                                                              int(part.split("-")[-1]) + 1)]


class Recording:
    def __init__(self, path):
        lines = path.read_text().splitlines()
        head = dict(line[2:].split(": ", 1) for line in lines if line.startswith("# ") and ": " in line)
        self.zero = float(head["zero"])
        self.hosts, self.gpus_of_host, self.leaf = (int(head[key]) for key in ("hosts", "gpus_of_host", "leaf"))
        self.interval, self.resolution = int(head["bf_interval"]), int(head["bf_resolution"])
        self.full_interval, self.delay = int(head["sched_interval"]), int(head["batch_sched_delay"])
        self.jobs = [Job(row) for row in csv.DictReader(line for line in lines if not line.startswith("#"))]
        with open(path.with_name(f"{path.stem}-passes.csv"), encoding="ascii") as passes:
            self.passes = [(float(row["at_s"]), row["loop"]) for row in
                           csv.DictReader(line for line in passes if not line.startswith("#"))]
        for job in self.jobs:
            job.woke = max(at for at, loop in self.passes if loop == job.by and at <= job.start)

    def second(self, at):
        return math.floor(round(self.zero + at, 4))  # sums of milliseconds are whole ones again


class Slurm:
    """The state of slurmctld and its two loops. `now`: whole seconds of the epoch; `at`: seconds after zero."""

    def __init__(self, recording):
        self.recording = recording
        self.free = [recording.gpus_of_host] * recording.hosts
        self.queue = []  # jobs in order of submission
        self.running = {}  # job -> its hosts
        self.ends = {}  # job -> the second at which its limit ends
        self.started = []  # (job, hosts), in order

    def second(self, at):
        return self.recording.second(at)

    def start(self, job, at, hosts):
        self.queue.remove(job)
        self.hold(job, self.second(at) + job.limit, hosts)
        self.started.append((job, hosts))

    def hold(self, job, ends, hosts):
        self.running[job], self.ends[job] = hosts, ends
        for host in hosts:
            self.free[host] -= job.of_host

    def release(self, job):
        for host in self.running.pop(job):
            self.free[host] += job.of_host
        del self.ends[job]

    def place(self, job, free, barred=frozenset()):
        """The hosts of a job, None if there is no place."""
        leaf = self.recording.leaf
        leaves = [[host for host in range(first, first + leaf) if free[host] >= job.of_host and host not in barred]
                  for first in range(0, len(free), leaf)]
        need, taken = job.hosts, []
        if sum(map(len, leaves)) < need:
            return None
        while need > 0:
            enough = [hosts for hosts in leaves if len(hosts) >= need]
            best = min(enough, key=len) if enough else max(leaves, key=len)  # the first of equals
            taken += best[:need]
            need -= len(best[:need])
            leaves.remove(best)
        return sorted(taken)

    def main_pass(self, at):
        for job in self.queue[:DEPTH]:
            hosts = self.place(job, self.free)
            if hosts is None:
                return
            self.start(job, at, hosts)
            at += START_COST

    def expect(self, job, now, barred):
        """When and where a job would start if running jobs ended at their limits; None if never."""
        hosts = self.place(job, self.free, barred)
        if hosts is not None:
            return now, hosts
        free, order = list(self.free), sorted(self.running, key=self.ends.get)
        until, step, following = None, 30, 0
        while following < len(order):
            while until is not None and until < self.ends[order[following]]:
                until, step = until + step, 2 * step
            last = None
            while following < len(order):
                ending = order[following]
                following += 1
                if barred.issuperset(self.running[ending]):
                    continue
                last = self.ends[ending]
                if until is None:
                    until = last // 30 * 30 + 60
                for host in self.running[ending]:
                    free[host] += ending.of_host
                if following < len(order) and self.ends[order[following]] > until:
                    break
            hosts = None if last is None else self.place(job, free, barred)
            if hosts is not None:
                return max(now, last), hosts
        return None

    def backfill_pass(self, at):
        """Starts jobs, plans those that have to wait; returns when the pass is over."""
        now = self.second(at)
        plan = Plan(now, now + WINDOW)
        for job in list(self.queue):
            earliest = now
            while earliest is not None:
                barred, later = plan.barred(earliest, earliest + job.limit)
                found = self.expect(job, now, barred)
                at += TEST_COST
                if found is None:
                    earliest = later
                    continue
                start, hosts = max(found[0], earliest), found[1]
                if start <= now:
                    self.start(job, at, hosts)
                    at += START_COST
                    break
                if later is not None and start > later:
                    earliest = later
                    continue
                if start > now + WINDOW:
                    break
                block = self.recording.resolution
                begin, end = start // block * block, (start + job.limit) // block * block
                if plan.is_free(hosts, begin, end):
                    plan.reserve(hosts, begin, end)
                    break
                earliest = start
        return at


class Plan:
    """Spans of time one after the other, each with the hosts that are reserved in it."""

    def __init__(self, begin, end):
        self.edges, self.reserved = [begin, end], [frozenset()]

    def barred(self, start, end):
        """Hosts that are reserved at some time of start to end, and when the first of them is freed."""
        barred, later = frozenset(), None
        for index in range(bisect.bisect_right(self.edges, start) - 1, len(self.reserved)):
            if later is None and index + 1 < len(self.reserved) and self.reserved[index] - self.reserved[index + 1]:
                later = self.edges[index + 1]
            if self.edges[index] > end:
                break
            barred |= self.reserved[index]
        return barred, later

    def is_free(self, hosts, begin, end):
        return all(until <= begin or since >= end or reserved.isdisjoint(hosts)
                   for since, until, reserved in zip(self.edges, self.edges[1:], self.reserved))

    def reserve(self, hosts, begin, end):
        begin = max(begin, self.edges[0])
        for edge in (begin, end):
            index = bisect.bisect_left(self.edges, edge)
            if index < len(self.edges) and self.edges[index] != edge:
                self.edges.insert(index, edge)
                self.reserved.insert(index, self.reserved[index - 1])
        for index, edge in enumerate(self.edges[:-1]):
            if begin <= edge < end:
                self.reserved[index] |= frozenset(hosts)
        for index in range(len(self.reserved) - 1, 0, -1):
            if self.reserved[index] == self.reserved[index - 1]:
                del self.edges[index], self.reserved[index]


# Against a recording ------------------------------------------------------------------------------

def decisions(recording):
    """Passes, and those which start other jobs or elsewhere than Slurm did, each from Slurm's own state."""
    different = []
    for at, loop in recording.passes:
        slurm = Slurm(recording)
        for job in recording.jobs:
            if job.woke < at < job.end + RELEASE:
                slurm.hold(job, slurm.second(job.start) + job.limit, job.nodes)
            elif job.submit <= at <= job.woke:
                slurm.queue.append(job)
        slurm.main_pass(at) if loop == "main" else slurm.backfill_pass(at)
        told = {job.id: hosts for job, hosts in slurm.started}
        real = {job.id: job.nodes for job in recording.jobs if (job.woke, job.by) == (at, loop)}
        if told != real:
            different.append((at, loop, told, real))
    return different


class RecordedClock:
    """The loops wake up when they did."""

    def __init__(self, recording):
        self.left = recording.passes[::-1]

    def next(self):
        return self.left[-1] if self.left else (math.inf, "")

    def runs(self, _at, _loop):
        self.left.pop()
        return True

    def heard(self, starts):
        pass

    def over(self, _at):
        pass


class OwnClock:
    """The loops wake up by rule, after a first tick and a first pass of backfill that are told."""

    def __init__(self, recording):
        self.recording = recording
        self.wakes = {loop: next(at for at, which in recording.passes if which == loop)
                      for loop in ("main", "backfill")}
        self.last = self.last_full = -math.inf
        self.asked, self.changed = False, True

    def next(self):
        return min((at, loop) for loop, at in self.wakes.items())

    def runs(self, at, loop):
        if loop == "backfill":
            self.wakes[loop] = at + 1  # unless it runs
            changed, self.changed = self.changed, False
            return changed
        self.wakes[loop] += TICK
        now = self.recording.second(at)
        full = now - self.last_full >= self.recording.full_interval
        if not full and not (self.asked and now - self.last >= self.recording.delay):
            return False
        self.last, self.last_full, self.asked = now, now if full else self.last_full, False
        return True

    def heard(self, starts):
        self.changed = True
        self.asked = self.asked or not starts

    def over(self, at):
        self.wakes["backfill"] = at + self.recording.interval


def replay(recording, clock):
    """When the rules alone start each job, and where."""
    slurm, told = Slurm(recording), {}
    arrivals, ends, releases = list(recording.jobs), [], []
    while len(told) < len(recording.jobs):
        wake, loop = clock.next()
        times = [releases[0][0] if releases else math.inf, arrivals[0].submit if arrivals else math.inf,
                 ends[0][0] if ends else math.inf, wake]
        at = min(times)
        if at == math.inf:
            raise RuntimeError(f"the recording is over, {len(recording.jobs) - len(told)} jobs have not started")
        event = times.index(at)
        if event == 0:
            slurm.release(releases.pop(0)[1])
            clock.heard(starts=False)
        elif event == 1:
            slurm.queue.append(arrivals.pop(0))
            clock.heard(starts=False)
        elif event == 2:
            releases.append((at + RELEASE, ends.pop(0)[1]))
        elif clock.runs(at, loop):
            slurm.started.clear()
            if loop == "main":
                slurm.main_pass(at)
            else:
                clock.over(slurm.backfill_pass(at))
            for job, hosts in slurm.started:
                bisect.insort(ends, (at + job.end - job.woke, job), key=lambda end: end[0])
                told[job] = at, hosts
                clock.heard(starts=True)
    return told


class Figures:
    """A replay beside its recording."""

    def __init__(self, recording, told):
        jobs = recording.jobs
        self.interval = recording.interval
        self.near = sum(abs(told[job][0] - job.woke) <= self.interval for job in jobs) / len(jobs)
        self.wait_error = sum(told[job][0] - job.woke for job in jobs) / sum(job.woke - job.submit for job in jobs)
        self.same_hosts = sum(told[job][1] == job.nodes for job in jobs) / len(jobs)

    def __str__(self):
        return (f"{100 * self.near:.1f}% of starts within {self.interval} s, mean wait {100 * self.wait_error:+.1f}%, "
                f"{100 * self.same_hosts:.1f}% on the same hosts")


def recordings(paths):
    return [(path.stem, Recording(path)) for path in paths if not path.stem.endswith("-passes")]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("recordings", type=pathlib.Path, nargs="+")
    for name, recording in recordings(parser.parse_args().recordings):
        jobs, different = recording.jobs, decisions(recording)
        waits = [job.woke - job.submit for job in jobs]
        print(f"{name}: {len(jobs)} jobs, {sum(job.by == 'main' for job in jobs)} started by the main loop; "
              f"wait {sum(waits) / len(jobs):.1f} s in the mean, {max(waits):.0f} s at most")
        print(f"  each pass from Slurm's own state: {len(recording.passes) - len(different)} of "
              f"{len(recording.passes)} start the same jobs on the same hosts")
        for at, loop, told, real in different:
            print(f"    {at:.3f} {loop}: told {told}, real {real}")
        print(f"  replay, wakes as recorded: {Figures(recording, replay(recording, RecordedClock(recording)))}")
        print(f"  replay, own clocks: {Figures(recording, replay(recording, OwnClock(recording)))}")


if __name__ == "__main__":
    main()
