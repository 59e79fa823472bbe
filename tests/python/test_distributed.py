# SPDX-License-Identifier: Apache-2.0
"""Sweeps over Dask: the rows of one process, points that are never written out, folders that go on."""
import itertools
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import unittest
import warnings

import distributed
import numpy
import pandas
import polars
import pyarrow
from support import BINARY, JOB, ROOT, generated

import orrery
from orrery import _core, folder
from orrery.points import Grid, combinations

SMALL = {key: JOB[key] for key in ("model", "cluster", "seq", "global_batch")}
GRID = {"gpus": [16, 32], "tp": numpy.array([1, 2, 3]), "gpu_hour_price": [None, 2, 2.5], "network": "ideal"}
QUESTION = {"model": "llama3-8b", "cluster": "dgx-h100", "seq": 4096, "global_batch": 256, "tokens": "1T",
            "gpus": [64, 128], "electricity_price": [0.05, 0.08, 0.1]}


def setUpModule():
    global CLUSTER, CLIENT
    CLUSTER = distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0")
    CLIENT = distributed.Client(CLUSTER)


def tearDownModule():
    CLIENT.close()
    CLUSTER.close()


def one_process(questions, **settings):
    return pyarrow.table(orrery.sweep(questions, progress=False, **settings))


def numbered(table):
    """A table as a folder holds it."""
    return table.add_column(0, "point", pyarrow.array(range(1, len(table) + 1), pyarrow.int64()))


class InAFolder(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name) / "results"

    def sweep(self, questions, **settings):
        settings = {"client": CLIENT, "progress": False, **settings}
        return orrery.distributed.sweep(questions, self.folder, **settings)

    def parts(self):
        return sorted(self.folder.glob("part-*.parquet"))

    def many_parts(self):
        """From here on each batch is written at once, into a file of its own where its turn comes early."""
        before, folder._LONGEST_WAIT = folder._LONGEST_WAIT, 0.0
        self.addCleanup(setattr, folder, "_LONGEST_WAIT", before)

    def refused(self, questions, path, **settings):
        with self.assertRaises(orrery.InputError) as caught:
            self.sweep(questions, **settings)
        self.assertEqual(caught.exception.path, path)
        self.assertTrue(caught.exception.file and caught.exception.found and caught.exception.expected)
        return caught.exception


class SameRows(InAFolder):
    def test_a_list_with_bad_rows(self):
        bad = [{**JOB, "tp": 3}, {**JOB, "model": "lama3-8b"}, {**JOB, "nonsense": 1}, {**JOB, "gpus": None},
               {**JOB, "model": "llama3.1-405b"}, {**JOB, "faults": {1, 2}}, {**JOB, "gpu_hour_price": float("nan")}]
        questions = generated(300) + bad + generated(200)
        results = self.sweep(questions)
        expected = one_process(questions)
        self.assertTrue(results.table().equals(numbered(expected)))
        self.assertEqual((len(results), results.missing, results.points), (507, [], 507))
        self.assertEqual(results.errors, len(expected) - expected["error"].null_count)
        self.assertGreater(results.errors, 3)

    def test_a_grid_with_values_that_say_nothing(self):
        results = self.sweep(GRID, **SMALL)
        self.assertTrue(results.table().equals(numbered(one_process(GRID, **SMALL))))
        self.assertEqual(len(results), 18)

    def test_a_grid_too_large_to_be_sent(self):
        grid = {"gpu_hour_price": [1 + i / 1000 for i in range(20_000)], "tp": [2]}
        self.assertIsNone(Grid({**grid, "gpu_hour_price": [1]}, {}).rows(0, 1))
        points = Grid(grid, {})
        self.assertEqual(points.rows(3, 5), [{"gpu_hour_price": 1.003, "tp": 2}, {"gpu_hour_price": 1.004, "tp": 2}])
        self.assertIsNone(points.shared())

    def test_frames(self):
        rows = [{**JOB, "tp": tp, "gpu_hour_price": price} for tp in (1, 2, 4) for price in (2, 3.5)]
        frame = pandas.DataFrame(rows)
        frames = {"pandas": frame, "polars": polars.DataFrame(rows, strict=False), "iterator": iter(rows),
                  "pyarrow": pyarrow.table(frame)}
        for name, one in frames.items():
            with self.subTest(name):
                self.folder = self.folder.with_name(name)
                expected = one_process(rows if name == "iterator" else one)
                self.assertTrue(self.sweep(one).table().equals(numbered(expected)))

    def test_a_plan(self):
        text = json.dumps(QUESTION)
        whole = pyarrow.table(orrery.Table(_core.sweep_plan(text, 0, 6, None, 1, False)))
        results = orrery.distributed.plan(QUESTION, self.folder, client=CLIENT, progress=False, seconds=0.001)
        self.assertTrue(results.table().equals(whole))
        self.assertEqual(results.table()["point"].to_pylist(), [1, 2, 3, 4, 5, 6])
        self.assertEqual(results.errors, 0)
        file = self.folder.with_name("question.json")
        file.write_text(text)
        again = orrery.distributed.plan(file, self.folder, client=CLIENT, progress=False)
        self.assertEqual(again.seconds, results.seconds)  # nothing was run
        with self.assertRaises(orrery.InputError) as caught:
            orrery.distributed.plan(file, self.folder, client=CLIENT, gpus=[64])
        self.assertEqual(caught.exception.path, "question")
        with self.assertRaises(orrery.InputError) as caught:
            orrery.distributed.plan({**QUESTION, "gpuss": 1}, self.folder, client=CLIENT)
        self.assertEqual(caught.exception.nearest, "gpus")


class Lazily(InAFolder):
    def test_combinations(self):
        lists = {"a": [1, 2], "b": ["x", "y", "z"], "c": [True, False]}
        all_of_them = [dict(zip(lists, values)) for values in itertools.product(*lists.values())]
        self.assertEqual(list(combinations(lists, 0, 12)), all_of_them)
        self.assertEqual(list(combinations(lists, 5, 9)), all_of_them[5:9])

    def stopped_at(self, questions, points, **settings):
        told = []

        def stop(done):
            told.append(done)
            if done >= points and not self.folder.with_name("stopped").exists():
                self.folder.with_name("stopped").touch()
                os.kill(os.getpid(), signal.SIGINT)

        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            results = self.sweep(questions, progress=stop, seconds=0.2, **settings)
        self.assertEqual([one.category for one in warned if one.category is orrery.StoppedEarly], [orrery.StoppedEarly])
        self.assertTrue(results.stopped_early)
        self.assertEqual(len(results), told[-1])
        return results

    def test_a_grid_of_a_billion_points(self):
        grid = {"gpu_hour_price": range(1, 1001), "seq": [4096] * 1000, "tp": [1, 2, 4, 8] * 250}
        common = {key: value for key, value in JOB.items() if key not in grid}
        results = self.stopped_at(grid, 100, **common)
        self.assertEqual(results.points, 10**9)
        self.assertEqual(len(results) + sum(map(len, results.missing)), 10**9)
        first = results.table().slice(0, 16)
        rows = list(combinations(grid, 0, 16))
        self.assertEqual(first["step_time_s"].to_pylist(), one_process(rows, **common)["step_time_s"].to_pylist())
        self.assertEqual(first["gpu_hour_price"].to_pylist(), [1] * 16)

    def test_an_iterator_without_end(self):
        taken = []
        endless = ({**JOB, "gpu_hour_price": taken.append(i) or i} for i in itertools.count(1))
        results = self.stopped_at(endless, 100)
        self.assertIsNone(results.points)
        self.assertLess(len(taken), len(results) + 40 * len(results))  # no more than was on its way
        # Too few rows are found first where the stopped sweep lacks its first points.
        with self.assertRaisesRegex(orrery.InputError, "other questions|found rows to"):
            self.sweep(iter([JOB] * 3))
        count = results.table()["point"].to_pylist()[-1] + 50
        done = self.sweep({**JOB, "gpu_hour_price": i} for i in range(1, count + 1))
        self.assertEqual((done.points, done.missing), (count, []))
        self.assertEqual(done.table()["gpu_hour_price"].to_pylist(), list(range(1, count + 1)))
        with self.assertRaisesRegex(orrery.InputError, "other questions"):
            self.sweep(iter([JOB] * count))
        with self.assertRaisesRegex(orrery.InputError, "other questions"):
            self.sweep(iter([JOB] * 3))

    def test_an_iterator_whose_first_part_is_missing(self):
        self.many_parts()
        results = self.stopped_at(({**JOB, "gpu_hour_price": i} for i in itertools.count(1)), 100)
        count = results.table()["point"].to_pylist()[-1]
        self.parts()[0].unlink()
        with self.assertRaisesRegex(orrery.InputError, "found rows to .* expected the 3 rows"):
            self.sweep(iter([JOB] * 3))
        done = self.sweep({**JOB, "gpu_hour_price": i} for i in range(1, count + 1))
        self.assertEqual((done.points, done.missing), (count, []))

    def test_columns_of_an_iterator(self):
        self.many_parts()
        rows = [JOB] * 30 + [{**JOB, "gpu_hour_price": 2}] * 60 + [{**JOB, "gpu_hour_price": 2.5}] * 400
        results = self.sweep(iter(rows), seconds=0.2)
        self.assertTrue(results.table().equals(numbered(one_process(rows))))
        self.assertTrue(results.dataset().to_table().equals(numbered(one_process(rows))))
        self.folder = self.folder.with_name("other")
        error = self.refused(iter([{**JOB, "gpu_hour_price": 2}] * 40 + [{**JOB, "gpu_hour_price": "2"}] * 40),
                             "gpu_hour_price")
        self.assertIn("number", error.expected)
        with self.assertRaisesRegex(orrery.InputError, "int as row 3"):
            self.sweep(iter([JOB, JOB, 3]))


class Resumed(InAFolder):
    questions = [{**JOB, "gpu_hour_price": 1 + i / 100} for i in range(1500)]

    def begun(self):
        self.many_parts()
        results = self.sweep(self.questions, seconds=0.2)
        self.assertGreater(len(self.parts()), 3)
        return results

    def test_only_gaps_are_run(self):
        expected = self.begun().table()
        kept = self.parts()
        for lost in (kept.pop(0), kept.pop(1), kept.pop()):
            lost.unlink()
        (self.folder / ".part-000000000001-000000000004-0000000000000000.parquet.tmp").write_bytes(b"half")
        begun = orrery.distributed.open(self.folder)
        self.assertEqual(len(begun) + sum(map(len, begun.missing)), 1500)
        self.assertEqual(begun.missing[0].start, 1)
        self.assertIn("of 1,500", repr(begun))
        times = {file: file.stat().st_mtime_ns for file in kept}
        told = []
        results = self.sweep(self.questions, seconds=5, progress=told.append)
        self.assertEqual((told[0], told[-1]), (len(begun), 1500))
        self.assertTrue(results.table().equals(expected))
        self.assertEqual({file: file.stat().st_mtime_ns for file in kept}, times)
        self.assertEqual(results.missing, [])
        self.assertEqual(list(self.folder.glob(".part*")), [])

    def test_points_that_two_parts_hold(self):
        expected = self.begun().table()
        whole = self.folder
        self.folder = whole.with_name("larger")
        self.sweep(self.questions, seconds=60)
        for file in self.parts():
            file.rename(whole / file.name)
        results = orrery.distributed.open(whole)
        self.assertTrue(results.table().equals(expected))
        self.assertEqual(len(results), 1500)
        self.folder = whole
        self.assertTrue(self.sweep(iter(self.questions)).table().equals(expected))

    def test_other_questions_versions_and_catalogues(self):
        self.begun()
        other = [*self.questions]
        other[700] = {**other[700], "gpus": 2 * other[700]["gpus"]}
        with self.assertRaisesRegex(orrery.InputError, "part-.*found results of other questions"):
            self.sweep(other)
        with self.assertRaisesRegex(orrery.InputError, "rows to 1,500; expected the 1,499 rows"):
            self.sweep(self.questions[:-1])
        self.refused(self.questions, "question", seed=3)
        self.refused(self.questions, "question", recompute="full")
        head = self.folder / "run.json"
        text = head.read_text()
        for key, value in (("version", orrery.__version__), ("catalogue", json.loads(text)["orrery"]["catalogue"])):
            head.write_text(text.replace(value, "0.0.1"))
            error = self.refused(self.questions, key)
            self.assertEqual((error.file, error.found), (str(head), "0.0.1"))
            self.assertIn(value, error.expected)
        head.write_text(text)
        part = self.parts()[1]
        part.write_bytes(part.read_bytes()[:-100])
        self.assertEqual(self.refused(self.questions, str(part)).file, str(part))
        head.unlink()
        self.refused(self.questions, str(self.folder))
        with self.assertRaises(orrery.InputError):
            orrery.distributed.open(self.folder)

    def test_a_folder_of_the_command_line(self):
        lines = self.folder.with_name("lines.jsonl")
        lines.write_text(json.dumps(JOB) + "\n")
        subprocess.run([BINARY, "simulate", "--jsonl", lines, "--results", self.folder], stdout=subprocess.DEVNULL,
                       check=True)
        self.refused([JOB], "form")

    def test_two_at_once(self):
        started, go_on = threading.Event(), threading.Event()

        def progress(done):
            started.set()
            go_on.wait(60)

        first = threading.Thread(target=self.sweep, args=(self.questions,), kwargs={"progress": progress})
        first.start()
        started.wait(60)
        error = self.refused(self.questions, str(self.folder))
        self.assertIn(f"process {os.getpid()}", error.found)
        go_on.set()
        first.join()
        self.assertEqual(len(self.sweep(self.questions)), 1500)


class Read(InAFolder):
    def test_out_to_all(self):
        self.many_parts()
        questions = [{**JOB, "tp": tp} for tp in (1, 2, 3, 4)] * 30
        results = self.sweep(questions, seconds=0.02)
        expected = numbered(one_process(questions))
        self.assertTrue(results.dataset().to_table().equals(expected))
        filtered = results.dataset().to_table(filter=pyarrow.compute.field("tp") == 4, columns=["point"])
        self.assertEqual(filtered["point"].to_pylist(), list(range(4, 121, 4)))
        self.assertTrue(pyarrow.table(results).equals(expected))
        self.assertEqual(polars.DataFrame(results).height, 120)
        self.assertEqual(results.to_pandas()["tp"].tolist(), [1, 2, 3, 4] * 30)
        self.assertEqual(results.table(["tp", "fits"]).column_names, ["tp", "fits"])
        self.assertEqual(sum(len(table) for table in results), 120)
        self.assertEqual(results.errors, 30)
        self.assertIn("120 points", results._repr_html_())
        self.assertIn("<th>error</th>", results._repr_html_())

    def test_nothing_and_no_client(self):
        self.assertEqual(len(self.sweep([])), 0)
        for bad in ({"seconds": 0}, {"seed": -1}, {"client": 7}):
            with self.assertRaises(orrery.InputError):
                self.sweep([JOB], **bad)
        with self.assertRaises(orrery.InputError):
            self.sweep(7)


class Alone(InAFolder):
    def run_script(self, text, **more):
        file = self.folder.with_name("script.py")
        file.write_text(text)
        return subprocess.run([sys.executable, file], capture_output=True, text=True, check=False, cwd=file.parent,
                              timeout=120, **more)

    def test_imports_wait(self):
        done = self.run_script("import sys, orrery\n"
                               "print([name for name in ('dask', 'distributed', 'pyarrow') if name in sys.modules])\n"
                               "sys.modules['distributed'] = None\n"
                               "try:\n    orrery.distributed.sweep([], 'x')\n"
                               "except ImportError as error:\n    print(error)\n")
        self.assertEqual(done.stdout, "[]\norrery.distributed needs distributed: pip install 'orrery[dask]'\n")

    def test_a_cluster_of_its_own(self):
        asked = f"print(len(orrery.distributed.sweep([{JOB!r}] * 20, 'results')))\n"
        done = self.run_script(f"import orrery\nif __name__ == '__main__':\n    {asked}")
        self.assertEqual((done.stdout, done.stderr), ("20\n", ""))

    def test_the_example_with_ray(self):
        done = subprocess.run([sys.executable, ROOT / "docs/ray_example.py"], capture_output=True, text=True,
                              check=False, timeout=240)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("24 points, the fastest that fits: ", done.stdout)


if __name__ == "__main__":
    unittest.main()
