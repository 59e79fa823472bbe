// SPDX-License-Identifier: Apache-2.0
// Tests what an extent off the 16-byte grid may cost a product, by the layout of its operands.
#include <rapidcheck.h>
#include <catch2/catch.hpp>

#include "hw_models/catalog.h"
#include "hw_models/kernel/kernel_time.h"
#include "tests/hw_models/machine.h"

namespace orrery {
namespace {

const Machine& machine(int which) {
  static const Machine machines[] = {Machine("h100-sxm"), Machine("h200-sxm"),
                                     Machine("a100-sxm4-80gb"), Machine("b200-sxm"),
                                     Machine("mi300x")};
  return machines[which];
}

// A layer [out, in] in one of its three products: the tokens are m, m and k.
Kernel layer(GemmRole role, std::int64_t tokens, std::int64_t out, std::int64_t in, Format format) {
  Kernel kernel{.work = {.kind = WorkKind::gemm, .input = format, .role = role}};
  Work& work = kernel.work;
  const bool weights = role == GemmRole::weight_gradient;
  work.m = weights ? out : tokens;
  work.n = role == GemmRole::forward ? out : in;
  work.k = weights ? tokens : role == GemmRole::forward ? in : out;
  return kernel;
}

TEST_CASE("law: a token more costs at most what the next size on the grid does") {
  CHECK(rc::check("tokens off the grid", [] {
    const Machine& m = machine(*rc::gen::inRange(0, 5));
    const auto role = static_cast<GemmRole>(*rc::gen::inRange(0, 3));
    const Format format = *rc::gen::element(Format::bf16, Format::fp16, Format::fp8);
    const std::int64_t tokens = *rc::gen::inRange(1, 40000);
    const std::int64_t out = 16 * *rc::gen::inRange(1, 2000), in = 16 * *rc::gen::inRange(1, 2000);
    const std::int64_t next = (tokens + 15) / 16 * 16;
    const double here = m.seconds(layer(role, tokens, out, in, format));
    const double padded = m.seconds(layer(role, next, out, in, format));
    RC_ASSERT(here <= padded * (1 + 1e-9));
  }));
}

TEST_CASE("an extent off the grid slows the products in which rows lie along it") {
  const Machine& m = machine(1);
  const auto cost = [&](GemmRole role, std::int64_t tokens, std::int64_t out, std::int64_t in) {
    return m.seconds(layer(role, tokens, out, in, Format::bf16)) /
           m.seconds(layer(role, 8192, 8192, 8192, Format::bf16));
  };
  // Measured on an H200: 0.97, 0.97, 1.01; 8.3, 5.6, 5.1; 6.1, 5.7, 5.3; in words 2.7 to 3.
  for (const auto role : {GemmRole::forward, GemmRole::input_gradient, GemmRole::weight_gradient}) {
    CHECK(cost(role, 8193, 8192, 8192) < 1.05);
    CHECK(cost(role, 8192, 8193, 8192) > 4.5);
    CHECK(cost(role, 8192, 8193, 8192) < 9);
    CHECK(cost(role, 8192, 8192, 8193) > 4.5);
    CHECK(cost(role, 8192, 8192, 8193) < 7);
    CHECK(cost(role, 8192, 8190, 8192) > 2.5);
    CHECK(cost(role, 8192, 8190, 8192) < 3.3);
  }
  CHECK(cost(GemmRole::forward, 8192, 8193, 8192) >
        1.2 * cost(GemmRole::weight_gradient, 8192, 8193, 8192));
}

TEST_CASE("products of 8 bits are padded, since no library takes them off the grid") {
  const Machine& m = machine(1);
  for (const auto role : {GemmRole::forward, GemmRole::input_gradient, GemmRole::weight_gradient}) {
    const double padded = m.seconds(layer(role, 8208, 8192, 8192, Format::fp8));
    CHECK(m.seconds(layer(role, 8193, 8192, 8192, Format::fp8)) <= padded);
    CHECK(m.seconds(layer(role, 8193, 8192, 8192, Format::fp8)) > 0.97 * padded);
  }
}

}  // namespace
}  // namespace orrery
