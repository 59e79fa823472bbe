// SPDX-License-Identifier: Apache-2.0
// Tests how attention follows its blocks: padding, rounds, keys cut into parts, side kernels.
#include <catch2/catch.hpp>
#include <cmath>

#include "hw_models/catalog.h"
#include "hw_models/kernel/kernel_time.h"

namespace orrery {
namespace {

// An H200 with one attention curve: blocks of 128 rows that cost nothing to start.
class Bench {
 public:
  explicit Bench(WorkKind kind) : device_(load_device("h200-sxm").resolved()) {
    curve.kind = kind;
    curve.library = Library::flash2;
    curve.tensor_efficiency = 0.5;
    curve.tile_n = 128;
    curve.split_k = 128;
    curve.memory_efficiency = 1;
    curve.scale = {.value = 1.0, .evidence = Evidence::measured, .source = "test", .reason = ""};
    curve.present = true;
  }
  double seconds(const Work& work) const {
    Calibration calibration;
    put_curve(calibration, curve);
    complete(calibration);
    return kernel_time({.work = work, .library = Library::flash2}, device_, calibration).time.si();
  }
  double processors() const { return device_.sm_count; }
  Curve curve;

 private:
  ResolvedDevice device_;
};

Work attend(WorkKind kind, std::int64_t batch, std::int64_t heads, std::int64_t kv_heads,
            std::int64_t length, std::int64_t dim = 128) {
  return {.kind = kind,
          .batch = batch,
          .heads = heads,
          .kv_heads = kv_heads,
          .q_length = kind == WorkKind::attention_decode ? 1 : length,
          .kv_length = length,
          .qk_dim = dim,
          .v_dim = dim};
}

TEST_CASE("head sizes are padded to the kernel's step") {
  const auto forward = WorkKind::attention_forward;
  Bench bench(forward);
  const auto time = [&](std::int64_t dim) {
    return bench.seconds(attend(forward, 1, 132, 132, 8192, dim));
  };
  CHECK(time(96) / time(128) == Approx(0.75).epsilon(0.01));
  bench.curve.dim_step = 64;
  CHECK(time(96) == Approx(time(128)).epsilon(0.01));
  CHECK(time(192) / time(128) == Approx(1.5).epsilon(0.01));
  bench.curve.dim_step = 32;
  CHECK(time(80) == Approx(time(96)).epsilon(0.01));
  bench.curve.dim_step = 0;
  CHECK(time(32) == Approx(time(64)).epsilon(0.01));
  CHECK(time(160) == Approx(time(256)).epsilon(0.01));
}

TEST_CASE("equal blocks run in whole rounds, those of a causal mask do not") {
  const auto forward = WorkKind::attention_forward;
  Bench bench(forward);
  bench.curve.wave_exponent = 0.3;
  bench.curve.tensor_efficiency = 0.05;
  // A head of 128 rows is one block.
  const auto time = [&](std::int64_t heads, bool causal) {
    Work work = attend(forward, 1, heads, heads, 8192);
    work.q_length = causal ? 8192 : 128;
    work.causal = causal;
    return bench.seconds(work);
  };
  CHECK(time(133, false) / time(132, false) == Approx(2).epsilon(0.01));
  CHECK(time(264, false) == Approx(time(133, false)).epsilon(0.01));
  CHECK(time(133, true) / time(132, true) == Approx(1).epsilon(0.02));
  // Two on a processor: the last round with one on each is as long as its share and 0.3 of the
  // rest.
  bench.curve.resident_blocks = 2;
  CHECK(time(264 + 132, false) / time(264, false) == Approx(1 + 0.5 + 0.3 * 0.5).epsilon(0.01));
}

TEST_CASE("keys of few long sequences are cut over idle processors, as far as the kernel allows") {
  const auto decode = WorkKind::attention_decode;
  Bench bench(decode);
  bench.curve.tile_m = 16;
  bench.curve.tensor_efficiency = 0.01;  // a block is slower than its share of the memory
  const Work few = attend(decode, 1, 8, 8, 65536), many = attend(decode, 33, 8, 8, 65536);
  bench.curve.most_splits = 1;
  const double alone = bench.seconds(few), filled = bench.seconds(many);
  bench.curve.most_splits = 4;
  CHECK(bench.seconds(few) == Approx(alone / 4).epsilon(0.02));
  bench.curve.most_splits = 0;
  const double cut = bench.seconds(few);
  // 16 parts of 8 heads would use 128 of 132 processors; 14 come within 85% of that.
  CHECK(cut == Approx(alone / 14).epsilon(0.02));
  CHECK(bench.seconds(many) == Approx(filled).epsilon(0.001));  // two full rounds stay whole
  // Joining the parts costs a start, again for each time that their number doubles.
  bench.curve.split_seconds = 1e-6;
  CHECK((bench.seconds(few) - cut) * 1e6 == Approx(std::log2(28)).epsilon(0.01));
  bench.curve.most_splits = 2;
  const double pair = bench.seconds(few);
  bench.curve.split_seconds = 0;
  CHECK((pair - bench.seconds(few)) * 1e6 == Approx(2).epsilon(0.01));
}

TEST_CASE("keys are cut until a processor has the blocks that its kernel asks for") {
  const auto decode = WorkKind::attention_decode;
  Bench bench(decode);
  bench.curve.tile_m = 8;
  bench.curve.tensor_efficiency = 0.01;  // a block is slower than its share of the memory
  const Work few = attend(decode, 1, 8, 8, 65536);
  bench.curve.most_splits = 1;
  const double alone = bench.seconds(few);
  bench.curve.most_splits = 0;
  // 132 processors over 8 heads, rounded up: 17 parts. Four of 136 blocks wait for a second round.
  bench.curve.split_waves = 1;
  bench.curve.wave_exponent = 1;
  CHECK(bench.seconds(few) == Approx(alone * 2 / 17).epsilon(0.03));
  bench.curve.resident_blocks = 2;  // they do not wait: all 136 are there at once, half as fast
  CHECK(bench.seconds(few) == Approx(alone * 2 / 17).epsilon(0.03));
  bench.curve.resident_blocks = 1;
  // Of 512 parts of 128 keys the root of eight times as many: 64, below the eight rounds' 132.
  bench.curve.split_waves = bench.curve.split_growth = 8;
  bench.curve.wave_exponent = 0;
  const double root = bench.seconds(few);
  bench.curve.most_splits = 0;
  bench.curve.split_growth = 2;  // 32 parts: as much work in the same rounds
  CHECK(bench.seconds(few) == Approx(root).epsilon(0.03));
  // Short sequences stay whole, however idle the processors are.
  const Work brief = attend(decode, 1, 8, 8, 200);
  bench.curve.split_seconds = 1e-3;
  CHECK(bench.seconds(brief) < 1e-3);
}

TEST_CASE("heads that share keys are rows of one block, or blocks of their own") {
  const auto decode = WorkKind::attention_decode;
  Bench bench(decode);
  bench.curve.tile_m = 1;
  bench.curve.tensor_efficiency = 0.001;
  bench.curve.split_k = 1e9;
  bench.curve.wave_exponent = 1;
  const Work grouped = attend(decode, 1, 8, 1, 65536), plain = attend(decode, 1, 8, 8, 65536);
  const double packed = bench.seconds(grouped);
  bench.curve.packed_heads = 0;
  CHECK(bench.seconds(grouped) == Approx(packed / 8).epsilon(0.01));  // eight blocks at once
  CHECK(bench.seconds(grouped) == Approx(bench.seconds(plain)).epsilon(0.01));
}

TEST_CASE(
    "blocks whose queries take more room are fewer on a processor, and a tile has its least") {
  const auto decode = WorkKind::attention_decode;
  Bench bench(decode);
  bench.curve.tile_m = 8;
  bench.curve.tensor_efficiency = 0.001;
  bench.curve.split_k = 1e9;
  bench.curve.wave_exponent = 0;
  bench.curve.resident_blocks = 3;
  bench.curve.row_room = 2048;
  const Work many = attend(decode, 132 * 6, 16, 1, 4096);  // 16 rows of 128: all that there is room
  const double roomy = bench.seconds(many);
  bench.curve.row_room = 2047;
  CHECK(bench.seconds(many) == Approx(1.5 * roomy).epsilon(0.02));
  const Work one = attend(decode, 1, 8, 1, 4096);
  bench.curve.tensor_efficiency = 1;
  bench.curve.resident_blocks = 1;
  bench.curve.tile_n = 64;
  const double before = bench.seconds(one);
  bench.curve.tile_seconds = 1e-5;  // 64 tiles, one after the other
  CHECK(bench.seconds(one) - before > 0.6e-3);
  CHECK(bench.seconds(one) - before < 0.65e-3);
}

TEST_CASE("prefill of few rows is cut where the kernel does that, backward never") {
  const auto forward = WorkKind::attention_forward;
  Bench bench(forward);
  const Work few = attend(forward, 1, 2, 2, 2048);  // 32 blocks of 128 rows
  const double whole = bench.seconds(few);
  bench.curve.most_splits = 128;
  CHECK(bench.seconds(few) < 0.4 * whole);
  CHECK(bench.seconds(attend(forward, 1, 64, 64, 2048)) ==
        Approx(whole * 8).epsilon(0.01));  // 1,024 blocks in eight rounds
  Bench back(WorkKind::attention_backward);
  const Work gradient = attend(WorkKind::attention_backward, 1, 2, 2, 2048);
  const double before = back.seconds(gradient);
  back.curve.most_splits = 128;
  CHECK(back.seconds(gradient) == before);
}

TEST_CASE("backward adds up the gradients of heads that share keys") {
  const auto backward = WorkKind::attention_backward;
  Bench bench(backward);
  bench.curve.epilogue_exposed = 1;
  bench.curve.packed_heads = 0;
  const double own = bench.seconds(attend(backward, 8, 16, 16, 2048));
  const double shared = bench.seconds(attend(backward, 8, 16, 4, 2048));
  // Keys and values of 16 heads are written and read, those of 4 are written, at 4.8 TB/s.
  const double bytes = 8.0 * 2048 * 256 * 2 * (16 + 16 + 4);
  CHECK(shared - own == Approx(bytes / 4.8e12).epsilon(0.02));
}

}  // namespace
}  // namespace orrery
