// SPDX-License-Identifier: Apache-2.0
// Tests how specifications of kernels are read, their work is counted and their shapes are drawn.
#include <catch2/catch.hpp>
#include <filesystem>

#include "hw_models/catalog.h"
#include "sim/calibrate/kernel/spec.h"

namespace orrery {
namespace {

JsonValue changed_spec(const std::string& name, const std::string& path, const SortedJson& value) {
  SortedJson text = load_kernel_spec(name).text;
  text.at_path(path) = value;
  return JsonValue::from(text, "my.json");
}

std::string complaint(const JsonValue& spec) {
  try {
    read_kernel_spec(spec);
  } catch (const Error& error) {
    return error.message();
  }
  return "";
}

TEST_CASE("every operation has a specification that ships, with what is there today") {
  for (const KernelOperation& operation : kernel_operations()) {
    INFO(operation.name);
    const KernelSpec spec = load_kernel_spec(operation.name);
    CHECK(spec.operation == operation.name);
    CHECK(spec.gpu.check.size() >= 3);
    CHECK(spec.gpu.drawn > 0);
    CHECK(spec.host.drawn > 0);
    bool on_gpu = false, on_host = false;
    for (const PresentKernel& kernel : spec.present) {
      CHECK(std::filesystem::is_regular_file(kernel.file));
      (kernel.host ? on_host : on_gpu) = true;
    }
    CHECK(on_gpu);
    CHECK(on_host);
  }
}

TEST_CASE("a specification that cannot be is refused at its key") {
  const auto shapes = [](SortedJson shape) {
    SortedJson list = SortedJson::array();
    list.push_back(std::move(shape));
    return list;
  };
  CHECK(complaint(changed_spec("product", "operation", "prodct")).find("\"product\"?") !=
        std::string::npos);
  CHECK(complaint(changed_spec("product", "check", shapes({1, 2}))).find("3 sizes") !=
        std::string::npos);
  CHECK(complaint(changed_spec("product", "check", shapes({1, 0, 2}))).find("from 1 on") !=
        std::string::npos);
  CHECK(complaint(changed_spec("attention", "time", shapes({1, 3, 2, 8, 8, 16, 1})))
            .find("multiple of kv_heads") != std::string::npos);
  CHECK(complaint(changed_spec("attention", "time", shapes({1, 4, 2, 8, 4, 16, 1})))
            .find("no fewer keys") != std::string::npos);
  CHECK(complaint(changed_spec("top-k", "check", shapes({4, 8, 9}))).find("within the width") !=
        std::string::npos);
  CHECK(complaint(changed_spec("product", "data", shapes("masked"))).find("infinities") !=
        std::string::npos);
  CHECK(complaint(changed_spec("product", "data", shapes("wide"))).find("random among") !=
        std::string::npos);
  CHECK(complaint(changed_spec("product", "replaces/kind", "gem")).find("gemm") !=
        std::string::npos);
  CHECK(complaint(changed_spec("product", "tolerance", 1)).find("tolerance") != std::string::npos);
  CHECK_THROWS_AS(load_kernel_spec("rms-nrm"), Error);
}

TEST_CASE("drawn shapes lie between the limits and are shapes that the operation has") {
  for (const KernelOperation& operation : kernel_operations()) {
    const KernelSpec spec = load_kernel_spec(operation.name);
    for (const KernelShapes* shapes : {&spec.gpu, &spec.host})
      for (std::uint64_t i = 0; i < 200; ++i) {
        const Sizes s = drawn_shape(spec, *shapes, 7, i);
        REQUIRE(s.size() == spec.sizes.size());
        CHECK(s == drawn_shape(spec, *shapes, 7, i));
        if (spec.operation == "attention") {
          CHECK(s[1] % s[2] == 0);
          CHECK(s[4] >= s[3]);
        } else {
          for (std::size_t j = 0; j < s.size(); ++j) {
            CHECK(s[j] >= 1);
            CHECK(s[j] <= shapes->high[j]);
          }
        }
        if (spec.operation == "top-k") CHECK(s[2] <= s[1]);
      }
    CHECK(drawn_shape(spec, spec.gpu, 7, 0) != drawn_shape(spec, spec.gpu, 8, 0));
  }
}

TEST_CASE("work and limits of a launch are counted by hand") {
  const ResolvedDevice device = load_device("h100-sxm").resolved();
  const double tensor = device.tensor_rate[static_cast<std::size_t>(Format::bf16)].si();
  const double memory = device.memory_bandwidth.si();
  const auto limit = [&](const char* name, const Sizes& shape) {
    return limit_of(work_of(load_kernel_spec(name), shape), device);
  };
  const KernelLimit product = limit("product", {4096, 4096, 4096});
  CHECK(product.flop == 2.0 * 4096 * 4096 * 4096);
  CHECK(product.bytes == 3.0 * 2 * 4096 * 4096);
  CHECK_FALSE(product.memory);
  CHECK(product.seconds == Approx(product.flop / tensor));
  const KernelLimit norm = limit("rms-norm", {8192, 4096});
  CHECK(norm.flop == 0);
  CHECK(norm.bytes == 2.0 * 2 * 8192 * 4096 + 2 * 4096);
  CHECK(norm.memory);
  CHECK(norm.seconds == Approx(norm.bytes / memory));
  CHECK(limit("quantise", {10, 200}).bytes == 10 * 200 * 3 + 10 * 2 * 4);
  CHECK(limit("top-k", {10, 256, 8}).bytes == 10 * 256 * 4 + 10 * 8 * 8);
  const KernelLimit causal = limit("attention", {1, 8, 8, 4096, 4096, 128, 1});
  const KernelLimit whole = limit("attention", {1, 8, 8, 4096, 4096, 128, 0});
  CHECK(whole.flop == 4.0 * 8 * 4096 * 4096 * 128);
  CHECK(causal.flop == Approx(whole.flop * 4097 / 8192));
}

}  // namespace
}  // namespace orrery
