// SPDX-License-Identifier: Apache-2.0
// Tests which interface a transfer of keys and values waits for.
#include "sim/outcome/serving/cache_transfer.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "hw_models/catalog.h"

namespace orrery {
namespace {

constexpr std::int64_t tokens = 8192;
const Bytes latents{61.0 * 576};  // of a token, whole on each GPU

EngineLayout layout(std::int64_t tp, std::int64_t attention_dp, std::int64_t pp = 1) {
  return {.tp = tp, .pp = pp, .attention_dp = attention_dp};
}

double seconds(const CacheTransfer& t) {
  return to_seconds(t.on_link(tokens) + t.latency(tokens)).si();
}

// Over one network interface.
double alone(const Cluster& c, Bytes token) {
  const ScaleOut& n = c.fabric.scale_out;
  return (token * static_cast<double>(tokens) / (n.nic_bandwidth.get() * n.efficiency.get())).si() +
         n.nic_latency.get().si();
}

bool near(double a, double b) { return std::abs(a - b) < 1e-9 + 1e-6 * b; }

}  // namespace

TEST_CASE("cache transfer: the busiest interface decides") {
  const Cluster c = load_cluster("dgx-b200", 16);
  REQUIRE(c.fabric.scale_out.nics_per_accelerator.get() == 1);
  const auto took = [&](const EngineLayout& from, Bytes sent, const EngineLayout& to, Bytes kept) {
    return seconds(CacheTransfer(c, {from, sent}, {to, kept}, false));
  };
  // Each rank sends to its like.
  CHECK(near(took(layout(8, 1), latents, layout(8, 1), latents), alone(c, latents)));
  // One rank has the prompt, eight want it whole.
  CHECK(near(took(layout(1, 8), latents, layout(8, 1), latents), alone(c, 8 * latents)));
  CHECK(near(took(layout(1, 8), latents, layout(1, 8), latents), alone(c, latents)));
  // Heads: eight have an eighth each, two get a half each, and the other way round.
  const Bytes eighth{1e6};
  CHECK(near(took(layout(8, 1), eighth, layout(2, 1), 4 * eighth), alone(c, 4 * eighth)));
  CHECK(near(took(layout(2, 1), 4 * eighth, layout(8, 1), eighth), alone(c, 4 * eighth)));
  // Stages keep their layers.
  CHECK(near(took(layout(4, 1), 2 * eighth, layout(4, 1, 2), eighth), alone(c, 2 * eighth)));
}

TEST_CASE("cache transfer: attention ranks have links of their own") {
  const Cluster c = load_cluster("dgx-b200", 16);
  const CacheTransfer one(c, {layout(8, 1), latents}, {layout(8, 1), latents}, false);
  const CacheTransfer eight(c, {layout(1, 8), latents}, {layout(1, 8), latents}, false);
  CHECK(near(seconds(one), seconds(eight)));
  CHECK(near(to_seconds(one.on_link(tokens)).si(), 8 * to_seconds(eight.on_link(tokens)).si()));
}

TEST_CASE("cache transfer: a scale-up domain carries it where it may") {
  const Cluster c = load_cluster("gb200-nvl72", 36);
  const CacheHolder from{layout(1, 4), latents}, to{layout(8, 1), latents};
  const double inside = seconds(CacheTransfer(c, from, to, true));
  CHECK(inside < seconds(CacheTransfer(c, from, to, false)) / 5);
  CHECK(inside > 0);
  CHECK(CacheTransfer(c, from, to, true).on_link(0) == Ticks{});
}

}  // namespace orrery
