# SPDX-License-Identifier: Apache-2.0
"""What serving_manifests_test.py holds manifests and commands by: schemas, flags of programs, stand-ins of them."""
import json
import pathlib
import sys

import jsonschema
import kubernetes_validate
import yaml

HERE = pathlib.Path(__file__).parent
KUBERNETES = "1.37"
# Programs on PATH that write down how they were called.
RECORD = """#!{python}
import json, os, sys, tempfile
names = ("CUDA_VISIBLE_DEVICES", "NODE_RANK", "HEAD", "PORT", "STUB_HOST", "STUB_STEP", "SLURM_PROCID")
words = [os.path.basename(sys.argv[0]), *sys.argv[1:]]
files = {{w: open(w).read() for w in words if os.path.isfile(w) and "/tmp" in w}}
with tempfile.NamedTemporaryFile("w", dir=os.environ["STUB_LOG"], delete=False) as out:
    json.dump({{"words": words, "files": files, "env": {{n: os.environ[n] for n in names if n in os.environ}}}}, out)
"""
# Slurm's own: every task of a step on its host, which sees all GPUs of it in the step's order.
SRUN = """#!{python}
import os, subprocess, sys, uuid
flags, words = [], sys.argv[1:]
while words[0].startswith("--"):
    flags.append(words.pop(0))
flags = dict(flag[2:].partition("=")[::2] for flag in flags)
tasks = int(flags.get("ntasks-per-node", 1))
hosts = flags["nodelist"].split(",")
assert len(hosts) == int(flags["nodes"]), flags
step = uuid.uuid4().hex
for rank in range(tasks * len(hosts)):
    env = dict(os.environ, SLURM_PROCID=str(rank), STUB_HOST=hosts[rank // tasks], STUB_STEP=step)
    env["CUDA_VISIBLE_DEVICES"] = ",".join(map(str, range(int(flags.get("gpus-per-node", 0)))))
    subprocess.run(words, env=env, check=True)
"""
SCONTROL = """#!/bin/sh
seq -f node-%g 0 "$((SLURM_JOB_NUM_NODES - 1))"
"""
LAUNCHERS = {"trtllm-llmapi-launch", "mpirun"}


def documents_of(file):
    return list(yaml.safe_load_all(file.read_text()))


class Schemas:
    """Schemas of custom kinds, closed: what they do not name is an error."""

    def __init__(self):
        self.all, self.left_out = {}, []
        for file in sorted((HERE / "crds").glob("*.yaml")):
            crd, = documents_of(file)
            for version in crd["spec"]["versions"]:
                name = (f"{crd['spec']['group']}/{version['name']}", crd["spec"]["names"]["kind"])
                self.all[name] = self.closed(version["schema"]["openAPIV3Schema"])

    def closed(self, schema):
        if "x-left-out" in schema:
            return schema
        schema = dict(schema)
        if "properties" in schema:
            schema["properties"] = {key: self.closed(one) for key, one in schema["properties"].items()}
            if not schema.get("x-kubernetes-preserve-unknown-fields") and "additionalProperties" not in schema:
                schema["additionalProperties"] = False
        if isinstance(schema.get("additionalProperties"), dict):
            schema["additionalProperties"] = self.closed(schema["additionalProperties"])
        if "items" in schema:
            schema["items"] = self.closed(schema["items"])
        return schema

    # Templates of pods, which an excerpt leaves to Kubernetes' own schema, and lists that are maps.
    def walk(self, schema, value):
        if schema.get("x-left-out") == "PodTemplateSpec":
            kubernetes_validate.validate({"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": "x"},
                                          "template": value}, KUBERNETES, strict=True)
        elif isinstance(value, dict):
            for key, one in value.items():
                self.walk(schema.get("properties", {}).get(key, {}), one)
        elif isinstance(value, list):
            keys = schema.get("x-kubernetes-list-map-keys")
            if keys and len({tuple(one.get(k) for k in keys) for one in value}) < len(value):
                raise jsonschema.ValidationError(f"two of a list have the same {keys}")
            for one in value:
                self.walk(schema.get("items", {}), one)

    def check(self, document):
        schema = self.all.get((document["apiVersion"], document["kind"]))
        if schema is None:
            kubernetes_validate.validate(document, KUBERNETES, strict=True)
            return
        jsonschema.Draft202012Validator(schema).validate(document)
        # A ConfigMap stands in for its metadata, of which a definition says nothing.
        kubernetes_validate.validate({"apiVersion": "v1", "kind": "ConfigMap", "metadata": document["metadata"]},
                                     KUBERNETES, strict=True)
        self.walk(schema, document)


class Names:
    """Flags that programs know."""

    def __init__(self):
        data = json.loads((HERE / "serving_flags.json").read_text())
        self.all = {one["program"]: set(one["names"]) for one in data["programs"]}
        self.sources = {source for one in data["programs"] for source in one["sources"]}

    def known(self, words, question):
        """The flags of a program, and the words behind those that start it."""
        line = " ".join(words[:4])
        release = "0.4" if "sglang@0.4" in question else "0.5"
        sglang = self.all[f"sglang.launch_server {release}"]
        for start, flags in (
                ("vllm serve", self.all["vllm serve"]), ("trtllm-serve disaggregated", None),
                ("python3 -m vllm.entrypoints.openai.api_server", self.all["vllm serve"]),
                ("python3 -m sglang.launch_server", sglang), ("python3 -m sglang_router.launch_router", None),
                ("python3 -m dynamo.frontend", None),
                ("python3 -m dynamo.vllm", self.all["dynamo.vllm"] | self.all["vllm serve"]),
                ("python3 -m dynamo.sglang", self.all["dynamo.sglang"] | sglang),
                ("python3 -m dynamo.trtllm", None), ("trtllm-serve", None)):
            if line.startswith(start):
                name = start.removeprefix("python3 -m ")
                return self.all[name] if flags is None else flags
        raise AssertionError(f"no list of flags for {words[:4]}")


def flags_in(words):
    """Flags by name, with their values: one, many or none."""
    flags, name = {}, None
    for word in words:
        if word.startswith("--"):
            name, _, value = word.partition("=")
            flags[name] = [value] if value else []
        elif name:
            flags[name].append(word)
    return flags


def keys_in(tree, before=""):
    for key, value in tree.items():
        if isinstance(value, dict):
            yield from keys_in(value, f"{before}{key}.")
        else:
            yield before + key


def stand_ins(folder):
    """Puts programs that write down how they were called into a new folder."""
    folder.mkdir()
    bodies = {"srun": SRUN, "scontrol": SCONTROL}
    for name in ("srun", "scontrol", "vllm", "python3", "trtllm-serve", *LAUNCHERS):
        (folder / name).write_text(bodies.get(name, RECORD).format(python=sys.executable))
        (folder / name).chmod(0o755)
