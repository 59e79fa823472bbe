// SPDX-License-Identifier: Apache-2.0
// Knows the closed forms of collectives on idealised networks, and that the costs reduce to them.
#include <rapidcheck.h>

#include <catch2/catch.hpp>
#include <cmath>

#include "sim/engine/collectives/collectives.h"

namespace orrery {
namespace {

using Kind = CollectiveKind;
using Algorithm = CollectiveAlgorithm;
using Protocol = CollectiveProtocol;

// ASTRA-sim's analytical backend: a link has a rate and a latency, a step costs its latency and its
// bytes over the rate, and nothing else costs anything.
struct Link {
  double rate, latency;  // B/s, s
};

double step(double bytes, const Link& link) { return link.latency + bytes / link.rate; }

// NPUs in domains of `inside`, joined by links of their own to one switch.
Fabric ideal_fabric(std::int64_t inside, const Link& up, const Link& out) {
  Fabric f;
  f.name = "ideal";
  f.scale_up.kind = ScaleUpKind::switched;
  f.scale_up.domain = inside;
  f.scale_up.bandwidth.value = bytes_per_second(up.rate);
  f.scale_up.latency.value = Seconds(up.latency);
  f.scale_out.kind = ScaleOutKind::fat_tree;
  f.scale_out.nics_per_accelerator.value = 1;
  f.scale_out.nic_bandwidth.value = bytes_per_second(out.rate);
  f.scale_out.nic_latency.value = Seconds(out.latency);
  f.scale_out.efficiency.value = 1;
  f.scale_out.tiers.emplace_back();
  f.scale_out.tiers.back().oversubscription.value = 1;
  f.scale_out.tiers.back().latency.value = Seconds(0);
  return f;
}

// A library without overheads; a step inside a domain takes `hop`.
CollectiveCosts ideal_costs(double hop = 0) {
  CollectiveCosts costs;
  costs.name = "ideal";
  for (const Algorithm a : {Algorithm::ring, Algorithm::tree, Algorithm::pat, Algorithm::direct,
                            Algorithm::hierarchical}) {
    StepCosts& s = costs.steps[static_cast<int>(a)][static_cast<int>(Protocol::simple)];
    s.present = true;
    s.base.value = Seconds(0);
    s.hop.value = Seconds(a == Algorithm::pat || a == Algorithm::direct ? 0 : hop);
  }
  return costs;
}

GroupShape spread(std::int64_t domains, std::int64_t inside = 1) {
  return {
      .size = domains * inside, .per_domain = inside, .domains = domains, .span = domains * inside};
}

double seconds(const Collective& c, const Fabric& f, const CollectiveCosts& costs, Algorithm a) {
  const auto t = collective_time_with(c, f, costs, a, Protocol::simple);
  RC_ASSERT(t.has_value());
  return t->time.si();
}

bool same(double a, double b) { return std::abs(a - b) <= 1e-12 * std::max(a, b); }

Link any_link() {
  return {.rate = 1e9 * *rc::gen::inRange(1, 1000), .latency = 1e-9 * *rc::gen::inRange(0, 20000)};
}
double any_size() { return std::exp2(*rc::gen::inRange(0, 36)) * *rc::gen::inRange(1, 8); }

// N NPUs in a ring: an all-reduce is 2 (N - 1) steps of a part of N; its halves are N - 1.
TEST_CASE("a ring takes its steps one after another", "[collectives][ideal]") {
  CHECK(rc::check([] {
    const auto n = *rc::gen::inRange<std::int64_t>(2, 2000);
    const double size = any_size();
    const Link link = any_link();
    const Fabric f = ideal_fabric(1, {1e12, 0}, link);
    const auto time = [&](Kind kind) {
      return seconds({.kind = kind, .group = spread(n), .bytes = Bytes(size)}, f, ideal_costs(),
                     Algorithm::ring);
    };
    const auto parts = static_cast<double>(n);
    double pass = 0;
    for (std::int64_t i = 0; i < n - 1; ++i) pass += step(size / parts, link);
    RC_ASSERT(std::abs(time(Kind::all_reduce) / (2 * pass) - 1) < 1e-9);
    RC_ASSERT(std::abs(time(Kind::all_gather) / pass - 1) < 1e-9);
    RC_ASSERT(same(time(Kind::reduce_scatter), time(Kind::all_gather)));
  }));
}

// Inside a domain steps overlap transfers (they are rounded against each other), so the closed form
// holds where one of the two is nothing, and the sum bounds it elsewhere.
TEST_CASE("a ring inside a domain has the closed form's two ends", "[collectives][ideal]") {
  CHECK(rc::check([] {
    const auto n = *rc::gen::inRange<std::int64_t>(2, 256);
    const double size = any_size();
    const Link link = any_link();
    const GroupShape group = {.size = n, .per_domain = n, .domains = 1, .span = n};
    const Fabric f = ideal_fabric(n, link, {1e9, 0});
    const auto time = [&](double bytes, double hop) {
      return seconds({.kind = Kind::all_reduce, .group = group, .bytes = Bytes(bytes)}, f,
                     ideal_costs(hop), Algorithm::ring);
    };
    const double steps = 2 * static_cast<double>(n - 1);
    const double bytes = steps / static_cast<double>(n) * size / link.rate;
    RC_ASSERT(same(time(size, 0), bytes));
    RC_ASSERT(same(time(0, link.latency), steps * link.latency));
    const double both = time(size, link.latency);
    RC_ASSERT(both <= (bytes + steps * link.latency) * (1 + 1e-12));
    RC_ASSERT(both >= std::max(bytes, steps * link.latency) * (1 - 1e-12));
  }));
}

// Halving and doubling on a switch: log2 N steps of S/2, S/4, ... and back. NCCL calls the halves
// PAT; an all-reduce is the one after the other. A tree has as many steps; it has the same bytes
// for two, and from four on its busiest node sends two buffers where halving sends 2 (N - 1) / N.
TEST_CASE("halving and doubling is PAT forth and back", "[collectives][ideal]") {
  CHECK(rc::check([] {
    const int doublings = *rc::gen::inRange(1, 13);
    const double size = any_size();
    const Link link = any_link();
    const Fabric f = ideal_fabric(1, {1e12, 0}, link);
    const auto n = std::int64_t{1} << doublings;
    double halving = 0;
    for (int k = 1; k <= doublings; ++k) halving += step(size / std::exp2(k), link);
    const auto time = [&](Kind kind, Algorithm algorithm) {
      return seconds({.kind = kind, .group = spread(n), .bytes = Bytes(size)}, f, ideal_costs(),
                     algorithm);
    };
    RC_ASSERT(same(time(Kind::reduce_scatter, Algorithm::pat), halving));
    RC_ASSERT(same(time(Kind::all_gather, Algorithm::pat), halving));
    const double surplus = n < 4 ? 0 : 2 * size / static_cast<double>(n) / link.rate;
    RC_ASSERT(same(time(Kind::all_reduce, Algorithm::tree), 2 * halving + surplus));
  }));
}

// Two dimensions: scatter inside, all-reduce a part of q across, gather inside.
TEST_CASE("a hierarchy runs its dimensions in turn", "[collectives][ideal]") {
  CHECK(rc::check([] {
    const auto inside = *rc::gen::inRange<std::int64_t>(2, 73);
    const auto domains = *rc::gen::inRange<std::int64_t>(2, 200);
    const double size = any_size();
    const double up = 1e9 * *rc::gen::inRange(1, 1000), out = 1e9 * *rc::gen::inRange(1, 1000);
    const Collective c{
        .kind = Kind::all_reduce, .group = spread(domains, inside), .bytes = Bytes(size)};
    const auto q = static_cast<double>(inside), k = static_cast<double>(domains);
    const double dimension_one = 2 * (q - 1) * step(size / q, {up, 0});
    const double dimension_two = 2 * (k - 1) * step(size / q / k, {out, 0});
    const double time =
        seconds(c, ideal_fabric(inside, {up, 0}, {out, 0}), ideal_costs(), Algorithm::hierarchical);
    RC_ASSERT(std::abs(time / (dimension_one + dimension_two) - 1) < 1e-9);
    // And the steps alone.
    Collective empty = c;
    empty.bytes = Bytes(0);
    const double near = 1e-9 * *rc::gen::inRange(1, 9000), far = 1e-9 * *rc::gen::inRange(1, 9000);
    const double steps = seconds(empty, ideal_fabric(inside, {up, 0}, {out, far}),
                                 ideal_costs(near), Algorithm::hierarchical);
    RC_ASSERT(same(steps, 2 * (q - 1) * near + 2 * (k - 1) * far));
  }));
}

// Every NPU sends a part to every other through its own link: one latency, N - 1 parts.
TEST_CASE("a direct all-to-all on a switch", "[collectives][ideal]") {
  CHECK(rc::check([] {
    const auto n = *rc::gen::inRange<std::int64_t>(2, 2000);
    const double size = any_size();
    const Link link = any_link();
    const Collective c{.kind = Kind::all_to_all, .group = spread(n), .bytes = Bytes(size)};
    const double time =
        seconds(c, ideal_fabric(1, {1e12, 0}, link), ideal_costs(), Algorithm::direct);
    const auto parts = static_cast<double>(n);
    RC_ASSERT(same(time, step((parts - 1) * (size / parts), link)));
  }));
}

}  // namespace
}  // namespace orrery
