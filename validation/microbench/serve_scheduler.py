# SPDX-License-Identifier: Apache-2.0
# Decides what every step of the serving engine holds: the rules of README.md, without clock or GPU.
"""A simulator that follows the same rules on the same arrivals and step ends makes the same steps. Blocks
are counted and numbered; what lies in them is the runner's matter (serve_runner.py).
"""

from collections import deque

PAGE = 16  # tokens of a block


def blocks_for(tokens):
    return -(-tokens // PAGE)


class Request:
    """One request. `done`: tokens whose keys and values are in the cache; `made`: tokens that came out."""

    __slots__ = (
        "id",
        "arrival",
        "prompt",
        "output",
        "done",
        "made",
        "decoding",
        "blocks",
        "seat",
        "last",
        "tokens",
        "seen",
        "admitted",
        "runs",
        "preemptions",
        "recomputed",
        "client",
    )

    def __init__(self, number, arrival, prompt, output, client=-1):
        self.id, self.arrival, self.prompt, self.output = number, arrival, prompt, output
        self.done = self.made = self.preemptions = self.recomputed = 0
        self.decoding, self.blocks, self.seat, self.last = False, [], -1, 0
        self.tokens, self.runs = [], []  # tokens made; [first step, number of tokens] without a gap
        self.seen = self.admitted = -1
        self.client = client

    @property
    def known(self):
        """Tokens that exist: the prompt and what was made."""
        return self.prompt + self.made

    def emit(self, step, token):
        self.made += 1
        self.last = token
        self.decoding = True
        self.tokens.append(token)
        if self.runs and self.runs[-1][0] + self.runs[-1][1] == step:
            self.runs[-1][1] += 1
        else:
            self.runs.append([step, 1])


class Plan:
    """One step: `decodes` get a token each; `chunks` are (request, start, length, ends); `table` are the
    new entries (seat, index, block) of block tables.
    """

    __slots__ = ("decodes", "chunks", "table", "preempted")

    def __init__(self):
        self.decodes, self.chunks, self.table, self.preempted = [], [], [], []


class Scheduler:
    def __init__(self, blocks, max_sequences, token_budget, max_context):
        if token_budget < max_sequences:
            raise ValueError("the token budget must be at least the number of sequences")
        self.pool, self.max_sequences, self.budget = blocks, max_sequences, token_budget
        self.max_context = max_context
        self.free = list(range(blocks - 1, -1, -1))
        self.seats = list(range(max_sequences - 1, -1, -1))
        self.waiting, self.running = deque(), []
        self.preemptions = 0

    def add(self, request):
        """False: the request can never run and is refused. The last token made is never written (rule 2)."""
        most = request.prompt + request.output - 1
        if (
            blocks_for(most) > self.pool
            or most > self.max_context
            or request.prompt < 1
            or request.output < 1
        ):
            return False
        self.waiting.append(request)
        return True

    @property
    def busy(self):
        return bool(self.running or self.waiting)

    def take(self, plan, request, count):
        at = len(request.blocks)
        for i in range(count):
            block = self.free.pop()
            request.blocks.append(block)
            plan.table.append((request.seat, at + i, block))

    def release(self, request):
        self.free.extend(reversed(request.blocks))
        request.blocks.clear()
        self.seats.append(request.seat)
        request.seat = -1

    def preempt_last(self, plan):
        """The youngest running request loses its blocks and waits before all that wait (rule 7)."""
        victim = self.running.pop()
        self.release(victim)
        victim.recomputed += victim.done
        victim.done, victim.decoding = 0, False
        victim.preemptions += 1
        self.preemptions += 1
        self.waiting.appendleft(victim)
        plan.preempted.append(victim)

    def schedule(self, step):
        plan, budget = Plan(), self.budget
        budget -= self.schedule_decodes(plan)
        stopped = bool(plan.preempted)
        for request in self.running:  # at most one, the youngest, is still being prefilled
            if request.decoding or budget == 0 or stopped:
                continue
            length = self.chunk(plan, request, budget)
            budget -= length
            stopped = length == 0
        while self.waiting and budget > 0 and not stopped and len(self.running) < self.max_sequences:
            request = self.waiting[0]
            if blocks_for(min(request.known, budget)) > len(self.free):
                break
            self.waiting.popleft()
            request.seat = self.seats.pop()
            self.running.append(request)
            if request.admitted < 0:
                request.admitted = step
            budget -= self.chunk(plan, request, budget)
        if not plan.decodes and not plan.chunks:
            raise RuntimeError("a step without work: the rules were broken")
        return plan

    def schedule_decodes(self, plan):
        at = 0
        while at < len(self.running):
            request = self.running[at]
            at += 1
            if not request.decoding:
                continue
            if blocks_for(request.done + 1) > len(request.blocks):
                while not self.free and self.running[-1] is not request:
                    self.preempt_last(plan)
                if not self.free:
                    self.preempt_last(plan)  # the request itself is the youngest
                    break
                self.take(plan, request, 1)
            plan.decodes.append(request)
        return len(plan.decodes)

    def chunk(self, plan, request, budget):
        """Gives the next chunk whole or not at all."""
        length = min(request.known - request.done, budget)
        need = blocks_for(request.done + length) - len(request.blocks)
        if need > len(self.free):
            return 0
        self.take(plan, request, need)
        plan.chunks.append((request, request.done, length, request.done + length == request.known))
        return length

    def complete(self, plan, step, tokens):
        """The step's tokens, decodes first, then the chunks that ended; returns who finished (rule 9)."""
        finished, at = [], len(plan.decodes)
        for request, token in zip(plan.decodes, tokens):
            request.done += 1
            request.emit(step, token)
            if request.made == request.output:
                finished.append(request)
        for request, _, length, ends in plan.chunks:
            request.done += length
            if ends:
                request.emit(step, tokens[at])
                at += 1
                if request.made == request.output:
                    finished.append(request)
        for request in finished:
            self.release(request)
        if finished:
            gone = set(map(id, finished))
            self.running = [r for r in self.running if id(r) not in gone]
        return finished
