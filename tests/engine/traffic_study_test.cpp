// SPDX-License-Identifier: Apache-2.0
// Knows what studies of routing promise: closed forms agree with them, more queue pairs are no
// worse, spraying loses to tapering alone, and every byte is on a link.
#include "sim/engine/traffic/study.h"

#include <rapidcheck.h>

#include <catch2/catch.hpp>

#include "sim/engine/cluster.h"

namespace orrery {
namespace {

using Pattern = TrafficPattern;

TrafficOptions ecmp(std::int64_t accelerators, Pattern pattern, std::int64_t pairs) {
  return {.accelerators = accelerators,
          .pattern = pattern,
          .routing = Routing::ecmp,
          .paths_per_flow = pairs,
          .seed = 7};
}

const LayerLoad& layer(const TrafficStudy& study, int number) {
  for (const LayerLoad& l : study.layers)
    if (l.layer == number) return l;
  FAIL("the study has no layer " << number);
  return study.layers.front();
}

// Two tiers of `hosts` hosts of `domain` under a leaf, tapered.
Fabric small_fabric(std::int64_t domain, std::int64_t hosts, std::int64_t leaves, double taper) {
  Fabric fabric = load_fabric("nvlink4-roce");
  fabric.scale_up.domain = domain;
  std::vector<Tier>& tiers = fabric.scale_out.tiers;
  tiers.resize(2);
  for (Tier& tier : tiers) tier.radix = 0;
  tiers[0].reach = domain * hosts;
  tiers[1].reach = domain * hosts * leaves;
  tiers[0].oversubscription.value = taper;
  return fabric;
}

TEST_CASE("closed forms of hashing agree with the study at 1,024 GPUs", "[traffic]") {
  for (const char* name : {"nvlink4-roce-flat", "nvlink4-roce", "nvlink4-spectrum-x"}) {
    const Fabric fabric = load_fabric(name);
    for (const Pattern pattern : {Pattern::crossing_ring, Pattern::spread_all_to_all})
      for (const std::int64_t pairs : {1, 4, 16}) {
        const TrafficStudy s = traffic_study(fabric, ecmp(1024, pattern, pairs));
        INFO(name << " " << to_text(pattern) << " " << pairs << " queue pairs");
        CHECK(s.synchronised.value == Approx(s.closed.synchronised).epsilon(0.07));
        REQUIRE(s.closed.mean_low.has_value());
        REQUIRE(s.closed.mean_high.has_value());
        CHECK(s.mean->value > *s.closed.mean_low * 0.98);
        CHECK(s.mean->value < *s.closed.mean_high * 1.02);
        CHECK(s.synchronised.error < 0.05 * s.synchronised.value);
      }
  }
}

TEST_CASE("more queue pairs are no worse on average over hashes", "[traffic]") {
  for (const char* name : {"nvlink4-roce-flat", "nvlink4-roce", "nvlink3-megascale"}) {
    const Fabric fabric = load_fabric(name);
    for (const Pattern pattern : {Pattern::ring, Pattern::crossing_ring, Pattern::all_to_all,
                                  Pattern::spread_all_to_all, Pattern::all_to_all_all}) {
      double collective = 0, single = 0;
      for (const std::int64_t pairs : {1, 2, 4, 8, 16}) {
        TrafficOptions options = ecmp(512, pattern, pairs);
        options.rounds = 16;
        const TrafficStudy s = traffic_study(fabric, options);
        INFO(name << " " << to_text(pattern) << " " << pairs << " queue pairs");
        CHECK(s.synchronised.value >= collective - 1e-9);
        CHECK(s.mean->value >= single - 1e-9);
        CHECK(s.mean->value >= s.synchronised.value - 1e-9);
        collective = s.synchronised.value;
        single = s.mean->value;
      }
    }
  }
}

TEST_CASE("spraying reaches the fabric's efficiency where nothing is tapered", "[traffic]") {
  for (const std::string& name : fabric_names()) {
    const Fabric fabric = load_fabric(name);
    const ScaleOutKind kind = fabric.scale_out.kind;
    if (kind == ScaleOutKind::none || kind == ScaleOutKind::torus) continue;
    bool tapered = kind == ScaleOutKind::dragonfly_plus || fabric.sites.accelerators > 0;
    for (const Tier& tier : fabric.scale_out.tiers) tapered |= tier.oversubscription.get() != 1;
    if (tapered) continue;
    for (const Pattern pattern : {Pattern::ring, Pattern::crossing_ring, Pattern::all_to_all_all})
      for (const Routing routing : {Routing::spray, Routing::adaptive}) {
        INFO(name << " " << to_text(pattern));
        const TrafficStudy s = traffic_study(
            fabric, {.accelerators = (512 / fabric.scale_up.domain + 2) * fabric.scale_up.domain,
                     .pattern = pattern,
                     .routing = routing});
        const double efficiency = fabric.scale_out.efficiency.get();
        CHECK(s.synchronised.value == Approx(efficiency).epsilon(1e-6));
        CHECK(s.mean->value == Approx(efficiency).epsilon(1e-6));
        CHECK(s.synchronised.error < 1e-6);
        CHECK(s.closed.synchronised == Approx(efficiency).epsilon(1e-6));
      }
  }
}

TEST_CASE("tapered links leave crossing traffic their share", "[traffic]") {
  REQUIRE(rc::check([] {
    const std::int64_t hosts = std::int64_t{1} << *rc::gen::inRange(1, 5);
    const double taper = *rc::gen::element(1.0, 2.0, 4.0, 8.0);
    const std::int64_t leaves = *rc::gen::inRange<std::int64_t>(2, 9);
    const Fabric fabric = small_fabric(8, hosts, leaves, taper);
    const TrafficStudy s = traffic_study(fabric, {.accelerators = 8 * hosts * leaves,
                                                  .pattern = Pattern::crossing_ring,
                                                  .routing = Routing::spray});
    const double share = fabric.scale_out.efficiency.get() / taper;
    RC_ASSERT(s.crossing[2] == 1.0);
    RC_ASSERT(std::abs(s.synchronised.value / share - 1) < 1e-6);
    RC_ASSERT(std::abs(s.mean->value / share - 1) < 1e-6);
    RC_ASSERT(std::abs(s.closed.synchronised / share - 1) < 1e-6);
    RC_ASSERT(std::abs(layer(s, 2).most / taper - 1) < 1e-6);
  }));
}

TEST_CASE("rail-aligned groups of neighbours stay under their leaves", "[traffic]") {
  const Fabric fabric = load_fabric("nvlink4-roce-flat");
  const TrafficStudy s = traffic_study(fabric, ecmp(1024, Pattern::all_to_all, 1));
  CHECK(s.crossing[1] == 1.0);
  CHECK(s.peers == 7);
  CHECK(layer(s, 2).idle == layer(s, 2).links);
  CHECK(s.synchronised.value == Approx(fabric.scale_out.efficiency.get()).epsilon(1e-9));
  // The same groups of a fabric whose leaves hold two hosts: six of seven partners are elsewhere.
  const TrafficStudy tree =
      traffic_study(load_fabric("nvlink4-roce"), ecmp(1024, Pattern::all_to_all, 1));
  CHECK(tree.crossing[2] == Approx(6.0 / 7).epsilon(1e-9));
  CHECK(tree.synchronised.value < 0.5 * s.synchronised.value);
}

TEST_CASE("law 6: the same seed gives the same study, another one another", "[traffic][law]") {
  const Fabric fabric = load_fabric("nvlink4-roce-flat");
  for (const Pattern pattern : {Pattern::crossing_ring, Pattern::all_to_all_all}) {
    TrafficOptions options = ecmp(1024, pattern, 4);
    const TrafficStudy a = traffic_study(fabric, options), b = traffic_study(fabric, options);
    CHECK(a.synchronised.value == b.synchronised.value);
    CHECK(a.synchronised.error == b.synchronised.error);
    CHECK(a.mean->value == b.mean->value);
    CHECK(layer(a, 2).deciles == layer(b, 2).deciles);
    options.seed = 8;
    const TrafficStudy c = traffic_study(fabric, options);
    CHECK(a.mean->value != c.mean->value);
    CHECK(a.synchronised.value == Approx(c.synchronised.value).epsilon(0.3));
  }
}

TEST_CASE("offered loads add up to the traffic", "[traffic][law]") {
  REQUIRE(rc::check([] {
    const std::int64_t domain = *rc::gen::element<std::int64_t>(1, 2, 4, 8);
    const std::int64_t hosts = *rc::gen::element<std::int64_t>(2, 4, 8);
    const std::int64_t domains = hosts * *rc::gen::inRange<std::int64_t>(2, 9);
    const Fabric fabric = small_fabric(domain, hosts, 8, 1);
    const auto pattern =
        *rc::gen::element(Pattern::ring, Pattern::crossing_ring, Pattern::all_to_all,
                          Pattern::spread_all_to_all, Pattern::all_to_all_all);
    TrafficOptions options = ecmp(domain * domains, pattern, *rc::gen::inRange(1, 5));
    options.routing = *rc::gen::element(Routing::ecmp, Routing::spray);
    options.group = 2 * domain;
    options.rounds = 3;
    const TrafficStudy s = traffic_study(fabric, options);
    const auto sum = [&](int number) { return layer(s, number).mean * layer(s, number).links; };
    const auto sending = static_cast<double>(s.sending);
    // Every byte leaves one NIC and enters one; what crosses goes up once and down once.
    RC_ASSERT(std::abs(sum(1) - 2 * sending) < 1e-6 * sending);
    RC_ASSERT(std::abs(sum(2) - 2 * sending * s.crossing[2]) < 1e-6 * sending);
    RC_ASSERT(layer(s, 1).most < 1 + 1e-6);
    RC_ASSERT(layer(s, 2).deciles.front() <= layer(s, 2).mean);
    RC_ASSERT(layer(s, 2).mean <= layer(s, 2).deciles.back() + 1e-9);
    const LayerLoad& l = layer(s, 2);
    RC_ASSERT(l.idle >= 0);
    RC_ASSERT(l.idle + l.overloaded <= l.links);
  }));
}

TEST_CASE("sampled rounds say how far they may be off", "[traffic]") {
  const Fabric fabric = load_fabric("nvlink4-roce-flat");
  TrafficOptions options = ecmp(512, Pattern::all_to_all_all, 4);
  options.rounds = 63;
  const TrafficStudy many = traffic_study(fabric, options);
  int within = 0;
  constexpr int seeds = 20;
  for (int seed = 0; seed < seeds; ++seed) {
    options.rounds = 12;
    options.seed = 100 + static_cast<std::uint64_t>(seed);
    const TrafficStudy few = traffic_study(fabric, options);
    const double error = std::hypot(few.synchronised.error, many.synchronised.error);
    within += std::abs(few.synchronised.value - many.synchronised.value) < 2 * error ? 1 : 0;
  }
  CHECK(within >= seeds * 3 / 4);
}

TEST_CASE("flows too many to solve are not judged by others", "[traffic]") {
  // Groups spread over pods pass cores; those of the first accelerators alone would not.
  TrafficOptions options = ecmp(16384, Pattern::spread_all_to_all, 16);
  options.rounds = 1;
  const TrafficStudy s = traffic_study(load_fabric("nvlink4-spectrum-x"), options);
  CHECK(s.mean_of < s.sending);
  CHECK(s.crossing[3] > 0.5);
  CHECK_FALSE(s.mean.has_value());
}

TEST_CASE("studies refuse what a fabric cannot carry", "[traffic]") {
  CHECK_THROWS_AS(traffic_study(load_fabric("nvlink4-host"), {.accelerators = 64}), Error);
  const Fabric fabric = load_fabric("nvlink4-roce-flat");
  CHECK_THROWS_AS(traffic_study(fabric, {.accelerators = 8}), Error);
  for (const std::int64_t group : {8, 12, 4096})
    CHECK_THROWS_AS(
        traffic_study(fabric,
                      {.accelerators = 1024, .pattern = Pattern::all_to_all, .group = group}),
        Error);
}

// Every figure of two studies; sums over links may round differently.
void same_study(const TrafficStudy& a, const TrafficStudy& b) {
  CHECK(a.synchronised.value == b.synchronised.value);
  CHECK(a.synchronised.error == b.synchronised.error);
  CHECK(a.crossing == b.crossing);
  CHECK(a.mean.has_value() == b.mean.has_value());
  if (a.mean && b.mean) CHECK(a.mean->value == b.mean->value);
  CHECK(a.mean_of == b.mean_of);
  CHECK(a.closed.synchronised == b.closed.synchronised);
  REQUIRE(a.layers.size() == b.layers.size());
  for (std::size_t l = 0; l < a.layers.size(); ++l) {
    const LayerLoad &x = a.layers[l], &y = b.layers[l];
    CHECK(x.layer == y.layer);
    CHECK(x.links == y.links);
    CHECK(x.mean == Approx(y.mean).epsilon(1e-12));
    CHECK(x.most == y.most);
    CHECK(x.deciles == y.deciles);
    CHECK(x.idle == y.idle);
    CHECK(x.overloaded == y.overloaded);
  }
}

TEST_CASE("law 5: a folded study of traffic says what every flow on every link says", "[traffic]") {
  for (const char* name : {"nvlink4-ndr", "nvlink4-roce", "nvlink4-rail-only", "nvl72-4plane",
                           "nvlink4-dragonfly-plus", "nvlink4-ndr-two-sites", "pcie4x4-400g",
                           "nvlink4-h800-hpn", "mi250x-slingshot", "nvlink3-roce-1600"}) {
    const Fabric fabric = load_fabric(name);
    const std::int64_t domain = fabric.scale_up.domain;
    for (const Pattern pattern : {Pattern::ring, Pattern::crossing_ring, Pattern::all_to_all,
                                  Pattern::spread_all_to_all, Pattern::all_to_all_all})
      for (const Routing routing : {Routing::ecmp, Routing::adaptive}) {
        TrafficOptions options{.accelerators = 48 * domain,
                               .pattern = pattern,
                               .group = 4 * domain,
                               .routing = routing,
                               .paths_per_flow = 3,
                               .rounds = 3};
        INFO(name << " " << to_text(pattern) << " " << to_text(routing));
        const TrafficStudy folded = traffic_study(fabric, options);
        options.folded = false;
        same_study(folded, traffic_study(fabric, options));
      }
  }
}

TEST_CASE("studies of several numbers of queue pairs are those of each alone", "[traffic]") {
  for (const char* name : {"nvlink4-roce", "nvl72-4plane"}) {  // the second has four ports
    const Fabric fabric = load_fabric(name);
    TrafficOptions options{.accelerators = 48 * fabric.scale_up.domain,
                           .pattern = Pattern::spread_all_to_all,
                           .group = 4 * fabric.scale_up.domain,
                           .routing = Routing::ecmp};
    const std::vector<std::int64_t> pairs = {1, 2, 4, 16};
    const auto together = traffic_studies(fabric, options, pairs);
    REQUIRE(together.size() == pairs.size());
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      INFO(name << " " << pairs[i]);
      options.paths_per_flow = pairs[i];
      const TrafficStudy alone = traffic_study(fabric, options);
      CHECK(together[i].options.paths_per_flow == alone.options.paths_per_flow);
      CHECK(together[i].options.rounds == alone.options.rounds);
      same_study(together[i], alone);
    }
  }
}

}  // namespace
}  // namespace orrery
