#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# An installed binary works from its own catalogues, wherever it is called from.
# Usage: install_test.sh CMAKE BUILD_FOLDER SOURCE_FOLDER
set -euo pipefail

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"$1" --install "$2" --prefix "$scratch/a prefix" >"$scratch/log"
binary="$scratch/a prefix/bin/orrery"
data="$scratch/a prefix/share/orrery"

fail() { echo "install: $*" >&2; exit 1; }
clean() { (cd "$scratch" && env -i HOME="$scratch" PATH=/usr/bin:/bin "$@"); }

# Every catalogue, calibration and measurement of the source tree is there, but for runs with faults.
while read -r file; do
  [ -e "$data/$file" ] || fail "$file is not installed"
done < <(cd "$3" && find hw_models topologies workloads sim/engine/catalog sim/diagnose/catalog \
  validation -path validation/faults -prune -o \( -name '*.json' -o -name '*.jsonl' \
  -o -path 'validation/measurements/*.csv' -o -path 'workloads/*.csv' \) -print)

for schema in "$3"/docs/schema/*.json; do
  [ -e "$data/schema/${schema##*/}" ] || fail "${schema##*/} is not installed"
done

clean "$binary" simulate --model llama3-8b --cluster dgx-h100 --gpus 8 --tp 2 --seq 4096 \
  --global-batch 64 | grep 'tokens/s/GPU' >/dev/null || fail "simulate says nothing"
clean "$binary" catalog show accelerator h200-sxm | grep Sources >/dev/null || fail "no catalogue"
clean "$binary" catalog show stack nemo --recipe llama3-8b | grep 'Read at' >/dev/null || fail "no recipes"

# It reads its own catalogues, not those of the source tree that it was built from.
cp "$data/workloads/catalog/models/llama3-8b.json" \
  "$data/workloads/catalog/models/only-installed.json"
clean "$binary" catalog list model --names | grep -x only-installed >/dev/null || fail "it reads another catalogue"
ln -s "$binary" "$scratch/link"
clean "$scratch/link" catalog list model --names | grep -x only-installed >/dev/null || fail "not through a link"

# Manual pages and completions are where shells look for them.
share="$scratch/a prefix/share"
for file in man/man1/orrery.1 man/man1/orrery-advise.1 bash-completion/completions/orrery \
  zsh/site-functions/_orrery; do
  [ -s "$share/$file" ] || fail "$file is not installed"
done

# The measuring script is there with its programs, and says what it lacks where there is no GPU.
clean "$binary" calibrate measure --list | grep gemm >/dev/null || fail "no measuring script"
[ -e "$data/validation/microbench/gemm.cu" ] || fail "no microbenchmarks"
code=0
clean "$binary" calibrate measure --part gemm --output "$scratch/measured" 2>"$scratch/err" || code=$?
if ! command -v nvidia-smi >/dev/null; then
  [ "$code" -eq 2 ] || fail "without a GPU: exit code $code, expected 2"
  grep -q 'found no nvidia-smi' "$scratch/err" || fail "it does not say that there is no GPU"
fi
