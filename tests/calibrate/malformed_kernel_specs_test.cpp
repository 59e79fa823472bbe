// SPDX-License-Identifier: Apache-2.0
// Three hundred specifications of kernels that are broken, as texts and as JSON: each is read, or
// is refused in one line.
#include <catch2/catch.hpp>

#include "sim/base/errors/check.h"
#include "sim/calibrate/kernel/spec.h"
#include "tests/base/broken_text.h"
#include "tests/base/fresh_seed.h"

namespace orrery {
namespace {

// "": it was read, and every shape of it can be worked with.
std::string refusal(const std::string& text) {
  try {
    const KernelSpec spec = read_kernel_spec(JsonValue::parse(text, "my.json"));
    for (const KernelShapes* shapes : {&spec.gpu, &spec.host}) {
      for (const Sizes& shape : shapes->check) work_of(spec, shape);
      const auto drawn = static_cast<std::uint64_t>(std::min<std::int64_t>(shapes->drawn, 8));
      for (std::uint64_t i = 0; i < drawn; ++i) work_of(spec, drawn_shape(spec, *shapes, 7, i));
    }
    return "";
  } catch (const Error& error) {
    return error.message();
  }
}

TEST_CASE("300 broken specifications of kernels are read or get one line") {
  RandomStream random(fresh(11), 0);
  const auto& operations = kernel_operations();
  int refused = 0;
  for (int i = 0; i < 300; ++i) {
    const SortedJson good = load_kernel_spec(operations[random.below(operations.size())].name).text;
    const std::string text = i % 2 == 0 ? test::broken_text(good.dump(), random)
                                        : test::broken_json(good, random).dump();
    INFO(text);
    const std::string error = refusal(text);
    INFO(error);
    CHECK(error.find('\n') == std::string::npos);
    CHECK(error.size() < 2000);
    refused += error.empty() ? 0 : 1;
  }
  CHECK(refused > 150);
}

}  // namespace
}  // namespace orrery
