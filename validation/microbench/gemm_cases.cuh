// Knows which matrix products are measured: a fixed list, the same on every device.
#pragma once

#include "product.cuh"

namespace bench {

inline constexpr double largest_flop = 8e12;  // of one product: some 12 ms
inline constexpr std::int64_t extents[] = {1,    2,    4,    8,    16,   24,   32,   48,
                                           64,   96,   128,  192,  256,  320,  512,  768,
                                           1024, 1536, 2048, 3072, 4096, 6144, 8192, 16384};
inline constexpr int extent_count = 24;
inline constexpr int bf16_extents = 9;  // of them, for each family
static_assert(std::size(extents) == extent_count);

struct Weight {
  std::int64_t n, k;
};

// Linear layers as [out, in]: fused query-key-value, attention output, gate and up, down.
inline constexpr Weight model_weights[] = {
    // Llama 3 8B whole and in 2, 4, 8 shards
    {6144, 4096},
    {4096, 4096},
    {28672, 4096},
    {4096, 14336},
    {3072, 4096},
    {4096, 2048},
    {14336, 4096},
    {4096, 7168},
    {1536, 4096},
    {7168, 4096},
    {4096, 3584},
    {768, 4096},
    {4096, 512},
    {3584, 4096},
    {4096, 1792},
    // Llama 3 70B
    {10240, 8192},
    {8192, 8192},
    {57344, 8192},
    {8192, 28672},
    {5120, 8192},
    {14336, 8192},
    {8192, 7168},
    {1280, 8192},
    {8192, 1024},
    {7168, 8192},
    {8192, 3584},
    // Llama 3 405B
    {18432, 16384},
    {106496, 16384},
    {16384, 53248},
    {2304, 16384},
    {16384, 2048},
    {13312, 16384},
    {16384, 6656},
    // Qwen 2.5 7B and 32B
    {4608, 3584},
    {37888, 3584},
    {3584, 18944},
    {7168, 5120},
    {55296, 5120},
    {5120, 27648},
    // DeepSeek V3: latent projections, dense and shared-expert layers
    {1536, 7168},
    {24576, 1536},
    {576, 7168},
    {32768, 512},
    {7168, 16384},
    {36864, 7168},
    {7168, 18432},
    {4096, 7168},
    {7168, 2048},
    // GPT 3
    {36864, 12288},
    {12288, 12288},
    {12288, 49152},
    // Vocabularies
    {32000, 4096},
    {128256, 4096},
    {128256, 8192},
    // Just past the edges of tiles
    {4160, 4096},
    {8200, 4096},
    {4096, 8200},
    {2056, 2056},
    {16512, 2048}};

// Those and drawn ones: neither extent nor ratio is that of a model.
inline std::vector<Weight> weights() {
  std::vector<Weight> all(std::begin(model_weights), std::end(model_weights));
  for (std::uint64_t draw = 0; all.size() < std::size(model_weights) + 16; ++draw) {
    const std::int64_t steps[] = {8, 64, 128};
    const auto extent = [&](std::uint64_t which) {
      const double u = static_cast<double>(mix(2 * draw + which) % 10000) / 1e4;
      const std::int64_t step = steps[mix(777 + draw) % 3];
      return std::llround(256 * std::exp2(7 * u)) / step * step;
    };
    const Weight w{extent(0), extent(1)};
    if (w.n * w.k >= 1 << 20 && w.n * w.k <= 1 << 28) all.push_back(w);
  }
  return all;
}

struct Case {
  Product product;
  const char* role = "forward";
  const char* variant = "";
};

// Of the 24 extents, `count` for each family, other ones for the next family.
inline bool picked(std::size_t family, int extent, int count) {
  return (static_cast<std::size_t>(extent) * 5 + family * 7) % extent_count <
         static_cast<std::size_t>(count);
}

inline void add(std::vector<Case>& cases, const Case& c) {
  if (c.product.flop() <= largest_flop) cases.push_back(c);
}

// Plain products of one format, `count` extents m a family.
inline std::vector<Case> forward_cases(Number format, Number output, int count) {
  std::vector<Case> cases;
  const std::vector<Weight> all = weights();
  for (std::size_t f = 0; f < all.size(); ++f) {
    // Narrow formats need operands on a 16-byte grid (fp4: 32 elements); int8 kernels need rows.
    const std::int64_t grid = format == Number::fp4 ? 32 : bits_of(format) == 8 ? 16 : 8;
    if (all[f].n % grid != 0 || all[f].k % grid != 0) continue;
    for (int e = format == Number::int8 ? 6 : 0; e < extent_count; ++e)
      if (picked(f, e, count))
        add(cases,
            {{.input = format, .output = output, .m = extents[e], .n = all[f].n, .k = all[f].k}});
  }
  return cases;
}

// The three products of a layer's training step; the weight's gradient also into fp32.
inline void add_training(std::vector<Case>& cases) {
  const std::vector<Weight> all = weights();
  for (std::size_t f = 0; f < all.size(); ++f) {
    const auto [n, k] = all[f];
    if (f % 7 % 2 == 1 || n % 8 != 0 || k % 8 != 0 || n * k > 300'000'000) continue;
    constexpr int tokens[] = {16, 18, 20, 22, 23};  // 1,024 to 16,384, of `extents`
    for (std::size_t t = 0; t < 5; ++t) {
      if ((t + f) % 5 >= 2) continue;
      const std::int64_t m = extents[tokens[t]];
      if (!picked(f, tokens[t], bf16_extents)) add(cases, {{.m = m, .n = n, .k = k}});
      add(cases, {{.m = m, .n = k, .k = n, .right_by_k = true}, "input-gradient"});
      Product gradient{.m = n, .n = k, .k = m, .left_by_k = true, .right_by_k = true};
      add(cases, {gradient, "weight-gradient"});
      gradient.output = Number::fp32;
      gradient.accumulate = true;
      add(cases, {gradient, "weight-gradient"});
    }
  }
}

inline void add_misaligned(std::vector<Case>& cases) {
  constexpr Weight odd[] = {{50257, 768}, {50257, 1600}, {50257, 5120}, {4097, 4096},
                            {4096, 4097}, {4095, 4095},  {4098, 4100},  {12290, 3073}};
  for (const auto& [n, k] : odd)
    for (const std::int64_t m : {512, 4096}) add(cases, {{.m = m, .n = n, .k = k}});
}

inline void add_batched(std::vector<Case>& cases) {
  for (const std::int64_t groups : {16, 64, 256})
    for (const std::int64_t length : {512, 1024, 2048, 4096}) {
      if (groups * length * length > 1 << 30) continue;
      const std::int64_t dim = length % 4096 == 0 || groups == 64 ? 128 : 64;
      add(cases, {{.m = length, .n = length, .k = dim, .groups = groups}, "forward", "scores"});
      add(cases, {{.m = length, .n = dim, .k = length, .groups = groups, .right_by_k = true},
                  "forward",
                  "context"});
    }
  constexpr Weight experts[] = {{28672, 4096}, {4096, 7168}, {7168, 2048}, {1536, 2048}};
  std::size_t at = 0;
  for (const auto& [n, k] : experts)
    for (const std::int64_t groups : {8, 32, 64})
      for (const std::int64_t m : {16, 64, 256, 1024})
        if (++at % 2 == 0 && groups * n * k <= 1'900'000'000)
          add(cases, {{.m = m, .n = n, .k = k, .groups = groups}, "forward", "experts"});
}

inline std::vector<Case> bf16_cases() {
  std::vector<Case> cases = forward_cases(Number::bf16, Number::bf16, bf16_extents);
  add_training(cases);
  add_misaligned(cases);
  add_batched(cases);
  return cases;
}

// Fast sums as in a forward pass, full-width ones as in a backward pass, and gradients into fp32.
// Every role reads both operands along k: this format's kernels have no other layout.
inline std::vector<Case> fp8_cases() {
  std::vector<Case> cases = forward_cases(Number::fp8, Number::bf16, 3);
  const std::size_t plain = cases.size();
  for (std::size_t i = 0; i < plain; i += 4) {
    Product p = cases[i].product;
    p.fast_accumulate = false;
    cases.push_back({p, "forward", "slow-accumulate"});
  }
  for (std::size_t i = 2; i < plain; i += 6) {
    const Product p = cases[i].product;
    if (p.m < 1024 || p.n * p.k > 300'000'000) continue;
    cases.push_back({{.input = Number::fp8,
                      .output = Number::fp32,
                      .m = p.n,
                      .n = p.k,
                      .k = p.m,
                      .accumulate = true,
                      .fast_accumulate = false},
                     "weight-gradient",
                     "slow-accumulate"});
  }
  return cases;
}

}  // namespace bench
