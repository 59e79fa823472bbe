#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What is committed stands where it belongs: the top level holds what README names and nothing else,
# and no file is larger than a table that a person may read. Traces are as published.
# Usage: top_level_test.sh SOURCE_FOLDER
set -euo pipefail

cd "$1"
most_bytes=1000000
known=' sim hw_models topologies workloads validation tests notebooks docs CMakeLists.txt CMakePresets.json
ARCHITECTURE.md CHANGELOG.md CONTRIBUTING.md LICENSE NOTICE README.md THIRD_PARTY.md pyproject.toml orrery '
known=${known//$'\n'/ }

# A folder that is no checkout (an archive) is looked at as it lies, but for what a build leaves.
files() {
  if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
    git ls-files -z
  else
    find . \( -path './build*' -o -path './.?*' \) -prune -o -type f -printf '%P\0'
  fi
}

failures=0
complain() {
  echo "top level: $1" >&2
  failures=$((failures + 1))
}
while IFS= read -r name; do
  case $name in
    .*) ;;
    *) [[ $known == *" $name "* ]] || complain "$name is not one of:$known" ;;
  esac
done < <(files | tr '\0' '\n' | cut -d/ -f1 | sort -u)
while read -r size file; do
  [[ $file == workloads/catalog/traces/*.jsonl || $file == workloads/catalog/job_traces/*.csv ]] && continue
  [ "$size" -le "$most_bytes" ] || complain "$file is larger than $most_bytes bytes"
done < <(files | xargs -0 stat -c '%s %n' 2>/dev/null)
echo "$failures complaints"
[ "$failures" -eq 0 ]
