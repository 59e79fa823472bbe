# SPDX-License-Identifier: Apache-2.0
# Runs the serving engine's steps on the GPU: memory and block pool, what a step sends, CUDA graphs, sampling.
"""Memory: blocks = (share x total - weights - peak of a profile step - what CUDA holds outside PyTorch) /
bytes of a block. The profile step prefills the whole token budget in the most sequences that it can, in a
cache of few blocks. CUDA graphs, captured afterwards, live on what the share leaves.

A step sends one block of int32 to the device, each part padded to 32 numbers, and gets its tokens back; the
host waits for them. A step of decodes alone replays the graph of the next captured size: rows beyond the
decodes are empty (length 0, nothing written). Every other step is launched kernel by kernel.
"""

import time

import numpy as np
import torch

from serve_kernels import tile_rows, write_table
from serve_model import Batch, Model
from serve_scheduler import PAGE, Plan, Request, blocks_for

GRAPH_SIZES = [1, 2, 4, 8] + list(range(16, 257, 8))
SEGMENT = 32


def padded(count):
    return -(-count // SEGMENT) * SEGMENT


def prompt_tokens(request, start, length, vocab):
    """Tokens of a prompt (drawn by hash) or, after a preemption, of what was made."""
    known = np.arange(start, start + length, dtype=np.int64)
    tokens = (known * 104729 + request.id * 7919 + 17) % vocab
    for i in range(max(start, request.prompt), start + length):
        tokens[i - start] = request.tokens[i - request.prompt]
    return tokens


class Packed:
    """What one step sends: numbers and where they lie."""

    __slots__ = (
        "numbers",
        "rows",
        "decodes",
        "tiles",
        "chunk_rows",
        "sampled",
        "entries",
        "graph",
        "places",
    )

    def __init__(self):
        self.places = None

    def pieces(self):
        """Offsets of tokens, positions, slots, keys, seats, lengths, tiles, sampled, entries; and the end."""
        if self.places is not None:
            return self.places
        rows = padded(self.graph or self.rows)
        sequences = padded(self.graph or self.decodes)
        sizes = (
            [rows] * 4
            + [sequences] * 2
            + [padded(4 * self.tiles), padded(self.sampled), padded(2 * self.entries)]
        )
        self.places = [0]
        for size in sizes:
            self.places.append(self.places[-1] + size)
        return self.places


class Runner:
    def __init__(
        self,
        shape,
        device,
        context=32768,
        max_sequences=256,
        token_budget=2048,
        share=0.9,
        blocks=None,
        graphs=True,
        rank=0,
        ranks=1,
        fill=True,
        note=print,
    ):
        self.shape, self.device, self.note = shape, device, note
        self.context, self.max_sequences, self.token_budget = context, max_sequences, token_budget
        self.cuda = device.type == "cuda"
        self.memory, self.ranks = {"share": share}, ranks
        self.mark("before")
        begin = time.perf_counter()
        self.model = Model(shape, device, context, rank, ranks, fill)
        self.memory["weights"] = self.model.weight_bytes()
        self.mark("loaded")
        self.sizes, self.graphs, self.staging = [], {}, None
        self.stage(1 << 16)
        self.tables = torch.zeros(
            max_sequences, padded(blocks_for(context)), device=device, dtype=torch.int32
        )
        self.block_bytes = PAGE * shape.token_bytes(ranks)
        self.memory["block_bytes"] = self.block_bytes
        self.make_pool(self.profile_blocks())
        self.profile()
        self.cache = self.pool = None
        self.empty()
        self.make_pool(self.agree(self.count_blocks(share)) if blocks is None else blocks)
        if fill:
            self.pool.normal_()
        self.mark("pool")
        self.note(f"{shape.name}: {self.blocks} blocks, {time.perf_counter() - begin:.1f} s")
        if graphs and self.cuda:
            self.capture_all([s for s in GRAPH_SIZES if s <= max_sequences])
        self.mark("ready")

    def empty(self):
        if self.cuda:
            torch.cuda.synchronize()
            torch.cuda.empty_cache()

    def mark(self, name):
        if self.cuda:
            free, total = torch.cuda.mem_get_info(self.device)
            self.memory["total"] = total
            self.memory[f"free_{name}"] = free
            self.memory[f"allocated_{name}"] = torch.cuda.memory_allocated(self.device)
            self.memory[f"reserved_{name}"] = torch.cuda.memory_reserved(self.device)

    def stage(self, count):
        self.staging = torch.empty(count, dtype=torch.int32, pin_memory=self.cuda)
        self.sent = self.staging.numpy()
        self.returned = torch.empty(self.max_sequences + 1, dtype=torch.int64, pin_memory=self.cuda)

    def make_pool(self, blocks):
        if blocks < 1:
            raise RuntimeError("no memory is left for a single block of the cache")
        s, self.blocks = self.shape, blocks
        size = (s.layers, 2, blocks, self.model.kv, PAGE, s.size)
        self.pool = torch.empty(*size, device=self.device, dtype=torch.bfloat16)
        self.cache = [(self.pool[i, 0], self.pool[i, 1]) for i in range(s.layers)]

    def agree(self, blocks):
        """What the ranks of a cut model make of their own counts; alone, the count itself."""
        return blocks

    def profile_blocks(self):
        sequences = min(self.max_sequences, self.token_budget)
        return sequences * blocks_for(-(-self.token_budget // sequences)) + 1

    def profile_plan(self):
        """The token budget spread over the most sequences, each chunk sampled."""
        plan, left, at = Plan(), self.token_budget, 0
        sequences = min(self.max_sequences, self.token_budget)
        for seat in range(sequences):
            length = left // (sequences - seat)
            request = Request(seat, 0.0, length, 2)
            request.seat, left = seat, left - length
            request.blocks = list(range(at, at + blocks_for(length)))
            at += len(request.blocks)
            plan.chunks.append((request, 0, length, True))
            plan.table += [(seat, i, b) for i, b in enumerate(request.blocks)]
        return plan

    def profile(self):
        plan = self.profile_plan()
        self.step(plan)  # compiles
        self.empty()
        if self.cuda:
            before = torch.cuda.memory_allocated(self.device)
            torch.cuda.reset_peak_memory_stats(self.device)
            self.step(plan)
            self.memory["workspace"] = torch.cuda.max_memory_allocated(self.device) - before
        self.mark("profiled")

    def count_blocks(self, share):
        """Blocks that the share of memory holds beside weights, workspace and what is not PyTorch's."""
        m = self.memory
        if not self.cuda:
            return 64
        self.mark("emptied")
        m["outside"] = m["total"] - m["free_emptied"] - m["reserved_emptied"]
        m["held"] = m["allocated_emptied"]
        left = share * m["total"] - m["held"] - m["workspace"] - m["outside"]
        return int(left // self.block_bytes)

    # ---- a step -------------------------------------------------------------------------------------

    def graph_size(self, plan):
        if plan.chunks or not self.sizes or len(plan.decodes) > self.sizes[-1]:
            return 0
        return next(s for s in self.sizes if s >= len(plan.decodes))

    def pack(self, plan):
        p, decodes, chunks = Packed(), plan.decodes, plan.chunks
        p.graph, p.decodes = self.graph_size(plan), len(decodes)
        p.chunk_rows = sum(c[2] for c in chunks)
        p.rows = p.decodes + p.chunk_rows
        tile = tile_rows(p.chunk_rows)
        p.tiles = sum(-(-c[2] // tile) for c in chunks)
        p.sampled = p.decodes + sum(c[3] for c in chunks) if chunks else 0
        p.entries = len(plan.table)
        at = p.pieces()
        if at[-1] > self.sent.shape[0]:
            self.stage(2 * at[-1])
        sent, count = self.sent, p.decodes
        p.numbers = sent[: at[-1]]
        if p.graph:
            sent[at[0] : at[6]] = 0
            sent[at[2] : at[3]] = -1
        for place, values in zip(
            at,
            (
                [r.last for r in decodes],
                [r.done for r in decodes],
                [r.blocks[r.done // PAGE] * PAGE + r.done % PAGE for r in decodes],
                [(r.id * 40503 + r.done) & 0xFFFFF for r in decodes],
                [r.seat for r in decodes],
                [r.done + 1 for r in decodes],
            ),
        ):
            sent[place : place + count] = values
        if chunks:
            self.pack_chunks(p, chunks, at, tile)
        if p.entries:
            stride = self.tables.shape[1]
            flat = [(seat * stride + index, block) for seat, index, block in plan.table]
            sent[at[8] : at[8] + 2 * p.entries] = np.asarray(flat, dtype=np.int32).ravel()
        return p

    def pack_chunks(self, p, chunks, at, tile):
        sent, row, tiles, sampled = self.sent, p.decodes, [], list(range(p.decodes))
        for request, start, length, ends in chunks:
            known = np.arange(start, start + length)
            blocks = np.asarray(request.blocks, dtype=np.int64)
            sent[at[0] + row : at[0] + row + length] = prompt_tokens(
                request, start, length, self.shape.vocab
            )
            sent[at[1] + row : at[1] + row + length] = known
            sent[at[2] + row : at[2] + row + length] = blocks[known // PAGE] * PAGE + known % PAGE
            sent[at[3] + row : at[3] + row + length] = (request.id * 40503 + known) & 0xFFFFF
            for first in range(0, length, tile):
                tiles += (row + first, min(tile, length - first), start + first, request.seat)
            row += length
            if ends:
                sampled.append(row - 1)
        sent[at[6] : at[6] + len(tiles)] = tiles
        sent[at[7] : at[7] + len(sampled)] = sampled

    def batch(self, numbers, p):
        at = p.pieces()
        rows, sequences = p.graph or p.rows, p.graph or p.decodes

        def part(i, count):
            return numbers[at[i] : at[i] + count]

        return Batch(
            part(0, rows),
            part(1, rows),
            part(2, rows),
            part(3, rows),
            part(4, sequences),
            part(5, sequences),
            sequences,
            part(6, 4 * p.tiles).view(-1, 4) if p.tiles else None,
            p.chunk_rows,
            part(7, p.sampled) if p.tiles else None,
        )

    def launch(self, p):
        """Sends and starts one packed step; the tokens will be in `returned`."""
        at = p.pieces()
        if p.graph:
            graph, fixed, tokens = self.graphs[p.graph]
            fixed.copy_(self.staging[: at[6]], non_blocking=True)
            if p.entries:
                entries = self.staging[at[8] : at[9]].to(self.device, non_blocking=True)
                write_table(self.tables, entries, p.entries)
            graph.replay()
            count = p.decodes
        else:
            numbers = self.staging[: at[-1]].to(self.device, non_blocking=True)
            if p.entries:
                write_table(self.tables, numbers[at[8] : at[9]], p.entries)
            tokens = self.model.forward(self.batch(numbers, p), self.cache, self.tables)
            count = p.sampled if p.tiles else p.decodes
        if count:
            self.returned[:count].copy_(tokens[:count], non_blocking=True)
        return count

    def step(self, plan, events=None):
        """Runs a plan; its tokens and the host's clock when launching began, ended, and all was done."""
        packed = self.pack(plan)
        return self.execute(packed, events)

    def execute(self, packed, events=None):
        begin = time.perf_counter()
        if events:
            events[0].record()
        count = self.launch(packed)
        if events:
            events[1].record()
        launched = time.perf_counter()
        if self.cuda:
            torch.cuda.current_stream().synchronize()
        tokens = self.returned[:count].tolist()
        return tokens, begin, launched, time.perf_counter(), packed.graph

    # ---- graphs -------------------------------------------------------------------------------------

    def capture_all(self, sizes):
        begin, keeper = time.perf_counter(), None
        for size in reversed(sizes):  # the largest first: the others fit into its memory
            p = Packed()
            p.graph = p.decodes = p.rows = size
            p.tiles = p.chunk_rows = p.sampled = p.entries = 0
            fixed = torch.zeros(p.pieces()[6], device=self.device, dtype=torch.int32)
            fixed[p.pieces()[2] : p.pieces()[3]] = -1
            batch = self.batch(fixed, p)
            self.model.forward(batch, self.cache, self.tables)
            torch.cuda.synchronize()
            graph = torch.cuda.CUDAGraph()
            keeper = keeper or torch.cuda.graph_pool_handle()
            with torch.cuda.graph(
                graph, pool=keeper, stream=torch.cuda.current_stream(), capture_error_mode="thread_local"
            ):
                tokens = self.model.forward(batch, self.cache, self.tables)
            self.graphs[size] = (graph, fixed, tokens)
        self.sizes = sorted(self.graphs)
        self.empty()
        self.note(f"{len(sizes)} graphs, {time.perf_counter() - begin:.1f} s")

    def warm(self, step=64):
        """Runs mixed steps of many sizes, so that no kernel is loaded or compiled while it is measured."""
        for rows in list(range(1, 8)) + list(range(step, self.token_budget + 1, step)):
            for decodes in (0, min(3, self.max_sequences - 1)):
                plan = Plan()
                for seat in range(decodes):
                    request = Request(seat, 0.0, 8, 2)
                    request.seat, request.blocks, request.done = seat, [seat % self.blocks], 8
                    plan.decodes.append(request)
                length = min(rows, (self.blocks - 1) * PAGE, self.context)
                request = Request(9, 0.0, length, 2)
                request.seat, request.blocks = self.max_sequences - 1, list(range(blocks_for(length)))
                plan.table = [(request.seat, i, b) for i, b in enumerate(request.blocks)]
                plan.chunks.append((request, 0, length, True))
                self.step(plan)
        for size in self.sizes:
            self.graphs[size][0].replay()
        self.empty()

    def close(self):
        self.graphs.clear()
        self.sizes = []
        self.cache = self.pool = self.model = self.tables = None
        self.empty()
