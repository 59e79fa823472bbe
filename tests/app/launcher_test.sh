#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The launcher with stand-ins for cmake, ninja, ctest, dpkg-query and the binary: passes arguments on,
# from any folder, through links and blanks in paths, builds only what is stale, takes its build down
# with it, and says in one line what it cannot do.
# Usage: launcher_test.sh LAUNCHER
set -euo pipefail

scratch=$(mktemp -d)
trap 'chmod -R u+w "$scratch"; rm -rf "$scratch"' EXIT
chmod 755 "$scratch"
tree="$scratch/a tree"
mkdir -p "$tree"/{sim,hw_models,topologies,workloads} "$scratch/tools" "$scratch/elsewhere"
cp "$1" "$tree/orrery"
touch -d '2000-01-01' "$tree/CMakeLists.txt" "$tree/sim/a.cpp"

cat >"$scratch/tools/cmake" <<TOOL
#!/usr/bin/env bash
echo "\$*" >>"$scratch/cmake.log"
TOOL
cat >"$scratch/tools/ninja" <<TOOL
#!/usr/bin/env bash
echo "\$*" >>"$scratch/ninja.log"
[ -e "$scratch/broken" ] && { echo "a.cpp:1: error"; exit 1; }
if [ -e "$scratch/slow" ]; then
  echo half >"$tree/build/orrery"; chmod +x "$tree/build/orrery"
  sleep 61 & echo \$\$ \$! >"$scratch/pids"; wait
fi
printf '#!/usr/bin/env bash\nprintf "[%%s]" "\$@"\npwd\n' >"$tree/build/orrery"
chmod +x "$tree/build/orrery"
TOOL
cat >"$scratch/tools/ctest" <<TOOL
#!/usr/bin/env bash
echo "\$*" >>"$scratch/ctest.log"
while [ \$# -gt 1 ]; do [ "\$1" = -O ] && log=\$2; shift; done
printf 'running\n100%% tests passed, 0 tests failed out of 1\n\nTotal Test time (real) = 1 sec\n' |
  tee "\${log:-/dev/null}"
[ ! -e "$scratch/red" ]
TOOL
printf '#!/usr/bin/env bash\necho installed\n' >"$scratch/tools/dpkg-query"
chmod +x "$scratch/tools/"*
export PATH="$scratch/tools:$PATH"

fail() { echo "launcher: $*" >&2; exit 1; }
expect() { [ "$1" = "$2" ] || fail "found '$1', expected '$2'"; }
builds() { wc -l <"$scratch/ninja.log"; }
# Runs a command without the right to write, root or not; its exit code goes to $code.
as_other() {
  local drop=()
  [ "$(id -u)" -eq 0 ] && drop=(setpriv --reuid 65534 --regid 65534 --clear-groups)
  code=0
  "${drop[@]}" "$@" >out 2>err || code=$?
}
one_line() {
  expect "$(wc -l <err)" 1
  grep -q "$1" err || fail "found '$(cat err)', expected '$1' in it"
}
gone() {
  local pid pids
  read -ra pids <"$scratch/pids"
  [ "$1" = KILL ] && pids=("${pids[0]}") # ninja ends its own children; the stand-in does not
  for _ in $(seq 50); do
    for pid in "${pids[@]}"; do
      if kill -0 "$pid" 2>/dev/null && [ "$(ps -o stat= -p "$pid" | cut -c1)" != Z ]; then
        sleep 0.1
        continue 2
      fi
    done
    return 0
  done
  fail "$1: the build goes on"
}

cd "$scratch/elsewhere"
chmod 777 .

# Without a build, and without the right to make one.
chmod a-w "$tree"
as_other "$tree/orrery" one
chmod u+w "$tree"
expect "$code" 4
one_line 'found no binary'

# Help builds nothing.
grep -q 'label system' <<<"$("$tree/orrery" test --help)" || fail "no help of test"
[ ! -e "$tree/build" ] || fail "the help of test built something"

expect "$("$tree/orrery" one 'two three' '' 2>/dev/null)" "[one][two three][]$PWD"
expect "$(builds)" 1
ln -s "$tree/orrery" link
expect "$(./link --x=1 2>&1)" "[--x=1]$PWD"
expect "$(builds)" 1
touch -d 'now + 1 minute' "$tree/sim/a.cpp"

# A newer source in a checkout that is read-only, or another user's: the binary as it is, with a note.
chmod -R a-w "$tree"
as_other "$tree/orrery" here
chmod -R u+w "$tree"
expect "$code" 0
expect "$(cat out)" "[here]$PWD"
one_line 'sources are newer'
as_other "$tree/orrery" test
[ "$(id -u)" -ne 0 ] || { expect "$code" 4; one_line 'a checkout of your own'; }

"$tree/orrery" again >/dev/null 2>&1
[ "$(builds)" -ge 2 ] || fail "a newer source did not build again"

# A build that fails shows the compiler's words and keeps the old binary from running.
touch -d 'now + 2 minutes' "$tree/sim/a.cpp"
touch "$scratch/broken"
code=0
"$tree/orrery" again >out 2>err || code=$?
expect "$code" 4
expect "$(cat out)" ""
grep -q 'a.cpp:1: error' err || fail "a failed build did not show the compiler's words"
rm "$scratch/broken"

# A build ends with its launcher, and what a killed one left is not run.
for signal in INT TERM KILL; do
  touch "$scratch/slow"
  touch -d 'now + 3 minutes' "$tree/sim/a.cpp"
  rm -f "$scratch/pids"
  # A shell starts what is in its background deaf to Ctrl-C.
  env --default-signal=INT setsid "$tree/orrery" slow >out 2>err &
  launcher=$!
  for _ in $(seq 100); do [ -s "$scratch/pids" ] && break; sleep 0.1; done
  [ -s "$scratch/pids" ] || fail "no build to kill"
  kill "-$signal" "$launcher"
  code=0
  wait "$launcher" 2>/dev/null || code=$?
  case "$signal" in INT) expect "$code" 130 ;; TERM) expect "$code" 143 ;; esac
  gone "$signal"
  [ "$signal" = KILL ] && kill -TERM "$(cut -d' ' -f2 "$scratch/pids")"
  rm "$scratch/slow"
  touch "$tree/build/orrery" -d 'now + 4 minutes'
  chmod -R a-w "$tree"
  as_other "$tree/orrery" half
  chmod -R u+w "$tree"
  expect "$code" 4
  one_line 'found no binary'
  expect "$("$tree/orrery" whole 2>/dev/null)" "[whole]$PWD"
done

# The tests run by label; how long each took comes before the runner's own closing lines.
"$tree/orrery" test >out 2>err
grep -q -- '-L ^core' "$scratch/ctest.log" || fail "no label core"
grep -q -- '-L ^system' "$scratch/ctest.log" || fail "no label system"
grep -q 'core 0.0 minutes, system 0.0 minutes' out || fail "no minutes"
expect "$(tail -n 1 out)" 'Total Test time (real) = 1 sec'
touch "$scratch/red"
code=0
"$tree/orrery" test -L law >out 2>err || code=$?
expect "$code" 1
grep -q -- '-L law' "$scratch/ctest.log" || fail "flags of ctest are not passed on"
