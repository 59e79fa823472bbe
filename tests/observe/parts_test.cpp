// SPDX-License-Identifier: Apache-2.0
// Tests the parts of readers: numbers and times in lines, sets of instants, names of kernels, and
// how events are cut where pieces of a file end.
#include <rapidcheck.h>

#include <catch2/catch.hpp>
#include <set>

#include "sim/base/random.h"
#include "sim/observe/input/lines.h"
#include "sim/observe/input/words.h"
#include "sim/observe/profile/intervals.h"
#include "sim/observe/profile/trace_cutter.h"
#include "tests/base/fresh_seed.h"
#include "tests/base/scratch_folder.h"
#include "tests/observe/made_trace.h"

namespace orrery::observe {
namespace {

TEST_CASE("numbers as programs write them") {
  CHECK(number_in("1,234") == 1234);
  CHECK(number_in("12,345,678.5") == 12345678.5);
  CHECK(number_in(" -1.5E-3 ") == -0.0015);
  CHECK(number_in("1e+04") == 1e4);
  for (const char* none : {"", "-", "1,23", "1.2.3", "0x10", "nan", "inf", "1e999", "12 W", "e5"}) {
    INFO(none);
    CHECK_FALSE(number_in(none));
  }
  CHECK(number_after("a: 5, b: 7,", "b:") == 7);
  CHECK(number_after("step=10, skipped=0", "step=") == 10);
  CHECK_FALSE(number_after("a: 5", "c:"));
  CHECK(whole_number_in("12") == 12);
  CHECK_FALSE(whole_number_in("12.5"));
  CHECK_FALSE(whole_number_in("1e30"));
}

TEST_CASE("times as programs write them") {
  CHECK(clock_in("[2024-05-01 10:00:00,250] x") == Approx(1714557600.25));
  CHECK(clock_in("2024/05/01 10:00:00.5, 0") == Approx(1714557600.5));
  CHECK(clock_in("at 2024-05-01T10:00:00Z") == Approx(1714557600));
  CHECK(clock_of("20240501", "10:00:00") == Approx(1714557600));
  for (const char* none :
       {"2024-13-01 10:00:00", "2024-05-01 10:61:00", "2024-05-01", "", "2024-02-30 10:00:00"}) {
    INFO(none);
    CHECK_FALSE(clock_in(none));
  }
}

TEST_CASE("cells may hold separators in quotes") {
  using Cells = std::vector<std::string_view>;
  CHECK(cells_of("a, \"b, c\",, d ", ',') == Cells{"a", "b, c", "", "d"});
  CHECK(words_of("  a  b\tc ") == Cells{"a", "b", "c"});
}

TEST_CASE("lines lose colours and zero bytes, end at carriage returns too, and are counted") {
  const ScratchFolder scratch("observe_parts");
  LineReader lines(
      scratch.add("a", std::string("one\r\n\x1b[31mtwo\x1b[0m\n\0three\rfour\nfive", 36)));
  std::vector<std::pair<std::size_t, std::string>> found;
  std::string_view line;
  while (lines.next(line))
    if (!line.empty()) found.emplace_back(lines.number(), line);
  CHECK(found == std::vector<std::pair<std::size_t, std::string>>{
                     {1, "one"}, {2, "two"}, {3, "three"}, {3, "four"}, {4, "five"}});
  const std::string endless((std::size_t{3} << 20U) + 5, 'x');
  LineReader few(scratch.add("b", endless + "\nlast"));
  REQUIRE(few.next(line));
  CHECK(line.size() == std::size_t{1} << 20U);
  REQUIRE(few.next(line));
  CHECK(line == "last");
}

// Instants of small sets, one by one.
std::set<Nanoseconds> instants(const Intervals& set) {
  std::set<Nanoseconds> all;
  for (const Interval& one : set)
    for (Nanoseconds t = one.begin; t < one.end; ++t) all.insert(t);
  return all;
}

TEST_CASE("sets of instants are joined, cut and subtracted as one by one") {
  const auto made = [] {
    Intervals parts;
    for (int i = *rc::gen::inRange(0, 8); i > 0; --i) {
      const int begin = *rc::gen::inRange(0, 60);
      parts.push_back({begin, begin + *rc::gen::inRange(0, 20)});
    }
    return parts;
  };
  const bool holds = rc::check("intervals", [&] {
    const Intervals raw = made(), a = joined(raw), b = joined(made());
    const Interval window{*rc::gen::inRange(0, 40), *rc::gen::inRange(40, 90)};
    const std::set<Nanoseconds> in_a = instants(a), in_b = instants(b);
    RC_ASSERT(in_a == instants(raw));
    for (std::size_t i = 1; i < a.size(); ++i) RC_ASSERT(a[i].begin > a[i - 1].end);
    RC_ASSERT(static_cast<std::size_t>(length_of(a)) == in_a.size());
    std::set<Nanoseconds> cut, rest;
    for (const Nanoseconds t : in_a) {
      if (t >= window.begin && t < window.end) cut.insert(t);
      if (!in_b.contains(t)) rest.insert(t);
    }
    RC_ASSERT(instants(within(a, window)) == cut);
    RC_ASSERT(instants(without(a, b)) == rest);
  });
  CHECK(holds);
}

TEST_CASE("names of kernels tell their class and their number format") {
  using enum KernelClass;
  const auto is = [](const char* name, KernelClass what, std::optional<Format> format = {}) {
    INFO(name);
    CHECK(kernel_class(name) == what);
    CHECK(product_format(name) == format);
  };
  is("ampere_bf16_s16816gemm_bf16_128x256_ldg8_f2f_stages_64x3_tn", product, Format::bf16);
  is("cutlass_80_tensorop_s1688gemm_128x256_16x3_nn_align4", product, Format::tf32);
  is("sm80_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x128x16", product, Format::tf32);
  is("ampere_sgemm_128x64_tn", product, Format::fp32);
  is("turing_fp16_s1688gemm_fp16_128x128_ldg8_f2f_tn", product, Format::fp16);
  is("volta_fp16_s884gemm_fp16_128x64_ldg8_f2f_nn", product, Format::fp16);
  is("sm90_xmma_gemm_e4m3bf16_e4m3f32_f32_tn_n_tilesize128x128x128", product, Format::fp8);
  is("nvjet_qqtst_128x256_128x4_2x1_v_bz_TNT", product, Format::fp8);
  is("nvjet_sm90_hsh_128x256_64x4_2x1_v_bz_NTN", product, Format::fp16);
  is("void flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64, 4>>(Flash_fwd_params)",
     attention);
  is("cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x64", attention);
  is("void cutlass::device_kernel<flash::FlashAttnFwdSm90<>>()", attention);
  is("void flashinfer::norm::RMSNormKernel<8u>()", norm);
  is("triton_red_fused__to_copy_add_mean_mul_pow_rsqrt_1", norm);
  is("triton_poi_fused_silu_mul_3", elementwise);
  is("triton_tem_fused_mm_2", product);
  is("ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", communication);
  is("void deep_ep::internode_ll::dispatch<false>()", communication);
  const std::string lists = "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<";
  is((lists + "UnaryOpFunctor<c10::BFloat16, 2, 1, 1>, at::native::Copy<c10::BFloat16> >").c_str(),
     copy_on_device, Format::bf16);
  is((lists + "FusedAdamMathFunctor<float, 4, (at::native::ADAM_MODE)1, false> >").c_str(),
     optimizer);
  is("void (anonymous namespace)::softmax_warp_forward<float>()", softmax);
  is("void transformer_engine::cast_transpose_fused_kernel()", quantise);
  is("void at::native::indexSelectLargeIndex<float>()", indexing);
  is("some_kernel_of_nobody", other);
  is("Memset (Device)", set);
  CHECK(collective_kind("_allgather_base") == CollectiveKind::all_gather);
  CHECK(collective_kind("ncclKernel_ReduceScatter_RING_LL_Sum_half(ncclWorkElem)") ==
        CollectiveKind::reduce_scatter);
  CHECK(collective_kind("all_to_allv") == CollectiveKind::all_to_all);
  CHECK(collective_kind("recv") == CollectiveKind::send_receive);
  CHECK_FALSE(collective_kind("barrier"));
  CHECK(bytes_of_type("BFloat16") == 2);
  CHECK(bytes_of_type("Long") == 8);
  CHECK(format_of_type("c10::Float8_e4m3fn") == Format::fp8);
  CHECK(format_of_type("float", true) == Format::tf32);
}

TEST_CASE("events are cut whole wherever pieces of the file and batches end") {
  const ScratchFolder scratch("observe_parts");
  RandomStream random(fresh(5), 0);
  MadeTrace trace;
  std::size_t size = 0;
  while (size < std::size_t{3} << 20U) {
    constexpr std::string_view odd[] = {"\\\"", "\\\\", "{", "}", "[", "]", ",", "\\u007b"};
    std::string name;
    for (std::uint64_t i = random.below(400); i > 0; --i)
      name += random.below(9) == 0 ? odd[random.below(std::size(odd))] : std::string_view("k");
    trace.kernel(name, 1, 1);
    size += trace.events.back().size();
  }
  ByteStream stream(scratch.add("a.json", trace.text()));
  TraceCutter cutter(stream);
  EventBatch batch;
  std::size_t at = 0;
  while (cutter.fill(batch, 10'000))
    for (std::size_t i = 0; i < batch.begins.size(); ++i) {
      REQUIRE(at < trace.events.size());
      const std::string& event = trace.events[at++];
      REQUIRE(batch.text.compare(batch.begins[i], event.size(), event) == 0);
    }
  CHECK(at == trace.events.size());
  CHECK_FALSE(cutter.is_cut());
}

}  // namespace
}  // namespace orrery::observe
