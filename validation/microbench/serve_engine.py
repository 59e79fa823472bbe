# SPDX-License-Identifier: Apache-2.0
# Drives scheduler and runner through a traffic by the host's clock, and logs every step and request.
"""A step: take what has arrived, schedule, pack, launch, wait for the tokens, account. Nothing overlaps the
next step. Times of a log are whole microseconds since the run's start. `replay` runs the scheduler again on
a log's arrivals and step times and tells the first step that comes out otherwise.
"""

import gc
import heapq
import time

import torch

from serve_scheduler import Request, Scheduler

STEP_COLUMNS = (
    "start_us",
    "launch_us",
    "launched_us",
    "end_us",
    "gpu_us",
    "decodes",
    "context",
    "graph",
    "free",
)


class Traffic:
    """Arrivals: a list of (seconds, prompt, output), or a closed loop of `clients`, each of which sends its
    next request when its last has finished, until `requests` are sent or `seconds` have passed.
    """

    def __init__(self, lengths, times=None, clients=0, seconds=None):
        self.lengths, self.seconds, self.made = lengths, seconds, 0
        self.heap = []
        if times is not None:
            for at, (prompt, output) in zip(times, lengths):
                self.push(at, prompt, output, -1)
            self.lengths = []
        else:
            for client in range(min(clients, len(lengths))):
                self.next_of(client, 0.0)

    def push(self, at, prompt, output, client):
        heapq.heappush(self.heap, (at, self.made, Request(self.made, at, prompt, output, client)))
        self.made += 1

    def next_of(self, client, now):
        if self.made < len(self.lengths) and (self.seconds is None or now < self.seconds):
            self.push(now, *self.lengths[self.made], client)

    def arrived(self, now):
        while self.heap and self.heap[0][0] <= now:
            yield heapq.heappop(self.heap)[2]

    def next_time(self):
        return self.heap[0][0] if self.heap else None

    def finished(self, request, now):
        if request.client >= 0:
            self.next_of(request.client, now)


class Log:
    def __init__(self):
        self.steps, self.chunks, self.requests, self.refused, self.preempted = [], [], [], [], []
        self.events = []

    def step(self, times, plan, context, graph, free):
        number = len(self.steps)
        self.steps.append([*times, 0, len(plan.decodes), context, graph, free])
        for request, start, length, _ in plan.chunks:
            self.chunks.append([number, request.id, start, length])
        for request in plan.preempted:
            self.preempted.append([number, request.id])

    def columns(self):
        for row, pair in zip(self.steps, self.events):
            row[4] = round(1e3 * pair[0].elapsed_time(pair[1])) if pair else 0
        steps = {name: [row[i] for row in self.steps] for i, name in enumerate(STEP_COLUMNS)}
        steps["chunks"], steps["preempted"] = self.chunks, self.preempted
        done = self.requests  # in the order in which they joined the queue
        requests = {
            "id": [r.id for r in done],
            "arrival_us": [round(1e6 * r.arrival) for r in done],
            "seen": [r.seen for r in done],
            "prompt": [r.prompt for r in done],
            "output": [r.output for r in done],
            "made": [r.made for r in done],
            "admitted": [r.admitted for r in done],
            "first": [r.runs[0][0] if r.runs else -1 for r in done],
            "last": [sum(r.runs[-1]) - 1 if r.runs else -1 for r in done],
            "preemptions": [r.preemptions for r in done],
            "recomputed": [r.recomputed for r in done],
            "runs": {r.id: r.runs for r in done if len(r.runs) > 1},
            "client": [r.client for r in done],
            "refused": self.refused,
        }
        return steps, requests


class Engine:
    def __init__(self, runner, max_sequences=None, token_budget=None, blocks=None):
        self.runner = runner
        self.scheduler = Scheduler(
            blocks or runner.blocks,
            max_sequences or runner.max_sequences,
            token_budget or runner.token_budget,
            runner.context,
        )

    def settings(self):
        s = self.scheduler
        return {
            "blocks": s.pool,
            "page": 16,
            "max_sequences": s.max_sequences,
            "token_budget": s.budget,
            "max_context": s.max_context,
        }

    def run(self, traffic, most_seconds=60.0, stop=lambda: False):
        """Until nothing is left, or `most_seconds` have passed (then requests may be unfinished)."""
        gc.collect()
        gc.freeze()
        gc.disable()
        try:
            return self.loop(traffic, most_seconds, stop)
        finally:
            gc.enable()
            gc.unfreeze()

    def loop(self, traffic, most_seconds, stop):
        log, scheduler, runner, timed = Log(), self.scheduler, self.runner, self.runner.cuda
        zero = time.perf_counter()
        while True:
            now = time.perf_counter() - zero
            step = len(log.steps)
            for request in traffic.arrived(now):
                request.seen = step
                log.requests.append(request)
                if not scheduler.add(request):
                    log.refused.append(request.id)
                    traffic.finished(request, now)
            if not scheduler.busy:
                following = traffic.next_time()
                if following is None or now > most_seconds:
                    break
                wait_until(zero + following)
                continue
            if now > most_seconds or stop():
                break
            plan = scheduler.schedule(step)
            free = len(scheduler.free)
            context = sum(r.done + 1 for r in plan.decodes)
            pair = [torch.cuda.Event(enable_timing=True) for _ in range(2)] if timed else None
            tokens, begin, launched, end, graph = runner.step(plan, pair)
            log.events.append(pair)
            finished = scheduler.complete(plan, step, tokens)
            log.step(
                [round(1e6 * now), *(round(1e6 * (t - zero)) for t in (begin, launched, end))],
                plan,
                context,
                graph,
                free,
            )
            for request in finished:
                traffic.finished(request, end - zero)
        return log


def wait_until(when):
    while True:
        left = when - time.perf_counter()
        if left <= 0:
            return
        if left > 2e-3:
            time.sleep(left - 1.5e-3)


def percentile(values, share):
    """Of sorted values, by linear interpolation."""
    if not values:
        return None
    at = share * (len(values) - 1)
    low = int(at)
    high = min(low + 1, len(values) - 1)
    return values[low] + (at - low) * (values[high] - values[low])


def spread(values):
    values = sorted(values)
    found = {"mean": sum(values) / len(values) if values else None, "count": len(values)}
    for share in (50, 90, 95, 99):
        if share < 99 or len(values) >= 1000:
            found[f"p{share}"] = percentile(values, share / 100)
    return found


def summary(steps, requests):
    """What a reader wants first; all of it follows from the columns. Seconds. `steady_requests_s`: tokens
    of decodes a second from 40% of the last arrival's time until then, over the mean output of a request.
    """
    end, first = steps["end_us"], requests["first"]
    finished = [i for i, made in enumerate(requests["made"]) if made == requests["output"][i]]
    ttft = [(end[first[i]] - requests["arrival_us"][i]) / 1e6 for i in finished]
    tpot = [
        (end[requests["last"][i]] - end[first[i]]) / 1e6 / (requests["output"][i] - 1)
        for i in finished
        if requests["output"][i] > 1
    ]
    e2e = [(end[requests["last"][i]] - requests["arrival_us"][i]) / 1e6 for i in finished]
    tokens = sum(requests["made"])
    span = (end[-1] - min(requests["arrival_us"])) / 1e6 if end else 0.0
    host = sorted(b - a for a, b in zip(end, steps["launch_us"][1:]) if b - a < 5000)
    found = {
        "requests": len(requests["id"]),
        "finished": len(finished),
        "refused": len(requests["refused"]),
        "steps": len(end),
        "span_s": span,
        "output_tokens": tokens,
        "output_tokens_s": tokens / span if span else None,
        "ttft_s": spread(ttft),
        "tpot_s": spread(tpot),
        "e2e_s": spread(e2e),
        "preemptions": sum(requests["preemptions"]),
        "between_steps_us": percentile(host, 0.5),
        "mean_decodes": sum(steps["decodes"]) / max(1, len(end)),
        "graph_steps": sum(1 for g in steps["graph"] if g),
    }
    last = max((requests["arrival_us"][i] for i in finished), default=0)
    inside = [i for i, t in enumerate(end) if 0.4 * last <= t <= last]
    if len(inside) > 20:
        outputs = sum(requests["output"][i] for i in finished) / len(finished)
        seconds = (end[inside[-1]] - end[inside[0]]) / 1e6
        found["steady_requests_s"] = sum(steps["decodes"][i] for i in inside[1:]) / seconds / outputs
    return found


def replay(record):
    """None, or what differs first when the scheduler is run again on a log's arrivals and step times."""
    settings, steps, requests = record["engine"], record["steps"], record["requests"]
    scheduler = Scheduler(
        settings["blocks"], settings["max_sequences"], settings["token_budget"], settings["max_context"]
    )
    made = [
        Request(i, a, p, o)
        for i, a, p, o in zip(
            requests["id"], requests["arrival_us"], requests["prompt"], requests["output"]
        )
    ]
    refused, chunks, preempted, at = [], [], [], 0
    for step, start in enumerate(steps["start_us"]):
        while at < len(made) and made[at].arrival <= start + 1:
            if made[at].arrival >= start - 1 and requests["seen"][at] > step:
                break  # within the rounding of the log: as the log says
            if requests["seen"][at] != step:
                return f"step {step}: request {made[at].id} joined at step {requests['seen'][at]}"
            if not scheduler.add(made[at]):
                refused.append(made[at].id)
            at += 1
        plan = scheduler.schedule(step)
        found = (len(plan.decodes), sum(r.done + 1 for r in plan.decodes), len(scheduler.free))
        logged = (steps["decodes"][step], steps["context"][step], steps["free"][step])
        if found != logged:
            return f"step {step}: decodes, context, free blocks are {found}, logged {logged}"
        chunks += [[step, r.id, s, n] for r, s, n, _ in plan.chunks]
        preempted += [[step, r.id] for r in plan.preempted]
        scheduler.complete(plan, step, [0] * (len(plan.decodes) + len(plan.chunks)))
    refused += [r.id for r in made[at:] if not scheduler.add(r)]  # after the last step
    if chunks != steps["chunks"] or preempted != steps["preempted"] or refused != requests["refused"]:
        return "chunks, preemptions or refusals differ"
    return None
