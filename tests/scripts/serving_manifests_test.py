# SPDX-License-Identifier: Apache-2.0
"""What starts served models: schemas and linters take it, engines know its flags, and it starts what was predicted.

Needs ORRERY_BINARY, Debian's shellcheck and, from tests/python/requirements.txt, kubernetes-validate.
"""
import copy
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import tempfile
import unittest

import jsonschema
import kubernetes_validate
import yaml

from serving_tools import HERE, LAUNCHERS, Names, Schemas, documents_of, flags_in, keys_in, stand_ins

TRAFFIC = "--arrivals poisson:2/s --requests 20 --isl 256 --osl 16"
# Name, question, forms beside the plainest.
QUESTIONS = [
    ("vllm-70b", "--stack vllm --model llama3.3-70b --cluster dgx-h100 --engines 4xTP8 --precision fp8-current",
     ["dynamo", "llm-d"]),
    ("vllm-shared-host", "--stack vllm --model llama3.1-8b --cluster dgx-h100 --engines 5xTP2 --cache fp8 "
     "--tiers host:64GiB:50GB/s", ["dynamo", "llm-d"]),
    ("vllm-experts", "--stack vllm --model deepseek-v3 --cluster dgx-h200 --engines 2xDP16EP16 "
     "--precision fp8-blockwise --spec mtp:1", ["llm-d"]),
    ("vllm-wide", "--stack vllm --model deepseek-v3 --cluster dgx-h100 --engines TP16EP16 --precision fp8-blockwise",
     ["llm-d"]),
    ("vllm-apart", "--stack vllm --model llama3.3-70b --cluster dgx-h100 --prefill 3xTP4 --decode 2xTP8 "
     "--spec draft:llama3.2-1b:3 --accept 0.8", ["llm-d"]),
    ("vllm-old", "--stack vllm@0.2 --model llama2-70b --cluster dgx-a100 --engines 2xTP4", ["dynamo"]),
    ("vllm-0.8", "--stack vllm@0.8 --model mixtral-8x7b --cluster dgx-h100 --engines TP4PP2 --max-context 8192",
     ["dynamo"]),
    ("sglang-apart", "--stack sglang --model deepseek-v3 --cluster gb200-nvl72 --prefill 2xDP8EP8 --decode DP64EP64 "
     "--precision fp8-blockwise", ["llm-d"]),
    ("sglang-prefix", "--stack sglang --model qwen3-32b --cluster dgx-h200 --engines 3xTP4 --router prefix "
     "--prefix-cache true --shared-prefix 64", ["dynamo", "llm-d"]),
    ("sglang-old", "--stack sglang@0.4 --model deepseek-v3 --cluster dgx-h200 --engines DP8EP8 "
     "--precision fp8-blockwise --spec mtp:2", ["dynamo", "llm-d"]),
    ("trtllm-oss", "--stack trtllm --model gpt-oss-120b --cluster dgx-b200 --engines 2xDP4EP4 --precision mxfp4 "
     "--max-sequences 256", ["dynamo"]),
    ("trtllm-wide", "--stack trtllm --model llama3.1-405b --cluster dgx-h100 --engines 2xTP16", []),
    ("trtllm-apart", "--stack trtllm --model llama3.3-70b --cluster dgx-h100 --prefill 2xTP4 --decode TP8", []),
    ("trtllm-racks", "--stack trtllm --model deepseek-v3 --cluster gb200-nvl72 --engines DP16EP16 --precision nvfp4 "
     "--spec mtp:3 --cache fp8", []),
]


def engines_of(question):
    """Replicas and GPUs of each kind of engine in the words of a question."""
    engines = []
    for text in re.findall(r"--(?:engines|prefill|decode) (\S+)", question):
        replicas, layout = text.split("x") if "x" in text else (1, text)
        gpus = 1
        for axis, size in re.findall(r"([A-Z]+)(\d+)", layout):
            gpus *= int(size) if axis in ("TP", "PP", "DP") else 1
        engines.append((int(replicas), gpus))
    return engines


def hosts_of(question):
    return 4 if "gb200" in question else 8


class ServingManifests(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="orrery-serving-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.schemas, cls.names, cls.made = Schemas(), Names(), []
        for name, question, forms in QUESTIONS:
            files = {"commands": cls.folder / f"{name}.sh", "slurm": cls.folder / f"{name}.sbatch",
                     "plainest": cls.folder / f"{name}.yaml"}
            cls.ask(name, question, "--commands", files["commands"], "--slurm", files["slurm"],
                    "--kubernetes", files["plainest"])
            for form in forms:
                files[form] = cls.folder / f"{name}-{form}.yaml"
                cls.ask(name, question, "--kubernetes", files[form], "--kubernetes-as", form)
            cls.made.append((name, question, files))
        cls.commands = cls.folder / "bin"
        stand_ins(cls.commands)

    @classmethod
    def ask(cls, name, question, *more, code=0):
        line = [os.environ["ORRERY_BINARY"], "serve", *question.split(), *TRAFFIC.split(), "--quiet", *map(str, more)]
        done = subprocess.run(line, capture_output=True, text=True, check=False)
        if done.returncode != code:
            raise AssertionError(f"{name}: exit code {done.returncode}: {done.stderr}")
        return done.stderr

    def each(self, check):
        """Checks all; one that fails stops no other."""
        for name, question, files in self.made:
            with self.subTest(name):
                check(name, question, files)

    def manifests(self, check):
        def of_one(name, question, files):
            for form, file in files.items():
                if file.suffix == ".yaml":
                    with self.subTest(f"{name} {form}"):
                        check(question, form, documents_of(file))
        self.each(of_one)

    def run_script(self, script, *words, **env):
        """Runs a script with stand-ins on PATH; returns its result and the calls of what it started."""
        log = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
        env = {"PATH": f"{self.commands}:/usr/bin:/bin", "HOME": "/nowhere", "STUB_LOG": str(log), **env}
        done = subprocess.run(["bash", str(script), *words], capture_output=True, text=True, check=False, env=env,
                              cwd=log.parent)
        return done, [json.loads(file.read_text()) for file in sorted(log.iterdir())]

    def quiet(self, *command):
        if not shutil.which(command[0]):
            self.fail(f"{command[0]} is not installed: it is a package of Debian")
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)

    def test_shells_and_linters_take_scripts(self):
        def check(_, __, files):
            for kind in ("commands", "slurm"):
                self.quiet("bash", "-n", str(files[kind]))
                self.quiet("shellcheck", "--shell=bash", str(files[kind]))
        self.each(check)

    def test_schemas_take_manifests(self):
        kinds = set()

        def check(_, __, documents):
            for document in documents:
                self.schemas.check(document)
                kinds.add(document["kind"])
        self.manifests(check)
        self.assertEqual(kinds, {"Deployment", "Service", "ConfigMap", "DynamoGraphDeployment", "LeaderWorkerSet",
                                 "InferencePool", "HTTPRoute"})

    def test_schemas_refuse_what_is_wrong(self):
        documents = {}
        self.manifests(lambda _, __, all_of: documents.update({one["kind"]: one for one in all_of}))
        refusals = (jsonschema.ValidationError, kubernetes_validate.ValidationError)

        def spoil(value):
            """Copies of a tree with one key too much, of one object each."""
            if isinstance(value, dict):
                yield {**value, "surplus": ["x"]}
                for key, one in value.items():
                    yield from ({**value, key: spoilt} for spoilt in spoil(one))
            elif isinstance(value, list):
                for i, one in enumerate(value):
                    yield from (value[:i] + [spoilt] + value[i + 1:] for spoilt in spoil(one))

        # In maps of names to texts a list is wrong too.
        for kind, document in documents.items():
            spoilt = list(spoil(document))
            self.assertGreaterEqual(len(spoilt), 3, kind)
            for one in spoilt:
                with self.subTest(kind), self.assertRaises(refusals):
                    self.schemas.check(one)
        graph = copy.deepcopy(documents["DynamoGraphDeployment"])
        for change in ({"replicas": "two"}, {"type": "engine"}, {"multinode": {"nodeCount": 1}}, {"name": "a b"},
                       {"name": graph["spec"]["components"][1]["name"]}):
            bad = copy.deepcopy(graph)
            bad["spec"]["components"][0].update(change)
            with self.subTest(str(change)), self.assertRaises(refusals):
                self.schemas.check(bad)

    def test_objects_of_a_manifest_fit_each_other(self):
        def check(question, form, documents):
            by_kind = {}
            for document in documents:
                self.assertRegex(document["metadata"]["name"], r"^[a-z]([-a-z0-9]{0,60}[a-z0-9])?$")
                by_kind.setdefault(document["kind"], []).append(document)
            labels, gpus = [], 0
            maps = {document["metadata"]["name"] for document in by_kind.get("ConfigMap", [])}
            for replicas, template in self.pods(documents):
                spec = template["spec"]
                labels.append(template.get("metadata", {}).get("labels", {}))
                volumes = {volume["name"]: volume for volume in spec.get("volumes", [])}
                self.assertLessEqual({v["configMap"]["name"] for v in volumes.values() if "configMap" in v}, maps)
                for container in spec["containers"] + spec.get("initContainers", []):
                    self.assertLessEqual({m["name"] for m in container.get("volumeMounts", [])}, set(volumes))
                    env = [one["name"] for one in container.get("env", [])]
                    self.assertEqual(len(env), len(set(env)))
                    gpus += replicas * int(container.get("resources", {}).get("limits", {}).get("nvidia.com/gpu", 0))
                self.assertNotRegex(json.dumps(spec), r"\$(DRAFT_)?MODEL")
            for deployment in by_kind.get("Deployment", []):
                wanted = deployment["spec"]["selector"]["matchLabels"]
                self.assertLessEqual(wanted.items(), deployment["spec"]["template"]["metadata"]["labels"].items())
            for chooser in by_kind.get("Service", []) + by_kind.get("InferencePool", []):
                selector = chooser["spec"]["selector"].get("matchLabels", chooser["spec"]["selector"])
                self.assertTrue(any(selector.items() <= one.items() for one in labels), chooser["metadata"])
            for route in by_kind.get("HTTPRoute", []):
                backend = route["spec"]["rules"][0]["backendRefs"][0]
                self.assertEqual(backend["name"], by_kind["InferencePool"][0]["metadata"]["name"])
            self.assertEqual(gpus, sum(replicas * size for replicas, size in engines_of(question)), form)
        self.manifests(check)

    @staticmethod
    def pods(documents):
        """Templates of pods of a manifest, each with how many there are."""
        for document in documents:
            spec = document.get("spec", {})
            if document["kind"] == "Deployment":
                yield spec["replicas"], spec["template"]
            elif document["kind"] == "LeaderWorkerSet":
                group = spec["leaderWorkerTemplate"]
                leader = 1 if "leaderTemplate" in group else 0
                if leader:
                    yield spec["replicas"], group["leaderTemplate"]
                yield spec["replicas"] * (group["size"] - leader), group["workerTemplate"]
            elif document["kind"] == "DynamoGraphDeployment":
                for one in spec["components"]:
                    yield one["replicas"] * one.get("multinode", {}).get("nodeCount", 1), one["podTemplate"]

    def check_words(self, words, question, file_text=None):
        """A command says flags that its program knows, each once, and keys of a file that it knows."""
        flags = flags_in(words)
        known = self.names.known(words, question)
        self.assertEqual(set(flags) - known, set(), words[:4])
        said = [word for word in words if word.startswith("--") and word not in ("--prefill", "--decode")]
        self.assertEqual(len(said), len(set(said)))
        if file_text:
            self.assertEqual(set(keys_in(yaml.safe_load(file_text))) - self.names.all["trtllm-serve file"], set())
        return flags

    def test_engines_in_pods_know_their_flags(self):
        def check(question, form, documents):
            files = {d["metadata"]["name"]: d["data"]["engine.yaml"] for d in documents if d["kind"] == "ConfigMap"}
            for _, template in self.pods(documents):
                for container in template["spec"]["containers"]:
                    words = container["command"] + container["args"]
                    if words[0] == "/bin/bash":
                        file = self.folder / "pod.sh"
                        file.write_text("#!/bin/bash\n" + words[2])
                        self.quiet("bash", "-n", str(file))
                        done, calls = self.run_script(file, LWS_LEADER_ADDRESS="leader.pods", LWS_WORKER_INDEX="1")
                        self.assertEqual((done.returncode, len(calls)), (0, 1), done.stderr)
                        words = calls[0]["words"]
                    name = next((v["configMap"]["name"] for v in template["spec"].get("volumes", [])
                                 if "configMap" in v), None)
                    self.check_words(words, question, files.get(name))
                for proxy in template["spec"].get("initContainers", []):
                    self.assertLessEqual(set(flags_in(proxy["args"])), self.names.all["routing-proxy"])
        self.manifests(check)

    def test_the_shell_script_starts_each_engine_with_flags_that_it_knows(self):
        def check(_, question, files):
            script = files["commands"].read_text()
            roles = re.findall(r"^  ([a-z]+)\)$", script, re.MULTILINE)
            self.assertEqual(roles[:2], ["prefill", "decode"] if "--prefill" in question else roles[:2])
            env = {"HEAD": "first", "HOSTFILE": "/etc/hosts", "FRONTS": "a:1 b:2", "PREFILL_FRONTS": "a:1 b:2",
                   "DECODE_FRONTS": "c:3", "DRAFT_MODEL": "some/draft", "CUDA_VISIBLE_DEVICES": "0"}
            for role in roles:
                for rank in ("0", "1"):
                    done, calls = self.run_script(files["commands"], role, NODE_RANK=rank, **env)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    call, = calls
                    words = call["words"]
                    while words[0] in LAUNCHERS:  # the program stands behind its launcher's words
                        words = words[next(i for i, word in enumerate(words) if i and
                                           word in LAUNCHERS | {"trtllm-serve"}):]
                    file_text = next(iter(call["files"].values()), None) if "disaggregated" not in words else None
                    flags = self.check_words(words, question, file_text)
                    if role == "router":
                        continue
                    ranks = int((flags.get("--tp_size") or flags.get("--tp-size") or ["0"])[0]) or \
                        int(flags["--tensor-parallel-size"][0]) * int(flags.get("--data-parallel-size", ["1"])[0])
                    stages = flags.get("--pipeline-parallel-size") or flags.get("--pp_size") or \
                        flags.get("--pp-size") or ["1"]
                    wanted = engines_of(question)[1 if role == "decode" else 0][1]
                    self.assertEqual(ranks * int(stages[0]), wanted, words)
                    self.assertFalse([word for word in words if word in ("$MODEL", "MODEL", "$DRAFT_MODEL")])
            done, calls = self.run_script(files["commands"], "something")
            self.assertEqual((done.returncode, calls), (2, []))
            self.assertIn("found 'something'", done.stderr)
        self.each(check)

    def test_slurm_gives_each_engine_gpus_of_its_own(self):
        def check(_, question, files):
            script = files["slurm"].read_text()
            nodes = int(re.search(r"^#SBATCH --nodes=(\d+)$", script, re.MULTILINE).group(1))
            done, calls = self.run_script(files["slurm"], SLURM_JOB_NUM_NODES=str(nodes), SLURM_JOB_ID="42",
                                          SLURM_JOB_NAME="job", SLURM_JOB_NODELIST="node-[0-9]",
                                          DRAFT_MODEL="some/draft")
            self.assertEqual(done.returncode, 0, done.stderr)
            steps, fronts = {}, set()
            for call in calls:
                if "sglang_router.launch_router" in call["words"] or "disaggregated" in call["words"]:
                    fronts |= set(re.findall(r"node-\d+:\d+", json.dumps(call)))
                else:
                    steps.setdefault(call["env"]["STUB_STEP"], []).append(call)
            self.assertEqual(len(steps), sum(replicas for replicas, _ in engines_of(question)))
            taken, heads, sizes = set(), set(), []
            for step in steps.values():
                size, ports = 0, {call["env"]["PORT"] for call in step}
                self.assertEqual(len(ports), 1)
                hosts = {call["env"]["STUB_HOST"] for call in step}
                for host in hosts:
                    mine = {call["env"]["CUDA_VISIBLE_DEVICES"] for call in step if call["env"]["STUB_HOST"] == host}
                    self.assertEqual(len(mine), 1)
                    for gpu in mine.pop().split(","):
                        self.assertLess(int(gpu), hosts_of(question))
                        self.assertNotIn((host, gpu), taken)
                        taken.add((host, gpu))
                        size += 1
                first = next(call for call in step if call["env"]["SLURM_PROCID"] == "0")["env"]
                self.assertEqual(first["HEAD"], first["STUB_HOST"])
                heads.add(f"{first['STUB_HOST']}:{first['PORT']}")
                sizes.append(size)
                if "trtllm" not in question:
                    self.assertEqual(sorted(int(call["env"]["NODE_RANK"]) for call in step), list(range(len(hosts))))
                else:
                    self.assertEqual(len(step), size)
            self.assertEqual(sorted(sizes), sorted(size for n, size in engines_of(question) for _ in range(n)))
            self.assertEqual(len(heads), len(steps))
            self.assertLess(nodes * hosts_of(question) - len(taken), hosts_of(question) * len(engines_of(question)))
            if fronts:
                self.assertEqual(fronts, heads)
            for front in heads - fronts if not fronts else ():
                self.assertIn(front, done.stdout)
        self.each(check)

    def test_what_a_prediction_sets_is_said(self):
        """Flags carry the values that were asked for, in each engine's own words."""
        for name, program, words in (
                ("vllm-70b", "vllm", "--tensor-parallel-size 8 --quantization fp8 --gpu-memory-utilization 0.9"),
                ("vllm-shared-host", "vllm", "--kv-cache-dtype fp8 --kv-offloading-size 128"),
                ("vllm-experts", "vllm", "--data-parallel-size 16 --enable-expert-parallel"),
                ("vllm-0.8", "vllm", "--pipeline-parallel-size 2 --max-model-len 8192"),
                ("sglang-prefix", "sglang", "--tp-size 4"),
                ("sglang-old", "sglang", "--tp-size 8 --dp-size 8 --enable-dp-attention"),
                ("trtllm-oss", "trtllm-serve", "--tp_size 4 --ep_size 4 --max_batch_size 256")):
            with self.subTest(name):
                script = (self.folder / f"{name}.sh").read_text()
                line, = re.findall(rf"^  exec (.*{program}(?:[^\n]*\\\n)*[^\n]*)", script, re.MULTILINE)[:1]
                said = shlex.split(line.replace("\\\n", " "))
                for flag in re.findall(r"--\S+(?: [^-]\S*)?", words):
                    wanted = flag.split()
                    self.assertIn(wanted, [said[i:i + len(wanted)] for i in range(len(said))])

    def test_several_points_write_the_one_that_is_chosen(self):
        question = "--stack vllm --model llama3.1-8b --cluster dgx-h100 --engines 1..4xTP1"
        file = self.folder / "chosen.yaml"
        stderr = self.ask("several", question, "--kubernetes", file, code=2)
        self.assertIn("--kubernetes: found 3 points", stderr)
        self.assertIn("--for LOAD", stderr)
        self.assertFalse(file.exists())
        line = [os.environ["ORRERY_BINARY"], "serve", *question.split(), "--isl", "256", "--osl", "16", "--for", "4/s",
                "--slo", "ttft.p95=2s", "--json", "--quiet", "--kubernetes", str(file)]
        done = subprocess.run(line, capture_output=True, text=True, check=True)
        least = min(point["deployment"]["engines"]["replicas"] for point in json.loads(done.stdout)["points"])
        self.assertEqual(documents_of(file)[0]["spec"]["replicas"], least)

    def test_what_cannot_be_written_is_one_line(self):
        file = self.folder / "none.yaml"
        whole = "--stack trtllm --model llama3.1-8b --cluster dgx-h100 --engines TP1"
        apart = "--stack vllm --model llama3.1-8b --cluster dgx-h100 --prefill TP1 --decode TP1"
        for question, more, part in (
                (whole, ["--kubernetes", file, "--kubernetes-as", "llm-d"], "llm-d serves vLLM and SGLang"),
                (whole, ["--kubernetes", file, "--kubernetes-as", "dynamos"], 'did you mean "dynamo"?'),
                (whole, ["--kubernetes-as", "dynamo"], "--kubernetes FILE beside it"),
                (apart, ["--kubernetes", file, "--kubernetes-as", "deployment"], "prompts and decodes are apart"),
                (whole, ["--commands", "/nowhere/at/all.sh"], "/nowhere/at")):
            with self.subTest(part):
                stderr = self.ask(part, question, *more, code=2)
                self.assertEqual(stderr.count("\n"), 1)
                self.assertIn(part, stderr)
                self.assertFalse(file.exists())

    def test_files_of_one_question_are_the_same_bytes(self):
        name, question, files = self.made[0]
        again = self.folder / "again.sbatch"
        self.ask(name, question, "--slurm", again)
        self.assertEqual(again.read_text(), files["slurm"].read_text())

    def test_sources_of_flags_are_known(self):
        root = HERE.parents[1]
        ids = set(json.loads((root / "hw_models/catalog/sources/serving_launch.json").read_text()))
        for source in self.names.sources:
            self.assertTrue(source in ids or (root / source).is_file(), source)


if __name__ == "__main__":
    unittest.main()
