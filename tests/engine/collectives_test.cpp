// SPDX-License-Identifier: Apache-2.0
// Knows what collective times promise: measured tables within stated errors, and the laws.
#include "sim/engine/collectives/collectives.h"

#include <rapidcheck.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

#include "sim/engine/cluster.h"

namespace orrery {
namespace {

using Kind = CollectiveKind;
using Algorithm = CollectiveAlgorithm;
using Protocol = CollectiveProtocol;

GroupShape group(std::int64_t size, std::int64_t per_domain, std::int64_t sharing = 1) {
  return {.size = size,
          .per_domain = per_domain,
          .domains = (size + per_domain - 1) / per_domain,
          .span = size * sharing,
          .sharing = sharing};
}

double bus_bandwidth(const CollectiveTime& t, std::int64_t ranks, double bytes) {
  const auto n = static_cast<double>(ranks);
  return 2 * (n - 1) / n * bytes / t.time.si() / 1e9;
}

constexpr double mib = 1048576;

struct Row {
  Kind kind;
  std::int64_t ranks;
  double bytes, microseconds;
};

// Errors of rows that no constant was fitted to (odd powers of two; 4 ranks).
std::vector<double> errors(const std::vector<Row>& rows, const char* fabric, Architecture arch) {
  const Fabric f = load_fabric(fabric);
  const CollectiveCosts costs = load_collective_costs(arch);
  std::vector<double> result;
  for (const Row& r : rows) {
    const Collective c{.kind = r.kind, .group = group(r.ranks, r.ranks), .bytes = Bytes(r.bytes)};
    const double us = in_microseconds(collective_time(c, f, costs).time);
    INFO(to_text(r.kind) << " of " << r.bytes << " B on " << r.ranks << ": " << us
                         << " us, measured " << r.microseconds);
    result.push_back(std::abs(us / r.microseconds - 1));
    CHECK(result.back() < 0.35);
  }
  std::sort(result.begin(), result.end());
  return result;
}

double median(const std::vector<double>& sorted) { return sorted[sorted.size() / 2]; }

TEST_CASE("NCCL on eight H100 (aiconfigurator, held-out rows)", "[collectives]") {
  const auto error = errors({{Kind::all_reduce, 8, 2 * mib, 38.2},
                             {Kind::all_reduce, 8, 8 * mib, 78.9},
                             {Kind::all_reduce, 8, 32 * mib, 199.8},
                             {Kind::all_reduce, 8, 128 * mib, 578.7},
                             {Kind::all_reduce, 8, 512 * mib, 2111.1},
                             {Kind::all_reduce, 4, 64 * mib, 330.4},
                             {Kind::all_gather, 8, 8 * mib, 44.9},
                             {Kind::all_gather, 8, 128 * mib, 392.8},
                             {Kind::all_gather, 4, 256 * mib, 660.7},
                             {Kind::reduce_scatter, 8, 32 * mib, 111.3},
                             {Kind::reduce_scatter, 8, 512 * mib, 1399.4},
                             {Kind::reduce_scatter, 4, 16 * mib, 59.3},
                             {Kind::all_to_all, 8, 8 * mib, 41.4},
                             {Kind::all_to_all, 8, 128 * mib, 402.4},
                             {Kind::all_to_all, 4, 64 * mib, 192.3},
                             {Kind::all_reduce, 8, 8192, 16.0},
                             {Kind::all_reduce, 4, 4096, 9.8},
                             {Kind::all_gather, 8, 2048, 10.8}},
                            "nvlink4-ndr", Architecture::hopper);
  CHECK(median(error) < 0.08);
}

TEST_CASE("NCCL on eight B200 (aiconfigurator, held-out rows)", "[collectives]") {
  const auto error = errors({{Kind::all_reduce, 8, 8 * mib, 71.6},
                             {Kind::all_reduce, 8, 128 * mib, 398.4},
                             {Kind::all_reduce, 8, 512 * mib, 1334.6},
                             {Kind::all_reduce, 4, 256 * mib, 659.1},
                             {Kind::all_gather, 8, 32 * mib, 113.8},
                             {Kind::all_gather, 8, 512 * mib, 761.4},
                             {Kind::all_gather, 4, 64 * mib, 108.0},
                             {Kind::reduce_scatter, 8, 128 * mib, 208.0},
                             {Kind::reduce_scatter, 4, 1 * mib, 14.2},
                             {Kind::all_to_all, 8, 32 * mib, 88.8},
                             {Kind::all_to_all, 4, 512 * mib, 825.2},
                             {Kind::all_reduce, 8, 8192, 26.0},
                             {Kind::all_gather, 4, 4096, 11.3}},
                            "nvlink5-ndr", Architecture::blackwell);
  CHECK(median(error) < 0.08);
}

TEST_CASE("NCCL on eight A100 (aiconfigurator; Vidur on four)", "[collectives]") {
  const auto error = errors({{Kind::all_reduce, 8, 16 * mib, 216.5},
                             {Kind::all_reduce, 8, 256 * mib, 2182.5},
                             {Kind::all_reduce, 4, 65536000, 597},
                             {Kind::all_gather, 8, 256 * mib, 1216.8},
                             {Kind::reduce_scatter, 8, 256 * mib, 1149.5},
                             {Kind::all_to_all, 8, 256 * mib, 1197.9}},
                            "nvlink3-hdr", Architecture::ampere);
  CHECK(median(error) < 0.10);
}

struct Large {
  std::int64_t ranks, per_domain;
  double bytes, bus;  // GB/s
  double tolerance;
};

// Published all-reduces across nodes. They set the constants of rings and trees over nodes, so they
// guard the fit; the widest tolerances are where it is known to be off (README of the calibration).
TEST_CASE("all-reduce across nodes and racks", "[collectives]") {
  const auto check = [](const char* name, const char* fabric, Architecture arch,
                        const std::vector<Large>& rows) {
    const Fabric f = load_fabric(fabric);
    const CollectiveCosts costs = load_collective_costs(arch);
    for (const Large& r : rows) {
      const Collective c{
          .kind = Kind::all_reduce, .group = group(r.ranks, r.per_domain), .bytes = Bytes(r.bytes)};
      const double bus = bus_bandwidth(collective_time(c, f, costs), r.ranks, r.bytes);
      INFO(name << ", " << r.ranks << " ranks, " << r.bytes / mib << " MiB: " << bus
                << " GB/s, measured " << r.bus);
      CHECK(std::abs(bus / r.bus - 1) < r.tolerance);
    }
  };
  check("64 H100 (CoreWeave)", "nvlink4-ndr", Architecture::hopper,
        {{64, 8, 512 * mib, 356, 0.02},
         {64, 8, 1024 * mib, 366, 0.02},
         {64, 8, 2048 * mib, 381, 0.02},
         {64, 8, 4096 * mib, 383, 0.02},
         {64, 8, 8192 * mib, 387, 0.02}});
  check("GB200 NVL72 (CoreWeave)", "nvl72-ndr", Architecture::blackwell,
        {{72, 72, 512 * mib, 586, 0.06},
         {72, 72, 2048 * mib, 758, 0.06},
         {72, 72, 8192 * mib, 841, 0.06},
         {144, 72, 512 * mib, 494, 0.08},
         {144, 72, 2048 * mib, 680, 0.03},
         {144, 72, 16384 * mib, 810, 0.03},
         {1440, 72, 512 * mib, 151, 0.15},
         {1440, 72, 1024 * mib, 219, 0.03},
         {1440, 72, 2048 * mib, 287, 0.03},
         {1440, 72, 8192 * mib, 381, 0.03},
         {1440, 72, 16384 * mib, 406, 0.03}});
  check("32 B200 on EFA (Bekman)", "nvlink5-efa-3200", Architecture::blackwell,
        {{32, 8, 1 * mib, 5.4, 0.20},
         {32, 8, 16 * mib, 64, 0.06},
         {32, 8, 64 * mib, 157, 0.05},
         {32, 8, 256 * mib, 229, 0.25},
         {32, 8, 1024 * mib, 362, 0.05},
         {32, 8, 16384 * mib, 382, 0.05}});
  check("eight H800 (nccl issue 1374)", "nvlink4-h800-multiplane", Architecture::hopper,
        {{8, 8, 8192 * mib, 215, 0.05}});
  check("MI300X (Bekman)", "mi300x-roce", Architecture::cdna3,
        {{8, 8, 4096 * mib, 312.9, 0.05}, {2, 2, 4096 * mib, 47.7, 0.08}});
}

TEST_CASE("the choice follows NCCL's", "[collectives]") {
  const Fabric f = load_fabric("nvlink4-ndr");
  const CollectiveCosts costs = load_collective_costs(Architecture::hopper);
  const auto chosen = [&](Kind kind, GroupShape g, double bytes) {
    return collective_time({.kind = kind, .group = g, .bytes = Bytes(bytes)}, f, costs);
  };
  CHECK(chosen(Kind::all_reduce, group(8, 8), 256 * 1024).algorithm == Algorithm::ring);
  CHECK(chosen(Kind::all_reduce, group(8, 8), 1024).protocol == Protocol::ll);
  CHECK(chosen(Kind::all_reduce, group(8, 8), 64 * mib).algorithm == Algorithm::nvls);
  CHECK(chosen(Kind::all_reduce, group(4, 4), 64 * mib).algorithm == Algorithm::ring);
  CHECK(chosen(Kind::all_gather, group(8, 8), 512 * mib).algorithm == Algorithm::ring);
  CHECK(chosen(Kind::all_reduce, group(512, 8), 64 * 1024).algorithm == Algorithm::tree);
  CHECK(chosen(Kind::all_reduce, group(64, 8), 4096 * mib).algorithm == Algorithm::ring);
  CHECK(chosen(Kind::all_reduce, group(16, 8), 4096 * mib).algorithm == Algorithm::nvls_tree);
  CHECK(chosen(Kind::all_gather, group(1024, 1, 8), mib).algorithm == Algorithm::pat);
  CHECK(chosen(Kind::all_to_all, group(8, 8), mib).algorithm == Algorithm::direct);
  // Without multicast the ring takes over.
  const Fabric off = load_fabric("nvlink4-host");
  CHECK(collective_time({.group = group(8, 8), .bytes = Bytes(64 * mib)}, off, costs).algorithm ==
        Algorithm::ring);
  CHECK_FALSE(collective_time_with({.group = group(8, 8), .bytes = Bytes(mib)}, off, costs,
                                   Algorithm::nvls, Protocol::simple));
  // SHARP where the switches have it.
  CHECK(collective_time_with({.group = group(64, 8), .bytes = Bytes(mib)},
                             load_fabric("nvlink4-ndr-sharp"), costs, Algorithm::collnet,
                             Protocol::simple));
  CHECK(chosen(Kind::all_reduce, group(1, 1), mib).time.si() == 0);
}

TEST_CASE("all-reduces of TensorRT-LLM and vLLM (aiconfigurator, rows not fitted)",
          "[collectives]") {
  struct Call {
    CollectiveLibrary library;
    const char* fabric;
    Architecture architecture;
    std::int64_t ranks;
    double bytes, microseconds, tolerance;
  };
  constexpr auto trt = CollectiveLibrary::custom, vllm = CollectiveLibrary::vllm;
  constexpr auto hopper = Architecture::hopper, blackwell = Architecture::blackwell;
  for (const Call& r : {Call{trt, "nvlink4-ndr", hopper, 8, 512, 3.07, 0.10},
                        Call{trt, "nvlink4-ndr", hopper, 8, 32768, 3.84, 0.10},
                        Call{trt, "nvlink4-ndr", hopper, 8, 131072, 6.20, 0.10},
                        Call{trt, "nvlink4-ndr", hopper, 4, 524288, 7.92, 0.10},
                        Call{trt, "nvlink4-ndr", hopper, 8, 8 * mib, 79.4, 0.12},
                        Call{trt, "nvlink5-ndr", blackwell, 8, 2 * mib, 30.4, 0.10},
                        Call{trt, "nvlink5-ndr", blackwell, 8, 8 * mib, 55.4, 0.10},
                        Call{trt, "nvl72-ndr", blackwell, 4, 524288, 7.01, 0.15},
                        Call{vllm, "nvlink4-ndr", hopper, 8, 512, 4.68, 0.10},
                        Call{vllm, "nvlink4-ndr", hopper, 8, 131072, 7.86, 0.10},
                        Call{vllm, "nvlink4-ndr", hopper, 4, 8 * mib, 53.5, 0.10},
                        Call{vllm, "nvlink4-ndr", hopper, 8, 8 * mib, 50.7, 0.10},
                        Call{vllm, "nvlink5-ndr", blackwell, 8, 8 * mib, 39.2, 0.15},
                        Call{vllm, "nvlink5-ndr", blackwell, 8, 32 * mib, 111.3, 0.10}}) {
    const Collective c{
        .group = group(r.ranks, r.ranks), .bytes = Bytes(r.bytes), .library = r.library};
    const double us = in_microseconds(
        collective_time(c, load_fabric(r.fabric), load_collective_costs(r.architecture)).time);
    INFO(to_text(r.library) << " of " << r.bytes << " B on " << r.ranks << ": " << us
                            << " us, measured " << r.microseconds);
    CHECK(std::abs(us / r.microseconds - 1) < r.tolerance);
  }
}

struct Exchange {
  ExchangePhase phase;
  std::int64_t ranks, per_domain, tokens, sms;
  double microseconds, tolerance;
};

// 7,168 wide, eight of 256 experts; dispatch in fp8 with scales, combine in bf16. Across nodes the
// normal mode's time is that of its two kernels, notify and transmit.
double exchange_time(const Exchange& e, Protocol protocol, const char* fabric,
                     Architecture architecture) {
  const double row = e.phase == ExchangePhase::dispatch ? 7392 : 14336;
  Collective c{.kind = Kind::all_to_all,
               .group = group(e.ranks, e.per_domain),
               .bytes = Bytes(static_cast<double>(e.tokens) * 8 * row),
               .library = CollectiveLibrary::deepep};
  c.exchange = {.phase = e.phase,
                .tokens = e.tokens,
                .experts = 8,
                .pool = 256,
                .most_domains = std::min<std::int64_t>(c.group.domains, 4),
                .sms = e.sms};
  const auto t = collective_time_with(c, load_fabric(fabric), load_collective_costs(architecture),
                                      Algorithm::deepep, protocol);
  REQUIRE(t.has_value());
  CHECK((e.sms == 0 || t->sms == static_cast<double>(e.sms)));
  return in_microseconds(t->time);
}

void check_exchanges(const std::vector<Exchange>& rows, Protocol protocol, const char* fabric,
                     Architecture architecture) {
  for (const Exchange& e : rows) {
    const double us = exchange_time(e, protocol, fabric, architecture);
    INFO((e.phase == ExchangePhase::dispatch ? "dispatch" : "combine")
         << " of " << e.tokens << " tokens on " << e.ranks << " with " << e.sms << " SMs: " << us
         << " us, measured " << e.microseconds);
    CHECK(std::abs(us / e.microseconds - 1) < e.tolerance);
  }
}

TEST_CASE("DeepEP by tokens, SMs and nodes (aiconfigurator)", "[collectives]") {
  constexpr auto send = ExchangePhase::dispatch, add = ExchangePhase::combine;
  check_exchanges({{send, 8, 8, 8, 0, 14.8, 0.15},
                   {send, 8, 8, 128, 0, 36.7, 0.15},
                   {add, 8, 8, 128, 0, 67.0, 0.20},
                   {send, 16, 8, 128, 0, 102, 0.10},
                   {add, 32, 8, 128, 0, 263, 0.10},
                   {send, 64, 8, 128, 0, 167, 0.10},
                   {add, 64, 8, 128, 0, 305, 0.10}},
                  Protocol::ll, "nvlink4-ndr", Architecture::hopper);
  check_exchanges({{send, 8, 8, 128, 0, 33.0, 0.15}, {add, 8, 8, 128, 0, 40.9, 0.20}}, Protocol::ll,
                  "nvlink5-ndr", Architecture::blackwell);
  check_exchanges({{send, 8, 8, 8192, 4, 4090, 0.15},
                   {send, 8, 8, 8192, 24, 972, 0.15},
                   {add, 8, 8, 8192, 8, 3945, 0.15},
                   {add, 8, 8, 128, 24, 82.3, 0.15},
                   {send, 16, 8, 8192, 24, 1461, 0.15},
                   {send, 32, 8, 8192, 8, 4983, 0.20},
                   {send, 32, 8, 8192, 24, 3582, 0.15},
                   {add, 32, 8, 8192, 8, 12077, 0.25},
                   {send, 64, 8, 1, 24, 124, 0.15}},
                  Protocol::simple, "nvlink4-ndr", Architecture::hopper);
  check_exchanges({{send, 4, 4, 8192, 24, 671, 0.15}, {add, 4, 4, 1024, 24, 196, 0.20}},
                  Protocol::simple, "nvl72-ndr", Architecture::blackwell);
}

TEST_CASE("tokens inside an NVL72 rack (TensorRT-LLM; ranks of 2, 8 and 32 were not fitted)",
          "[collectives]") {
  struct Call {
    CollectiveLibrary library;
    ExchangePhase phase;
    std::int64_t ranks, tokens;
    double row, microseconds;
  };
  constexpr auto two = CollectiveLibrary::nvlink_two_sided;
  constexpr auto one = CollectiveLibrary::nvlink_one_sided;
  const Fabric f = load_fabric("nvl72-ndr");
  const CollectiveCosts costs = load_collective_costs(Architecture::blackwell);
  for (const Call& r : {Call{two, ExchangePhase::dispatch, 8, 2048, 14336, 360},
                        Call{two, ExchangePhase::dispatch, 32, 2048, 4032, 152},
                        Call{two, ExchangePhase::combine, 8, 2048, 14336, 416},
                        Call{two, ExchangePhase::combine, 32, 2048, 14336, 470},
                        Call{two, ExchangePhase::prepare, 64, 4096, 14336, 40.4},
                        Call{one, ExchangePhase::dispatch, 8, 2048, 4032, 107},
                        Call{one, ExchangePhase::combine, 32, 2048, 14336, 397}}) {
    Collective c{.kind = Kind::all_to_all,
                 .group = group(r.ranks, r.ranks),
                 .bytes = Bytes(static_cast<double>(r.tokens) * 8 * r.row),
                 .library = r.library};
    // The test's routing is balanced: as many ranks as a token has experts.
    c.exchange = {.phase = r.phase,
                  .tokens = r.tokens,
                  .experts = 8,
                  .reaches = static_cast<double>(std::min<std::int64_t>(r.ranks, 8))};
    const double us = in_microseconds(collective_time(c, f, costs).time);
    INFO(to_text(r.library) << " on " << r.ranks << ": " << us << " us, measured "
                            << r.microseconds);
    CHECK(std::abs(us / r.microseconds - 1) < 0.12);
  }
}

TEST_CASE("NICs of a group: q ranks have q, groups that share a domain divide them",
          "[collectives]") {
  const Fabric f = load_fabric("nvlink4-ndr");
  const CollectiveCosts costs = load_collective_costs(Architecture::hopper);
  const auto us = [&](const Fabric& fabric, GroupShape g, Kind kind = Kind::all_gather) {
    return in_microseconds(
        collective_time({.kind = kind, .group = g, .bytes = Bytes(1024 * mib)}, fabric, costs)
            .time);
  };
  const double one = us(f, group(8, 1, 8)), all = us(f, group(64, 8, 1));
  CHECK(one / all > 6);  // one NIC against eight (of which NVLink uses seven)
  // A rank alone in its domain has its own NIC only, however idle the others are.
  CHECK(us(f, group(8, 1, 1)) == Approx(one).epsilon(0.01));
  // Four NICs for eight GPUs: eight groups of one have half a NIC each, one group a whole one.
  const Fabric half = load_fabric("nvlink3-4xhdr");
  CHECK(us(half, group(8, 1, 8)) / us(half, group(8, 1, 1)) == Approx(2).epsilon(0.05));
  // All-to-all cannot add NICs up: a rank has its own.
  const double spread = us(f, group(64, 8, 1), Kind::all_to_all);
  CHECK(spread == Approx(1024 * mib * 56 / 64 / (50e9 * 0.97 * 0.9) * 1e6).epsilon(0.05));
}

// Law 7: with the choice held fixed, more bandwidth or less latency is never slower.
TEST_CASE("faster parts are never slower (law 7)", "[collectives][law]") {
  const std::vector<std::pair<Fabric, CollectiveCosts>> machines = {
      {load_fabric("nvlink4-ndr"), load_collective_costs(Architecture::hopper)},
      {load_fabric("nvlink3-4xhdr"), load_collective_costs(Architecture::ampere)},
      {load_fabric("nvl72-ndr"), load_collective_costs(Architecture::blackwell)},
      {load_fabric("mi300x-roce"), load_collective_costs(Architecture::cdna3)},
      {load_fabric("ici-v5e"), load_collective_costs(Architecture::tpu)}};
  CHECK(rc::check([&] {
    const auto& [fabric, costs] = *rc::gen::elementOf(machines);
    const std::int64_t inside = *rc::gen::inRange<std::int64_t>(1, fabric.scale_up.domain + 1);
    const std::int64_t domains = *rc::gen::inRange<std::int64_t>(1, 40);
    RC_PRE(inside * domains > 1);
    const std::int64_t sharing = std::max<std::int64_t>(1, fabric.scale_up.domain / inside);
    Collective c{
        .kind = static_cast<Kind>(*rc::gen::inRange(0, 6)),
        .group = {.size = inside * domains,
                  .per_domain = inside,
                  .domains = domains,
                  .span = inside * domains * sharing,
                  .sharing = sharing},
        .bytes = Bytes(std::exp2(*rc::gen::inRange(0, 36))),
        .library = static_cast<CollectiveLibrary>(*rc::gen::inRange(0, collective_library_count))};
    if (*rc::gen::arbitrary<bool>())
      c.exchange = {.phase = static_cast<ExchangePhase>(*rc::gen::inRange(0, 3)),
                    .tokens = *rc::gen::inRange<std::int64_t>(1, 10000),
                    .experts = *rc::gen::inRange<std::int64_t>(1, 23),
                    .sms = *rc::gen::inRange<std::int64_t>(0, 30)};
    const CollectiveTime before = collective_time(c, fabric, costs);
    const auto fixed = collective_time_with(c, fabric, costs, before.algorithm, before.protocol);
    RC_ASSERT(fixed.has_value());
    RC_ASSERT(fixed->time == before.time);
    Fabric faster = fabric;
    const double factor = 1 + *rc::gen::inRange(0, 300) / 100.0;
    switch (*rc::gen::inRange(0, 6)) {
      case 0:
        *faster.scale_up.bandwidth.value *= factor;
        break;
      case 1:
        *faster.scale_out.nic_bandwidth.value *= factor;
        break;
      case 2:
        *faster.scale_out.nic_latency.value *= 1 / factor;
        break;
      case 3:
        *faster.scale_out.nics_per_accelerator.value *= factor;
        break;
      case 4:
        for (Tier& t : faster.scale_out.tiers) *t.latency.value *= 1 / factor;
        break;
      default:
        for (Tier& t : faster.scale_out.tiers) *t.oversubscription.value /= factor;
    }
    const auto after = collective_time_with(c, faster, costs, before.algorithm, before.protocol);
    RC_ASSERT(after.has_value());
    RC_ASSERT(after->time.si() <= before.time.si() * (1 + 1e-12));
    // Law 1 in the small: a rank cannot send more over its parts than they carry while bytes move.
    RC_ASSERT(before.transfer.si() >= 0);
    RC_ASSERT(before.transfer.si() <= before.time.si() * (1 + 1e-12));
    RC_ASSERT(before.scale_up_bytes.si() <=
              before.transfer.si() * scale_up_share(fabric.scale_up, inside).si() * (1 + 1e-12));
    if (domains == 1) return;
    const double nics = fabric.scale_out.nics_per_accelerator.get();
    const double in_domain = static_cast<double>(fabric.scale_up.domain) * nics;
    const double own = std::min(std::max(1.0, nics) * static_cast<double>(inside),
                                in_domain / static_cast<double>(sharing));
    const double nic = nic_path(fabric, c.group.span).bandwidth.si();
    RC_ASSERT(before.scale_out_bytes.si() <=
              before.transfer.si() * own / static_cast<double>(inside) * nic * (1 + 1e-12));
  }));
}

TEST_CASE("every generation has constants and names their evidence", "[collectives]") {
  for (int a = 0; a <= static_cast<int>(Architecture::other); ++a) {
    const CollectiveCosts costs = load_collective_costs(static_cast<Architecture>(a));
    INFO(costs.name);
    int values = 0;
    visit_collective_values(costs, [&](const std::string& path, const auto& value) {
      INFO(path);
      if (!value.known()) return;
      ++values;
      CHECK((!value.source.empty() || !value.reason.empty()));
      CHECK((!is_uncertain(value.evidence) || (value.low && value.high)));
    });
    CHECK(values > 10);
  }
}

}  // namespace
}  // namespace orrery
