// SPDX-License-Identifier: Apache-2.0
// Tests what a pass waits for where hosts take now longer, now shorter.
#include "sim/engine/step/host_pace.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <boost/math/distributions/normal.hpp>
#include <cmath>
#include <numbers>

#include "sim/base/random.h"
#include "sim/engine/step/step.h"
#include "tests/base/fresh_seed.h"
#include "tests/engine/step_case.h"

using namespace orrery;

namespace {

double paced(double device, double host, double spread, std::int64_t ranks) {
  return paced_by_hosts(Seconds(device), Seconds(host), {.spread = spread, .ranks = ranks}).si();
}

struct Draw {
  double device, host, spread;
  std::int64_t ranks;
};

Draw draw(RandomStream& random) {
  return {.device = std::exp(4 * random.uniform() - 2),
          .host = std::exp(4 * random.uniform() - 2),
          .spread = 0.4 * random.uniform(),
          .ranks = 1 + static_cast<std::int64_t>(std::exp(10 * random.uniform()))};
}

}  // namespace

TEST_CASE("hosts that all take their mean let a pass take the longer of device and host") {
  RandomStream random(fresh(41), 1);
  for (int i = 0; i < 200; ++i) {
    const Draw d = draw(random);
    CHECK(paced(d.device, d.host, 0, d.ranks) == std::max(d.device, d.host));
    CHECK(paced(d.device, 0, d.spread, d.ranks) == d.device);
  }
}

TEST_CASE("a pass of one host, and of two with an idle device, takes what theory says") {
  const boost::math::normal standard;
  RandomStream random(fresh(42), 1);
  for (int i = 0; i < 200; ++i) {
    const Draw d = draw(random);
    const double deviation = d.spread * d.host;
    if (deviation < 1e-3) continue;
    const double z = (d.host - d.device) / deviation;
    CHECK(paced(d.device, d.host, d.spread, 1) ==
          Approx(d.device + deviation * (pdf(standard, z) + z * cdf(standard, z))).epsilon(1e-9));
    CHECK(paced(0, d.host, 0.1, 2) ==
          Approx(d.host * (1 + 0.1 / std::sqrt(std::numbers::pi))).epsilon(1e-9));
  }
  // Mean of the largest of n standard normal values, Harter (1961), table 1.
  CHECK(paced(0, 1, 0.1, 4) == Approx(1 + 0.1 * 1.02938).epsilon(1e-6));
  CHECK(paced(0, 1, 0.1, 8) == Approx(1 + 0.1 * 1.42360).epsilon(1e-6));
  CHECK(paced(0, 1, 0.1, 100) == Approx(1 + 0.1 * 2.50759).epsilon(1e-6));
}

TEST_CASE(
    "law: a pass never ends before its device or its host, and each of them makes it longer") {
  RandomStream random(fresh(43), 1);
  for (int i = 0; i < 500; ++i) {
    const Draw d = draw(random);
    const double whole = paced(d.device, d.host, d.spread, d.ranks);
    CHECK(std::isfinite(whole));
    CHECK(whole >= std::max(d.device, d.host));
    const double slack = 1e-9 * whole;
    CHECK(paced(1.1 * d.device, d.host, d.spread, d.ranks) >= whole - slack);
    CHECK(paced(d.device, 1.1 * d.host, d.spread, d.ranks) >= whole - slack);
    CHECK(paced(d.device, d.host, d.spread + 0.05, d.ranks) >= whole - slack);
    CHECK(paced(d.device, d.host, d.spread, 2 * d.ranks) >= whole - slack);
  }
}

TEST_CASE("ranks that gather parameters in every layer wait for the slowest host, others do not") {
  test::Case c = test::make_case("llama3-8b", "dgx-h100", 8, "pytorch-compiled-fsdp2");
  const StepContext context = step_context(c.cluster);
  Layout layout;
  layout.dp = 8;
  layout.zero_stage = 3;
  const auto seconds = [&](double spread, int zero_stage) {
    layout.zero_stage = zero_stage;
    c.stack.host.spread = {.value = spread, .evidence = Evidence::assumed, .source = "a test"};
    // The host takes about as long as the device.
    c.stack.host.dispatch = {
        .value = Seconds(8e-5), .evidence = Evidence::assumed, .source = "a test"};
    return to_seconds(step(context, c.model, c.job, layout, c.stack).step).si();
  };
  const double gathered = seconds(0.2, 3) / seconds(0, 3);
  CHECK(gathered > 1.05);
  CHECK(gathered < 1.3);  // the largest of eight is 1.42 deviations above the mean
  const double alone = seconds(0.2, 1) / seconds(0, 1);
  CHECK(alone < 1 + 0.5 * (gathered - 1));
}
