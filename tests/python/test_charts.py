# SPDX-License-Identifier: Apache-2.0
"""Charts are valid Vega-Lite: each is drawn, as Vega draws it, and Altair takes it."""
import json
import unittest

import altair
import vl_convert
from support import JOB, ROOT, SCHEDULED, SERVED

import orrery


def drawn(spec):
    return vl_convert.vegalite_to_svg(json.dumps(spec), vl_version="6.1")


class Charts(unittest.TestCase):
    def test_all_are_drawn(self):
        table = ROOT / "validation/measurements/serving/token_position.csv"
        answers = {
            "simulate": (orrery.simulate(**JOB), ["time", "memory", "sensitivity", "levers"]),
            "simulate in time": (orrery.simulate(**JOB, pp=4, timeline=True),
                                 ["time", "memory", "sensitivity", "timeline"]),
            "advise": (orrery.advise(**JOB, pareto="time,memory"), ["layouts", "pareto"]),
            "plan": (orrery.plan("faster-kernels"), ["cost", "months"]),
            "serve": (orrery.serve(SERVED, concurrency=[1, 4]), ["curve", "ttft", "tpot", "request"]),
            "schedule": (orrery.schedule(**SCHEDULED), ["waits", "shares", "sizes", "states", "queue", "power"]),
            "validate": (orrery.validate(table), ["tokens_s_gpu", "tpot", "ttft"]),
        }
        for command, (answer, names) in answers.items():
            specs = answer.charts()
            self.assertEqual(list(specs)[:len(names)], names)
            for name, spec in specs.items():
                with self.subTest(f"{command} {name}"):
                    altair.Chart.from_dict(spec, validate=True)
                    svg = drawn(spec)
                    self.assertIn(spec["title"]["text"], svg)
                    self.assertGreater(svg.count("<path"), 3)

    def test_one_by_name(self):
        answer = orrery.simulate(**JOB)
        self.assertIsInstance(answer.chart(), altair.Chart)
        self.assertEqual(answer.chart("levers").to_dict()["title"]["text"], "What would make it faster")
        with self.assertRaisesRegex(orrery.InputError, "memory"):
            answer.chart("pie")
        with self.assertRaises(orrery.InputError):
            orrery.topology("dgx-h100").chart()

    def test_what_is_kept_is_drawn_alike(self):
        answer = orrery.simulate(**JOB)
        self.assertEqual(orrery.from_json(answer.json).charts(), answer.charts())
        values = json.loads(answer.json)
        del values["prediction"]["stages"]
        with self.assertRaisesRegex(orrery.InputError, "prediction"):
            orrery.from_json(values).charts()


if __name__ == "__main__":
    unittest.main()
