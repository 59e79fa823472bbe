# SPDX-License-Identifier: Apache-2.0
"""Sweeps: order, bad rows, types of columns, frames of other libraries, Ctrl-C."""
import json
import math
import os
import random
import signal
import subprocess
import sys
import threading
import time
import unittest

import duckdb
import numpy
import pandas
import polars
import pyarrow
from support import JOB, generated

import orrery


def table_of(questions, **settings):
    return orrery.sweep(questions, progress=False, **settings)


class Rows(unittest.TestCase):
    def test_each_row_is_simulates_own(self):
        questions = generated(60)
        table = table_of(questions)
        for i, question in enumerate(questions):
            one = orrery.simulate(question, ranges=False)
            self.assertEqual(table["step_time_s"][i], one.prediction.step_time_s)
            self.assertEqual(table["needed_bytes"][i], one.prediction.memory.needed_bytes)
            self.assertEqual(table["fits"][i], one.fits)
            self.assertEqual(table["model"][i], one.model)

    def test_order_and_threads(self):
        questions = generated(300)
        order = list(range(len(questions)))
        random.Random(11).shuffle(order)
        one, many = table_of(questions, threads=1), table_of([questions[i] for i in order], threads=4)
        numpy.testing.assert_array_equal(one["step_time_s"][order], many["step_time_s"])

    def test_ranges_where_they_are_asked_for(self):
        table = table_of([JOB, {**JOB, "ranges": True}])
        self.assertTrue(math.isnan(table["step_time_low_s"][0]))
        self.assertLess(table["step_time_low_s"][1], table["step_time_s"][1])

    def test_bad_rows_are_rows(self):
        bad = [JOB, {**JOB, "tp": 3}, {**JOB, "model": "lama3-8b"}, {**JOB, "nonsense": 1}, {**JOB, "gpus": None},
               {**JOB, "model": "llama3.1-405b"}, {**JOB, "trace_out": "x"}, {**JOB, "faults": {1, 2}}, JOB]
        table = table_of(bad)
        self.assertEqual(len(table), len(bad))
        self.assertEqual([error is not None for error in table["error"]],
                         [False, True, True, True, True, False, True, True, False])
        self.assertIn("did you mean \"llama3-8b\"", table["error"][2])
        self.assertEqual(table["error_path"][4], "gpus")
        self.assertEqual(table["model"][2], "lama3-8b")  # a bad row says which one it was
        self.assertEqual(table["tp"][1], 3)
        self.assertTrue(math.isnan(table["step_time_s"][1]))
        self.assertIs(table["fits"][5], False)
        self.assertEqual(table["step_time_s"][0], table["step_time_s"][8])

    def test_what_is_no_frame(self):
        for nothing in (7, "job.json", [1, 2]):
            with self.assertRaises(orrery.InputError):
                table_of(nothing)
        self.assertEqual(len(table_of([])), 0)
        self.assertEqual(len(polars.DataFrame(table_of([]))), 0)
        with self.assertRaisesRegex(KeyError, "step_time_s"):
            table_of([JOB])["steptime"]


class Grids(unittest.TestCase):
    def test_all_combinations(self):
        table = table_of({"gpus": [16, 32], "tp": numpy.array([1, 2]), "network": "ideal"},
                         **{key: JOB[key] for key in ("model", "cluster", "seq", "global_batch")})
        self.assertEqual(list(table["gpus"]), [16, 16, 32, 32])
        self.assertEqual(list(table["tp"]), [1, 2, 1, 2])
        self.assertEqual(list(table["network"]), ["ideal"] * 4)


class Frames(unittest.TestCase):
    rows = [{**JOB, "tp": tp, "mtp": None} for tp in (1, 2, 4)]

    def test_in_from_all(self):
        frame = pandas.DataFrame(self.rows)
        expected = table_of(self.rows)["step_time_s"]
        self.assertEqual(len(set(expected)), 3)
        frames = {"pandas": frame, "polars": polars.DataFrame(self.rows), "pyarrow": pyarrow.Table.from_pylist(self.rows),
                  "duckdb": duckdb.sql("select * from frame"), "dicts": self.rows}
        for name, one in frames.items():
            with self.subTest(name):
                numpy.testing.assert_array_equal(table_of(one)["step_time_s"], expected)

    def test_out_to_all(self):
        table = table_of([*self.rows, {**JOB, "tp": 3}])
        arrow = pyarrow.table(table)
        arrow.validate(full=True)
        self.assertEqual(arrow["tp"].to_pylist(), [1, 2, 4, 3])
        self.assertEqual(arrow.schema.field("fits").type, pyarrow.bool_())
        self.assertEqual(arrow.schema.field("gpus").type, pyarrow.int64())
        self.assertIsNone(arrow["step_time_s"].to_pylist()[3])
        self.assertEqual(arrow["step_time_s"].to_pylist()[:3], list(table["step_time_s"][:3]))
        self.assertEqual(arrow["model"].to_pylist(), list(table["model"]))
        frame = polars.DataFrame(table)
        del table  # the frame holds what it needs
        self.assertEqual(frame["tp"].to_list(), [1, 2, 4, 3])
        self.assertEqual(frame.filter(polars.col("error").is_null()).height, 3)
        self.assertEqual(len(table_of(self.rows).to_pandas()), 3)
        asked = table_of(self.rows)
        self.assertEqual(duckdb.sql("select count(*), max(tp) from asked").fetchall(), [(3, 4)])

    def test_columns_of_one_kind(self):
        table = table_of([{**JOB, "launch": "eager", "mtp": False}, {**JOB, "gpu_hour_price": 2}])
        schema = pyarrow.table(table).schema
        self.assertEqual(schema.field("launch").type, pyarrow.large_string())
        self.assertEqual(schema.field("mtp").type, pyarrow.bool_())
        self.assertEqual(table["gpu_hour_price"][1], 2)

    def test_html(self):
        html = table_of([{**JOB, "tp": 3}])._repr_html_()
        self.assertIn("<th>error</th>", html)
        self.assertNotIn("<th>step_time_low_s</th>", html)


class Progress(unittest.TestCase):
    def test_function(self):
        told = []
        orrery.sweep(generated(5000), progress=told.append)
        self.assertEqual(told[-1], 5000)
        self.assertEqual(told, sorted(told))
        self.assertGreater(len(told), 1)

    def test_the_interpreter_runs_on(self):
        ticks = []
        done = threading.Event()

        def tick():
            while not done.is_set():
                ticks.append(1)
                time.sleep(0.001)

        thread = threading.Thread(target=tick)
        thread.start()
        table_of(generated(3000))
        done.set()
        thread.join()
        self.assertGreater(len(ticks), 20)

    def test_two_sweeps_at_once(self):
        results = {}

        def run(name):
            results[name] = table_of(generated(400))["step_time_s"]

        threads = [threading.Thread(target=run, args=(name,)) for name in "ab"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        numpy.testing.assert_array_equal(results["a"], results["b"])

    def test_ctrl_c_keeps_what_is_done(self):
        script = """
import json, sys, warnings
import orrery
rows = json.load(sys.stdin)
warnings.simplefilter("ignore", orrery.StoppedEarly)
def ready(done):
    print("running", flush=True)
table = orrery.sweep(rows * 40, ranges=True, progress=ready)
errors = [error for error in table["error"] if error is not None]
import time
try:
    print(json.dumps([table.stopped_early, len(table), len(errors), errors[-1] if errors else ""]), flush=True)
    time.sleep(30)
except KeyboardInterrupt:
    print("handler is back")
"""
        with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              text=True, env=os.environ) as process:
            process.stdin.write(json.dumps(generated(2500)))
            process.stdin.close()
            self.assertEqual(process.stdout.readline(), "running\n")
            process.send_signal(signal.SIGINT)
            line = process.stdout.readline()
            while line == "running\n":
                line = process.stdout.readline()
            stopped, rows, errors, last = json.loads(line)
            process.send_signal(signal.SIGINT)
            self.assertEqual(process.stdout.readline(), "handler is back\n")
        self.assertTrue(stopped)
        self.assertEqual(rows, 100_000)
        self.assertGreater(errors, 0)
        self.assertLess(errors, rows)
        self.assertIn("stop", last)


if __name__ == "__main__":
    unittest.main()
