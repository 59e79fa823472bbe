#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes THIRD_PARTY.md from the licences of sources and tables, or checks that it is as written.

Usage: third_party.py ROOT [--write]
"""
import collections
import json
import pathlib
import sys

# Libraries, their licence, and where they are used.
LIBRARIES = [
    ("Boost (Asio, Beast, Container, Graph, Math)", "BSL-1.0", "https://www.boost.org", "binary"),
    ("CLI11", "BSD-3-Clause", "https://github.com/CLIUtils/CLI11", "binary"),
    ("Eigen", "MPL-2.0", "https://eigen.tuxfamily.org", "binary"),
    ("fmt", "MIT", "https://github.com/fmtlib/fmt", "binary"),
    ("nlohmann/json", "MIT", "https://github.com/nlohmann/json", "binary"),
    ("Protocol Buffers", "BSD-3-Clause", "https://protobuf.dev", "binary"),
    ("simdjson", "Apache-2.0", "https://simdjson.org", "binary"),
    ("SQLite", "blessing", "https://sqlite.org", "binary"),
    ("toml++", "MIT", "https://marzer.github.io/tomlplusplus", "binary"),
    ("yaml-cpp", "MIT", "https://github.com/jbeder/yaml-cpp", "binary"),
    ("zlib", "Zlib", "https://zlib.net", "binary"),
    ("oneTBB", "Apache-2.0", "https://github.com/uxlfoundation/oneTBB", "binary"),
    ("nanobind", "BSD-3-Clause", "https://github.com/wjakob/nanobind", "Python extension"),
    ("robin-map (in nanobind)", "MIT", "https://github.com/Tessil/robin-map", "Python extension"),
    ("Altair", "BSD-3-Clause", "https://github.com/vega/altair", "charts in Python, if installed"),
    ("Dask", "BSD-3-Clause", "https://www.dask.org", "sweeps over machines, if installed"),
    ("Apache Arrow", "Apache-2.0", "https://arrow.apache.org", "sweeps over machines, if installed"),
    ("Ray", "Apache-2.0", "https://www.ray.io", "an example, tests"),
    ("vl-convert", "BSD-3-Clause", "https://github.com/vega/vl-convert", "charts as files, if installed"),
    ("Vega, Vega-Lite, vega-embed (in vl-convert)", "BSD-3-Clause", "https://vega.github.io", "pages with charts"),
    ("D3 and TopoJSON modules (in vl-convert)", "ISC", "https://d3js.org", "pages with charts"),
    ("Playwright", "Apache-2.0", "https://playwright.dev/python", "tests"),
    ("axe-core (in axe-playwright-python)", "MPL-2.0", "https://github.com/dequelabs/axe-core", "tests"),
    ("NVIDIA's CUDA compiler and cuBLAS", "LicenseRef-NVIDIA-End-User-License-Agreement", "https://developer.nvidia.com/cuda-toolkit",
     "tests, where the machine has none"),
    ("Hydra", "MIT", "https://hydra.cc", "tests"),
    ("jsonschema", "MIT", "https://github.com/python-jsonschema/jsonschema", "tests"),
    ("kubernetes-validate", "Apache-2.0", "https://github.com/willthames/kubernetes-validate", "tests"),
    ("PyYAML", "MIT", "https://pyyaml.org", "tests"),
    ("Catch2", "BSL-1.0", "https://github.com/catchorg/Catch2", "tests"),
    ("Google Benchmark", "Apache-2.0", "https://github.com/google/benchmark", "benchmarks"),
    ("RapidCheck", "BSD-2-Clause", "https://github.com/emil-e/rapidcheck", "tests"),
]
SPDX = {"Apache-2.0", "MIT", "BSD-3-Clause", "CC-BY-4.0", "CC-BY-SA-4.0"}
LICENCES = SPDX | {"facts only", "terms unknown"}

root = pathlib.Path(sys.argv[1])
failures = []


def fail(text):
    failures.append(text)


def sources():
    """Sources of the catalogues by id; one that two files hold counts once."""
    known = {}
    for file in sorted((root / "hw_models/catalog/sources").glob("*.json")):
        for name, entry in json.loads(file.read_text()).items():
            known[name] = entry
    return known


def tables():
    """Tables of measurements by the path that covers them; every table is covered."""
    folder = root / "validation/measurements"
    known = json.loads((folder / "sources.json").read_text())
    used = set()
    for file in sorted(folder.rglob("*")):
        if file.suffix not in (".csv", ".jsonl"):
            continue
        path = file.relative_to(folder).as_posix()
        covering = [p for p in known if path == p or path.startswith(p + "/")]
        if not covering:
            fail(f"validation/measurements/sources.json: nothing says where {path} comes from")
        used.add(max(covering, key=len, default=""))
    for path in known.keys() - used:
        fail(f"validation/measurements/sources.json: {path} covers no table")
    return known


def text_of(known_sources, known_tables):
    lines = [
        "# What others made", "",
        "`tests/documents/third_party.py . --write` writes this page from `hw_models/catalog/sources` and",
        "`validation/measurements/sources.json`; a test holds it to them. The project's own work is under the Apache",
        "License 2.0 (`LICENSE`).", "",
        "## Libraries", "",
        "They are installed from the system's packages and from PyPI; none is copied into this repository.", "",
        "| library | licence | used in |", "|---|---|---|",
    ]
    lines += [f"| [{name}]({address}) | {licence} | {where} |"
              for name, licence, address, where in LIBRARIES]
    lines += ["", "## Tables of measurements", "",
              "\"facts only\": single figures, each with its address, and none of the texts around them. \"terms unknown\":",
              "the owner published them without naming terms.", "",
              "| `validation/measurements/` | from | licence |", "|---|---|---|"]
    for path, entry in known_tables.items():
        title = entry["title"]
        if entry["address"]:
            title = f"[{title}]({entry['address']})"
        lines.append(f"| `{path}` | {title} | {entry['licence']} |")
    notes = [entry["note"] for entry in known_tables.values() if "note" in entry]
    for note in notes:
        lines += ["", note]
    lines += ["", "## Sources of the catalogues", ""]
    count = collections.Counter(entry["licence"] for entry in known_sources.values())
    lines += ["Of " + ", ".join(f"{n} {licence}" for licence, n in sorted(count.items())) +
              f" sources ({len(known_sources)} in all) those under a licence, or whose terms are not known:", "",
              "| source | title | licence |", "|---|---|---|"]
    for name, entry in sorted(known_sources.items()):
        if entry["licence"] == "facts only" or name.startswith("orrery-") or not entry["address"]:
            continue
        lines.append(f"| [{name}]({entry['address']}) | {entry['title']} | {entry['licence']} |")
    lines += ["", "Models' shapes in `workloads/catalog/models` and in `tests/workloads/configs` are files of our own with the",
              "numbers of published config.json files: facts only."]
    return "\n".join(lines) + "\n"


known_sources, known_tables = sources(), tables()
for where, known in (("hw_models/catalog/sources", known_sources),
                     ("validation/measurements/sources.json", known_tables)):
    for name, entry in known.items():
        if entry.get("licence") not in LICENCES:
            fail(f"{where}: {name}: licence: found {entry.get('licence')!r}; expected one of "
                 f"{', '.join(sorted(LICENCES))}")
notice = (root / "NOTICE").read_text()
for name, licence, _, where in LIBRARIES:
    if where == "binary" and f"{name} ({licence})" not in notice:
        fail(f"NOTICE: {name} ({licence}) is linked into the binary and not named")
if not failures:
    page = root / "THIRD_PARTY.md"
    text = text_of(known_sources, known_tables)
    if "--write" in sys.argv[2:]:
        page.write_text(text)
    elif not page.exists() or page.read_text() != text:
        fail("THIRD_PARTY.md is not what its sources say: tests/documents/third_party.py . --write")
for failure in failures:
    print(failure, file=sys.stderr)
print(f"{len(failures)} failures")
sys.exit(1 if failures else 0)
