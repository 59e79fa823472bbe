# SPDX-License-Identifier: Apache-2.0
# Runs the serving engine on two GPUs: a model cut over both (tp2), or prefill and decode apart (pair).
"""torchrun --standalone --nproc-per-node 2 serve.py --part tp2 --model llama-3.1-70b --output FILE

tp2: rank 0 schedules, packs and sends each packed step to rank 1 through gloo; both launch it, with NCCL's
all-reduces inside the CUDA graphs. Parts closed and poisson run on it. pair: serve_pair.py.
"""

import os
import sys
import time

import numpy as np
import torch
import torch.distributed as dist

from serve_model import SHAPES
from serve_runner import Packed, Runner
from serve_session import Session

HEADER = ("rows", "decodes", "tiles", "chunk_rows", "sampled", "entries", "graph")


class RankRunner(Runner):
    """One of two ranks. From `group` on, rank 0 sends every packed step to rank 1 before it launches it."""

    group = None

    def agree(self, blocks):
        found = [None] * dist.get_world_size()
        dist.all_gather_object(found, blocks)
        return min(found)

    def execute(self, packed, events=None):
        begin = time.perf_counter()
        if self.group is not None and dist.get_rank() == 0:
            send_packed(packed, self.group)
        tokens, _, launched, end, graph = super().execute(packed, events)
        return tokens, begin, launched, end, graph


def send_packed(packed, group):
    head = [packed.numbers.shape[0]] + [int(getattr(packed, name)) for name in HEADER]
    dist.broadcast(torch.tensor(head, dtype=torch.int32), 0, group=group)
    if head[0]:
        dist.broadcast(torch.from_numpy(packed.numbers), 0, group=group)


def follow(runner, group):
    """Rank 1: runs what rank 0 sends until an empty step comes."""
    while True:
        head = torch.zeros(1 + len(HEADER), dtype=torch.int32)
        dist.broadcast(head, 0, group=group)
        count, *values = head.tolist()
        if count == 0:
            return
        packed = Packed()
        for name, value in zip(HEADER, values):
            setattr(packed, name, value)
        if count > runner.sent.shape[0]:
            runner.stage(2 * count)
        packed.numbers = runner.sent[:count]
        dist.broadcast(torch.from_numpy(packed.numbers), 0, group=group)
        runner.execute(packed)


def end_of_steps(group):
    packed = Packed()
    packed.numbers = np.zeros(0, dtype=np.int32)
    for name in HEADER:
        setattr(packed, name, 0)
    send_packed(packed, group)


def join(options):
    cuda, rank = options.device == "cuda", int(os.environ["RANK"])
    if cuda:
        if torch.cuda.device_count() < 2:
            print("serve.py: parts tp2 and pair need two GPUs", file=sys.stderr)
            sys.exit(2)
        torch.cuda.set_device(rank)
        options.device = f"cuda:{rank}"
    dist.init_process_group("nccl" if cuda else "gloo")
    return rank, dist.new_group(backend="gloo")


def run_ranks(options):
    from serve_pair import pair

    if os.environ.get("WORLD_SIZE") != "2" or "RANK" not in os.environ:
        print("serve.py: parts tp2 and pair need torchrun with two ranks", file=sys.stderr)
        return 2
    rank, group = join(options)
    if rank:
        options.output += ".rank1"  # nothing of use: removed at the end
    session = Session(options)
    session.conditions(
        "Two GPUs of one host: tp2, a model cut over both; pair, prefill and decode apart.", gpus=2
    )
    try:
        for name in options.model:
            if "tp2" in options.part:
                tensor_parallel(session, name, rank, group)
            if "pair" in options.part:
                pair(session, name, rank)
    except KeyboardInterrupt:
        session.note("interrupted: what was done is kept")
    session.out.close()
    if rank:
        os.unlink(options.output)
    dist.destroy_process_group()
    return 0


def tensor_parallel(session, name, rank, group):
    from serve_cases import closed, poisson_part

    options = session.options
    runner = RankRunner(
        SHAPES[name],
        session.device,
        context=options.context,
        max_sequences=options.max_sequences,
        token_budget=options.token_budget,
        share=options.share,
        rank=rank,
        ranks=2,
        note=session.note,
    )
    if runner.cuda:
        runner.warm()
    dist.barrier()
    runner.group = group
    if rank:
        follow(runner, group)
    else:
        session.engine_line(runner, ranks=2)
        closed(session, runner)
        poisson_part(session, runner)
        end_of_steps(group)
    dist.barrier()
    runner.close()
