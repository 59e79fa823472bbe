// SPDX-License-Identifier: Apache-2.0
// Tests decode attention whose keys are split over processors: laws over random shapes.
#include <rapidcheck.h>
#include <catch2/catch.hpp>
#include <string>

#include "hw_models/catalog.h"
#include "hw_models/kernel/kernel_time.h"

namespace orrery {
namespace {

struct Machine {
  const char* name;
  Library grouped;  // what serving engines decode with here
  Device catalogued;
  ResolvedDevice device;
  Calibration calibration;
  Machine(const char* n, Library library)
      : name(n),
        grouped(library),
        catalogued(load_device(n)),
        device(catalogued.resolved()),
        calibration(load_calibration(catalogued)) {}
  double seconds(const Work& work) const {
    const Library library = work.v_dim < work.qk_dim ? Library::flashmla : grouped;
    return kernel_time({.work = work, .library = library}, device, calibration).time.si();
  }
  double reading(const Work& work) const {
    return minimum_bytes(work) / device.memory_bandwidth.si();
  }
};

const Machine& machine(int which) {
  static const Machine machines[] = {
      {"h100-sxm", Library::flash3},     {"h200-sxm", Library::flash3},
      {"b200-sxm", Library::flashinfer}, {"gb200", Library::flashinfer},
      {"b300-sxm", Library::flashinfer}, {"gb300", Library::flashinfer}};
  return machines[which];
}

Work grouped(std::int64_t batch, std::int64_t heads, std::int64_t kv_heads, std::int64_t keys,
             Format format = Format::bf16, std::int64_t dim = 128) {
  return {.kind = WorkKind::attention_decode,
          .input = format,
          .batch = batch,
          .heads = heads,
          .kv_heads = kv_heads,
          .q_length = 1,
          .kv_length = keys,
          .qk_dim = dim,
          .v_dim = dim};
}

Work latent(std::int64_t batch, std::int64_t heads, std::int64_t keys,
            Format format = Format::bf16) {
  Work work = grouped(batch, heads, 1, keys, format, 576);
  work.v_dim = 512;
  return work;
}

std::string said(const Machine& m, const Work& work, double time, double least) {
  return std::string(m.name) + " batch " + std::to_string(work.batch) + " keys " +
         std::to_string(work.kv_length) + " heads " + std::to_string(work.heads) + "/" +
         std::to_string(work.kv_heads) + " d " + std::to_string(work.qk_dim) + " " +
         std::string(to_text(work.input)) + ": " + std::to_string(time * 1e6) + " us, least " +
         std::to_string(least * 1e6) + " us";
}

Work any_decode(std::int64_t batch, std::int64_t fewest_keys) {
  const Format format = *rc::gen::element(Format::bf16, Format::fp8);
  const std::int64_t keys = *rc::gen::inRange(fewest_keys, std::int64_t{131073});
  if (*rc::gen::inRange(0, 4) == 0)
    return latent(batch, 16 << *rc::gen::inRange(0, 4), keys, format);
  const std::int64_t kv_heads = 1 << *rc::gen::inRange(0, 6), group = 1 << *rc::gen::inRange(0, 5);
  return grouped(batch, kv_heads * group, kv_heads, keys, format, *rc::gen::element(64, 128));
}

// Split rules accept waves that are not full: hence the fifth.
TEST_CASE("law: n sequences cost at least as much as one and at most 1.2 n times one") {
  CHECK(rc::check("more sequences", [] {
    const Machine& m = machine(*rc::gen::inRange(0, 6));
    const std::int64_t n = *rc::gen::inRange(2, 257);
    Work work = any_decode(1, 64);
    const double one = m.seconds(work);
    work.batch = n;
    const double all = m.seconds(work);
    RC_LOG() << said(m, work, all, one);
    RC_ASSERT(all >= one);
    RC_ASSERT(all <= 1.2 * static_cast<double>(n) * one);
  }));
}

// PyTorch's calls that split keys take 13 to 47 us on H100 and H200 for 16.8 MB.
constexpr double short_call = 47e-6;

TEST_CASE("law: a call takes the time of reading its cache, twice at most where that is large") {
  CHECK(rc::check("reading", [] {
    const Machine& m = machine(*rc::gen::inRange(0, 6));
    const std::int64_t kv_heads = 1 << *rc::gen::inRange(0, 6);
    const std::int64_t group = 1 << *rc::gen::inRange(0, 5);
    const Work work = grouped(*rc::gen::inRange(1, 257), kv_heads * group, kv_heads,
                              *rc::gen::inRange(std::int64_t{1024}, std::int64_t{131073}));
    const double time = m.seconds(work), reading = m.reading(work);
    RC_LOG() << said(m, work, time, reading);
    RC_ASSERT(time >= reading);
    RC_ASSERT(time <= (minimum_bytes(work) >= 128e6 ? 2 * reading : reading + short_call));
  }));
}

// Latents of many heads are bound by their products, in 16 bits on Hopper whatever the cache holds;
// a cache of 8 bits is converted on the way (aiconfigurator's tables: 1.3 to 3 times reading it),
// and thousands of short sequences by what each costs to start.
TEST_CASE("law: latents, 8 bits and short keys take at most three times reading or products") {
  CHECK(rc::check("reading and products", [] {
    const Machine& m = machine(*rc::gen::inRange(0, 6));
    const Work work = any_decode(*rc::gen::inRange(1, 257), 512);
    const double products =
        tensor_flop(work) / m.device.tensor_rate[static_cast<std::size_t>(Format::bf16)].si();
    const double time = m.seconds(work), reading = m.reading(work);
    RC_LOG() << said(m, work, time, std::max(reading, products));
    RC_ASSERT(time >= reading);
    RC_ASSERT(time <= 3 * std::max(reading, products) + short_call);
  }));
}

TEST_CASE("a Hopper never decodes slower than an A100, nor an H200 than an H100") {
  const Machine a100("a100-sxm4-80gb", Library::flash2);
  for (const std::int64_t batch : {1, 8, 64})
    for (const std::int64_t keys : {4096, 32768, 131072})
      for (const std::int64_t kv_heads : {1, 8}) {
        INFO(batch << " sequences of " << keys << " keys, " << kv_heads << " heads");
        const Work work = grouped(batch, 8 * kv_heads, kv_heads, keys);
        CHECK(machine(0).seconds(work) < a100.seconds(work));
        CHECK(machine(1).seconds(work) < 1.15 * machine(0).seconds(work));  // two fits
      }
}

// cuDNN walks the keys of a sequence on one processor where the heads of a group are rows of one
// query: it is a kernel of its own, for the program that makes that call.
TEST_CASE("the call that splits no keys stays as slow as it was measured") {
  const Machine& h200 = machine(1);
  const Work work = grouped(1, 32, 8, 32769);
  const auto with = [&](Library library) {
    return kernel_time({.work = work, .library = library}, h200.device, h200.calibration).time.si();
  };
  CHECK(with(Library::cudnn_attention) > 250e-6);
  CHECK(with(Library::cudnn_split_keys) == Approx(39.4e-6).epsilon(0.15));
  CHECK(with(Library::flash2) == Approx(47.8e-6).epsilon(0.3));
}

}  // namespace
}  // namespace orrery
