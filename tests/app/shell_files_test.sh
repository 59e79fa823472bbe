#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Manual pages and completions come from the table of commands: pages are set without a complaint,
# and completions offer commands, flags, words, names of the catalogue and files.
# Usage: shell_files_test.sh BINARY
set -euo pipefail

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
fail() { echo "shell files: $*" >&2; exit 1; }
"$1" --shell-files "$scratch"

for page in "$scratch"/man/man1/*.1; do
  complaints=$(groff -man -Tutf8 -P-c -P-b -P-u -ww "$page" 2>&1 >"$scratch/text") ||
    fail "$page is not set: $complaints"
  [ -z "$complaints" ] || fail "$page: $complaints"
  grep -q 'EXIT STATUS' "$scratch/text" || fail "$page tells no exit codes"
done
[ "$(find "$scratch/man" -name 'orrery-*.1' | wc -l)" -ge 7 ] || fail "a command has no page"
grep -q -- '\\-\\-global\\-batch' "$scratch/man/man1/orrery-advise.1" || fail "no flags in a page"

# bash: what is offered after the words of a line, the last one unfinished.
ln -s "$1" "$scratch/orrery"
export PATH="$scratch:$PATH"
# shellcheck disable=SC1091
source "$scratch/bash-completion/completions/orrery"
compopt() { :; } # there is no line that is edited
offered() {
  COMP_WORDS=("$@")
  COMP_CWORD=$(($# - 1))
  _orrery
  printf '%s\n' "${COMPREPLY[@]}"
}
expect() {
  local wanted=$1
  shift
  grep -qx -- "$wanted" <<<"$(offered "$@")" || fail "'$*' does not offer $wanted: $(offered "$@")"
}
refuse() {
  local wanted=$1
  shift
  ! grep -qx -- "$wanted" <<<"$(offered "$@")" || fail "'$*' offers $wanted"
}
expect simulate orrery si
expect --global-batch orrery advise --glo
refuse --phase orrery advise --ph
expect --phase orrery simulate --ph
expect llama3-8b orrery simulate --model llama3
expect dgx-h100 orrery simulate --json --cluster dgx
expect 1f1b orrery simulate --tp 2 --schedule ''
expect time orrery advise --objective ''
expect true orrery advise --sequence-parallel ''
expect check orrery catalog ''
expect cluster orrery catalog list cl
expect h100-sxm orrery catalog show accelerator h100
expect dgx-h100 orrery topology dgx
cd "$scratch"
echo '{}' >job.json
expect job.json orrery simulate job
expect job.json orrery simulate --tp 2 job

command -v zsh >/dev/null || fail "found no zsh; expected one: apt-get install zsh"
zsh -n "$scratch/zsh/site-functions/_orrery" || fail "zsh does not read its completion"
zsh -f -c 'fpath=("$0/zsh/site-functions" $fpath); autoload -U compinit; compinit -u -d "$0/dump"
  [[ ${_comps[orrery]} == _orrery ]]' "$scratch" || fail "zsh does not find its completion"
