# SPDX-License-Identifier: Apache-2.0
"""Launch scripts that orrery writes, as Slurm itself takes them: `sbatch --test-only`, and one that runs.

Needs ORRERY_BINARY and Debian's Slurm, as cluster.py says.
"""
import os
import pathlib
import subprocess
import tempfile
import unittest

from cluster import Slurm

BINARY = os.environ["ORRERY_BINARY"]
HOSTS, GPUS = 2, 8
JOB = "--model llama3-8b --cluster dgx-h100 --gpus 16 --seq 8192 --global-batch 64"
STACKS = ("megatron-core", "nemo", "nemo@25.05", "pytorch-fsdp2", "deepspeed-zero", "maxtext")
SERVED = "--model llama3.3-70b --cluster dgx-h100 --engines 2xTP8 --concurrency 16 --isl 512 --osl 128"
ENGINES = ("vllm", "sglang", "trtllm")


class LaunchOnSlurm(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.slurm = cls.enterClassContext(Slurm(nodes=HOSTS, cpus=16, gpus=GPUS))
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.folder.chmod(0o755)

    def write(self, name, words):
        script = self.folder / f"{name}.sbatch"
        done = subprocess.run([BINARY, *words.split(), "--slurm", script], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return script

    def test_slurm_takes_every_program(self):
        scripts = [self.write(stack.replace("@", "-"), f"advise {JOB} --stack {stack}") for stack in STACKS]
        scripts += [self.write(stack, f"serve {SERVED} --stack {stack}") for stack in ENGINES]
        for script in scripts:
            with self.subTest(script.name):
                done = self.slurm.run("sbatch", "--test-only", script, check=False)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertRegex(done.stderr, rf"to start at .* using \d+ processors on nodes node\[0-{HOSTS - 1}\]")

    def test_more_hosts_than_there_are_is_refused(self):
        script = self.write("large", f"advise {JOB.replace('--gpus 16', '--gpus 32')}")
        done = self.slurm.run("sbatch", "--test-only", script, check=False)
        self.assertNotEqual(done.returncode, 0)

    def test_a_script_starts_its_program_once_on_each_host(self):
        """The whole script on Slurm, with torchrun that writes down how it was called."""
        script = self.write("runs", f"simulate {JOB} --tp 8 --dp 2")
        stand_ins, log = self.folder / "bin", self.folder / "log"
        for folder in (stand_ins, log):
            folder.mkdir(exist_ok=True)
        torchrun = stand_ins / "torchrun"
        torchrun.write_text(f'#!/bin/sh\nprintf \'%s\\n\' "$MASTER_ADDR" "$@" >"{log}/$SLURM_NODEID"\n')
        torchrun.chmod(0o755)
        environment = {**self.slurm.environment, "PATH": f"{stand_ins}:{self.slurm.environment['PATH']}",
                       "MEGATRON_PATH": "/opt/a folder", "TRAIN_STEPS": "20", "LR": "3e-4", "ROTARY_BASE": "500000",
                       "MOCK_DATA": "1", "RUN_DIR": str(self.folder)}
        done = subprocess.run(["sbatch", "--parsable", "--chdir", self.folder, script], env=environment,
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        said = "\n".join(path.read_text() for path in self.folder.glob("*.out"))
        self.assertEqual(self.slurm.wait(done.stdout.strip()), ["COMPLETED"], said)
        calls = {file.name: file.read_text().splitlines() for file in log.iterdir()}
        self.assertEqual(sorted(calls), [str(host) for host in range(HOSTS)])
        for host, words in calls.items():
            self.assertEqual(words[0], "node0")
            self.assertEqual(words[words.index("--nnodes") + 1], str(HOSTS))
            self.assertEqual(words[words.index("--nproc-per-node") + 1], str(GPUS))
            self.assertEqual(words[words.index("--node-rank") + 1], host)
            self.assertIn("/opt/a folder/pretrain_gpt.py", words)
            self.assertEqual(words[words.index("--tensor-model-parallel-size") + 1], "8")


if __name__ == "__main__":
    unittest.main()
