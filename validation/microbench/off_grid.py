# SPDX-License-Identifier: Apache-2.0
# Asks what a product costs when one of its extents is off the 16-byte grid, in all three layouts.
"""bf16 and FP8 products through PyTorch, which calls cuBLASLt: forward x w^T, input gradient dy w
and weight gradient dy^T x, as autograd does. m, n, k are those of the product: the tokens are m, m
and k. FP8 products exist with both operands along k only; which extents may be off the grid at all
is a line of its own.
"""
import warnings

import torch

from bench import Bench, relative_error

warnings.filterwarnings("ignore")
OFFSETS = [0, 1, -1, 2, -2, 4, -4, 8, 16]
MOST_CHECKED = 2048


def cases(quick):
    """(m, n, k) on the grid, then with one extent moved off it, then with several."""
    bases = [(2048, 2048, 2048)] if quick else [
        (8192, 8192, 8192), (4096, 4096, 4096), (2048, 2048, 2048), (1024, 1024, 1024),
        (8192, 4096, 14336), (4096, 14336, 4096), (8192, 1024, 4096), (512, 4096, 4096),
        (64, 4096, 4096)]
    found = []
    for base in bases:
        found.append(base)
        for axis in (0, 1, 2):
            for offset in OFFSETS[1:4] if quick else OFFSETS[1:]:
                if base[axis] < 512 and offset < 0:
                    continue
                one = list(base)
                one[axis] += offset
                found.append(tuple(one))
        if base[0] == base[1]:
            for offset in (1, 2, 4):
                found += [(base[0] + offset, base[1] + offset, base[2]),
                          (base[0], base[1] + offset, base[2] + offset),
                          (base[0] + offset, base[1], base[2] + offset),
                          (base[0] + offset, base[1] + offset, base[2] + offset)]
    if not quick:
        found += [(4096, 50257, 4096), (4096, 50258, 4096), (4096, 50260, 4096),
                  (4096, 50264, 4096), (4096, 4096, 50257), (50257, 4096, 4096)]
    return found


def factors(bench, role, m, n, k, at):
    """Both operands as autograd has them: rows of activations, weights [out, in]."""
    shapes = {"forward": [(m, k), (n, k)], "input-gradient": [(m, k), (k, n)],
              "weight-gradient": [(k, m), (k, n)]}[role]
    a = bench.random(*shapes[0], offset=at)
    b = bench.random(*shapes[1], offset=-(-(at + a.numel()) // 64) * 64)
    if role == "forward":
        return a, b.t()
    return (a, b) if role == "input-gradient" else (a.t(), b)


def product_case(bench, role, case):
    m, n, k = case
    used = -(-(m * k + n * k + 64) // 64) * 64
    count = bench.sets(2 * used)
    sets = [factors(bench, role, m, n, k, i * used) for i in range(count)]
    error = None
    if max(case) <= MOST_CHECKED:
        error = relative_error(sets[0][0] @ sets[0][1], sets[0][0].float() @ sets[0][1].float())
    timing = bench.burst(lambda i: torch.mm(*sets[i % count]), count, burst_ms=4.0)
    bench.sample("gemm", "cublas", "off-grid", timing, input="bf16", output="bf16", role=role,
                 accumulate_fp32=0, m=m, n=n, k=k, error=error)


def fp8_case(bench, case):
    m, n, k = case
    count = bench.sets(m * k + n * k)
    sets = [(bench.random(m, k).to(torch.float8_e4m3fn),
             bench.random(n, k).to(torch.float8_e4m3fn).t()) for _ in range(min(count, 4))]
    one = torch.ones((), device=bench.device)

    def product(i):
        a, b = sets[i % len(sets)]
        return torch._scaled_mm(a, b, scale_a=one, scale_b=one, out_dtype=torch.bfloat16,
                                use_fast_accum=True)
    product(0)
    timing = bench.burst(product, len(sets), burst_ms=4.0)
    bench.sample("gemm", "cublas", "off-grid", timing, input="fp8", output="bf16", role="forward",
                 accumulate_fp32=0, m=m, n=n, k=k)


def fp8_refusals(bench):
    """Which extents an FP8 product takes off the grid: 1 where it runs, 0 where it is refused."""
    one = torch.ones((), device=bench.device)
    for name, axis in (("m", 0), ("n", 1), ("k", 2)):
        for offset in (1, 2, 4, 8):
            case = [1024, 1024, 1024]
            case[axis] += offset
            m, n, k = case
            try:
                torch._scaled_mm(bench.random(m, k).to(torch.float8_e4m3fn),
                                 bench.random(n, k).to(torch.float8_e4m3fn).t(), scale_a=one,
                                 scale_b=one, out_dtype=torch.bfloat16)
                runs = 1
            except RuntimeError as error:
                bench.note(f"fp8 {name} + {offset}: {str(error).splitlines()[0][:120]}")
                runs = 0
            bench.software(f"fp8-off-grid-{name}-{offset}", runs, "runs")


def main():
    bench = Bench("off-grid", 200)
    bench.conditions()
    bench.random(1 << 29)
    bench.attempt("fp8 refusals", lambda: fp8_refusals(bench))
    for case in cases(bench.quick):
        for role in ("forward", "input-gradient", "weight-gradient"):
            bench.attempt(f"{role} {case}", lambda: product_case(bench, role, case))
        if case[1] % 16 == 0 and case[2] % 16 == 0:
            bench.attempt(f"fp8 {case}", lambda: fp8_case(bench, case))
    bench.close()


if __name__ == "__main__":
    main()
