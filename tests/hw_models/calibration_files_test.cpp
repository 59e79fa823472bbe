// SPDX-License-Identifier: Apache-2.0
// Tests which of a device's calibration files says what: measured, then published, then estimated.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cstdlib>

#include "hw_models/catalog.h"
#include "tests/base/scratch_folder.h"

namespace orrery {
namespace {

using Catch::Matchers::Contains;

// A data root of its own for as long as it lives, with nothing but calibrations.
class DataRoot {
 public:
  DataRoot() : folder_("calibration_files") {
    std::filesystem::create_directories(folder_ / "hw_models/catalog");
    add("estimates", "borrow.json",
        R"({"loans": [{"from": "generic", "low": 0.8, "high": 1.4, "reason": "no table"}]})");
    setenv("ORRERY_DATA", (folder_ / "").c_str(), 1);
  }
  ~DataRoot() { unsetenv("ORRERY_DATA"); }
  DataRoot(const DataRoot&) = delete;
  DataRoot& operator=(const DataRoot&) = delete;

  void add(const std::string& device, const std::string& file, const std::string& text) const {
    const std::string folder = "hw_models/calibration/" + device;
    std::filesystem::create_directories(folder_ / folder);
    folder_.add(folder + "/" + file, text);
  }

 private:
  ScratchFolder folder_;
};

// A curve whose tensor_efficiency tells which file it came from.
std::string curve(const std::string& kind, const std::string& format, double efficiency) {
  return fmt::format(R"({{"kind": "{}", "format": "{}", "library": "cublas",
      "scale": {{"value": 1, "evidence": "measured", "source": "s"}},
      "parameters": {{"tensor_efficiency": {}, "memory_efficiency": 0.8}}}})",
                     kind, format, efficiency);
}

std::string memory_energy(double value) {
  return fmt::format(
      R"("energy": {{"memory": {{"value": "{} pJ/B", "evidence": "measured", "source": "s"}}}})",
      value);
}

std::string gap(double value) {
  const std::string one =
      fmt::format(R"({{"value": "{} us", "evidence": "measured", "source": "s"}})", value);
  return fmt::format(R"("launch": {{"stream": {}, "graph": {}}})", one, one);
}

std::string calibration(const std::string& device, const std::string& curves,
                        const std::string& more = "") {
  return fmt::format(R"({{"device": "{}", {}"curves": [{}]}})", device,
                     more.empty() ? "" : more + ", ", curves);
}

std::string estimates(const std::string& curves, const std::string& more = "") {
  return fmt::format(R"({{{}"curves": [{}]}})", more.empty() ? "" : more + ", ", curves);
}

const Curve& product(const Calibration& c, Format format) {
  return c.curve(WorkKind::gemm, format, Library::cublas);
}

struct Devices {
  // Read before a data root without a catalogue is set.
  Device a = named("a"), b = named("b");
  static Device named(const char* name) {
    Device device = load_device("h200-sxm");
    device.name = name;
    return device;
  }
};

TEST_CASE("our own fit stands before published curves, and these before estimates") {
  const Devices devices;
  const DataRoot root;
  root.add("a", "fit.json", calibration("a", curve("gemm", "bf16", 0.1), memory_energy(11)));
  root.add("a", "published.json",
           calibration("a", curve("gemm", "bf16", 0.2) + ", " + curve("gemm", "fp8", 0.3),
                       memory_energy(22)));
  root.add("estimates", "common.json",
           estimates(curve("gemm", "fp8", 0.4) + ", " + curve("gemm", "fp4", 0.5),
                     memory_energy(33) + ", " + gap(3)));
  const Calibration c = load_calibration(devices.a);
  CHECK(product(c, Format::bf16).tensor_efficiency == 0.1);
  CHECK(product(c, Format::fp8).tensor_efficiency == 0.3);
  CHECK(product(c, Format::fp4).tensor_efficiency == 0.5);
  CHECK(c.memory_energy.get().si() == Approx(11e-12));
  CHECK(in_microseconds(c.launch_latency.get()) == Approx(3));
  CHECK(c.borrowed_from.empty());
  // Where none is exact, the first of the kind and format stands in: our own.
  CHECK(c.curve(WorkKind::gemm, Format::bf16, Library::flashinfer).tensor_efficiency == 0.1);
}

TEST_CASE("one of the two files is enough") {
  const Devices devices;
  for (const char* file : {"fit.json", "published.json"}) {
    const DataRoot root;
    root.add("a", file, calibration("a", curve("gemm", "bf16", 0.6)));
    root.add("estimates", "common.json", estimates(curve("norm", "bf16", 0.5)));
    INFO(file);
    CHECK(product(load_calibration(devices.a), Format::bf16).tensor_efficiency == 0.6);
  }
}

TEST_CASE("a base stands below both own files, with a range, and below the device's estimates") {
  const Devices devices;
  const DataRoot root;
  root.add("b", "fit.json",
           calibration("b", curve("gemm", "bf16", 0.1) + ", " + curve("gemm", "fp8", 0.11),
                       memory_energy(11) + ", " + gap(1)));
  root.add("b", "published.json",
           calibration("b", curve("gemm", "bf16", 0.2) + ", " + curve("gemm", "fp4", 0.22)));
  // The fit's base must not hide what was published of the device itself.
  root.add("a", "fit.json", calibration("a", curve("gemm", "int8", 0.3), R"("based_on": "b")"));
  root.add("a", "published.json", calibration("a", curve("gemm", "fp8", 0.4)));
  root.add("estimates", "a.json", estimates("", memory_energy(44)));
  root.add("estimates", "common.json", estimates("", gap(9)));
  const Calibration c = load_calibration(devices.a);
  CHECK(product(c, Format::int8).tensor_efficiency == 0.3);
  CHECK(product(c, Format::fp8).tensor_efficiency == 0.4);
  CHECK(product(c, Format::fp8).scale.evidence == Evidence::measured);
  CHECK(product(c, Format::bf16).tensor_efficiency == 0.1);
  CHECK(product(c, Format::fp4).tensor_efficiency == 0.22);
  for (const Format borrowed : {Format::bf16, Format::fp4}) {
    const Sourced<double>& scale = product(c, borrowed).scale;
    CHECK(scale.evidence == Evidence::estimated);
    CHECK(scale.low.value_or(1) == Approx(0.9));
    CHECK(scale.high.value_or(1) == Approx(1.1));
  }
  CHECK(c.borrowed_from == "b");
  CHECK(c.memory_energy.get().si() == Approx(44e-12));
  CHECK(in_microseconds(c.launch_latency.get()) == Approx(1));
  CHECK(c.launch_latency.evidence == Evidence::estimated);
  CHECK(in_microseconds(c.launch_latency.high.value_or(Seconds(0))) == Approx(1.1));
}

TEST_CASE("a kernel's own curve is read, written back and used only where it is named",
          "[calibration]") {
  const std::string batched = curve("gemm", "bf16", 0.7), any = curve("gemm", "bf16", 0.5);
  const std::string named = R"({"variant": "batched", )" + batched.substr(1);
  const auto read = [&](const std::string& variants) {
    return read_calibration(
        JsonValue::parse(calibration("a", any, R"("variants": [)" + variants + "]"), "fit.json"));
  };
  Calibration c = read(named);
  REQUIRE(c.variants.size() == 1);
  const auto product_efficiency = [&] {
    return c.curve(WorkKind::gemm, Format::bf16, Library::cublas).tensor_efficiency;
  };
  CHECK(c.variants[0].variant == "batched");
  CHECK(product_efficiency() == 0.5);
  const Calibration again = read_calibration(JsonValue::parse(to_json_text(c, ""), "written.json"));
  REQUIRE(again.variants.size() == 1);
  CHECK(again.variants[0].variant == "batched");
  CHECK(again.variants[0].tensor_efficiency == 0.7);

  use_variant(c, WorkKind::gemm, Format::bf16, Library::cublas, "grouped");
  CHECK(product_efficiency() == 0.5);
  use_variant(c, WorkKind::gemm, Format::bf16, Library::fused, "batched");
  CHECK(product_efficiency() == 0.5);
  use_variant(c, WorkKind::gemm, Format::bf16, Library::cublas, "batched");
  CHECK(product_efficiency() == 0.7);
  CHECK(c.variants.size() == 1);
  CHECK_THROWS_WITH(read(R"({"variant": "", )" + batched.substr(1)),
                    Contains("the name of one kernel"));
}

TEST_CASE("circles and bases that nobody measured are one clear error") {
  const Devices devices;
  const DataRoot root;
  root.add("estimates", "common.json", estimates(curve("norm", "bf16", 0.5)));
  root.add("a", "fit.json", calibration("a", curve("gemm", "bf16", 0.1), R"("based_on": "b")"));
  CHECK_THROWS_WITH(load_calibration(devices.a),
                    Contains("fit.json") && Contains("based_on") && Contains("calibration"));
  root.add("b", "published.json",
           calibration("b", curve("gemm", "bf16", 0.1), R"("based_on": "a")"));
  CHECK_THROWS_WITH(load_calibration(devices.a), Contains("at most five devices"));
}

}  // namespace
}  // namespace orrery
