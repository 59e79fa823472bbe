#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The measuring script with stand-ins for nvcc, nvidia-smi and python3: what it runs, keeps, skips
# and says, without a GPU. Usage: measure_test.sh MEASURE
set -uo pipefail

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
kit="$scratch/a kit"
mkdir -p "$kit" "$scratch/tools" "$scratch/elsewhere"
cp "$1" "$kit/measure"
for program in gemm memory rows launch link collectives overlap; do : >"$kit/$program.cu"; done
: >"$kit/attention.py"

# nvcc leaves a program that writes its name, its flags and one sample, or does what a file says.
cat >"$scratch/tools/nvcc" <<TOOL
#!/usr/bin/env bash
echo "\$*" >>"$scratch/nvcc.log"
while [ \$# -gt 0 ]; do
  case "\$1" in -o) target=\$2; shift ;; *.cu) name=\$(basename "\$1" .cu) ;; esac
  shift
done
[ -e "$scratch/\$name.no-build" ] && { echo "\$name.cu(1): error"; exit 1; }
cat >"\$target" <<PROGRAM
#!/usr/bin/env bash
echo "\$name \\\$*" >>"$scratch/runs.log"
echo '{"record":"conditions","program":"'\$name'","device":"NVIDIA H200"}'
[ -e "$scratch/\$name.sleeps" ] && { touch "$scratch/\$name.started"; sleep 60; }
[ -e "$scratch/\$name.fails" ] && { echo "wrong result" >&2; exit 3; }
echo '{"record":"sample","part":"'\$name'"}'
PROGRAM
chmod +x "\$target"
TOOL
cat >"$scratch/tools/nvidia-smi" <<TOOL
#!/usr/bin/env bash
case "\$*" in
  *compute_cap*) cat "$scratch/compute_cap" ;;
  *name*) cat "$scratch/name" ;;
  *--list-gpus*) cat "$scratch/list" ;;
esac
TOOL
cat >"$scratch/tools/python3" <<TOOL
#!/usr/bin/env bash
case "\$*" in
  *"import torch"*) [ -e "$scratch/torch" ] ;;
  *"import nvidia"*) echo "$scratch/packages/nvidia" ;;
  *) echo "attention \${*:2}" >>"$scratch/runs.log"; echo '{"record":"conditions","device":"NVIDIA H200"}' ;;
esac
TOOL
chmod +x "$scratch/tools/"*
unset CUDA_VISIBLE_DEVICES MEASURE_ARCH CUDA_HOME
export PATH="$scratch/tools:$PATH"
echo 9.0 >"$scratch/compute_cap"
echo "NVIDIA H200" >"$scratch/name"
echo "GPU 0: NVIDIA H200 (UUID: GPU-0)" >"$scratch/list"
# Libraries as Python's packages bring them: the version in the name.
mkdir -p "$scratch/packages/nvidia/"{cu13,nccl}/{include,lib}
touch "$scratch/packages/nvidia/cu13/include/"{cublasLt,cublas_v2}.h \
  "$scratch/packages/nvidia/cu13/lib/libcublas"{,Lt}.so.13 \
  "$scratch/packages/nvidia/nccl/include/nccl.h" "$scratch/packages/nvidia/nccl/lib/libnccl.so.2"

fail() {
  echo "measure: $*" >&2
  cat "$scratch/err" >&2 2>/dev/null
  exit 1
}
code=0
measure() { # leaves the exit code in `code`, stderr in err
  (cd "$scratch/elsewhere" && "$kit/measure" "$@") >"$scratch/out" 2>"$scratch/err"
  code=$?
}
expect_code() { [ "$code" -eq "$1" ] || fail "found exit code $code, expected $1: $2"; }
expect_said() { grep -qF -- "$1" "$scratch/err" || fail "it did not say '$1'"; }
runs() { sed 's/ *$//' "$scratch/runs.log" 2>/dev/null | paste -sd ','; }
results="$scratch/elsewhere/results"

# All parts: those that cannot run say why, the rest leave a file; the folder has the GPU's name.
measure
expect_code 0 "every part that can run does"
[ -s "$scratch/elsewhere/measured-h200-$(date +%F)/gemm.jsonl" ] || fail "no gemm.jsonl"
expect_said "attention is skipped: python3 has no PyTorch"
expect_said "collectives is skipped: it needs 2 GPUs, this host offers 1"
expect_said "decode is skipped: decode.cu is not here"
expect_said "part 5 of 5: link"
[ "$(runs)" = "gemm,memory,rows,launch,link --gpus 1" ] || fail "it ran $(runs)"
grep -q 'compute_90a,code=sm_90a' "$scratch/nvcc.log" || fail "not built for the GPU"
grep -q -- '-l:libcublasLt' "$scratch/nvcc.log" || fail "cuBLAS is not linked"

# Only the part asked, with its flags; PyTorch's where there is one.
rm -f "$scratch/"{runs,nvcc}.log
touch "$scratch/torch"
measure --output results --part memory --part attention --quick
expect_code 0 "two parts"
[ "$(runs)" = "memory --quick,attention --quick" ] || fail "it ran $(runs)"
[ "$(wc -l <"$scratch/nvcc.log")" -eq 1 ] || fail "it built more than was asked"
measure --output results --part memory
expect_code 2 "a quick sample is no result"
expect_said "holds a quick sample"

# A failing part is told at the end and the others go on; the next call goes on from there.
rm -rf "$scratch/runs.log" "$results"
touch "$scratch/memory.fails" "$scratch/rows.no-build"
measure --output results --part memory --part gemm --part rows
expect_code 1 "a part failed"
expect_said "memory: exit code 3"
expect_said "wrong result"
expect_said "rows: nvcc could not build it"
[ -e "$results/gemm.jsonl" ] || fail "a failing part held up another"
[ ! -e "$results/memory.jsonl" ] || fail "a failed part has results"
rm "$scratch/memory.fails" "$scratch/rows.no-build" "$scratch/runs.log"
measure --output results --part memory --part gemm --part rows
expect_code 0 "the rest"
expect_said "gemm has its results"
[ "$(runs)" = "memory,rows" ] || fail "it ran $(runs)"
measure --output results --part gemm --again
[ "$(runs)" = "memory,rows,gemm" ] || fail "--again did not run again"

# A part that does not end is stopped.
touch "$scratch/launch.sleeps"
MEASURE_SECONDS=1 measure --output results --part launch
expect_code 1 "too slow"
expect_said "launch failed: not done after 1 s"

# Ctrl-C: what is finished stays, nothing goes on running.
rm -rf "$results" "$scratch/launch.started"
cd "$scratch/elsewhere" || exit 1
setsid "$kit/measure" --output results --part gemm --part launch 2>"$scratch/err" &
script=$!
for _ in $(seq 100); do
  [ -e "$scratch/launch.started" ] && break
  sleep 0.1
done
kill -TERM "$script"
wait "$script"
code=$?
expect_code 130 "stopped by hand"
expect_said "finished parts are kept"
[ -e "$results/gemm.jsonl" ] || fail "Ctrl-C took a finished part"
[ ! -e "$results/launch.jsonl" ] || fail "Ctrl-C left half a part as a result"
rm "$scratch/launch.sleeps"

# Several GPUs: the parts that need them, with their number.
rm -f "$scratch/runs.log"
echo "GPU 1: NVIDIA H200 (UUID: GPU-1)" >>"$scratch/list"
measure --output results --part collectives --part overlap
expect_code 0 "two GPUs"
[ "$(runs)" = "collectives --gpus 2,overlap --gpus 2" ] || fail "it ran $(runs)"
measure --gpus 3
expect_code 2 "more GPUs than there are"
expect_said "expected at most the 2 GPUs"

# One clear message where nothing can be measured.
measure --part gem
expect_code 2 "an unknown part"
expect_said 'found "gem", expected one of gemm memory'
measure --speed
expect_code 2 "an unknown flag"
echo "NVIDIA B200" >"$scratch/name"
measure --output results
expect_code 2 "another GPU's folder"
expect_said 'holds results of "NVIDIA H200"'
: >"$scratch/name"
: >"$scratch/list"
: >"$scratch/compute_cap"
measure
expect_code 2 "no GPU"
expect_said "found no GPU"
[ "$(wc -l <"$scratch/err")" -eq 1 ] || fail "more than one line"

# Without a GPU the programs still build, for the architecture named.
rm -f "$scratch/nvcc.log"
MEASURE_ARCH=sm_100a measure --build --part gemm --output built
expect_code 0 "a build needs no GPU"
grep -q 'code=sm_100a' "$scratch/nvcc.log" || fail "not built for the architecture named"
