// SPDX-License-Identifier: Apache-2.0
// Tests the operations, scores and bytes of kernels against counts done one by one.
#include "sim/base/work.h"

#include <rapidcheck.h>
#include <catch2/catch.hpp>

namespace orrery {
namespace {

TEST_CASE("a product does 2mnk operations and moves three matrices") {
  Work work{.kind = WorkKind::gemm, .m = 3, .n = 5, .k = 7};
  CHECK(tensor_flop(work) == 210);
  CHECK(minimum_bytes(work) == (21 + 35 + 15) * 2);
  work.input = Format::fp8;
  CHECK(minimum_bytes(work) == 21 + 35 + 15 * 2);
  work.accumulate_fp32 = true;
  CHECK(minimum_bytes(work) == 21 + 35 + 15 * 8);
  work.kind = WorkKind::grouped_gemm;
  work.groups = 4;
  CHECK(tensor_flop(work) == 840);
  CHECK(minimum_bytes(work) == 4 * (21 + 35 + 15 * 8));
  CHECK(visible_scores(work) == 0);
}

TEST_CASE("attention counts what the masks leave") {
  Work work{.kind = WorkKind::attention_forward,
            .batch = 2,
            .heads = 8,
            .kv_heads = 2,
            .q_length = 4,
            .kv_length = 4,
            .qk_dim = 16,
            .v_dim = 8};
  CHECK(visible_scores(work) == 2 * 8 * 16);
  CHECK(tensor_flop(work) == 2.0 * 8 * 16 * 2 * 24);
  // q, k, v and the result, two bytes an element.
  CHECK(minimum_bytes(work) == 2 * (2 * 8 * 4 * 16 + 2 * 2 * 4 * 24 + 2 * 8 * 4 * 8));
  work.causal = true;
  CHECK(visible_scores(work) == 2 * 8 * 10);
  const double forward = tensor_flop(work);
  work.kind = WorkKind::attention_backward;
  CHECK(tensor_flop(work) == 2.5 * forward);
  // Reads q, k, v, o, do and writes dq, dk, dv.
  CHECK(minimum_bytes(work) ==
        2 * (2 * (2 * 8 * 4 * 16) + 2 * (2 * 2 * 4 * 24) + 2 * (2 * 8 * 4 * 8)));
}

TEST_CASE("decode reads the cache once, and a latent cache once for keys and values") {
  Work work{.kind = WorkKind::attention_decode,
            .batch = 64,
            .heads = 128,
            .kv_heads = 1,
            .q_length = 1,
            .kv_length = 4096,
            .qk_dim = 576,
            .v_dim = 512,
            .causal = true};
  CHECK(tensor_flop(work) == 64.0 * 128 * 4096 * 2 * (576 + 512));
  const double queries = 64.0 * 128 * (576 + 512);
  CHECK(minimum_bytes(work) == 2 * (queries + 64.0 * 4096 * 576));
  work.kv_heads = 2;
  CHECK(minimum_bytes(work) == 2 * (queries + 64.0 * 2 * 4096 * (576 + 512)));
  work.window = 128;
  CHECK(visible_scores(work) == 64.0 * 128 * 128);
  CHECK(minimum_bytes(work) == 2 * (queries + 64.0 * 2 * 128 * (576 + 512)));
}

TEST_CASE("memory-bound kernels move what they say") {
  const Work work{.kind = WorkKind::norm, .bytes_read = 100, .bytes_written = 50};
  CHECK(tensor_flop(work) == 0);
  CHECK(visible_scores(work) == 0);
  CHECK(minimum_bytes(work) == 150);
}

TEST_CASE("visible scores are the pairs that a mask lets through") {
  CHECK(rc::check("closed form equals counting", [] {
    const auto queries = *rc::gen::inRange<std::int64_t>(0, 40);
    const auto keys = *rc::gen::inRange<std::int64_t>(0, 40);
    const auto window = *rc::gen::inRange<std::int64_t>(0, 45);
    const auto causal = *rc::gen::arbitrary<bool>();
    std::int64_t pairs = 0;
    for (std::int64_t q = 0; q < queries; ++q) {
      std::int64_t seen = causal ? std::max<std::int64_t>(0, keys - queries + q + 1) : keys;
      if (window > 0) seen = std::min(seen, window);
      pairs += seen;
    }
    const Work work{.kind = WorkKind::attention_forward,
                    .batch = 3,
                    .heads = 2,
                    .q_length = queries,
                    .kv_length = keys,
                    .window = window,
                    .causal = causal};
    RC_ASSERT(visible_scores(work) == 6.0 * static_cast<double>(pairs));
  }));
}

}  // namespace
}  // namespace orrery
