#!/usr/bin/env bash
# The launcher with stand-ins for cmake, dpkg-query and the binary: passes arguments on, from any
# folder, through links and blanks in paths, and builds only what is stale.
# Usage: launcher_test.sh LAUNCHER
set -euo pipefail

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
tree="$scratch/a tree"
mkdir -p "$tree"/{sim,hw_models,topologies,workloads} "$scratch/tools" "$scratch/elsewhere"
cp "$1" "$tree/orrery"
touch -d '2000-01-01' "$tree/CMakeLists.txt" "$tree/sim/a.cpp"

cat >"$scratch/tools/cmake" <<TOOL
#!/usr/bin/env bash
echo "\$*" >>"$scratch/cmake.log"
[ -e "$scratch/broken" ] && { echo "a.cpp:1: error"; exit 1; }
mkdir -p "$tree/build"
printf '#!/usr/bin/env bash\nprintf "[%%s]" "\$@"\npwd\n' >"$tree/build/orrery"
chmod +x "$tree/build/orrery"
TOOL
printf '#!/usr/bin/env bash\necho installed\n' >"$scratch/tools/dpkg-query"
chmod +x "$scratch/tools/"*
export PATH="$scratch/tools:$PATH"

fail() { echo "launcher: $*" >&2; exit 1; }
expect() { [ "$1" = "$2" ] || fail "found '$1', expected '$2'"; }

cd "$scratch/elsewhere"
expect "$("$tree/orrery" one 'two three' '' 2>/dev/null)" "[one][two three][]$PWD"
[ "$(wc -l <"$scratch/cmake.log")" -eq 2 ] || fail "the first call configures and builds"
ln -s "$tree/orrery" link
expect "$(./link --x=1 2>&1)" "[--x=1]$PWD"
[ "$(wc -l <"$scratch/cmake.log")" -eq 2 ] || fail "a second call built again"
touch -d 'now + 1 minute' "$tree/sim/a.cpp"
"$tree/orrery" again >/dev/null 2>&1
[ "$(wc -l <"$scratch/cmake.log")" -eq 4 ] || fail "a newer source did not build again"
touch "$scratch/broken"
if "$tree/orrery" again >out 2>err; then fail "a failed build ran the old binary"; fi
expect "$(cat out)" ""
grep -q 'a.cpp:1: error' err || fail "a failed build did not show the compiler's words"
