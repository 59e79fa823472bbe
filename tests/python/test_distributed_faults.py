# SPDX-License-Identifier: Apache-2.0
"""What goes wrong during a sweep over Dask: nothing is lost, nothing is there twice, and errors say what it was."""
import contextlib
import logging
import os
import pathlib
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import dask
import distributed
import pyarrow
from support import JOB

import orrery
import orrery.batches

QUESTIONS = [{**JOB, "gpu_hour_price": 1 + i / 100} for i in range(6000)]
POISON = 77


def expected(questions):
    table = pyarrow.table(orrery.sweep(questions, progress=False))
    return table.add_column(0, "point", pyarrow.array(range(1, len(table) + 1), pyarrow.int64()))


@contextlib.contextmanager
def cluster():
    with (distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50) as local,
          distributed.Client(local) as client):
        yield client


def worker_pids(client):
    return list(client.run(os.getpid).values())


class Poison(distributed.WorkerPlugin):
    """Workers die when they run a certain point."""

    def setup(self, worker):
        real = orrery.batches.run_batch.__wrapped__ if hasattr(orrery.batches.run_batch, "__wrapped__") \
            else orrery.batches.run_batch

        def run_batch(run, batch):
            if batch.begin < POISON <= batch.end:
                os._exit(1)
            return real(run, batch)

        run_batch.__wrapped__ = real
        orrery.batches.run_batch = run_batch


def another_catalogue():
    orrery.batches.catalogue = lambda: "0123456789abcdef"


class Faults(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name) / "results"

    def sweep(self, client, questions=None, **settings):
        settings = {"progress": False, **settings}
        return orrery.distributed.sweep(questions or QUESTIONS, self.folder, client=client, **settings)

    def check_all_there(self, client=None):
        results = orrery.distributed.open(self.folder) if client is None else self.sweep(client)
        self.assertTrue(results.table().equals(expected(QUESTIONS)))
        self.assertEqual((results.missing, len(results)), ([], len(QUESTIONS)))

    def test_workers_killed_at_random(self):
        killed, ended = [], threading.Event()

        def kill(client):
            draw = random.Random(5)
            while not ended.wait(0.4) and len(killed) < 4:
                with contextlib.suppress(Exception):
                    killed.append(draw.choice(worker_pids(client)))
                    os.kill(killed[-1], signal.SIGKILL)

        with cluster() as client:
            killer = threading.Thread(target=kill, args=(client,))

            def progress(done):
                if done and not killer.ident:
                    killer.start()

            self.sweep(client, seconds=0.2, progress=progress)
            ended.set()
            killer.join()
        self.assertGreaterEqual(len(killed), 1)
        self.check_all_there()

    def test_a_point_that_kills(self):
        with cluster() as client:
            client.register_plugin(Poison())
            results = self.sweep(client, QUESTIONS[:80], seconds=0.5)
        table = results.table()
        self.assertEqual((results.errors, len(results)), (1, 80))
        bad = table.slice(POISON - 1, 1).to_pylist()[0]
        self.assertEqual((bad["point"], bad["model"], bad["gpu_hour_price"]), (POISON, JOB["model"], 1.76))
        self.assertIn(f"row {POISON}: found workers that died", bad["error"])
        self.assertIsNone(bad["step_time_s"])
        good = pyarrow.concat_tables([table.slice(0, POISON - 1), table.slice(POISON)])
        whole = expected(QUESTIONS[:80])
        self.assertTrue(good.equals(pyarrow.concat_tables([whole.slice(0, POISON - 1), whole.slice(POISON)])))

    def test_a_worker_of_another_catalogue(self):
        with cluster() as client:
            client.run(another_catalogue)
            with self.assertRaises(orrery.InputError) as caught:
                self.sweep(client)
        self.assertIn("catalogue 0123456789abcdef", caught.exception.found)
        self.assertIn(socket.gethostname(), caught.exception.file)

    def test_the_scheduler_killed(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            address = f"127.0.0.1:{free.getsockname()[1]}"
        running = []

        def start(*words):
            running.append(subprocess.Popen([sys.executable, "-m", "distributed.cli." + words[0], *words[1:]],
                                            stderr=subprocess.DEVNULL, cwd=self.folder.parent))

        host, port = address.split(":")
        start("dask_scheduler", "--host", host, "--port", port, "--dashboard-address", ":0", "--no-dashboard")
        start("dask_worker", address, "--nthreads", "1", "--no-dashboard")
        with dask.config.set({"distributed.comm.timeouts.connect": "20s"}):
            client = distributed.Client(address)
        client._timeout = 1  # seconds in which it tries to connect again
        logging.getLogger("distributed").setLevel(logging.CRITICAL)

        def progress(done):
            if done > 500 and running[0].poll() is None:
                running[0].kill()
                running[0].wait()

        start_s = time.monotonic()
        with self.assertRaises(orrery.MachineFailed) as caught:
            self.sweep(client, seconds=0.2, progress=progress)
        self.assertLess(time.monotonic() - start_s, 60)
        self.assertIn("no connection to Dask's scheduler", str(caught.exception))
        self.assertIn(str(self.folder), str(caught.exception))
        with contextlib.suppress(Exception):
            client.close(timeout=1)
        for process in running:
            process.kill()
            process.wait()
        begun = orrery.distributed.open(self.folder)
        self.assertGreater(len(begun), 500)
        self.assertLess(len(begun), len(QUESTIONS))
        with distributed.Client(processes=False, n_workers=1, threads_per_worker=2, dashboard_address=":0") as another:
            self.check_all_there(another)

    def test_a_full_disk(self):
        script = f"""
import resource
import distributed, orrery, orrery.folder
orrery.folder._LONGEST_WAIT = 0.2
if __name__ == "__main__":
    with distributed.Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=":0") as client:
        orrery.distributed.sweep([{JOB!r}], "first", client=client, progress=False)
        resource.setrlimit(resource.RLIMIT_FSIZE, (28_000, resource.RLIM_INFINITY))
        questions = [{{**{JOB!r}, "gpu_hour_price": 1 + i / 100}} for i in range(6000)]
        try:
            orrery.distributed.sweep(questions, {str(self.folder)!r}, client=client, progress=False, seconds=1)
        except orrery.MachineFailed as error:
            print(error)
"""
        file = self.folder.with_name("script.py")
        file.write_text(script)
        done = subprocess.run([sys.executable, file], capture_output=True, text=True, check=False, timeout=120,
                              cwd=file.parent)
        self.assertRegex(done.stdout, r"/results/part-\d+-\d+-[0-9a-f]+.parquet: found File too large; expected a disk",
                         done.stderr)
        self.assertEqual([one.name for one in self.folder.iterdir() if one.name.endswith(".tmp")], [])
        begun = orrery.distributed.open(self.folder)
        self.assertLess(len(begun), len(QUESTIONS))
        self.assertEqual(len(begun.table()), len(begun))
        with distributed.Client(processes=False, n_workers=1, threads_per_worker=2, dashboard_address=":0") as client:
            self.check_all_there(client)

    def test_sigterm(self):
        script = f"""
import os, signal, warnings
import distributed, orrery
told = []
def stop(done):
    if done > 500 and not told:
        told.append(os.kill(os.getpid(), signal.SIGTERM))
if __name__ == "__main__":
    warnings.simplefilter("error", orrery.StoppedEarly)
    with distributed.Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=":0") as client:
        questions = [{{**{JOB!r}, "gpu_hour_price": 1 + i / 100}} for i in range(6000)]
        try:
            orrery.distributed.sweep(questions, {str(self.folder)!r}, client=client, progress=stop, seconds=0.1)
        except orrery.StoppedEarly as warning:
            print(warning)
"""
        file = self.folder.with_name("script.py")
        file.write_text(script)
        done = subprocess.run([sys.executable, file], capture_output=True, text=True, check=False, timeout=120)
        self.assertIn("the sweep was stopped: the same call goes on", done.stdout, done.stderr)
        begun = orrery.distributed.open(self.folder)
        self.assertTrue(500 < len(begun) < len(QUESTIONS), len(begun))


if __name__ == "__main__":
    unittest.main()
