#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every C++ file is as clang-format leaves it: version 14, since others set other breaks.
# Usage: format_test.sh SOURCE_FOLDER
set -euo pipefail

cd "$1"
tool=$(command -v clang-format-14 || command -v clang-format || true)
if [ -z "$tool" ] || ! "$tool" --version | grep -q ' version 14\.'; then
  echo "format: found ${tool:-no clang-format}; expected version 14: apt-get install clang-format-14" >&2
  exit 1
fi
find sim hw_models topologies workloads tests -name '*.cpp' -o -name '*.h' | sort |
  xargs -n 40 -P "$(nproc)" "$tool" --dry-run -Werror
