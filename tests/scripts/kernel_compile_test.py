# SPDX-License-Identifier: Apache-2.0
"""Compiles every kernel of validation/kernels with nvcc, and what `calibrate kernel` says where no GPU is.

nvcc is the one on the PATH, where NVIDIA installs it, or PyPI's nvidia-cuda-nvcc in this interpreter.
"""
import concurrent.futures
import glob
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
KERNELS = ROOT / "validation/kernels"
BINARY = os.environ.get("ORRERY_BINARY", str(ROOT / "build/orrery"))


def find_nvcc():
    packaged = [found for folder in sys.path for found in glob.glob(folder + "/nvidia/*/bin/nvcc")]
    for candidate in [shutil.which("nvcc"), "/usr/local/cuda/bin/nvcc", *packaged]:
        if candidate and os.access(candidate, os.X_OK):
            return candidate
    raise AssertionError("kernels: found no nvcc; expected it on the PATH, or: pip install -r "
                         f"tests/scripts/nvcc_requirements.txt (for {sys.executable})")


def complaint(nvcc, source):
    """What the compiler says against a source; nothing where it takes it."""
    flags = ["-std=c++17", "-arch=sm_90", "-O1", "--extended-lambda", f"-I{KERNELS}", "--cubin", "-o", "/dev/null"]
    ran = subprocess.run([nvcc, *flags, str(source)], capture_output=True, text=True)
    return f"{source.name}: {ran.stderr[:600]}" if ran.returncode != 0 else None


class Compiled(unittest.TestCase):
    def test_nvcc_takes_judge_worker_candidates_and_kernels_of_today(self):
        nvcc = find_nvcc()
        sources = [KERNELS / "judge.cu", KERNELS / "worker.cu", *sorted(KERNELS.glob("candidates/*/*.cu")),
                   *sorted(KERNELS.glob("cheats/*.cu"))]
        # cuBLASLt is no part of the compiler's package.
        if glob.glob(str(pathlib.Path(nvcc).resolve().parents[1] / "**/cublasLt.h"), recursive=True):
            sources += sorted(KERNELS.glob("baselines/*.cu"))
        self.assertGreater(len(sources), 30)
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            found = [said for said in pool.map(lambda source: complaint(nvcc, source), sources) if said]
        self.assertEqual(found, [])

    def test_a_compiler_that_refuses_is_noticed(self):
        with tempfile.TemporaryDirectory() as folder:
            broken = pathlib.Path(folder) / "broken.cu"
            broken.write_text("__global__ void f(int* a) { *a = b; }\n")
            self.assertIn("broken.cu", complaint(find_nvcc(), broken) or "")

    def test_without_a_gpu_registers_are_told_and_exit_code_is_3(self):
        if shutil.which("nvidia-smi") and subprocess.run(["nvidia-smi", "-L"], capture_output=True).returncode == 0:
            # There is a GPU: then the candidate runs, and is right.
            expected = 0
        else:
            expected = 3
        ran = subprocess.run([BINARY, "calibrate", "kernel", "rms-norm", "--json", "--quiet", "--nvcc", find_nvcc(),
                              "--candidate", str(KERNELS / "candidates/rms-norm/good.cu")],
                             capture_output=True, text=True)
        self.assertEqual(ran.returncode, expected, ran.stderr)
        answer = json.loads(ran.stdout)
        self.assertTrue(answer["compiled"])
        self.assertGreater(answer["resources"]["registers"], 8)
        self.assertEqual(answer["resources"]["spilled_bytes"], 0)
        self.assertIn("registers a thread", answer["feedback"])

    def test_what_nvcc_refuses_has_its_words(self):
        with tempfile.TemporaryDirectory() as folder:
            broken = pathlib.Path(folder) / "broken.cu"
            broken.write_text("extern \"C\" int launch() { return missing; }\n")
            ran = subprocess.run([BINARY, "calibrate", "kernel", "rms-norm", "--json", "--quiet", "--nvcc", find_nvcc(),
                                  "--candidate", str(broken)], capture_output=True, text=True)
        self.assertEqual(ran.returncode, 3)
        self.assertIn("missing", json.loads(ran.stdout)["feedback"])


if __name__ == "__main__":
    unittest.main()
