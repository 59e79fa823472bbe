// SPDX-License-Identifier: Apache-2.0
// Tests calibration files: read back as written, refused when wrong, borrowed with a range.
#include "hw_models/calibration.h"

#include <catch2/catch.hpp>
#include <set>

#include "hw_models/catalog.h"

namespace orrery {
namespace {

using Catch::Matchers::Contains;

Calibration parse(const std::string& text) {
  return read_calibration(JsonValue::parse(text, "test.json"));
}

std::string one_curve(const std::string& parameters, const std::string& scale = R"(
    {"value": 1, "evidence": "measured", "source": "s"})") {
  return R"({"device": "x", "curves": [{"kind": "gemm", "format": "bf16", "library": "cublas",
    "scale": )" +
         scale + R"(, "parameters": )" + parameters + "}]}";
}

constexpr const char* good =
    R"({"tensor_efficiency": 0.8, "memory_efficiency": 0.8, "fixed": "2 us"})";

TEST_CASE("a calibration reads back as it was written") {
  const Calibration h200 = load_calibration(load_device("h200-sxm"));
  Calibration written = h200;
  written.borrowed_from.clear();
  const Calibration again = parse(to_json_text(written, "a note"));
  REQUIRE(again.curves.size() == h200.curves.size());
  for (std::size_t i = 0; i < again.curves.size(); ++i) {
    const Curve &a = h200.curves[i], &b = again.curves[i];
    CHECK(Calibration::name(a) == Calibration::name(b));
    CHECK(b.tensor_efficiency == Approx(a.tensor_efficiency).epsilon(1e-3));
    CHECK(b.fixed_seconds == Approx(a.fixed_seconds).epsilon(1e-3));
    CHECK(b.scale.evidence == a.scale.evidence);
    CHECK(b.quality.held_out == a.quality.held_out);
  }
}

TEST_CASE("mistakes in a calibration name their place") {
  CHECK_NOTHROW(parse(one_curve(good)));
  CHECK_THROWS_WITH(parse(one_curve(R"({"tensor_eficiency": 0.8})")),
                    Contains("tensor_eficiency") && Contains("tensor_efficiency"));
  CHECK_THROWS_WITH(parse(one_curve(R"({"tensor_efficiency": 0.8, "memory_efficiency": 0.8,
                                        "fixed": 2})")),
                    Contains("fixed"));
  CHECK_THROWS_WITH(parse(one_curve(R"({"tensor_efficiency": 0.8})")),
                    Contains("memory_efficiency above zero"));
  CHECK_THROWS_WITH(parse(one_curve(R"({"tensor_efficiency": -1, "memory_efficiency": 1})")),
                    Contains("not negative"));
  CHECK_THROWS_AS(parse(one_curve(good, R"({"value": 1, "evidence": "estimated", "source": "s"})")),
                  Error);
  CHECK_THROWS_AS(parse(R"({"device": "x", "curves": []})"), Error);
  CHECK_THROWS_AS(parse(R"({"device": "x", "curves": [{"kind": "gem"}]})"), Error);
}

TEST_CASE("a missing curve falls back to its kind and format, streams to their library") {
  const Calibration h200 = load_calibration(load_device("h200-sxm"));
  const auto name = [&](WorkKind kind, Format format, Library library) {
    return Calibration::name(h200.curve(kind, format, library));
  };
  CHECK(name(WorkKind::gemm, Format::bf16, Library::cublas) == "gemm.bf16.cublas");
  CHECK(name(WorkKind::gemm, Format::tf32, Library::deepgemm) == "gemm.bf16.cublas");
  CHECK(name(WorkKind::gemm, Format::fp8, Library::deepgemm) == "gemm.fp8.deepgemm");
  CHECK(h200.curve(WorkKind::gemm, Format::fp8, Library::eager).format == Format::fp8);
  CHECK(name(WorkKind::quantise, Format::fp8, Library::fused) == "quantise.bf16.fused");
  CHECK(h200.curve(WorkKind::softmax, Format::bf16, Library::triton_attention).kind ==
        WorkKind::softmax);
}

TEST_CASE("a borrowed calibration says from whom and carries a range") {
  for (const char* device : {"h800-sxm", "gh200", "v100-sxm2-32gb", "rubin", "tpu-v5p", "l40s"}) {
    const Calibration borrowed = load_calibration(load_device(device));
    INFO(device);
    CHECK(!borrowed.borrowed_from.empty());
    for (const Curve& curve : borrowed.curves) {
      CHECK(is_uncertain(curve.scale.evidence));
      CHECK(curve.scale.low.value_or(9) < curve.scale.get());
      CHECK(curve.scale.high.value_or(0) > curve.scale.get());
      CHECK(!curve.scale.reason.empty());
    }
  }
  const Calibration measured = load_calibration(load_device("h200-sxm"));
  CHECK(measured.borrowed_from.empty());
  CHECK(measured.curve(WorkKind::gemm, Format::bf16, Library::cublas).scale.evidence ==
        Evidence::measured);
  CHECK(measured.curve(WorkKind::gemm, Format::fp8, Library::flashinfer).quality.held_out > 500);
}

TEST_CASE("every source of a calibration resolves") {
  std::set<std::string> known;
  for (const std::string& file : catalog_names("hw_models/catalog/sources")) {
    const auto path = data_root() / "hw_models" / "catalog" / "sources" / (file + ".json");
    for (const auto& [id, entry] : JsonValue::load(path).members()) known.insert(id);
  }
  for (const std::string& name : catalog_names("hw_models/catalog/accelerators")) {
    const Calibration calibration = load_calibration(load_device(name));
    visit_calibration(calibration, [&](const std::string& path, const auto& value) {
      if (!value.known()) return;
      INFO(name << " " << path << " " << value.source);
      CHECK(known.contains(value.source));
      if (is_uncertain(value.evidence)) CHECK((value.low && value.high));
    });
  }
}

}  // namespace
}  // namespace orrery
