# SPDX-License-Identifier: Apache-2.0
"""Launch scripts of real models: shells, linters and schemas take them, and they start what was predicted.

Needs ORRERY_BINARY, Debian's shellcheck and, from tests/python/requirements.txt, kubernetes-validate and hydra-core.
`generate(binary, folder)` writes all scripts for other tests.
"""
import ast
import dataclasses
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import tomllib
import unittest

import yaml
from hydra.core.override_parser.overrides_parser import OverridesParser

# Name, command, question. Programs, machines of several kinds, hosts in part, racks, models of many shapes.
QUESTIONS = [
    ("megatron-405b", "advise", "--stack megatron-core --model llama3.1-405b --cluster dgx-h100 --gpus 1024 "
     "--seq 8192 --global-batch 512"),
    ("megatron-deepseek", "simulate", "--stack megatron-core --model deepseek-v3 --cluster gb200-nvl72 --gpus 576 "
     "--seq 4096 --global-batch 2304 --pp 9 --ep 64 --recompute full"),
    ("megatron-oss", "simulate", "--stack megatron-core --model gpt-oss-20b --cluster dgx-h100 --gpus 16 --seq 4096 "
     "--global-batch 64 --ep 8 --pp 2"),
    ("megatron-hybrid", "simulate", "--stack megatron-core --model nemotron-h-8b --cluster dgx-h100 --gpus 16 "
     "--seq 4096 --global-batch 64 --tp 2"),
    ("megatron-old", "simulate", "--stack megatron-core@0.12 --model gpt3-175b --cluster dgx-a100 --gpus 64 "
     "--seq 2048 --global-batch 64 --tp 8 --pp 8"),
    ("megatron-rocm", "simulate", "--stack megatron-lm-rocm --model llama3-8b --cluster mi300x-8 --gpus 16 "
     "--seq 4096 --global-batch 64 --tp 2"),
    ("megatron-part", "simulate", "--stack megatron-core --model llama3.2-1b --cluster dgx-h100 --gpus 4 --seq 4096 "
     "--global-batch 16"),
    ("megatron-uneven", "simulate", "--stack megatron-core --model llama3.2-1b --cluster dgx-h100 --gpus 16 "
     "--seq 4096 --global-batch 64 --per-domain 6"),
    ("bridge-deepseek", "advise", "--stack nemo --model deepseek-v3 --cluster gb200-nvl72 --gpus 576 --seq 4096 "
     "--global-batch 4608"),
    ("bridge-uneven", "simulate", "--stack nemo --model llama3.1-405b --cluster dgx-b200 --gpus 512 --seq 8192 "
     "--global-batch 256 --tp 8 --pp 16 --recompute full"),
    ("bridge-lora", "simulate", "--stack nemo --model llama3-70b --cluster dgx-h100 --gpus 16 --seq 4096 "
     "--global-batch 32 --task lora --tp 4 --pp 2"),
    ("nemo2-70b", "simulate", "--stack nemo@25.05 --model llama3-70b --cluster dgx-h100 --gpus 64 --seq 8192 "
     "--global-batch 128 --tp 4 --pp 4 --precision fp8-current"),
    ("titan-70b", "advise", "--stack pytorch-fsdp2 --model llama3-70b --cluster dgx-h100 --gpus 256 --seq 8192 "
     "--global-batch 512"),
    ("titan-pipeline", "simulate", "--stack pytorch-fsdp2@0.1 --model llama3-70b --cluster h100-4-ndr --gpus 64 "
     "--seq 4096 --global-batch 256 --tp 4 --pp 4 --recompute full"),
    ("deepspeed-8b", "simulate", "--stack deepspeed-zero --model llama3-8b --cluster dgx-h100 --gpus 64 --seq 8192 "
     "--global-batch 128 --zero 3"),
    ("deepspeed-l40s", "simulate", "--stack deepspeed-zero --model llama3.2-1b --cluster l40s-8 --gpus 16 --seq 2048 "
     "--global-batch 32"),
    ("maxtext-70b", "advise", "--stack maxtext --model llama3-70b --cluster dgx-h100 --gpus 256 --seq 8192 "
     "--global-batch 512"),
    ("maxtext-experts", "simulate", "--stack maxtext --model mixtral-8x7b --cluster dgx-h100 --gpus 64 --seq 4096 "
     "--global-batch 128 --ep 8 --zero 3 --recompute full"),
    ("maxtext-pod", "simulate", "--stack maxtext --model qwen3-32b --cluster tpu-v5p --gpus 128 --seq 4096 "
     "--global-batch 128 --zero 3 --recompute full"),
]
NO_SLURM = {"maxtext-pod"}

# Values with blanks and signs of the shell: what is quoted badly comes out in pieces.
VALUE = "/a path/it's $HOME *"
WORDS = ["--note", 'a b  $(false) "c"', "it's"]

# Commands of a node: each writes down what it was called with.
RECORD = """#!{python}
import json, os, sys
out = os.path.join(os.environ["STUB_LOG"], f"{{len(os.listdir(os.environ['STUB_LOG'])):04}}.json")
json.dump({{"name": os.path.basename(sys.argv[0]), "words": sys.argv[1:], "env": dict(os.environ)}}, open(out, "w"))
"""
# Runs the command on the first two nodes and on the last.
SRUN = """#!{python}
import os, subprocess, sys
words = sys.argv[1:]
nodes = next(int(w.split("=")[1]) for w in words if w.startswith("--nodes="))
while words[0].startswith("--"):
    words.pop(0)
for node in sorted({{0, 1, nodes - 1}} & set(range(nodes))):
    subprocess.run(words, check=True, env={{**os.environ, "SLURM_NODEID": str(node)}})
"""
SCONTROL = """#!{python}
import os, sys
assert sys.argv[1:3] == ["show", "hostnames"], sys.argv
print("\\n".join(f"node-{{i}}" for i in range(int(os.environ["SLURM_JOB_NUM_NODES"]))))
"""


@dataclasses.dataclass
class Scripts:
    """Of one question: its answer, and what was written."""
    name: str
    answer: dict
    slurm: pathlib.Path | None
    kubernetes: pathlib.Path

    @property
    def layout(self):
        return self.answer["layout"] if "layout" in self.answer else self.answer["best"][0]["layout"]

    @property
    def flags(self):
        return self.answer["reasons"]["launch"]["flags"]

    @property
    def ranks(self):
        l = self.layout
        return l["tp"] * l["pp"] * l["cp"] * l["dp"]


def generate(binary, folder):
    """Writes the scripts of all questions into the folder, and returns them."""
    made = []
    for name, command, question in QUESTIONS:
        slurm = None if name in NO_SLURM else pathlib.Path(folder) / f"{name}.sbatch"
        kubernetes = pathlib.Path(folder) / f"{name}.yaml"
        line = [binary, command, *question.split(), "--json", "--kubernetes", kubernetes]
        if slurm:
            line += ["--slurm", slurm]
        done = subprocess.run(list(map(str, line)), capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise AssertionError(f"{name}: exit code {done.returncode}: {done.stderr}")
        made.append(Scripts(name, json.loads(done.stdout), slurm, kubernetes))
    return made


def needs(script):
    """Variables that a script requires: all, and those of data."""
    every = re.findall(r'^ *: "\$\{([A-Z_]+):\?', script, re.MULTILINE)
    data = re.findall(r'^ +: "\$\{([A-Z_]+):\?', script.partition("!= 1 ]")[2].partition("\nfi")[0], re.MULTILINE)
    return every, data


def values_of(script, **others):
    return {**{name: "20" if name == "TRAIN_STEPS" else VALUE for name in needs(script)[0]}, **others}


def number(text):
    try:
        return float(text)
    except ValueError:
        return text


class Stubs:
    """A folder of commands that stand in for a node's own, and what they were called with."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.commands = self.folder / "bin"
        self.commands.mkdir()
        bodies = {"srun": SRUN, "scontrol": SCONTROL, "getent": "#!/bin/sh\nexit 0\n"}
        for name in ("srun", "scontrol", "torchrun", "python3", "sbatch", "getent"):
            file = self.commands / name
            file.write_text(bodies.get(name, RECORD).format(python=sys.executable))
            file.chmod(0o755)

    def run(self, script, words=(), **env):
        """Runs a script, and returns its result and the calls of what it started."""
        log = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
        work = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
        done = subprocess.run(["bash", str(script), *words], capture_output=True, text=True, check=False, cwd=work,
                              env={"PATH": f"{self.commands}:/usr/bin:/bin", "HOME": "/nowhere",
                                   "STUB_LOG": str(log), **env})
        return done, [json.loads(file.read_text()) for file in sorted(log.iterdir())]


class LaunchScripts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="orrery-launch-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.made = generate(os.environ["ORRERY_BINARY"], cls.folder)
        cls.stubs = Stubs(tempfile.mkdtemp(dir=cls.folder))

    def each(self, check, slurm=False):
        """Checks all scripts, or those for Slurm; one that fails stops no other."""
        for scripts in self.made:
            if slurm and not scripts.slurm:
                continue
            with self.subTest(scripts.name):
                check(scripts)

    def pod_script(self, scripts):
        documents = list(yaml.safe_load_all(scripts.kubernetes.read_text()))
        file = self.folder / f"{scripts.name}-start.sh"
        file.write_text(documents[0]["data"]["start.sh"])
        return documents, file

    # What a tool says of all files; it must be silent.
    def quiet(self, command, files):
        if not shutil.which(command[0]):
            self.fail(f"{command[0]} is not installed: Debian's shellcheck, or tests/python/requirements.txt")
        for file in files:
            with self.subTest(file.name):
                done = subprocess.run([*command, str(file)], capture_output=True, text=True, check=False)
                self.assertEqual((done.returncode, done.stdout if command[0] == "shellcheck" else ""), (0, ""),
                                 done.stdout + done.stderr)

    def test_shells_and_linters_take_them(self):
        files = [s.slurm for s in self.made if s.slurm] + [self.pod_script(s)[1] for s in self.made]
        self.quiet(["bash", "-n"], files)
        self.quiet(["shellcheck", "--shell=bash"], files)

    def test_schemas_of_kubernetes_take_them(self):
        validate = pathlib.Path(sys.executable).parent / "kubernetes-validate"
        self.quiet([str(validate), "--strict", "--quiet"], [s.kubernetes for s in self.made])

    def check_calls(self, scripts, calls, host, hosts):
        """Calls of all ranks' starter: together they start each rank of the layout once."""
        accelerators = {"gb200-nvl72": 4, "h100-4-ndr": 4, "tpu-v5p": 4}.get(scripts.answer["cluster"], 8)
        numbers, ranks = [], {}
        for call in calls:
            self.assertEqual(call["env"]["MASTER_ADDR"], host)
            words, env = call["words"], call["env"]
            if call["name"] == "torchrun":
                options = dict(zip(words[0:12:2], words[1:12:2]))
                self.assertEqual(int(options["--nnodes"]), hosts)
                self.assertEqual(options["--rdzv-backend"], "static")
                self.assertEqual(options["--rdzv-endpoint"], f"{host}:{env['MASTER_PORT']}")
                number = int(options["--node-rank"])
                ranks[number] = int(options["--nproc-per-node"])
            else:
                self.assertEqual(int(env["NNODES"]), hosts)
                self.assertEqual(f"{env['JAX_COORDINATOR_IP']}:{env['JAX_COORDINATOR_PORT']}",
                                 f"{host}:{env['MASTER_PORT']}")
                number = int(env["NODE_RANK"])
                ranks[number] = accelerators
            numbers.append(number)
        self.assertEqual(numbers, sorted({0, 1, hosts - 1} & set(range(hosts))))
        self.assertLessEqual(max(ranks.values()), accelerators)
        self.assertEqual((hosts - 1) * ranks[0] + ranks[hosts - 1], scripts.ranks)

    def check_settings(self, scripts, call, file=None):
        """What is started is told every flag of the layout, whole, and the user's words behind it."""
        words = call["words"]
        self.assertEqual(words[-len(WORDS):], WORDS)
        language = scripts.answer["reasons"]["launch"]["language"]
        told = {flag["name"]: flag["value"] for flag in scripts.flags}
        if language == "sh" and "--tensor-model-parallel-size" in told:
            for flag in scripts.flags:
                item = shlex.split(f"{flag['name']} {flag['value']}")
                self.assertTrue(any(words[i:i + len(item)] == item for i in range(len(words))), item)
            for name in ("--num-layers", "--hidden-size", "--normalization", "--lr", "--train-iters"):
                self.assertIn(name, words)
        elif language == "sh":
            # As the program reads them.
            overrides = OverridesParser.create().parse_overrides([w for w in words if re.match(r"[\w.]+=", w)])
            read = {o.key_or_group: o.value() for o in overrides}
            for flag in scripts.flags:
                value, = shlex.split(flag["value"]) or [""]
                values = {"true": True, "false": False, "null": None}
                if value.startswith("["):
                    self.assertEqual(read[flag["name"]], value[1:-1].split(","))
                else:
                    self.assertIn(read[flag["name"]], (values.get(value, value), number(value)), flag)
            self.assertEqual(str(read["train.train_iters"]), "20")
        elif language == "yaml":  # MaxText
            settings = dict(word.split("=", 1) for word in words if "=" in word)
            size = 1
            for name in [n for n in settings if n.startswith(("ici_", "dcn_"))]:
                size *= int(settings[name])
            self.assertEqual(size, scripts.ranks)
            for flag in scripts.flags:
                if not flag["name"].startswith("ici_"):
                    self.assertEqual(settings[flag["name"]], flag["value"])
                elif "dcn_" + flag["name"][4:] in settings:
                    both = int(settings[flag["name"]]) * int(settings["dcn_" + flag["name"][4:]])
                    self.assertEqual(both, int(flag["value"]))
        else:
            self.check_file(language, told, file)

    def check_file(self, language, told, text):
        if language == "python":
            lines = {ast.unparse(node) for node in ast.parse(text).body}
            for name, value in told.items():
                self.assertIn(ast.unparse(ast.parse(f"{name} = {value}").body[0]), lines)
            return
        tree = {"toml": tomllib.loads, "json": json.loads}[language](text)
        for name, value in told.items():
            at = tree
            for key in name.split("."):
                at = at[key]
            self.assertEqual(at, json.loads(value))

    def job_of(self, scripts, script):
        hosts = int(re.search(r"#SBATCH --nodes=(\d+)", script).group(1))
        return hosts, {"SLURM_JOB_ID": "4242", "SLURM_JOB_NUM_NODES": str(hosts), "SLURM_JOB_NODELIST": "node-[0-9]"}

    def test_slurm_starts_every_rank_once_with_the_settings_of_its_layout(self):
        def check(scripts):
            script = scripts.slurm.read_text()
            hosts, job = self.job_of(scripts, script)
            done, calls = self.stubs.run(scripts.slurm, WORDS, **job, **values_of(script))
            self.assertEqual(done.returncode, 0, done.stderr)
            self.check_calls(scripts, calls, "node-0", hosts)
            self.assertTrue(all(call["env"]["MASTER_PORT"] == "24242" for call in calls))
            for setting in scripts.answer["reasons"]["launch"]["environment"]:
                name, value = setting.split("=", 1)
                self.assertEqual(calls[0]["env"][name], value)
            for call in calls:
                file = next((w for w in call["words"] if "-4242-layout." in w), None)
                self.check_settings(scripts, call, pathlib.Path(file).read_text() if file else None)
            if scripts.answer["reasons"]["launch"]["language"] != "python":  # it reads the environment
                self.assertTrue(any(VALUE in word for word in calls[0]["words"]))

        self.each(check, slurm=True)

    def test_a_missing_value_is_named_and_nothing_is_started(self):
        def check(scripts):
            script = scripts.slurm.read_text()
            _, job = self.job_of(scripts, script)
            names, data = needs(script)
            self.assertGreaterEqual(len(names), 1)
            for name in names:
                given = values_of(script)
                del given[name]
                done, calls = self.stubs.run(scripts.slurm, **job, **given)
                self.assertNotEqual(done.returncode, 0)
                self.assertIn(f"{name}: set {name} to ", done.stderr)
                self.assertEqual(calls, [])
            if data:
                given = {name: VALUE for name in names if name not in data}
                done, calls = self.stubs.run(scripts.slurm, **job, **given, MOCK_DATA="1")
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertGreaterEqual(len(calls), 1)

        self.each(check, slurm=True)

    def test_outside_of_a_job_the_script_submits_itself(self):
        def check(scripts):
            done, calls = self.stubs.run(scripts.slurm, WORDS, **values_of(scripts.slurm.read_text()))
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual([(c["name"], c["words"]) for c in calls], [("sbatch", [str(scripts.slurm), *WORDS])])

        self.each(check, slurm=True)

    def test_another_number_of_nodes_is_refused(self):
        scripts = self.made[0]
        script = scripts.slurm.read_text()
        _, job = self.job_of(scripts, script)
        done, calls = self.stubs.run(scripts.slurm, **{**job, "SLURM_JOB_NUM_NODES": "3"}, **values_of(script))
        self.assertEqual((done.returncode, calls), (2, []))
        self.assertIn("128 nodes, the job has 3", done.stderr)

    def test_a_container_gets_its_image_and_its_mounts(self):
        scripts = self.made[0]
        script = scripts.slurm.read_text()
        _, job = self.job_of(scripts, script)
        srun = self.stubs.commands / "srun"
        kept = srun.read_text()
        srun.write_text(RECORD.format(python=sys.executable))
        try:
            done, calls = self.stubs.run(scripts.slurm, **job, **values_of(
                script, CONTAINER_IMAGE="/images/a b.sqsh", CONTAINER_MOUNTS="/x:/y", RUN_DIR=str(self.folder)))
        finally:
            srun.write_text(kept)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("--container-image=/images/a b.sqsh", calls[0]["words"])
        self.assertIn(f"--container-mounts={self.folder}:{self.folder},/x:/y", calls[0]["words"])

    def test_pods_start_every_rank_once_with_the_settings_of_their_layout(self):
        def check(scripts):
            documents, file = self.pod_script(scripts)
            self.assertEqual([d["kind"] for d in documents], ["ConfigMap", "Service", "Job"])
            config, service, job = documents
            pod = job["spec"]["template"]
            name = service["metadata"]["name"]
            self.assertEqual(pod["spec"]["subdomain"], name)
            self.assertEqual(service["spec"]["selector"].items() - pod["metadata"]["labels"].items(), set())
            self.assertEqual(pod["spec"]["volumes"][0]["configMap"]["name"], config["metadata"]["name"])
            hosts = job["spec"]["completions"]
            self.assertEqual(job["spec"]["parallelism"], hosts)
            container, = pod["spec"]["containers"]
            script = file.read_text()
            named = {e["name"] for e in container["env"]}
            self.assertEqual(set(needs(script)[0]) - named, set())
            calls = []
            for index in sorted({0, 1, hosts - 1} & set(range(hosts))):
                done, one = self.stubs.run(file, WORDS, JOB_COMPLETION_INDEX=str(index), **values_of(
                    script, RUN_DIR=str(self.folder / "run dir")))
                self.assertEqual(done.returncode, 0, done.stderr)
                calls += one
            self.check_calls(scripts, calls, f"{name}-0.{name}", hosts)
            files = {key: text for key, text in config["data"].items() if key.startswith("layout.")}
            for call in calls:
                key = next((k for k in files if f"/orrery/{k}" in call["words"]), None)
                self.check_settings(scripts, call, files.get(key))

        self.each(check)

    def test_pods_ask_for_whole_hosts(self):
        asked = {}
        def check(scripts):
            _, _, job = self.pod_script(scripts)[0]
            limits = job["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]
            asked[scripts.name] = limits

        self.each(check)
        self.assertEqual(asked["megatron-405b"], {"nvidia.com/gpu": 8})
        self.assertEqual(asked["bridge-deepseek"], {"nvidia.com/gpu": 4})
        self.assertEqual(asked["megatron-rocm"], {"amd.com/gpu": 8})
        self.assertEqual(asked["maxtext-pod"], {"google.com/tpu": 4})

    def test_shapes_are_those_of_the_models(self):
        def words_of(name):
            scripts = next(s for s in self.made if s.name == name)
            script = scripts.slurm.read_text()
            _, job = self.job_of(scripts, script)
            return self.stubs.run(scripts.slurm, **job, **values_of(script))[1][0]["words"]

        def value(words, flag):
            return words[words.index(flag) + 1]

        llama = words_of("megatron-405b")
        self.assertEqual([value(llama, f) for f in ("--num-layers", "--hidden-size", "--ffn-hidden-size",
                                                    "--num-attention-heads", "--num-query-groups")],
                         ["126", "16384", "53248", "128", "8"])
        deepseek = words_of("megatron-deepseek")
        self.assertEqual(value(deepseek, "--moe-layer-freq"), "([0]*3+[1]*58)")
        self.assertEqual(value(deepseek, "--num-experts"), "256")
        self.assertIn("--multi-latent-attention", deepseek)
        self.assertTrue(words_of("megatron-hybrid")[12].endswith("/pretrain_mamba.py"))
        self.assertIn("base_moe_mlp_dim=14336", words_of("maxtext-experts"))

    def refused(self, line, said, code):
        file = self.folder / "refused.sbatch"
        done = subprocess.run([os.environ["ORRERY_BINARY"], *line.split(), "--slurm", str(file)],
                              capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stdout), (code, ""), done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertIn(said, done.stderr)
        self.assertFalse(file.exists())

    def test_where_there_is_nothing_to_start_one_error_says_so(self):
        job = "--model llama3-8b --gpus 8 --seq 4096 --global-batch 64"
        self.refused(f"advise {job} --cluster dgx-h100,dgx-h200", "several clusters", 2)
        self.refused(f"advise {job} --cluster dgx-h100 --stack nanotron", "started by nanotron", 2)
        self.refused(f"simulate {job} --cluster dgx-h100 --stack transformers", "no public program", 2)
        self.refused(f"simulate {job} --cluster tpu-v5p --stack maxtext --zero 3", "no generic resource of Slurm", 2)
        self.refused("simulate --model llama3-8b --cluster dgx-h100 --gpus 8 --tp 8 --phase decode --batch 8 "
                     "--context 4096", "phase decode", 2)
        self.refused("simulate --model llama3.1-405b --cluster dgx-h100 --gpus 8 --tp 8 --seq 8192 --global-batch 64",
                     "GiB", 3)
        self.refused("advise --model llama3.1-405b --cluster dgx-h100 --gpus 8 --seq 8192 --global-batch 64",
                     "no layout that fits", 3)


if __name__ == "__main__":
    unittest.main()
