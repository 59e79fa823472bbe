# SPDX-License-Identifier: Apache-2.0
# Serves with prefill on one GPU and decode on another; keys and values go between them by NCCL.
"""torchrun --standalone --nproc-per-node 2 serve.py --part pair --output FILE

Rank 0 prefills under the engine's rules, with outputs of one token. When a prompt ends, its blocks of all
layers are gathered into one message, announced through torchrun's store (which rank 1 asks once a step) and
sent by NCCL beside later steps; its blocks are free at once. At most `MOST_FLYING` messages wait: then
prefill waits for the oldest. Rank 1 takes messages in order, each as soon as a seat and the blocks of its
prompt are free and no preempted request waits; when a message has come, it is scattered into the pool and
its request decodes from the next step on, under the same rules. Both clocks begin at a barrier. `sent`:
request, end of its prefill, message known to be gone; `received`: request, blocks taken, message in the
pool; microseconds.
"""

import time

import torch
import torch.distributed as dist

from serve_engine import Log, Traffic, wait_until
from serve_scheduler import Plan, Request, Scheduler
from serve_session import held, seed_of
from serve_traffic import label, lengths, poisson

MOST_FLYING = 8
SPEC = ("uniform", (128, 896), (32, 224))


def microseconds(seconds):
    return round(1e6 * seconds)


def meet(device, rank):
    """NCCL connects two ranks in their first message, which must not wait for an announcement."""
    one = torch.zeros(1, device=device)
    dist.send(one, 1) if rank == 0 else dist.recv(one, 0)
    if one.is_cuda:
        torch.cuda.synchronize()


def pair(session, name, rank):
    runner = session.runner(name)
    meet(runner.device, rank)
    for rate in ((4.0,) if session.quick else (4.0, 8.0, 16.0)):
        one = f"pair/{name}/{label(SPEC)}/rate{rate:g}"
        count = max(4, int(rate * session.seconds(10)))
        drawn = lengths(SPEC, count, seed_of(one), runner.context)
        if session.device.type == "cpu":
            drawn = [(p % 60 + 1, o % 6 + 1) for p, o in drawn]
        dist.barrier()
        side = (Prefill if rank == 0 else Decode)(runner, one, drawn, poisson(rate, count, seed_of(one)))
        side.run()
        both = [None, None]
        dist.all_gather_object(both, (*side.log.columns(), side.moved))
        if rank == 0:
            (steps, requests, sent), (decode_steps, decode_requests, received) = both
            session.out.line(
                "pair",
                id=one,
                part="pair",
                held=held(one),
                model=name,
                traffic={"kind": "poisson", "rate_s": rate, "lengths": label(SPEC)},
                outputs=[o for _, o in drawn],
                block_bytes=runner.block_bytes,
                prefill={"steps": steps, "requests": requests},
                sent=sent,
                decode={"steps": decode_steps, "requests": decode_requests},
                received=received,
            )
            session.note(f"{one}: {len(received)} requests went over")
    runner.close()


class Side:
    def __init__(self, runner, name, drawn, times):
        self.runner, self.name, self.drawn, self.announced = runner, name, drawn, 0
        self.store = dist.distributed_c10d._get_default_store()
        self.scheduler = Scheduler(runner.blocks, runner.max_sequences, runner.token_budget, runner.context)
        self.traffic = Traffic([(p, 1) for p, _ in drawn], times=times)
        self.log, self.moved, self.zero = Log(), [], time.perf_counter()

    def now(self):
        return time.perf_counter() - self.zero

    def step(self, now, plan):
        """Runs and logs a plan; its tokens and the time of its end."""
        timed, free = self.runner.cuda, len(self.scheduler.free)
        events = [torch.cuda.Event(enable_timing=True) for _ in range(2)] if timed else None
        context = sum(r.done + 1 for r in plan.decodes)
        tokens, begin, launched, end, graph = self.runner.step(plan, events)
        self.log.events.append(events)
        times = [microseconds(t - self.zero) for t in (begin, launched, end)]
        self.log.step([microseconds(now), *times], plan, context, graph, free)
        return tokens, end - self.zero


class Prefill(Side):
    def run(self):
        flying, left = [], len(self.drawn)
        while left or flying:
            now = self.now()
            while flying and (len(flying) >= MOST_FLYING or flying[0][0].is_completed() or not left):
                work, _, number, ended = flying.pop(0)
                work.wait()
                if self.runner.cuda:
                    torch.cuda.current_stream().synchronize()
                self.moved.append([number, ended, microseconds(self.now())])
            for request in self.traffic.arrived(now):
                request.seen = len(self.log.steps)
                self.log.requests.append(request)
                if not self.scheduler.add(request):
                    raise ValueError("a prompt of the part pair cannot fit")
            if not self.scheduler.busy:
                if self.traffic.next_time() is not None:
                    wait_until(self.zero + self.traffic.next_time())
                continue
            step = len(self.log.steps)
            plan = self.scheduler.schedule(step)
            tokens, end = self.step(now, plan)
            ending = [c[0] for c in plan.chunks if c[3]]
            for request, token in zip(ending, tokens):
                flying.append(self.send(request, token, end))
            left -= len(ending)
            self.scheduler.complete(plan, step, tokens)

    def send(self, request, token, end):
        where = torch.tensor(request.blocks, device=self.runner.device)
        message = torch.index_select(self.runner.pool, 2, where)
        work = dist.isend(message, 1)
        self.store.set(
            f"{self.name}/{self.announced}", f"{request.id} {request.prompt} {token} {len(where)}"
        )
        self.announced += 1
        return work, message, request.id, microseconds(end)


class Decode(Side):
    def run(self):
        self.left, self.heads, self.pending, entries = len(self.drawn), [], [], []
        while True:
            now, scheduler = self.now(), self.scheduler
            self.look()
            entries += self.take(now)
            self.arrive()
            for request in [r for r in scheduler.running if r.made == r.output]:
                scheduler.release(request)
                scheduler.running.remove(request)
            if not scheduler.busy:
                if not self.left and not self.heads and not self.pending:
                    return
                continue
            step = len(self.log.steps)
            plan = scheduler.schedule(step)
            plan.table, entries = entries + plan.table, []
            tokens, _ = self.step(now, plan)
            scheduler.complete(plan, step, tokens)

    def look(self):
        """Messages that were announced since."""
        while self.left and self.store.check([f"{self.name}/{self.announced}"]):
            text = self.store.get(f"{self.name}/{self.announced}").decode()
            self.heads.append([int(word) for word in text.split()])
            self.announced, self.left = self.announced + 1, self.left - 1

    def take(self, now):
        """Seats, blocks and buffers of the next messages; the new entries of block tables."""
        plan, scheduler, pool = Plan(), self.scheduler, self.runner.pool
        while self.heads and not scheduler.waiting:
            number, prompt, token, count = self.heads[0]
            if count > len(scheduler.free) or not scheduler.seats:
                break
            self.heads.pop(0)
            request = Request(number, now, prompt, self.drawn[number][1])
            request.seat, request.seen, request.admitted = scheduler.seats.pop(), len(self.log.steps), -1
            scheduler.take(plan, request, count)
            message = torch.empty(
                *pool.shape[:2], count, *pool.shape[3:], device=pool.device, dtype=pool.dtype
            )
            self.pending.append((dist.irecv(message, 0), message, request, token))
            self.log.requests.append(request)
        return plan.table

    def arrive(self):
        while self.pending and (
            self.pending[0][0].is_completed() or not self.scheduler.busy or not self.runner.cuda
        ):
            work, message, request, token = self.pending.pop(0)
            work.wait()
            where = torch.tensor(request.blocks, device=self.runner.device)
            self.runner.pool.index_copy_(2, where, message)
            if self.runner.cuda:
                torch.cuda.current_stream().synchronize()
            request.done, request.admitted = request.prompt, len(self.log.steps)
            request.emit(len(self.log.steps) - 1, token)
            self.moved.append([request.id, microseconds(request.arrival), microseconds(self.now())])
            self.scheduler.running.append(request)
