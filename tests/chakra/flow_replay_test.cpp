// SPDX-License-Identifier: Apache-2.0
// Knows what traces on a shared network promise: nothing shared takes what it takes alone, what
// shares a link waits for it, and faults and others' traffic reach who crosses them.
#include <catch2/catch.hpp>

#include "sim/base/random.h"
#include "sim/chakra/replay.h"
#include "tests/base/error_text.h"
#include "tests/chakra/simple_network.h"

namespace orrery {
namespace {

using test::same_on_all;
using test::simple_network;

constexpr double mib = 1048576;

TraceNode collective(std::uint64_t id, TraceCollective kind, double bytes,
                     const std::string& group = "") {
  return {.id = id,
          .name = "c" + std::to_string(id),
          .type = TraceNodeType::collective,
          .collective = kind,
          .bytes = bytes,
          .group = group};
}
TraceNode message(TraceNodeType type, std::uint64_t id, std::int64_t peer, double bytes) {
  return {.id = id,
          .name = "m" + std::to_string(id),
          .type = type,
          .bytes = bytes,
          .peer = peer,
          .tag = static_cast<std::int64_t>(id)};
}

ReplayOptions flow(Conditions conditions = {}) {
  return {.network = NetworkMode::flow, .conditions = std::move(conditions)};
}
double micros(const Traces& t, const Cluster& c, const ReplayOptions& options) {
  return 1e6 * to_seconds(replay(t, c, options).step).si();
}
double micros(const Traces& t, const Cluster& c) { return micros(t, c, ReplayOptions()); }

}  // namespace

TEST_CASE("what nothing shares takes the same on both networks") {
  const TraceCollective kinds[] = {TraceCollective::all_reduce,     TraceCollective::all_gather,
                                   TraceCollective::reduce_scatter, TraceCollective::all_to_all,
                                   TraceCollective::broadcast,      TraceCollective::barrier};
  RandomStream random(7, 0);
  for (const char* name : {"dgx-h100", "gb200-nvl72", "simple"}) {
    for (int i = 0; i < 12; ++i) {
      const auto hosts = static_cast<std::int64_t>(1 + random.below(4));
      const Cluster cluster = std::string(name) == "simple"
                                  ? simple_network(4 * hosts, Seconds(1e-6), BytesPerSecond(5e10))
                                  : load_cluster(name, hosts * 72);
      const std::int64_t ranks = hosts * std::min<std::int64_t>(8, cluster.fabric.scale_up.domain);
      if (ranks < 2) continue;
      const TraceCollective kind = kinds[random.below(std::size(kinds))];
      const double bytes = std::pow(2.0, 10 + static_cast<double>(random.below(18)));
      Traces t = same_on_all(static_cast<std::size_t>(ranks), {collective(1, kind, bytes)});
      t.ranks_per_domain = std::min<std::int64_t>(8, cluster.fabric.scale_up.domain);
      INFO(name << ", " << ranks << " ranks, " << to_text(kind) << " of " << bytes << " bytes");
      CHECK(micros(t, cluster, flow()) == Approx(micros(t, cluster)).epsilon(1e-6));
    }
  }
}

TEST_CASE("two groups that share ports share their rate, and those that do not, do not") {
  const Cluster cluster = simple_network(8, Seconds(0), BytesPerSecond(1e9));
  // Rings of 1,500 us: of ranks 0 to 3 and 4 to 7, then twice of the same ranks.
  const auto step = [&](std::vector<std::int64_t> other, const ReplayOptions& options) {
    Traces t = same_on_all(8, {});
    t.groups = {{.name = "a", .ranks = {0, 1, 2, 3}}, {.name = "b", .ranks = other}};
    for (const std::int64_t r : {0, 1, 2, 3})
      t.ranks[static_cast<std::size_t>(r)].nodes.push_back(
          collective(1, TraceCollective::all_reduce, 1e6, "a"));
    for (const std::int64_t r : other)
      t.ranks[static_cast<std::size_t>(r)].nodes.push_back(
          collective(2, TraceCollective::all_reduce, 1e6, "b"));
    return micros(t, cluster, options);
  };
  CHECK(step({4, 5, 6, 7}, flow()) == Approx(1500));
  CHECK(step({0, 1, 2, 3}, flow()) == Approx(3000));
  CHECK(step({0, 1, 2, 3}, {}) == Approx(1500));
  // They meet on one link alone, which both rings wait for.
  CHECK(step({2, 3, 4, 5}, flow()) == Approx(3000));
  CHECK(step({3, 4, 5, 6}, flow()) == Approx(3000));
}

TEST_CASE("messages between two ranks follow each other, and meet others at a port") {
  const Cluster cluster = simple_network(4, Seconds(0), BytesPerSecond(1e9));
  Traces t = same_on_all(4, {});
  t.ranks[0].nodes = {message(TraceNodeType::send, 1, 1, 1e6),
                      message(TraceNodeType::send, 2, 1, 1e6)};
  t.ranks[1].nodes = {message(TraceNodeType::receive, 1, 0, 1e6),
                      message(TraceNodeType::receive, 2, 0, 1e6)};
  CHECK(micros(t, cluster, flow()) == Approx(2000));
  CHECK(micros(t, cluster) == Approx(1000));
  // A third rank's message to the same port: 3 MB through it in all.
  t.ranks[2].nodes = {message(TraceNodeType::send, 3, 1, 1e6)};
  t.ranks[1].nodes.push_back(message(TraceNodeType::receive, 3, 2, 1e6));
  const ReplayResult r = replay(t, cluster, flow());
  CHECK(1e6 * to_seconds(r.step).si() == Approx(3000));
  CHECK(1e6 * to_seconds(r.ranks[2].end).si() == Approx(2000));
  CHECK(r.messages == 3);
}

TEST_CASE("a transfer that ends gives its share to those that go on") {
  const Cluster cluster = simple_network(3, Seconds(0), BytesPerSecond(1e9));
  Traces t = same_on_all(3, {});
  t.ranks[0].nodes = {message(TraceNodeType::send, 1, 2, 1e6)};
  t.ranks[1].nodes = {message(TraceNodeType::send, 2, 2, 3e6)};
  t.ranks[2].nodes = {message(TraceNodeType::receive, 1, 0, 1e6),
                      message(TraceNodeType::receive, 2, 1, 3e6)};
  const ReplayResult r = replay(t, cluster, flow());
  CHECK(1e6 * to_seconds(r.ranks[0].end).si() == Approx(2000));
  CHECK(1e6 * to_seconds(r.ranks[1].end).si() == Approx(4000));
}

TEST_CASE("faults, others' traffic and slow devices reach replays") {
  const Cluster cluster = load_cluster("dgx-h100", 32);
  const Traces t = same_on_all(32, {collective(1, TraceCollective::all_reduce, 256 * mib)});
  const double healthy = micros(t, cluster, flow());
  CHECK(healthy == Approx(micros(t, cluster)).epsilon(1e-6));
  const auto with = [&](const Conditions& c) { return micros(t, cluster, flow(c)); };
  const NetworkFault nic{.kind = FaultKind::nic, .accelerator = 3, .plane = -1, .remaining = 0.5};
  CHECK(with({.faults = {nic}}) > 1.5 * healthy);
  CHECK(with({.scale_up_faults = {{.gpu = 5, .remaining = 0.1}}}) > 1.5 * healthy);
  CHECK(with({.background = {{.first_gpu = 0, .gpus = 32, .load = 1}}}) > 1.5 * healthy);
  const Traces kernels = same_on_all(2, {{.id = 1, .name = "k", .micros = 100}});
  for (const NetworkMode network : {NetworkMode::ideal, NetworkMode::flow}) {
    const ReplayOptions slow{.network = network,
                             .conditions = {.slow_gpus = {{.gpu = 1, .speed = 0.5}}}};
    const ReplayResult r = replay(kernels, cluster, slow);
    CHECK(1e6 * to_seconds(r.ranks[0].end).si() == Approx(100));
    CHECK(1e6 * to_seconds(r.ranks[1].end).si() == Approx(200));
  }
}

TEST_CASE("groups that lie unevenly over hosts, and ranks on other rails, find their links") {
  const Cluster cluster = load_cluster("dgx-h100", 32);
  Traces t = same_on_all(32, {});
  t.groups = {{.name = "odd", .ranks = {0, 1, 2, 9, 17, 18, 31}}};
  for (const std::int64_t r : t.groups[0].ranks)
    t.ranks[static_cast<std::size_t>(r)].nodes.push_back(
        collective(1, TraceCollective::all_gather, 8 * mib, "odd"));
  t.ranks[3].nodes.push_back(message(TraceNodeType::send, 2, 12, mib));
  t.ranks[12].nodes.push_back(message(TraceNodeType::receive, 2, 3, mib));
  const double shared = micros(t, cluster, flow());
  CHECK(shared > 0);
  CHECK(shared < 4 * micros(t, cluster));
}

}  // namespace orrery
