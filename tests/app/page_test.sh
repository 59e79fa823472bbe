#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The page of validation is whole in a browser: what a browser builds from it has every table and
# picture, and something is drawn. Fails without Chromium: a page that nobody looked at is not tested.
# Usage: page_test.sh BINARY SOURCE_FOLDER
set -euo pipefail

browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
fail() { echo "page: $*" >&2; exit 1; }
[ -n "$browser" ] ||
  fail "found no Chromium; expected one: apt-get install chromium, or ./orrery test, which does it"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
browse() {
  timeout 120 "$browser" --headless --no-sandbox --disable-gpu --hide-scrollbars \
    --user-data-dir="$scratch/profile" "$@" "file://$scratch/page.html" 2>"$scratch/log"
}
count() { grep -o "$1" "$2" | wc -l; }

training="$2/validation/measurements/training"
"$1" validate --quiet --html "$scratch/page.html" "$training/h200.csv" "$training/simumax.csv" \
  "$training/vtrain-multi.csv"
page="$scratch/page.html"
browse --dump-dom >"$scratch/dom"
for part in '<svg' '<table' '<tr' '<circle' '<h2' '<pre'; do
  [ "$(count "$part" "$page")" -gt 0 ] || fail "no $part"
  [ "$(count "$part" "$page")" -eq "$(count "$part" "$scratch/dom")" ] ||
    fail "the browser has $(count "$part" "$scratch/dom") $part of $(count "$part" "$page")"
done
if grep -qiE 'console.*error|ERR_' "$scratch/log"; then fail "$(cat "$scratch/log")"; fi

browse --window-size=1280,1600 --screenshot="$scratch/page.png" >/dev/null
# A blank page of this size compresses to a few kilobytes.
[ "$(stat -c %s "$scratch/page.png")" -gt 40000 ] || fail "nothing is drawn"
echo "page: $(count '<svg' "$page") pictures, $(count '<tr' "$page") table rows"
