#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The tables of recipes are written as the catalogue spells things, and equal rows once; what
predictions read is what the tables say.

Usage: recipes_test.py ROOT
"""
import collections
import csv
import pathlib
import shutil
import subprocess
import sys
import tempfile

root = pathlib.Path(sys.argv[1])
folder = root / "workloads/catalog/recipes"
sys.dont_write_bytecode = True
sys.path.insert(0, str(folder))
import generate  # noqa: E402

failures = []


def expect(found, wanted, what):
    if found != wanted:
        failures.append(f"{what}: found {found!r}; expected {wanted!r}")


class Recorder(collections.defaultdict):
    """A row that knows which columns were read."""

    def __init__(self):
        super().__init__(str)


recorder = Recorder()
for read_value in generate.SETTINGS.values():
    read_value(recorder)
for scope in ("selective", "full", "policy"):
    recorder["recompute"] = scope
    generate.recompute(recorder)
BASE = {**dict.fromkeys(recorder, ""), "ce_impl": "", "recompute_method": "", "recompute_layers": "",
        "source": "1", "program": "Megatron-Bridge", "release": "v0.4.1", "model": "llama3_8b",
        "task": "pretrain", "device": "GB200", "precision": "MXFP8", "variant": "", "gpus": "8",
        "gbs": "128", "dp": "8", "seq": "8192", "notes": "", "offload_layers": "",
        "offload_modules": "", "graph_scope": "", "peft_targets": "", "recompute": "selective",
        "recompute_modules": "layernorm+moe_act", "graph_impl": "transformer_engine", "tp": "1",
        "pp_layout": "embedding+decoder*4|decoder*4|decoder*4|decoder+mtp+loss"}
ROWS = [
    BASE,
    {**BASE, "source": "2", "release": "v0.4.2"},  # the same release of the stack sets the same
    {**BASE, "gpus": "16", "gbs": "256"},
    {**BASE, "device": "R100"},
    {**BASE, "source": "3", "program": "DGX Cloud / Megatron-Bridge",
     "release": "v26.06.00;v26.06.01", "tp": "-1", "graph_impl": "none"},
]
SOURCES = [("1", "Megatron-Bridge", "v0.4.1", "2026-05-06", "owner/name", "a1"),
           ("2", "Megatron-Bridge", "v0.4.2", "2026-05-28", "owner/name", "b2"),
           ("3", "DGX Cloud / Megatron-Bridge", "v26.06.00", "2026-07-01", "owner/other", "c3")]
DEFAULTS = [{"program": "Megatron-Core", "releases": "all", "setting": "hidden_dropout",
             "default": "0.1", "repo": "owner/core", "tag": "v1", "path": "a/b.py:12-14 (f)"}]


def write(path, rows):
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def read(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


with tempfile.TemporaryDirectory() as scratch:
    scratch = pathlib.Path(scratch)
    for script in ("generate.py", "spellings.py"):
        shutil.copy(folder / script, scratch)
    given = scratch / "given"
    given.mkdir()
    write(given / "recipes.csv", ROWS)
    names = ("source", "program", "release", "date", "repo", "commit")
    write(given / "sources.csv", [{**dict(zip(names, s)), "path": "x/launch.sh",
                                   "base_path": "y/base.py", "base_commit": "d4"}
                                  for s in SOURCES])
    write(given / "defaults.csv", DEFAULTS)
    subprocess.run([sys.executable, "-B", scratch / "generate.py", given, root.resolve()],
                   check=True, capture_output=True)
    recipes, sources = read(scratch / "recipes.csv"), read(scratch / "sources.csv")
    settings = read(scratch / "settings.csv")
    expect([(r["model"], r["device"], r["precision"], r["gpus"], r["global_batch"])
            for r in recipes],
           [("llama3-8b", "gb200", "mxfp8", "8;16", "128;256"),
            ("llama3-8b", "gb200", "mxfp8", "8", "128")], "recipes")
    expect([(s["stack"], s["releases"], s["address"], s["base_address"]) for s in sources],
           [("nemo", "26.04.01", "https://github.com/owner/name/blob/a1/x/launch.sh",
             "https://github.com/NVIDIA-NeMo/Megatron-Bridge/blob/d4/y/base.py"),
            ("nemo", "26.06;26.06.01", "https://github.com/owner/other/blob/c3/x/launch.sh",
             "https://github.com/NVIDIA-NeMo/Megatron-Bridge/blob/d4/y/base.py")], "sources")
    expect([(s["tp"], s["recompute"], s["graphs"], s["stages"]) for s in settings],
           [("1", "moe_act,layernorm", "layers", "Et*4|(t*4|)*2tmL"),
            ("", "moe_act,layernorm", "none", "Et*4|(t*4|)*2tmL")], "settings")
    expect([(d["setting"], d["default"], d["address"]) for d in read(scratch / "defaults.csv")],
           [("hidden_dropout", "0.1", "https://github.com/owner/core/blob/v1/a/b.py#L12")],
           "defaults")
    expect([(m["model"], m["moe"]) for m in read(scratch / "models.csv")], [("llama3-8b", "0")],
           "models")

checked = subprocess.run([sys.executable, "-B", folder / "facts.py", "--check"], check=False,
                         capture_output=True, text=True)
expect((checked.returncode, checked.stderr), (0, ""), "nemo.json of these tables")

for failure in failures:
    print(failure, file=sys.stderr)
print(f"{len(failures)} failures")
sys.exit(1 if failures else 0)
