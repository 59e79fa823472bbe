// SPDX-License-Identifier: Apache-2.0
// Tests the reader of measured samples: what it takes, what it refuses, and that nothing breaks it.
#include "sim/calibrate/log/measured_log.h"

#include <catch2/catch.hpp>

#include "sim/calibrate/log/measured_tables.h"
#include "tests/base/error_text.h"
#include "tests/base/fresh_seed.h"
#include "tests/base/scratch_folder.h"
#include "tests/calibrate/synthetic_log.h"

namespace orrery {
namespace {

using Catch::Matchers::Contains;

MeasuredLog read_text(const std::string& text) {
  const ScratchFolder folder("measured_log");
  return read_measured_log({folder.add("part.jsonl", text)});
}

const std::string attention =
    R"({"record":"sample","part":"attention","kind":"attention-forward","library":"flash2",)"
    R"("variant":"","mode":"burst","input":"bf16","batch":2,"heads":32,"kv_heads":8,)"
    R"("q_length":4096,"kv_length":4096,"qk_dim":128,"v_dim":128,"causal":1,"window":0,)";
const std::string reduce =
    R"({"record":"sample","part":"collectives","kind":"all-reduce","library":"nccl","variant":"",)"
    R"("mode":"graph","ranks":2,"bytes":1048576,"protocol":"default","algorithm":"ring",)";

TEST_CASE("samples have their shape, their library and the last conditions") {
  const MeasuredLog log = read_text(
      conditions_line() + gemm_line({.m = 512, .n = 4096, .k = 1024}, 345.1) + "\n" +
      conditions_line("NVIDIA H200") + attention + times(100) + reduce + times(30) +
      stream_line({.kind = WorkKind::copy, .bytes_read = 5e6, .bytes_written = 5e6}, "copy", 9));
  REQUIRE(log.samples.size() == 4);
  const Sample& gemm = log.samples[0];
  CHECK(gemm.conditions == 0);
  CHECK(gemm.kernel.work.n == 4096);
  CHECK(gemm.time.si() == Approx(345.1e-6));
  CHECK(gemm.shape == "512x4096x1024");
  CHECK(log.samples[1].conditions == 1);
  CHECK(log.samples[1].kernel.library == Library::flash2);
  CHECK(log.samples[1].kernel.work.causal);
  CHECK_FALSE(log.samples[2].is_work);
  CHECK(log.samples[2].number("ranks") == 2);
  CHECK(log.samples[2].text_or("algorithm", "") == "ring");
  CHECK(log.samples[3].kernel.library == Library::own);
  CHECK(log.samples[3].kernel.work.input == Format::bf16);
  CHECK(log.conditions[0].libraries.at("cublasLt") == "13.0.2");
  CHECK_THAT(error_text([&] { log.samples[2].number("nodes"); }), Contains("nodes"));
}

std::string without(std::string line, const std::string& piece, const std::string& other = "") {
  const auto at = line.find(piece);
  REQUIRE(at != std::string::npos);
  return line.replace(at, piece.size(), other);
}

TEST_CASE("a wrong line is refused by file, line number and key") {
  const std::string good = gemm_line({.m = 512, .n = 4096, .k = 1024}, 345.1);
  struct Wrong {
    std::string line, told;
  };
  const Wrong wrong[] = {
      {without(good, "\"n\":4096,"), "n"},
      {without(good, "\"n\":4096", "\"n\":0"), "n"},
      {without(good, "\"n\":4096", "\"n\":1e30"), "n"},
      {without(good, "\"input\":\"bf16\"", "\"input\":\"bf61\""), "bf61"},
      {without(good, "\"role\":\"forward\"", "\"role\":\"backward\""), "role"},
      {without(good, "\"time_us\":345.1", "\"time_us\":0"), "time_us"},
      {without(good, "\"time_us\":345.1", "\"time_us\":1e99"), "time_us"},
      {without(good, "\"time_us\":345.1", "\"time_us\":null"), "time_us"},
      {without(good, "\"low_us\":341.649", "\"low_us\":400"), "low_us"},
      {without(good, "\"high_us\":348.551", "\"high_us\":300"), "high_us"},
      {without(good, "\"kind\":\"gemm\"", "\"kind\":\"gem\""), "gemm"},
      {without(good, "\"record\":\"sample\"", "\"record\":\"simple\""), "sample"},
      {without(good, "\"power_w\":512", "\"power_w\":-1"), "power_w"},
      {without(good, "}", ""), "line 3"},
      {without(attention + times(5), "\"kv_heads\":8", "\"kv_heads\":7"), "kv_heads"},
      {without(reduce + times(5), "\"bytes\":1048576,"), "bytes"},
      {"[]\n", "object"}};
  for (const Wrong& w : wrong) {
    const std::string told = error_text([&] { read_text(conditions_line() + good + w.line); });
    INFO(w.line);
    CHECK_THAT(told, Contains("part.jsonl, line 3") && Contains(w.told));
  }
  CHECK_THAT(error_text([&] { read_text(good); }), Contains("conditions") && Contains("line 1"));
  CHECK_THAT(error_text([] { read_measured_log({"no/such/file.jsonl"}); }), Contains("no/such"));
  const ScratchFolder folder("no_lines");
  CHECK_THAT(error_text([&] { read_measured_log({folder / ""}); }), Contains("*.jsonl"));
}

TEST_CASE("drivers' names lead to the catalogue") {
  CHECK(catalogue_device("NVIDIA H200") == "h200-sxm");
  CHECK(catalogue_device("NVIDIA H100 80GB HBM3") == "h100-sxm");
  CHECK(catalogue_device("NVIDIA A100-SXM4-80GB") == "a100-sxm4-80gb");
  CHECK(catalogue_device("NVIDIA B300 SXM6 AC") == "b300-sxm");
  CHECK(catalogue_device("NVIDIA GH200 144G HBM3e") == "gh200-144gb");
  CHECK_THAT(error_text([] { catalogue_device("NVIDIA H20O"); }), Contains("NVIDIA H200"));
  for (const char* name : {"NVIDIA H200", "NVIDIA GB200", "NVIDIA GB300", "NVIDIA H20"})
    CHECK_NOTHROW(load_device(catalogue_device(name)));
  CHECK_THAT(error_text([] {
               measured_device(read_text(conditions_line() + conditions_line("NVIDIA B200")));
             }),
             Contains("h200-sxm") && Contains("B200"));
}

TEST_CASE("a family is a layer whatever its role or number of rows, and a third is kept out") {
  const auto family = [](const Work& w) {
    std::string line = gemm_line(w, 10);
    if (w.role == GemmRole::weight_gradient)
      line = without(line, "\"role\":\"forward\"", "\"role\":\"weight-gradient\"");
    return read_text(conditions_line() + line).samples[0].family;
  };
  const auto forward = family({.m = 512, .n = 4096, .k = 1024});
  CHECK(family({.m = 8, .n = 4096, .k = 1024}) == forward);
  CHECK(family({.m = 512, .n = 1024, .k = 4096}) == forward);
  CHECK(family({.role = GemmRole::weight_gradient, .m = 4096, .n = 1024, .k = 512}) == forward);
  CHECK(family({.m = 512, .n = 4096, .k = 2048}) != forward);
  int held = 0;
  for (int i = 1; i <= 400; ++i) {
    Sample s;
    s.family = family({.m = 16, .n = 64 * i, .k = 4096});
    held += is_held_out(s) ? 1 : 0;
  }
  CHECK(held > 80);
  CHECK(held < 160);
}

TEST_CASE("samples become tables: kernels in a row share the traffic, directions are left out") {
  const Work copy{.kind = WorkKind::copy, .bytes_read = 5e6, .bytes_written = 5e6};
  const Work norm{.kind = WorkKind::norm, .bytes_read = 4e6, .bytes_written = 2e6};
  const std::string twice =
      without(stream_line(norm, "rms-backward", 20), "\"repeats\"", "\"kernels\":2,\"repeats\"");
  const std::string endless =
      without(gemm_line({.m = 512, .n = 4096, .k = 1024}, 9), "burst", "sustained");
  const MeasuredLog log =
      read_text(conditions_line() + stream_line(copy, "copy", 9) + stream_line(copy, "read", 7) +
                stream_line(copy, "copy-cached", 5) + twice + endless);
  const auto tables = measured_tables(log);
  REQUIRE(tables.size() == 2);
  REQUIRE(tables[0].rows.size() == 2);
  CHECK(tables[0].rows[0].cold);
  CHECK_FALSE(tables[0].rows[1].cold);
  CHECK_THAT(tables[0].note, Contains("1 sample"));
  CHECK(tables[1].rows[0].count == 2);
  CHECK(tables[1].rows[0].kernels[1].work.bytes_read == 2e6);
  CHECK(tables[1].source == "orrery-measured-h200-sxm");
  REQUIRE(sustained_tables(log).size() == 1);
  CHECK(sustained_tables(log)[0].rows.size() == 1);
}

TEST_CASE("damaged lines are read or refused, never worse", "[fuzz]") {
  const std::string whole =
      conditions_line() + gemm_line({.m = 512, .n = 4096, .k = 1024}, 345.1) + attention +
      times(12) + reduce + times(30) +
      stream_line({.kind = WorkKind::norm, .bytes_read = 5e6, .bytes_written = 5e6}, "rms", 9);
  const ScratchFolder folder("measured_fuzz");
  RandomStream random(fresh(11), 0);
  const char* pieces[] = {"null", "-1", "1e308", "\"", "{", "}", ":", "0", "\n", "9999999999999"};
  int read = 0, refused = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string text = whole;
    for (auto left = 1 + random.below(3); left > 0; --left) {
      const std::size_t at = random.below(text.size());
      switch (random.below(4)) {
        case 0:
          text[at] = static_cast<char>(random.next());
          break;
        case 1:
          text.insert(at, pieces[random.below(std::size(pieces))]);
          break;
        case 2:
          text.erase(at, random.below(12));
          break;
        default:
          text.insert(at, text.substr(random.below(text.size()), random.below(60)));
      }
    }
    try {
      const MeasuredLog log = read_measured_log({folder.add("part.jsonl", text)});
      for (const OperatorTable& table : measured_tables(log))
        for (const OperatorRow& row : table.rows) REQUIRE(row.measured.si() > 0);
      ++read;
    } catch (const Error& error) {
      REQUIRE_FALSE(error.message().empty());
      ++refused;
    }
  }
  CHECK(read > 100);
  CHECK(refused > 1000);
}

}  // namespace
}  // namespace orrery
