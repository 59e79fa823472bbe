// SPDX-License-Identifier: Apache-2.0
// Knows what running traces promises: closed forms of networks, streams, and errors.
#include "sim/chakra/replay.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "tests/base/error_text.h"
#include "tests/chakra/simple_network.h"

namespace orrery {
namespace {

using test::same_on_all;
using test::simple_network;

constexpr double mib = 1048576, gib = 1073741824;

TraceNode collective(std::uint64_t id, TraceCollective kind, double bytes,
                     std::vector<std::uint64_t> after = {}) {
  return {.id = id,
          .name = "c" + std::to_string(id),
          .type = TraceNodeType::collective,
          .after = std::move(after),
          .collective = kind,
          .bytes = bytes};
}
TraceNode kernel(std::uint64_t id, std::uint64_t micros, std::vector<std::uint64_t> after = {}) {
  return {.id = id, .name = "k" + std::to_string(id), .after = std::move(after), .micros = micros};
}
TraceNode message(TraceNodeType type, std::uint64_t id, std::int64_t peer, double bytes,
                  std::vector<std::uint64_t> after = {}) {
  return {.id = id,
          .name = "m" + std::to_string(id),
          .type = type,
          .after = std::move(after),
          .bytes = bytes,
          .peer = peer,
          .tag = 7};
}

// ASTRA-sim's system layer cuts a collective into four that follow each other (the examples'
// preferred-dataset-splits), and waits 10 ns (endpoint-delay) for each message and each call.
Traces in_four(std::int64_t ranks, double bytes) {
  std::vector<TraceNode> nodes;
  for (std::uint64_t i = 0; i < 4; ++i)
    nodes.push_back(collective(i, TraceCollective::all_reduce, bytes / 4,
                               i == 0 ? std::vector<std::uint64_t>{} : std::vector{i - 1}));
  return same_on_all(static_cast<std::size_t>(ranks), nodes);
}
constexpr double endpoint = 10;  // ns

double nanoseconds(Ticks t) { return static_cast<double>(t.ps) * 1e-3; }

}  // namespace

TEST_CASE("collectives take what ASTRA-sim's closed forms say") {
  // Its examples' network: 50 GB/s, of 2^30 bytes each, and 500 ns a link.
  const double latency = 500, rate = 50 * gib / 1e9;  // ns, bytes a ns
  for (const std::int64_t n : {2, 4, 8, 16, 64}) {
    const Cluster cluster = simple_network(n, Seconds(latency * 1e-9), BytesPerSecond(rate * 1e9));
    const auto steps = static_cast<double>(n - 1), ranks = static_cast<double>(n);
    for (const double bytes : {1024.0, mib, 64 * mib, gib}) {
      const auto time = [&](TraceCollective kind) {
        const Traces t = same_on_all(static_cast<std::size_t>(n), {collective(1, kind, bytes)});
        return nanoseconds(replay(t, cluster).step);
      };
      INFO(n << " ranks, " << bytes << " bytes");
      const double part = bytes / ranks / rate;
      CHECK(time(TraceCollective::all_reduce) == Approx(2 * steps * (latency + part)));
      CHECK(time(TraceCollective::reduce_scatter) == Approx(steps * (latency + part)));
      CHECK(time(TraceCollective::all_gather) == Approx(steps * (latency + bytes / rate)));
      CHECK(time(TraceCollective::all_to_all) == Approx(latency + steps * part));
    }
    Traces pair = same_on_all(static_cast<std::size_t>(n), {});
    pair.ranks[0].nodes = {message(TraceNodeType::send, 1, 1, mib)};
    pair.ranks[1].nodes = {message(TraceNodeType::receive, 1, 0, mib)};
    CHECK(nanoseconds(replay(pair, cluster).step) == Approx(latency + mib / rate));
  }
}

TEST_CASE("times that ASTRA-sim printed are those of its closed form") {
  const auto printed = [](std::int64_t ranks, double latency, double bytes) {
    const Cluster cluster = simple_network(ranks, Seconds((latency + endpoint) * 1e-9),
                                           BytesPerSecond(50 * gib), Seconds(endpoint * 1e-9));
    return nanoseconds(replay(in_four(ranks, bytes), cluster).step);
  };
  // Its tutorial at MICRO 2024, demo 1-1: a ring of 8 with 500 ns a link. The log's bytes cost
  // nothing; a cycle is a nanosecond.
  CHECK(printed(8, 500, 0) == Approx(28600));
  // A switch, two links of 500 ns from rank to rank, 4 KiB: microseconds for 4 to 64 ranks
  // (kredd2506.github.io/Astro, 9 June 2026).
  constexpr double published[] = {24, 57, 121, 251, 509};
  std::int64_t ranks = 4;
  for (const double us : published) {
    CHECK(std::round(printed(ranks, 1000, 4096) * 1e-3) == us);
    ranks *= 2;
  }
}

TEST_CASE("a rank's step is compute, exposed communication and waiting") {
  const Cluster cluster = simple_network(2, Seconds(10e-6), BytesPerSecond(1e9));
  // 100 us of kernels beside a collective of 2 x (10 + 500) us, then 30 us that wait for both.
  Traces t = same_on_all(
      2, {kernel(1, 100), collective(2, TraceCollective::all_reduce, 1e6), kernel(3, 30, {1, 2})});
  t.ranks[1].nodes[0].micros = 300;
  const ReplayResult r = replay(t, cluster);
  CHECK(nanoseconds(r.step) == Approx(1050e3));
  CHECK(nanoseconds(r.ranks[0].compute) == Approx(130e3));
  CHECK(nanoseconds(r.ranks[0].communication) == Approx(1020e3));
  CHECK(nanoseconds(r.ranks[0].exposed) == Approx(920e3));
  CHECK(nanoseconds(r.ranks[1].exposed) == Approx(720e3));
  CHECK(r.ranks[0].idle.ps == 0);
  CHECK(r.slowest == 1);
  // Collectives start when the last rank is there.
  t.ranks[1].nodes[1].after = {1};
  const ReplayResult late = replay(t, cluster);
  CHECK(nanoseconds(late.step) == Approx(1350e3));
  CHECK(nanoseconds(late.ranks[0].idle) == Approx(200e3));
}

TEST_CASE("kernels share one stream, host nodes and communicators have their own") {
  const Cluster cluster = simple_network(4, Seconds(0), BytesPerSecond(1e9));
  CHECK(nanoseconds(replay(same_on_all(1, {kernel(1, 40), kernel(2, 2)}), cluster).step) ==
        Approx(42e3));
  TraceNode host = kernel(2, 60);
  host.on_host = true;
  CHECK(nanoseconds(replay(same_on_all(1, {kernel(1, 40), host}), cluster).step) == Approx(60e3));
  // Two collectives of 1,500 us: one after the other in one group, beside each other in two.
  TraceNode a = collective(1, TraceCollective::all_reduce, 1e6),
            b = collective(2, TraceCollective::all_reduce, 1e6);
  CHECK(nanoseconds(replay(same_on_all(4, {a, b}), cluster).step) == Approx(3000e3));
  b.group = "7";
  Traces two = same_on_all(4, {a, b});
  two.groups = {{.name = "7", .ranks = {3, 2, 1, 0}}};
  CHECK(nanoseconds(replay(two, cluster).step) == Approx(1500e3));
  CHECK(replay(two, cluster).collectives == 2);
}

TEST_CASE("kernels without a duration take what the device's peaks allow") {
  const Cluster cluster = simple_network(1, Seconds(0), BytesPerSecond(1e9));
  const ResolvedDevice device = cluster.device.resolved();
  const double flop = device.tensor_rate[static_cast<std::size_t>(Format::bf16)].si(),
               memory = device.memory_bandwidth.si();
  TraceNode products = kernel(1, 0), copies = kernel(2, 0);
  products.operations = 2e-3 * flop;
  copies.tensor_bytes = 3e-3 * memory;
  const ReplayResult r = replay(same_on_all(1, {products, copies}), cluster);
  CHECK(nanoseconds(r.step) == Approx(5e6));
  CHECK(r.modelled == 2);
}

TEST_CASE("traces that cannot run get one error") {
  const Cluster cluster = simple_network(4, Seconds(1e-6), BytesPerSecond(1e9));
  const auto error = [&](const Traces& t) { return error_text([&] { replay(t, cluster); }); };
  const auto has = [](const std::string& text, const char* words) {
    INFO(text);
    return text.find(words) != std::string::npos;
  };
  // The third waits for a circle and is none.
  const std::string circle =
      error(same_on_all(1, {kernel(3, 1, {2}), kernel(1, 5, {2}), kernel(2, 5, {1})}));
  CHECK(has(circle, "found dependencies that lead back to it"));
  CHECK(!has(circle, "k3"));
  CHECK(has(error(same_on_all(1, {kernel(1, 5, {9})})), "a dependency on node 9"));
  CHECK(has(error(same_on_all(1, {kernel(1, 5), kernel(1, 5)})), "its id a second time"));
  Traces sends = same_on_all(2, {});
  sends.ranks[0].nodes = {message(TraceNodeType::send, 1, 1, 10)};
  CHECK(has(error(sends), "a send that rank 1 does not receive"));
  sends.ranks[0].nodes = {message(TraceNodeType::send, 1, 5, 10)};
  CHECK(has(error(sends), "rank 5 as its peer"));
  sends.ranks[0].nodes = {message(TraceNodeType::receive, 1, 1, 10)};
  CHECK(has(error(sends), "a receive that rank 1 does not send"));
  Traces unlike = same_on_all(2, {collective(1, TraceCollective::all_reduce, 10)});
  unlike.ranks[1].nodes[0].bytes = 20;
  CHECK(has(error(unlike), "ALL_REDUCE of 20 bytes"));
  unlike.ranks[1].nodes.clear();
  CHECK(has(error(unlike), "no collective for it in t.1.et"));
  Traces nameless = same_on_all(2, {collective(1, TraceCollective::all_reduce, 10)});
  nameless.ranks[0].nodes[0].group = "3";
  CHECK(has(error(nameless), "a file of groups (--comm-group)"));
  nameless.groups_file = "groups.json";
  CHECK(has(error(nameless), "one of groups.json"));
  // Each rank's first message waits for the other's.
  Traces crossed = same_on_all(2, {});
  for (std::int64_t i = 0; i < 2; ++i)
    crossed.ranks[static_cast<std::size_t>(i)].nodes = {
        message(TraceNodeType::receive, 1, 1 - i, 10),
        message(TraceNodeType::send, 2, 1 - i, 10, {1})};
  CHECK(has(error(crossed), "ranks that wait for each other"));
  TraceNode load{.id = 1, .name = "l", .type = TraceNodeType::load, .tensor_bytes = 1e6};
  CHECK(has(error(same_on_all(1, {load})), "no error"));
}

}  // namespace orrery
