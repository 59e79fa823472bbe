# SPDX-License-Identifier: Apache-2.0
"""Sends batches to the workers of Dask, takes what comes back, and sends again what was lost."""
from __future__ import annotations

import pickle
import queue
import signal
import time
import uuid
import warnings
from collections import deque
from dataclasses import replace
from functools import partial
from types import FrameType
from typing import Any

from orrery.ask import on_main_thread
from orrery.batches import Answered, Batch, Refused, Run, Sizes, arrow_of, ipc_of, needed, run_batch
from orrery.errors import InputError, MachineFailed, sentence
from orrery.folder import Folder
from orrery.points import Points, lines_hash, lines_of, packed
from orrery.results import Part, gaps, rows_in
from orrery.sweeps import Bar

_AT_ONCE = 8192  # rows that are looked at together
_IN_FLIGHT = 2  # batches for each thread, so that none waits for the client
_RETRIES = 2  # of what fails on a worker, by Dask
_LOST_IN_A_ROW = 20  # batches that Dask gave up while none came back
_CANCELLED = 10  # times that a batch is sent again because somebody cancelled it
_FETCHED = 10.0  # seconds that an answer may take on its way; more where it was late before
_WAIT = 0.2  # seconds between looks at the time, at Ctrl-C and at the client
_LONG_ALONE = 60.0  # seconds without a worker, of which a warning tells
_COUNT_THREADS = 3.0  # seconds between looks at how many threads the cluster has


class Stop:
    """Ctrl-C and SIGTERM end a run between batches; a second Ctrl-C ends it at once."""

    def __init__(self) -> None:
        self.asked = False
        self._before: dict[int, Any] = {}

    def _tell(self, number: int, frame: FrameType | None) -> None:
        self.asked = True
        signal.signal(number, self._before[number])

    def __enter__(self) -> Stop:
        if on_main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._tell) or signal.SIG_DFL
        return self

    def __exit__(self, *_: object) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)


class Dispatch:
    """One run over one client."""

    def __init__(self, client: Any, run: Run, points: Points, folder: Folder, seconds: float, bar: Bar) -> None:
        self._client, self._run, self._points, self._folder, self._bar = client, run, points, folder, bar
        self._sizes = Sizes(seconds)
        self._name = f"orrery-{run.command}-{uuid.uuid4().hex[:8]}"
        self._sent = 0
        self._flying: dict[str, tuple[Any, Batch]] = {}
        self._landed: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._again: deque[Batch] = deque()
        self._suspects: deque[Batch] = deque()  # points with which workers died; each runs alone
        self._parts = sorted(folder.parts)
        self._gaps = gaps(self._parts, points.count)
        self._gap: tuple[int, int | None] | None = None
        self._done = rows_in(self._parts)
        self._left = None if points.count is None else points.count - self._done  # not sent yet
        self._lost_in_a_row = 0
        self._threads, self._threads_known = 0, 0.0
        self._last_threads, self._told_alone = time.monotonic(), False
        self._checked = 0  # rows of questions that were looked at

    def work(self) -> bool:
        """Until all is written, or Ctrl-C: False."""
        with Stop() as stop:
            try:
                self._bar.tell(self._done)
                if self._points.count is not None:
                    self._ended(self._points.count)
                    self._check_rows(self._points.count)
                while not stop.asked:
                    if not self._fill() and not self._flying:
                        break
                    self._take(_WAIT)
                    self._folder.write()
            except BaseException:
                # What came back is kept, unless writing is what failed.
                self._cancel()
                self._keep_rest()
                raise
            self._take(0)
            self._cancel()
            self._folder.write(all_of_it=True)
        return not stop.asked

    def _keep_rest(self) -> None:
        try:
            self._folder.write(all_of_it=True)
        except MachineFailed:
            pass  # the first error is the one that is told

    # Out

    def _fill(self) -> bool:
        """Whether more is to be sent later."""
        self._look_at_client()
        if self._client.status != "running":
            return True
        if self._suspects or any(batch.alone for _, batch in self._flying.values()):
            if not self._flying:
                self._send(self._suspects.popleft())
            return True
        room = _IN_FLIGHT * max(self._threads, 1) + 1
        while len(self._flying) < room:
            batch = self._again.popleft() if self._again else self._next()
            if batch is None:
                return False
            self._send(batch)
        return True

    def _look_at_client(self) -> None:
        if self._client.status in ("closed", "closing"):
            raise self._lost_scheduler()
        now = time.monotonic()
        if self._client.status == "running" and now - self._threads_known > _COUNT_THREADS:
            try:
                self._threads = sum(self._client.nthreads().values())
            except Exception:  # noqa: BLE001 - a scheduler that is just going away
                return
            self._threads_known = now
            self._keep_cluster(now)

    def _keep_cluster(self, now: float) -> None:
        """Dask gives a worker up that dies while it starts: the cluster is asked for it again."""
        cluster = getattr(self._client, "cluster", None)
        wanted, there = getattr(cluster, "worker_spec", None), getattr(cluster, "workers", None)
        if cluster is not None and wanted and there is not None and len(there) < len(wanted):
            cluster.scale(len(wanted))
        if self._threads:
            self._last_threads = now
        elif now - self._last_threads > _LONG_ALONE and not self._told_alone:
            self._told_alone = True
            warnings.warn("Dask's scheduler has no worker: the sweep waits for one", RuntimeWarning, stacklevel=2)

    def _lost_scheduler(self) -> MachineFailed:
        return MachineFailed({"file": str(self._folder.path), "found": "no connection to Dask's scheduler any more",
                              "expected": "one; the same sweep with another client goes on with what is there"})

    def _send(self, batch: Batch) -> None:
        self._sent += 1
        key = f"{self._name}-{batch.begin + 1}-{batch.end}-{self._sent}"
        try:
            future = self._client.submit(run_batch, self._run, batch, key=key, pure=False, retries=_RETRIES)
        except Exception:  # noqa: BLE001 - the connection was lost meanwhile
            if self._client.status == "running":
                raise
            self._again.appendleft(batch)
            time.sleep(_WAIT)
            return
        self._flying[key] = (future, batch)
        future.add_done_callback(partial(self._fetch, _FETCHED * (1 + batch.cancelled)))

    def _next(self) -> Batch | None:
        """The next points that are neither there nor on their way."""
        if self._gap is None:
            self._gap = next(self._gaps, None)
            if self._gap is None:
                return None
            if self._points.count is None:  # an iterator: in its turn
                self._check_rows(self._gap[0])
        begin, gap_end = self._gap
        end = begin + self._sizes.points(self._left, self._threads)
        if gap_end is not None:
            end = min(end, gap_end)
        rows = self._points.rows(begin, end)
        if rows is not None:
            end = begin + len(rows)
            self._checked = max(self._checked, end)
        if self._left is None and self._points.count is not None:  # an iterator's end
            self._ended(self._points.count)
        self._gap = (end, gap_end) if end != gap_end and (rows is None or end > begin) else None
        if end <= begin:
            return None
        if self._left is not None:
            self._left -= end - begin
        return Batch(begin, end, self._points.columns, None if rows is None else packed(rows))

    def _ended(self, count: int) -> None:
        """Where rows end: no part may hold more."""
        for part in self._parts:
            if part.end > count:
                raise InputError({"file": str(part.file), "found": f"rows to {part.end:,}",
                                  "expected": f"the {count:,} rows that are asked; take another folder"})
        self._folder.ended(count)

    def _check_rows(self, before: int) -> None:
        """Whether what is there is of these questions."""
        if self._points.asked != "rows":
            return
        for part in self._parts:
            if part.end <= self._checked or part.end > before:
                continue
            if part.begin < self._checked:  # points that another part holds too
                self._checked += len(self._points.rows(self._checked, part.end) or [])
                continue
            total = 0
            for begin in range(part.begin, part.end, _AT_ONCE):
                end = min(begin + _AT_ONCE, part.end)
                rows = self._points.rows(begin, end) or []
                self._checked = begin + len(rows)
                if len(rows) < end - begin:
                    raise self._other_rows(part)
                total += lines_hash(lines_of(self._points.common, rows), begin)
            if f"{total % 2**64:016x}" != part.hash:
                raise self._other_rows(part)

    def _other_rows(self, part: Part) -> InputError:
        return InputError({"file": str(part.file), "found": "results of other questions",
                           "expected": f"those of rows {part.begin + 1:,} to {part.end:,}; take another folder"})

    # Back

    def _take(self, wait: float) -> None:
        """What came back by now; waits so many seconds for the first."""
        try:
            landed = self._landed.get(timeout=wait) if wait else self._landed.get_nowait()
            while True:
                self._land(*landed)
                landed = self._landed.get_nowait()
        except queue.Empty:
            pass
        self._bar.tell(self._done)

    def _fetch(self, timeout: float, future: Any) -> None:
        """In a thread of Dask's client. A worker may die with the answer: nobody waits for that for ever."""
        try:
            self._landed.put((future.key, future.result(timeout), None))
        except BaseException as error:  # noqa: BLE001 - some of Dask's are no Exception
            self._landed.put((future.key, None, error))

    def _land(self, key: str, answer: Answered | Refused | None, error: BaseException | None) -> None:
        future, batch = self._flying.pop(key, (None, None))
        if batch is None:
            return
        if answer is not None:
            self._answered(batch, answer)
        elif error is not None:
            self._failed(future, batch, error)

    def _answered(self, batch: Batch, answer: Answered | Refused) -> None:
        if isinstance(answer, Refused):
            raise InputError({"file": f"a worker on {answer.host}", "path": "orrery",
                              "found": f"version {answer.version}, catalogue {answer.catalogue}",
                              "expected": f"version {self._run.version}, catalogue {self._run.catalogue}, as here: "
                                          "install the same package there"})
        self._lost_in_a_row = 0
        if batch.end - batch.begin > 0:
            self._sizes.learn(batch.end - batch.begin, answer.seconds)
        self._folder.add(answer)
        self._done += batch.end - batch.begin

    def _failed(self, future: Any, batch: Batch, error: BaseException) -> None:
        distributed = needed("distributed")
        lost = isinstance(error, (distributed.client.FutureCancelledError, distributed.CancelledError,
                                  distributed.TimeoutError))
        if lost or self._client.status != "running":
            if batch.cancelled >= _CANCELLED:
                raise MachineFailed({"file": _numbers(batch), "found": f"{batch.cancelled} times cancelled or lost",
                                     "expected": "a cluster that keeps what it is asked"})
            self._forget([future])
            self._again.append(replace(batch, cancelled=batch.cancelled + 1))
        elif isinstance(error, (distributed.KilledWorker, MemoryError)):
            self._gave_up(batch, error)
        elif isinstance(error, (ImportError, AttributeError)):
            raise InputError({"file": "a worker", "found": f"{type(error).__name__}: {error}",
                              "expected": f"orrery {self._run.version} there: pip install 'orrery[dask]'"}) from error
        else:
            raise MachineFailed({"file": _numbers(batch), "found": f"{type(error).__name__} on a worker: {error}",
                                 "expected": "an answer; the same sweep goes on with what is there"}) from error

    def _gave_up(self, batch: Batch, error: BaseException) -> None:
        """Workers died with it again and again: by halves, down to the point that kills them."""
        self._lost_in_a_row += 1
        if self._lost_in_a_row > _LOST_IN_A_ROW:
            raise MachineFailed({"file": _numbers(batch), "found": "workers that die whatever they run",
                                 "expected": "workers with enough memory; their logs say more"}) from error
        if batch.end - batch.begin > 1:
            self._again.extend(batch.halves())
        elif not batch.alone:
            self._suspects.append(replace(batch, alone=True))
        else:
            self._folder.add(self._row_of_error(batch))
            self._done += 1

    def _row_of_error(self, batch: Batch) -> Answered:
        """A row that says which point it was."""
        pyarrow = needed("pyarrow")
        rows = None if batch.rows is None else pickle.loads(batch.rows)
        found, expected = "workers that died each time they ran it", "a worker with enough memory"
        text = sentence({"file": f"row {batch.begin + 1}", "found": found, "expected": expected})
        table = arrow_of(self._points.failed_row(batch.begin, rows, batch.columns))
        columns = {field.name: table[field.name] if len(table) else pyarrow.nulls(1, field.type)
                   for field in table.schema}
        values: dict[str, Any] = {"error": text, "error_path": None, "error_found": found, "error_expected": expected}
        if "point" in columns:
            values["point"] = batch.begin + 1
        for name, value in values.items():
            columns[name] = pyarrow.array([value], table.schema.field(name).type)
        points = 0 if rows is None else lines_hash(lines_of(self._points.common, rows), batch.begin)
        row = pyarrow.table(columns, schema=table.schema)
        return Answered(batch.begin, batch.end, ipc_of(row), 1, points, 0.0)

    def _cancel(self) -> None:
        self._forget([future for future, _ in self._flying.values()])
        self._flying.clear()

    def _forget(self, futures: list[Any]) -> None:
        try:
            if futures and self._client.status == "running":
                self._client.cancel(futures)
        except Exception:  # noqa: BLE001 - the scheduler is gone: nothing is left to cancel
            pass


def _numbers(batch: Batch) -> str:
    return f"points {batch.begin + 1:,} to {batch.end:,}"
