#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Prints how long 10,000 different questions take in one process, with and without ranges.
# Usage: speed.sh BINARY [COUNT]
set -euo pipefail

binary=${1:?the binary}
count=${2:-10000}
here=$(dirname "$(readlink -f "$0")")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
python3 "$here/generate.py" "$count" >"$scratch/in.jsonl"
TIMEFORMAT='%R s, %U s of processors'
for ranges in true false; do
  printf '%s questions, --ranges %s, %s cores: ' "$count" "$ranges" "$(nproc)"
  time "$binary" simulate --jsonl "$scratch/in.jsonl" --ranges "$ranges" >"$scratch/out.jsonl"
  [ "$(wc -l <"$scratch/out.jsonl")" -eq "$count" ] || { echo "lines are missing" >&2; exit 1; }
  errors=$(grep -c '^{"error"' "$scratch/out.jsonl" || true)
  echo "  of them errors: $errors"
done
