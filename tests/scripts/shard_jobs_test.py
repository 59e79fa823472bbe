# SPDX-License-Identifier: Apache-2.0
"""Files that run shards elsewhere, held against linters and the schemas of Kubernetes.

Needs ORRERY_BINARY, Debian's shellcheck and, from tests/python/requirements.txt, kubernetes-validate.
"""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

import kubernetes_validate
import yaml

BINARY = os.environ["ORRERY_BINARY"]
OLDEST, NEWEST = (1, 29), (1, 37)  # of Kubernetes: the oldest that the file says it needs
JOB = {"model": "llama3-8b", "cluster": "dgx-h100", "gpus": 16, "seq": 4096, "global_batch": 64}


class ShardJobs(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self.scratch.cleanup)
        self.folder = pathlib.Path(self.scratch.name) / "Ärger's \"50%\" $x"
        self.folder.mkdir()

    def write(self, lines, *words):
        """Both files of a question of so many lines."""
        questions = self.folder / "questions.jsonl"
        questions.write_text("".join(json.dumps({**JOB, "gpu_hour_price": 1 + i / 1000}) + "\n" for i in range(lines)))
        subprocess.run([BINARY, "simulate", "--jsonl", questions, "--slurm-array", self.folder / "sweep.sbatch",
                        "--kubernetes-job", self.folder / "job.yaml", "--shards", "7", *words], check=True,
                       capture_output=True)
        return list(yaml.safe_load_all((self.folder / "job.yaml").read_text()))

    def test_schemas_take_the_objects(self):
        for lines in (3, 20_000):
            documents = self.write(lines, "--results", self.folder / f"results{lines}")
            for minor in range(OLDEST[1], NEWEST[1] + 1):
                for document in documents:
                    with self.subTest(kind=document["kind"], minor=minor):
                        kubernetes_validate.validate(document, f"{OLDEST[0]}.{minor}", strict=True)

    def test_schemas_refuse_what_is_wrong(self):
        job = next(d for d in self.write(3) if d["kind"] == "Job")
        for change in ({"completions": "7"}, {"completionMode": 1}, {"shards": 7}):
            wrong = {**job, "spec": {**job["spec"], **change}}
            with self.assertRaises(kubernetes_validate.ValidationError):
                kubernetes_validate.validate(wrong, f"{NEWEST[0]}.{NEWEST[1]}", strict=True)

    def test_objects_fit_each_other(self):
        claim, config, shards, merge = self.write(3)
        self.assertEqual([d["kind"] for d in (claim, config, shards, merge)],
                         ["PersistentVolumeClaim", "ConfigMap", "Job", "Job"])
        self.assertEqual(shards["spec"]["completions"], 7)
        for job in (shards, merge):
            pod = job["spec"]["template"]["spec"]
            names = {volume["name"] for volume in pod["volumes"]}
            container, = pod["containers"]
            self.assertLessEqual({mount["name"] for mount in container["volumeMounts"]}, names)
            self.assertTrue(pod["securityContext"]["runAsNonRoot"])
            self.assertTrue(container["securityContext"]["readOnlyRootFilesystem"])
            claimed = [v["persistentVolumeClaim"]["claimName"] for v in pod["volumes"] if "persistentVolumeClaim" in v]
            self.assertEqual(claimed, [claim["metadata"]["name"]])
        mounted = [v["configMap"]["name"] for v in shards["spec"]["template"]["spec"]["volumes"] if "configMap" in v]
        self.assertEqual(mounted, [config["metadata"]["name"]])
        self.assertEqual(set(config["data"]), {"run.json", "lines.jsonl"})
        self.assertEqual(config["data"]["lines.jsonl"], (self.folder / "questions.jsonl").read_text())
        # A host's name has 63 bytes at most: the job's, a dash and the index.
        self.assertLessEqual(len(shards["metadata"]["name"]), 40)

    def test_a_question_too_large_for_an_object_is_read_from_the_volume(self):
        config, shards = self.write(20_000)[1:3]
        self.assertEqual(set(config["data"]), {"note"})
        self.assertIn(str(self.folder / "sweep.results"), config["data"]["note"])
        args = shards["spec"]["template"]["spec"]["containers"][0]["args"]
        self.assertEqual(args[:3], ["shard", "/results", "$(JOB_COMPLETION_INDEX)/7"])

    def test_linters_take_the_shells(self):
        documents = self.write(3)
        merge = self.folder / "merge.sh"
        merge.write_text("#!/bin/sh\n" + documents[3]["spec"]["template"]["spec"]["containers"][0]["args"][0])
        for script in (self.folder / "sweep.sbatch", merge):
            done = subprocess.run(["shellcheck", script], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stdout)

    def test_pods_merge_by_the_manifest_s_own_shell(self):
        """The merge's words with folders and the program of this machine in place of the pod's."""
        documents = self.write(5)
        results = self.folder / "sweep.results"
        for i in range(7):
            subprocess.run([BINARY, "shard", results, f"{i}/7"], check=True, capture_output=True)
        stand_ins = pathlib.Path(self.scratch.name) / "bin"
        stand_ins.mkdir()
        (stand_ins / "orrery").symlink_to(BINARY)
        volume = pathlib.Path(self.scratch.name) / "volume"
        volume.symlink_to(results)
        shell = documents[3]["spec"]["template"]["spec"]["containers"][0]["args"][0].replace("/results", str(volume))
        done = subprocess.run(["sh", "-c", shell], capture_output=True, text=True,
                              env={**os.environ, "PATH": f"{stand_ins}:{os.environ['PATH']}"})
        alone = subprocess.run([BINARY, "simulate", "--jsonl", self.folder / "questions.jsonl"], capture_output=True,
                               text=True)
        self.assertEqual((done.returncode, done.stdout), (0, alone.stdout))
        self.assertEqual((results / "merged.jsonl").read_text(), alone.stdout)


if __name__ == "__main__":
    unittest.main()
