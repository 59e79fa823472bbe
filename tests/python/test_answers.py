# SPDX-License-Identifier: Apache-2.0
"""Answers in Python are those of the command line, byte by byte, as typed objects."""
import contextlib
import json
import pathlib
import tempfile
import unittest

import numpy
from support import JOB, ROOT, SCHEDULED, SERVED, printed, words

import orrery


class SameBytes(unittest.TestCase):
    def test_scenarios(self):
        files = [file for folder in ("scenarios", "schedule") for file in sorted((ROOT / "tests" / folder).glob("*.json"))
                 if not file.name.endswith(".expected.json")]
        self.assertGreater(len(files), 40)
        # The program's own tests run all of them; what is passed on is alike for each kind.
        for file in files[::3]:
            command = "advise" if file.name.startswith("advise") else "simulate"
            if file.parent.name == "schedule":
                command = "schedule"
            # Files that they name are found from the project's folder.
            with self.subTest(file.name), contextlib.chdir(ROOT):
                self.assertEqual(getattr(orrery, command)(file).json, printed(command, file))

    def test_keywords_are_flags(self):
        self.assertEqual(orrery.simulate(**JOB).json, printed("simulate", *words(JOB)))
        self.assertEqual(orrery.simulate(JOB, tp=4).json, printed("simulate", *words({**JOB, "tp": 4})))
        self.assertEqual(orrery.serve(**SERVED).json, printed("serve", *words(SERVED)))
        numbers = orrery.serve(**{**SERVED, "isl": 200, "osl": 20})
        self.assertEqual(numbers.points, orrery.serve(**SERVED).points)
        self.assertEqual(orrery.serve(**SERVED, seed=7).json, printed("serve", *words(SERVED), "--seed", 7))
        self.assertEqual(orrery.advise(**JOB, top=3, like={"tp": 4}).json,
                         printed("advise", *words(JOB), "--top", 3, "--like", '{"tp": 4}'))

    def test_schedule(self):
        answer = orrery.schedule(**SCHEDULED)
        self.assertIsInstance(answer, orrery.ScheduleAnswer)
        self.assertEqual(answer.json, printed("schedule", *words(SCHEDULED)))
        self.assertEqual(orrery.schedule(SCHEDULED, seed=7).json, printed("schedule", *words(SCHEDULED), "--seed", 7))
        self.assertEqual([point.policy for point in answer.points], ["fifo", "easy"])
        best = answer.points[answer.best]
        self.assertEqual(best.runs[0].wait_s, best.first.wait_s.mean)
        ranged = {**SCHEDULED, "gpus": "32..64", "policy": "easy"}
        self.assertEqual(orrery.schedule(ranged).json, printed("schedule", *words(ranged)))
        self.assertEqual(orrery.schedule(**{**SCHEDULED, "gpus": [32, 64], "policy": "easy"}).points,
                         orrery.schedule(ranged).points)

    def test_schedule_of_files(self):
        with tempfile.TemporaryDirectory() as folder:
            jobs, asked, kept = (pathlib.Path(folder) / name for name in ("jobs.csv", "lab.json", "kept.json"))
            jobs.write_text("id,submit_s,length_s,gpus\na,0,60,8\nb,1,60,16\nc,2,5,1\n")
            asked.write_text(json.dumps({"cluster": "dgx-h100", "gpus": 16, "trace": str(jobs),
                                         "limits": "wait.p99=1h"}))
            answer = orrery.schedule(asked, policy=["fifo", "easy"], job="b")
            self.assertEqual(answer.json, printed("schedule", asked, "--policy", "fifo,easy", "--job", "b"))
            self.assertIs(answer.fits, True)
            self.assertEqual(answer.points[0].first.job.short_s, 59)
            self.assertIs(orrery.schedule(asked, limits="wait.p99=1s").fits, False)
            kept.write_text(answer.json)
            self.assertEqual(printed("rerun", kept), answer.json)
            told = []
            orrery.schedule(asked, policy=["fifo", "easy"], progress=lambda share, count: told.append((share, count)))
            self.assertEqual(told, [(0.5, 1), (1.0, 2)])
            # A figure of no job is None: none ends within so little time.
            none = orrery.schedule(asked, limits=None, horizon="1 s", like={"policy": "easy"})
            self.assertEqual(none.search.now, 1)
            self.assertIsNone(none.points[0].runs[0].completion_s)
            self.assertIsNone(none.points[0].first.completion_s.mean)
            self.assertEqual(none.points[0].first.wait_s.mean, 0)

    def test_values_of_numpy_and_paths(self):
        job = {**JOB, "gpus": numpy.int64(16), "tp": numpy.int32(2)}
        self.assertEqual(orrery.simulate(**job).json, orrery.simulate(**JOB).json)
        self.assertEqual(orrery.simulate(**{**JOB, "global_batch": "64"}).layout.dp, 8)

    def test_plan(self):
        self.assertEqual(orrery.plan("100t-dense").json, printed("plan", "100t-dense"))
        question = {"model": "llama3-8b", "cluster": "dgx-h100", "seq": 4096, "global_batch": 256, "tokens": "1T"}
        self.assertEqual(orrery.plan(**question, gpus=[64, 128]).json,
                         printed("plan", *words(question), "--gpus", "64,128"))

    def test_lines(self):
        table = ROOT / "validation/measurements/serving/token_position.csv"
        self.assertEqual(orrery.validate(table).json, printed("validate", table))
        self.assertEqual(orrery.topology("dgx-h100", gpus=512).json, printed("topology", "dgx-h100", "--gpus", 512))
        self.assertEqual(orrery.catalog.show("accelerator", "h100-sxm"),
                         json.loads(printed("catalog", "show", "accelerator", "h100-sxm"))["entry"])


class Objects(unittest.TestCase):
    def setUp(self):
        self.answer = orrery.simulate(**JOB)

    def test_attributes(self):
        values = json.loads(self.answer.json)
        self.assertEqual(self.answer.prediction.step_time_s, values["prediction"]["step_time_s"])
        self.assertEqual(self.answer.prediction.memory.stages[0].to_dict(),
                         values["prediction"]["memory"]["stages"][0])
        self.assertEqual(self.answer.to_dict(), values)
        self.assertIsNone(self.answer.layout.expert_replicas)
        with self.assertRaisesRegex(AttributeError, "step_time_s"):
            self.answer.prediction.steptime  # noqa: B018
        self.assertIn("step_time_s", dir(self.answer.prediction))
        self.assertIn("step_time_s=", repr(self.answer.prediction))

    def test_every_member_is_declared(self):
        advised = orrery.advise(**JOB, changes=1, like={"tp": 8})
        answers = [self.answer, advised, orrery.serve(**SERVED), orrery.plan("100t-dense"),
                   orrery.topology("dgx-h100"), orrery.schedule(**SCHEDULED)]
        for answer in answers:
            self.check_declared(answer)

    def check_declared(self, value):
        if isinstance(value, orrery.Record):
            known = {key for one in type(value).__mro__ for key in getattr(one, "__annotations__", {})}
            for key, item in value.to_dict().items():
                name = key if key in known else key + "_"
                self.assertIn(name, known, type(value).__name__)
                if isinstance(item, (dict, list)):
                    self.check_declared(getattr(value, name))
        elif isinstance(value, list):
            for item in value:
                self.check_declared(item)

    def test_from_json(self):
        again = orrery.from_json(self.answer.json)
        self.assertIsInstance(again, orrery.SimulateAnswer)
        self.assertEqual(again, self.answer)
        self.assertEqual(orrery.from_json(self.answer.to_dict()), self.answer)
        for bad in ("{", "[]", "{}", '{"orrery": {"command": "dance"}}'):
            with self.assertRaises(orrery.InputError):
                orrery.from_json(bad)

    def test_html(self):
        html = self.answer._repr_html_()
        self.assertTrue("<table>" in html and "Llama 3 8B" in html and "dgx-h100" in html)
        self.assertEqual(html.count("<table>"), html.count("</table>"))


class Errors(unittest.TestCase):
    def test_where_and_what(self):
        with self.assertRaises(orrery.InputError) as caught:
            orrery.simulate(**{**JOB, "model": "lama3-8b"})
        self.assertEqual((caught.exception.path, caught.exception.nearest), ("model", "llama3-8b"))
        self.assertIsInstance(caught.exception, ValueError)
        with self.assertRaises(orrery.InputError) as caught:
            orrery.simulate(**{**JOB, "zero": 9})
        self.assertEqual((caught.exception.path, caught.exception.found), ("zero", "9"))
        with self.assertRaises(orrery.InputError) as caught:
            orrery.simulate({**JOB, "tpp": 2})
        self.assertEqual(caught.exception.nearest, "tp")
        with self.assertRaises(TypeError):
            orrery.simulate(**JOB, tpp=2)
        for bad in ({"threads": -5}, {"seed": -1}, {"seed": 1.5}):
            with self.assertRaises(orrery.InputError) as caught:
                orrery.simulate(**JOB, **bad)
            self.assertEqual(caught.exception.path, next(iter(bad)))
        with self.assertRaises(orrery.InputError):
            orrery.simulate(3.5)
        for bad in (object(), {1, 2}):
            with self.assertRaises(orrery.InputError):
                orrery.simulate(**{**JOB, "faults": bad})
        with self.assertRaises(orrery.InputError):
            orrery.topology("no-such")
        with self.assertRaises(orrery.InputError):
            orrery.catalog.show("accelerator", "h101")

    def test_of_schedule(self):
        for keywords, path, nearest in (({"policy": "easi"}, "policy", "easy"),
                                        ({"jobs": [{"mix": "acme-kalo", "per_day": 4}]}, "mix", "acme-kalos"),
                                        ({"days": None}, "days", "")):
            with self.subTest(path), self.assertRaises(orrery.InputError) as caught:
                orrery.schedule(**{**SCHEDULED, **keywords})
            self.assertEqual((caught.exception.path, caught.exception.nearest or ""), (path, nearest))
        with self.assertRaises(orrery.InputError) as caught:
            orrery.schedule({**SCHEDULED, "polcy": "easy"})
        self.assertEqual(caught.exception.nearest, "policy")
        certain = {"cluster": "dgx-h100", "gpus": 640, "trace": "philly", "days": 3}
        with self.assertRaises(orrery.InputError) as caught:
            orrery.schedule(**certain, seed=3)
        self.assertEqual((caught.exception.path, caught.exception.found), ("seed", "3"))

    def test_what_does_not_fit(self):
        large = {**JOB, "model": "llama3.1-405b"}
        answer = orrery.simulate(**large)
        self.assertIs(answer.fits, False)
        self.assertIn("needs", answer.verdict.why)
        with self.assertRaises(orrery.DoesNotFit):
            answer.require()
        del large["tp"]
        with self.assertRaises(orrery.DoesNotFit) as caught:
            orrery.advise(**large)
        self.assertGreater(caught.exception.fits_from_gpus, 16)
        self.assertIsInstance(caught.exception.answer, orrery.AdviseAnswer)
        orrery.simulate(**JOB).require()

    def test_a_file_that_is_none(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "job.json"
            file.write_text('{"model": ')
            with self.assertRaises(orrery.InputError) as caught:
                orrery.simulate(file)
            self.assertIn("job.json", caught.exception.file)


class Calibrations(unittest.TestCase):
    def test_shipped_and_saved(self):
        shipped = orrery.Calibration.shipped("h100-sxm")
        self.assertEqual(shipped.to_dict(),
                         json.loads(printed("calibrate", "show", "--device", "h100-sxm"))["calibration"])
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "mine.json"
            shipped.save(file)
            self.assertEqual(json.loads(file.read_text()), shipped.to_dict())
            self.assertEqual([one.name for one in pathlib.Path(folder).iterdir()], ["mine.json"])

    def test_fit_and_compare(self):
        measured = next((ROOT / "hw_models/calibration").glob("h100*/measured"))
        fitted = orrery.Calibration.fit(measured)
        self.assertEqual(fitted.to_dict(), json.loads(printed("calibrate", "fit", measured))["calibration"])
        health = orrery.Calibration.compare(measured)
        self.assertEqual(health.json, printed("calibrate", "compare", measured, codes=(0, 1)))
        self.assertIn(health.exit_code, (0, 1))


class Catalogue(unittest.TestCase):
    def test_lists(self):
        names = [entry["name"] for entry in orrery.catalog.list("cluster", search="h100")]
        self.assertIn("dgx-h100", names)
        self.assertTrue(orrery.catalog.list())
        self.assertEqual(orrery.catalog.check().exit_code, 0)
        self.assertTrue(orrery.catalog.recipe("nemo", "llama3-8b"))


if __name__ == "__main__":
    unittest.main()
