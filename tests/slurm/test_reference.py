# SPDX-License-Identifier: Apache-2.0
"""Checks that Slurm's rules, as slurm_reference.py has them, explain what was recorded. It starts no Slurm."""
import pathlib
import unittest

import slurm_reference

FOLDER = pathlib.Path(__file__).resolve().parent / "recorded"


class Reference(unittest.TestCase):
    def setUp(self):
        self.recordings = slurm_reference.recordings(sorted(FOLDER.glob("*.csv")))
        self.assertGreaterEqual(len(self.recordings), 4)

    def test_each_pass_decides_as_slurm_did(self):
        for name, recording in self.recordings:
            with self.subTest(name):
                self.assertEqual(slurm_reference.decisions(recording), [])

    def test_a_replay_starts_jobs_when_slurm_did(self):
        for name, recording in self.recordings:
            with self.subTest(name):
                told = slurm_reference.replay(recording, slurm_reference.RecordedClock(recording))
                figures = slurm_reference.Figures(recording, told)
                self.assertGreaterEqual(figures.near, 0.95)
                self.assertLessEqual(abs(figures.wait_error), 0.05)


if __name__ == "__main__":
    unittest.main()
