# SPDX-License-Identifier: Apache-2.0
"""Batches of a sweep: what a worker is told, how it answers, and how many points take some seconds."""
from __future__ import annotations

import functools
import importlib
import json
import math
import pickle
import socket
import time
from dataclasses import dataclass, replace
from typing import Any

from orrery import _core
from orrery.points import Columns, combinations, lines_hash, lines_of
from orrery.table import Table


@dataclass(frozen=True)
class Run:
    """What all batches of a run share."""

    command: str
    question: str  # a hash of all that rows depend on but version and catalogue
    version: str
    catalogue: str
    seed: int | None
    common: dict[str, Any]
    points: Any  # of Points.shared()


@dataclass(frozen=True)
class Batch:
    """Points begin to end, counted from 0."""

    begin: int
    end: int
    columns: Columns
    rows: bytes | None  # pickled, where workers cannot make them
    cancelled: int = 0  # times that it was sent again
    alone: bool = False  # nothing else runs beside it: a point with which workers died

    def halves(self) -> list[Batch]:
        middle = (self.begin + self.end) // 2
        first = second = None
        if self.rows is not None:
            rows = pickle.loads(self.rows)
            cut = middle - self.begin
            first, second = pickle.dumps(rows[:cut]), pickle.dumps(rows[cut:])
        return [replace(self, end=middle, rows=first), replace(self, begin=middle, rows=second)]


@dataclass(frozen=True)
class Answered:
    """A batch's rows: a table as bytes of Arrow's stream format."""

    begin: int
    end: int
    table: bytes
    errors: int
    points: int  # the hash of rows that were sent; 0: the question's hash says all
    seconds: float


@dataclass(frozen=True)
class Refused:
    """A worker's package is not the client's: nothing was run."""

    version: str
    catalogue: str
    host: str


def run_batch(run: Run, batch: Batch) -> Answered | Refused:
    """On a worker, in one thread."""
    needed("pyarrow")  # the first batch of a process is not to look dear
    mine = (_core.version(), catalogue())
    start = time.monotonic()
    if mine != (run.version, run.catalogue):
        return Refused(*mine, socket.gethostname())
    points = 0
    if run.command == "plan":
        swept = _core.sweep_plan(run.points, batch.begin, batch.end, run.seed, 1, False)
    else:
        rows = combinations(run.points, batch.begin, batch.end) if batch.rows is None else pickle.loads(batch.rows)
        lines = lines_of(run.common, rows)
        if batch.rows is not None:
            points = lines_hash(lines, batch.begin)
        swept = _core.sweep(lines, list(batch.columns), run.seed, 1, False, None, batch.begin + 1)
    table = arrow_of(swept)
    errors = len(table) - table["error"].null_count
    return Answered(batch.begin, batch.end, ipc_of(table), errors, points, time.monotonic() - start)


@functools.cache
def catalogue() -> str:
    """The hash of what this process predicts with."""
    head: str = json.loads(_core.answer_line("catalog", ["list"], {}).json)["orrery"]["catalogue"]
    return head


def needed(module: str) -> Any:
    """A module of the packages that orrery[dask] brings."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(f"orrery.distributed needs {module.split('.')[0]}: pip install 'orrery[dask]'") from error


def arrow_of(swept: Any) -> Any:
    pyarrow = needed("pyarrow")
    return pyarrow.table(Table(swept))


def ipc_of(table: Any) -> bytes:
    pyarrow = needed("pyarrow")
    sink = pyarrow.BufferOutputStream()
    options = pyarrow.ipc.IpcWriteOptions(compression="zstd")
    with pyarrow.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    text: bytes = sink.getvalue().to_pybytes()
    return text


def table_of(text: bytes) -> Any:
    pyarrow = needed("pyarrow")
    return pyarrow.ipc.open_stream(text).read_all()


class Sizes:
    """How many points a batch has: so many that it takes `seconds`, by what batches took so far."""

    FIRST = 16  # nothing is known yet
    GROWTH = 8
    MOST = 50_000  # rows that the client holds at once for a batch
    SMALLEST = 10  # a tenth of `seconds` is worth a message still
    KEPT = 0.7  # of what was measured before, with each batch

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._largest = 0
        self._recent_points = self._recent_seconds = 0.0

    def learn(self, points: int, seconds: float) -> None:
        self._recent_points = self.KEPT * self._recent_points + points
        self._recent_seconds = self.KEPT * self._recent_seconds + seconds
        self._largest = max(self._largest, points)

    def points(self, left: int | None, threads: int) -> int:
        """Of the next batch. Towards the end batches are smaller, so that all workers end together."""
        if not self._largest:
            return self.FIRST
        wanted = self._seconds * self._recent_points / max(self._recent_seconds, 1e-9)
        size = min(wanted, self.GROWTH * self._largest, self.MOST)
        if left is not None:
            size = min(size, max(math.ceil(left / (2 * max(threads, 1))), wanted / self.SMALLEST))
        return max(1, int(size))
