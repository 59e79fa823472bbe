# SPDX-License-Identifier: Apache-2.0
"""Compiles every kernel of validation/kernels with nvcc, and what `calibrate kernel` says where no GPU is.

nvcc is the one on the PATH, where NVIDIA installs it, or PyPI's nvidia-cuda-nvcc in this interpreter. So are the
headers of cuBLASLt, PyPI's nvidia-cublas.
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


def packaged(path):
    return [found for folder in sys.path for found in glob.glob(f"{folder}/nvidia/*/{path}")]


def missing(what):
    return AssertionError(f"kernels: found no {what}; expected those of NVIDIA's toolkit, or: pip install -r "
                          f"tests/scripts/nvcc_requirements.txt (for {sys.executable})")


def find_nvcc():
    for candidate in [shutil.which("nvcc"), "/usr/local/cuda/bin/nvcc", *packaged("bin/nvcc")]:
        if candidate and os.access(candidate, os.X_OK):
            return candidate
    raise missing("nvcc")


def find_headers(nvcc):
    """The folder of cuBLASLt's headers: the compiler's own, Debian's, or PyPI's."""
    own = pathlib.Path(nvcc).resolve().parents[1].rglob("cublasLt.h")
    for header in [*own, pathlib.Path("/usr/include/cublasLt.h"), *map(pathlib.Path, packaged("include/cublasLt.h"))]:
        if header.exists():
            return header.parent
    raise missing("cublasLt.h")


def complaint(nvcc, source, *includes):
    """What the compiler says against a source; nothing where it takes it."""
    flags = ["-std=c++17", "-arch=sm_90", "-O1", "--extended-lambda", f"-I{KERNELS}", "--cubin", "-o", "/dev/null"]
    flags += [f"-I{folder}" for folder in includes]
    ran = subprocess.run([nvcc, *flags, str(source)], capture_output=True, text=True)
    return f"{source.name}: {ran.stderr[:600]}" if ran.returncode != 0 else None


class Compiled(unittest.TestCase):
    def test_nvcc_takes_judge_worker_candidates_and_kernels_of_today(self):
        nvcc = find_nvcc()
        sources = [KERNELS / "judge.cu", KERNELS / "worker.cu", *sorted(KERNELS.glob("candidates/*/*.cu")),
                   *sorted(KERNELS.glob("cheats/*.cu")), *sorted(KERNELS.glob("baselines/*.cu"))]
        self.assertGreater(len(sources), 30)
        headers = find_headers(nvcc)
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            found = [said for said in pool.map(lambda source: complaint(nvcc, source, headers), sources) if said]
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
