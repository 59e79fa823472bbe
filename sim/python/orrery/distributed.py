# SPDX-License-Identifier: Apache-2.0
"""Sweeps over the workers of Dask, into a folder of Parquet files that grows while they run.

    results = orrery.distributed.sweep({"gpus": [64, 128], "tp": [1, 2, 4, 8]}, "DIR", client=Client(...),
                                       model="llama3-70b", cluster="dgx-h100", seq=8192, global_batch=256)
    results.to_pandas()

`pip install 'orrery[dask]'` on the client and on every worker.
"""
from __future__ import annotations

import builtins
import hashlib
import json
import logging
import multiprocessing.process
import os
import signal
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from orrery import _core, catalog
from orrery.ask import Path, Settings, check_run, on_main_thread, said
from orrery.batches import Run, catalogue, needed
from orrery.dispatch import Dispatch
from orrery.errors import InputError, StoppedEarly
from orrery.folder import Folder
from orrery.points import PlanPoints, Points, files_in, points_of
from orrery.results import Results
from orrery.sweeps import Bar

__all__ = ["Results", "open", "plan", "sweep"]

Progress = bool | Callable[[int], None] | None


def sweep(questions: Any, results: Path, *, client: Any = None, seconds: float = 3.0, progress: Progress = None,
          seed: int | None = None, **settings: Any) -> Results:
    """Predicts every scenario as orrery.sweep does, on many machines, into the folder `results`.

    Parameters
    ----------
    questions : frame, grid or iterator
        What orrery.sweep takes. A grid is never written out; an iterator's rows are taken as they are needed.
    results : folder
        Parts are Parquet files of points in order. What is there already is not run again: a sweep that was
        stopped, or whose machine failed, goes on. Results of another question, version or catalogue are refused.
    client : dask.distributed.Client
        None: a LocalCluster of a process for each core, closed at the end. One that is given is left open.
    seconds : float
        How long a batch shall take on a worker: points of a batch are as many as that.
    progress, seed, **settings
        As of orrery.sweep.

    Ctrl-C and SIGTERM keep what is done: a warning, StoppedEarly, and `missing` of the results.
    """
    _check("orrery.distributed.sweep()", seed, seconds)
    return _run(points_of(questions, settings), results, client, seconds, progress, seed)


def plan(question: Settings | None, results: Path, *, client: Any = None, seconds: float = 3.0,
         progress: Progress = None, seed: int | None = None, **settings: Any) -> Results:
    """Answers every point that the lists and ranges of a capacity question make: a row for each.

    `question`: a file, a name of the catalogue or a dict, as orrery.plan takes it; keywords win over it.
    """
    _check("orrery.distributed.plan()", seed, seconds)
    return _run(PlanPoints({**_question(question), **said(settings)}), results, client, seconds, progress, seed)


def open(folder: Path) -> Results:
    """The results of a run that ended, or of one that did not."""
    needed("pyarrow.parquet")
    return Results(folder)


def _check(place: str, seed: int | None, seconds: float) -> None:
    check_run(place, seed, 0)
    for module in ("distributed", "pyarrow.parquet"):
        needed(module)
    if not isinstance(seconds, (int, float)) or not 0 < seconds <= 86400:
        raise InputError({"file": place, "path": "seconds", "found": repr(seconds), "expected": "seconds of a batch, "
                          "above 0 and at most a day"})
    # A script that makes processes is run once more by each of them.
    if getattr(multiprocessing.process.current_process(), "_inheriting", False):
        raise InputError({"file": place, "found": "a script that its own worker processes run again",
                          "expected": 'if __name__ == "__main__": before what makes a cluster'})


def _question(question: Settings | None) -> dict[str, Any]:
    if question is None:
        return {}
    if not isinstance(question, (str, os.PathLike)):
        return said(question)
    name = os.fspath(question)
    if not os.path.isfile(name):
        return catalog.show("question", name)
    with builtins.open(name) as file:
        try:
            found = json.load(file)
        except ValueError as error:
            raise InputError({"file": name, "found": str(error), "expected": "JSON"}) from None
    if not isinstance(found, dict):
        raise InputError({"file": name, "found": type(found).__name__, "expected": "an object of settings"})
    return found


def _run(points: Points, results: Path, client: Any, seconds: float, progress: Progress, seed: int | None) -> Results:
    said_of = [points.command, seed, points.common, points.asked, dict(files_in([points.common, points.asked]))]
    digest = hashlib.blake2b(json.dumps(said_of).encode(), digest_size=8).hexdigest()
    run = Run(points.command, digest, _core.version(), catalogue(), seed, points.common, points.shared())
    folder = Folder(results, run, points.count, points.asked)
    try:
        with _connected(client) as connected, Bar(progress, points.count) as bar:
            ended = Dispatch(connected, run, points, folder, seconds, bar).work()
    finally:
        folder.close()
    if not ended:
        warnings.warn("the sweep was stopped: the same call goes on with what is there", StoppedEarly, stacklevel=3)
    return Results(folder.path, stopped_early=not ended)


@contextmanager
def _connected(client: Any) -> Iterator[Any]:
    if client is not None:
        if not hasattr(client, "submit") or not hasattr(client, "nthreads") or getattr(client, "asynchronous", False):
            raise InputError({"file": "client", "found": type(client).__name__,
                              "expected": "a Client of dask.distributed that is not asynchronous"})
        yield client
        return
    distributed, cores = needed("distributed"), needed("dask.system").CPU_COUNT
    with _no_ctrl_c():
        cluster = distributed.LocalCluster(n_workers=cores, threads_per_worker=1, processes=True,
                                           dashboard_address=None, scheduler_kwargs={"dashboard_address": ":0"},
                                           silence_logs=logging.ERROR)
    with cluster, distributed.Client(cluster) as own:
        yield own


@contextmanager
def _no_ctrl_c() -> Iterator[None]:
    """Processes that start here ignore Ctrl-C, which a terminal sends to all: the client ends them."""
    if not on_main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
