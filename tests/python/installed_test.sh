#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The package as a wheel holds it works by itself: its own catalogues, nothing but numpy, the command line.
# Usage: installed_test.sh CMAKE BUILD_FOLDER PYTHON BINARY
set -euo pipefail

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"$1" --install "$2" --component python --prefix "$scratch/site" >"$scratch/log"
python=$3 binary=$4
fail() { echo "python-installed: $*" >&2; exit 1; }
run() { (cd "$scratch" && env -i HOME="$scratch" PATH=/usr/bin:/bin PYTHONPATH="$scratch/site" "$python" "$@"); }

[ "$(ls "$scratch/site")" = orrery ] || fail "it installs more than the package: $(ls "$scratch/site")"
[ -e "$scratch/site/orrery/py.typed" ] || fail "it is not marked as typed"
du -sh "$scratch/site/orrery" | sed 's/\t.*/ in all/'

job=(--model llama3-8b --cluster dgx-h100 --gpus 16 --seq 4096 --global-batch 64)
"$binary" simulate "${job[@]}" --json >"$scratch/binary.json"
run -m orrery simulate "${job[@]}" --json >"$scratch/module.json" || fail "python -m orrery fails"
cmp "$scratch/binary.json" "$scratch/module.json" || fail "python -m orrery says something else"
code=0
run -m orrery simulate --model no-such 2>"$scratch/err" || code=$?
[ "$code" -eq 2 ] || fail "bad input: exit code $code, expected 2"

cp "$scratch/site/orrery/data/workloads/catalog/models/llama3-8b.json" \
  "$scratch/site/orrery/data/workloads/catalog/models/only-installed.json"
run - <<'PYTHON' || fail "the package is not by itself"
import sys

import orrery

names = [entry["name"] for entry in orrery.catalog.list("model")]
assert "only-installed" in names, "it reads another catalogue"
others = {"pandas", "polars", "pyarrow", "duckdb", "tqdm", "altair", "dask", "distributed"}
foreign = {name.split(".")[0] for name in sys.modules} & others
assert not foreign, f"import orrery imports {foreign}"
assert orrery.validate(nested=True).to_dict()["sets"], "no measurements"
PYTHON
echo "the package works by itself"
