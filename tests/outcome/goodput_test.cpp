// SPDX-License-Identifier: Apache-2.0
// Knows the laws of goodput: limits, directions, sums, spares, and what is refused.
#include <catch2/catch.hpp>
#include <cmath>
#include <numeric>

#include "sim/outcome/months/job.h"
#include "sim/outcome/months/remedies.h"
#include "tests/base/error_text.h"
#include "tests/outcome/goodput_case.h"

namespace orrery {
namespace {

using Catch::Matchers::Contains;

double wasted(double rate, double stall, double interval) {
  return std::expm1(rate * (interval + stall)) / interval;
}

const Remedy& remedy(const std::vector<Remedy>& all, const std::string& name) {
  for (const Remedy& one : all)
    if (one.name == name) return one;
  FAIL("no remedy called " + name);
  return all.front();
}

GoodputCase cluster_case(const std::string& cluster, std::int64_t gpus, const std::string& profile,
                         const GoodputJob& job) {
  return goodput_case(load_cluster(cluster, gpus), load_reliability(profile), job);
}

GoodputJob large_job() {
  return {.step = seconds(10),
          .tokens_per_step = 16e6,
          .tokens = 1e12,
          .checkpoint = bytes(5.7e12),
          .replicas = 16};
}

}  // namespace

TEST_CASE("goodput: the best interval is the minimum, and Young's where failures are rare") {
  RandomStream random(7, 1);
  for (int i = 0; i < 200; ++i) {
    const double rate = std::pow(10, -1 - 6 * random.uniform());
    const double stall = std::pow(10, -2 + 4 * random.uniform());
    const double best = optimal_interval(Hertz(rate), seconds(stall)).si();
    INFO(rate << " " << stall << " " << best);
    CHECK(wasted(rate, stall, best) <= wasted(rate, stall, best * 1.01) * (1 + 1e-9));
    CHECK(wasted(rate, stall, best) <= wasted(rate, stall, best * 0.99) * (1 + 1e-9));
    CHECK(best < 1 / rate);
  }
  CHECK(optimal_interval(Hertz(1e-7), seconds(1)).si() == Approx(std::sqrt(2e7)).epsilon(1e-3));
  CHECK(std::isinf(optimal_interval(Hertz(0), seconds(1)).si()));
  CHECK(optimal_interval(Hertz(1), seconds(0)).si() == 0);
}

TEST_CASE("goodput: the chosen interval is the best one, a given one is used") {
  GoodputCase input = plain_case(5000, 20, 300);
  const Goodput best = goodput(input);
  for (const double factor : {0.5, 0.9, 1.1, 2.0}) {
    input.tiers[0].interval = best.tiers[0].interval * factor;
    CHECK(goodput(input).effective < best.effective);
    CHECK(goodput(input).tiers[0].interval == input.tiers[0].interval);
  }
  // Never shorter than a write or a step.
  input.tiers[0] = {.name = "remote", .stall = seconds(0.01), .write = seconds(400)};
  CHECK(goodput(input).tiers[0].interval == seconds(400));
}

TEST_CASE("goodput: nothing is lost where nothing fails, and Daly's formula holds where it does") {
  GoodputCase input = plain_case(5000, 20, 300);
  input.tiers[0].interval = seconds(600);
  const double rate = 1 / 5000.0;
  CHECK(goodput(input).effective ==
        Approx(600 * rate * std::exp(-300 * rate) / std::expm1(620 * rate)));
  input.tiers[0].write = seconds(100);
  CHECK(goodput(input).effective ==
        Approx(600 * rate * std::exp(-400 * rate) / std::expm1(620 * rate)));
  input.failures.clear();
  CHECK(goodput(input).effective == Approx(600 / 620.0));
  CHECK(std::isinf(goodput(input).mean_time_to_failure.si()));
  input.tiers[0].interval = {};
  CHECK(goodput(input).effective == 1);
}

TEST_CASE("goodput: what makes recovery worse makes the job slower") {
  const GoodputCase input = plain_case(5000, 20, 300);
  const double base = goodput(input).effective;
  const auto worse = [&](const auto& change) {
    GoodputCase other = input;
    change(other);
    return goodput(other).effective < base;
  };
  CHECK(worse([](GoodputCase& c) { c.failures[0].rate = exactly(Hertz(1 / 4000.0)); }));
  CHECK(worse([](GoodputCase& c) { c.detection = time_of(10); }));
  CHECK(worse([](GoodputCase& c) { c.tiers[0].stall = seconds(25); }));
  CHECK(worse([](GoodputCase& c) { c.tiers[0].read = seconds(25); }));
  CHECK(worse([](GoodputCase& c) { c.stragglers = exactly(0.01); }));
  CHECK(worse([](GoodputCase& c) { c.data_loading = exactly(0.01); }));
  CHECK(worse([](GoodputCase& c) { c.failures[0].removed = exactly(0.1); }));  // no spares
  CHECK(worse([](GoodputCase& c) { c.failures[0].latency = time_of(100); }));
  CHECK(worse([](GoodputCase& c) { c.failures[0].outage = time_of(100); }));
  CHECK(worse([](GoodputCase& c) {
    c.maintenance_rate = exactly(Hertz(1e-5));
    c.maintenance = time_of(600);
  }));
}

TEST_CASE("goodput: new machines fail more, and less as they age") {
  GoodputCase input = plain_case(1e9, 1, 60);
  input.failures.push_back(
      {.name = "infant mortality", .rate = exactly(Hertz(1e-4)), .decay = seconds(30 * 86400.0)});
  const auto mttf = [&](double days) {
    input.run = seconds(days * 86400);
    return goodput(input).mean_time_to_failure.si();
  };
  CHECK(mttf(0) == Approx(1e4).epsilon(1e-3));
  CHECK(mttf(30) == Approx(1e4 / (1 - std::exp(-1.0))).epsilon(1e-3));
  CHECK(mttf(3000) == Approx(1e6).epsilon(0.02));
}

TEST_CASE("goodput: spares follow the failures within a repair") {
  GoodputCase input = plain_case(3600, 1, 60);
  input.failures[0].removed = exactly(1.0);
  input.failures[0].repair = time_of(5 * 3600);
  const std::vector<double> out = units_out_distribution(input);  // Poisson of mean 5
  CHECK(std::accumulate(out.begin(), out.end(), 0.0) == Approx(1));
  CHECK(out[0] == Approx(std::exp(-5.0)));
  CHECK(out[5] == Approx(std::exp(-5.0) * 3125 / 120));
  // Erlang's table: five at a time in ten places are blocked 1.84% of the time, in eleven 0.83%;
  // in nine places 3.75%, in eight 7.0%. One place is the host that is out when the job waits.
  CHECK(spares_needed(input, 0.95) == 8);
  CHECK(spares_needed(input, 0.99) == 10);
  input.spares = 10;
  CHECK(goodput(input).units_out == Approx(5 * (1 - 0.0083)).epsilon(1e-3));
  CHECK(share_of(goodput(input).shares, TimeShare::waiting) == Approx(0.0083).epsilon(0.01));
  // An elastic job goes on and fails on: Poisson.
  GoodputCase elastic = input;
  elastic.elastic = {.replicas = 16, .stall = seconds(20), .rejoin = seconds(600)};
  CHECK(spares_needed(elastic, 0.95) == 9);
  CHECK(spares_needed(elastic, 0.99) == 11);
  CHECK(goodput(elastic).units_out == Approx(5));
  // A million hosts' worth: no underflow. At this load a place less than are out on average is
  // blocked a hundredth of the time.
  input.failures[0].rate = exactly(Hertz(3600.0 / 3600));
  CHECK(spares_needed(input, 0.99) > 17819);
  CHECK(spares_needed(input, 0.99) < 18000);
  elastic.failures = input.failures;
  CHECK(spares_needed(elastic, 0.99) == Approx(18000 + 2.326 * std::sqrt(18000.0)).margin(10));
  CHECK_THAT(error_text([&] { spares_needed(input, 1); }), Contains("probability"));
}

TEST_CASE("goodput: leaves take their hosts, and domains with slack need fewer spares") {
  GoodputCase input = plain_case(3600, 1, 60);
  input.failures[0].removed = exactly(1.0);
  input.failures[0].repair = time_of(3600);
  input.failures[0].blast = BlastRadius::leaf;
  input.units.leaf = 8;
  CHECK(units_out_distribution(input)[8] == Approx(std::exp(-1.0)));
  CHECK(units_out_distribution(input)[7] == 0);

  GoodputJob job = large_job();
  const std::string profile = "gb300-nvl72";
  const GoodputCase whole = cluster_case("gb300-nvl72", 9216, profile, job);
  job.domain_gpus = 64;
  const GoodputCase part = cluster_case("gb300-nvl72", 9216, profile, job);
  CHECK(whole.units.count == 128);
  CHECK(whole.units.slack == 0);
  CHECK(part.units.count == 144);
  CHECK(part.units.slack == 2);
  CHECK(spares_needed(whole, 0.99) > 2 * spares_needed(part, 0.99));
  // Wirings of the 64 that are used know nothing of the 72 that are there.
  job.domain_gpus = 0;
  job.rack_gpus = 72;
  CHECK(cluster_case("gb300-4plane", 8192, profile, job).units.slack == 2);
  job.domain_gpus = 73;
  CHECK_THAT(error_text([&] { cluster_case("gb300-nvl72", 9216, profile, job); }),
             Contains("domain_gpus"));
}

TEST_CASE("goodput: an elastic job loses a replica's share, not everything") {
  GoodputCase input = plain_case(1000, 1, 600);
  const double rigid = goodput(input).effective;
  input.elastic = {.replicas = 20, .stall = seconds(10), .rejoin = seconds(1000)};
  const Goodput proportional = goodput(input);
  CHECK(proportional.effective > rigid + 0.2);
  // One replica of twenty is missing on average: in a mean of 1000 s, for 1000 s.
  CHECK(share_of(proportional.shares, TimeShare::shrunk) == Approx(0.05).epsilon(0.05));
  CHECK(proportional.tiers[0].name == "peers");
  input.elastic->throughput = {{0.5, 0.2}, {0.9, 0.7}};
  CHECK(goodput(input).effective < proportional.effective);
  // What the whole job does to itself is no replica's failure.
  input.failures[0].job_wide = true;
  CHECK(goodput(input).effective == Approx(rigid).epsilon(0.01));
}

TEST_CASE("goodput: rates of another device scale, and counts follow the wiring") {
  const ReliabilityProfile profile = load_reliability("llama3-h100");
  const Cluster h100 = load_cluster("h100-roce", 1024), l40s = load_cluster("l40s-8", 8);
  const FleetCounts fleet = fleet_counts(h100);
  CHECK(fleet.hosts == 128);
  CHECK(fleet.nics == 1024);
  CHECK(fleet.links == 1024);
  CHECK(fleet.switches > 0);
  const auto rate_of = [&](const Cluster& cluster, const std::string& name) {
    for (const FailureClass& one : failure_classes(profile, fleet, cluster.device, cluster.host))
      if (one.name == name) return one.rate;
    return Ranged<Hertz>{};
  };
  const double scale = l40s.device.failure_rate.get().si() / h100.device.failure_rate.get().si();
  CHECK(scale < 0.9);
  CHECK(rate_of(l40s, "hbm").value.si() == Approx(scale * rate_of(h100, "hbm").value.si()));
  CHECK(rate_of(l40s, "software").value.si() == Approx(rate_of(h100, "software").value.si()));
  const auto width = [&](const Cluster& c) {
    return rate_of(c, "hbm").high.si() / rate_of(c, "hbm").low.si();
  };
  CHECK(width(l40s) > width(h100));  // the other device's own range comes on top
  // A failing plane of several stops nothing.
  GoodputJob job = large_job();
  for (const FailureClass& one : cluster_case("gb300-4plane", 8192, "gb300-nvl72", job).failures)
    CHECK(one.name != "link");
}

TEST_CASE("goodput: storage decides what a save stalls and a restart reads") {
  GoodputJob job = large_job();
  job.storage = {{.kind = StorageKind::remote,
                  .bandwidth = bytes_per_second(1e11),
                  .asynchronous = false,
                  .interval = seconds(3600)}};
  const GoodputCase blocking = cluster_case("h100-roce", 1024, "llama3-h100", job);
  CHECK(blocking.tiers[0].stall.si() == Approx(57.5));  // 57 s and the overhead of a save
  CHECK(blocking.tiers[0].read.si() == Approx(57));
  CHECK(blocking.tiers[0].write.si() == 0);
  job.storage[0].asynchronous = true;
  const GoodputCase behind = cluster_case("h100-roce", 1024, "llama3-h100", job);
  CHECK(behind.tiers[0].stall < seconds(1));
  CHECK(behind.tiers[0].write.si() == Approx(57));
  CHECK(goodput(behind).effective > goodput(blocking).effective);
  job.storage.push_back({.kind = StorageKind::peer_memory});
  CHECK(cluster_case("h100-roce", 1024, "llama3-h100", job).tiers[0].name == "memory of peers");
  job.storage = {{.kind = StorageKind::peer_memory}};
  CHECK_THAT(error_text([&] { cluster_case("h100-roce", 1024, "llama3-h100", job); }),
             Contains("survives the failure of a site"));
  job.storage = {{.bandwidth = bytes_per_second(-1)}};
  CHECK_THAT(error_text([&] { cluster_case("h100-roce", 1024, "llama3-h100", job); }),
             Contains("bandwidth above 0"));
}

TEST_CASE("goodput: nonsense is refused by name") {
  const auto refusal = [](const auto& change) {
    GoodputCase input = plain_case(5000, 20, 300);
    change(input);
    return error_text([&] { goodput(input); });
  };
  using C = GoodputCase;
  CHECK(refusal([](C&) {}) == "no error");
  CHECK_THAT(refusal([](C& c) { c.failures[0].rate = exactly(Hertz(-1)); }),
             Contains("failures.host.rate"));
  CHECK_THAT(refusal([](C& c) { c.failures[0].rate.low = Hertz(1); }), Contains("between its low"));
  CHECK_THAT(refusal([](C& c) { c.stragglers = exactly(1.0); }), Contains("stragglers"));
  CHECK_THAT(refusal([](C& c) { c.step = {}; }), Contains("step"));
  CHECK_THAT(refusal([](C& c) { c.tiers.clear(); }), Contains("tiers"));
  CHECK_THAT(refusal([](C& c) { c.tiers[0].survives = BlastRadius::host; }), Contains("site"));
  CHECK_THAT(refusal([](C& c) { c.tiers.push_back(c.tiers[0]); }), Contains("survives"));
  CHECK_THAT(refusal([](C& c) {
               c.tiers[0].interval = seconds(5);
               c.tiers[0].write = seconds(6);
             }),
             Contains("tiers.remote.interval"));
  CHECK_THAT(refusal([](C& c) { c.spares = -1; }), Contains("spares"));
  CHECK_THAT(refusal([](C& c) { c.units.slack = 1; }), Contains("units.slack"));
  CHECK_THAT(refusal([](C& c) { c.elastic = ElasticPlan{}; }), Contains("elastic.replicas"));
  CHECK_THAT(refusal([](C& c) {
               c.elastic = {.replicas = 4, .throughput = {{0.5, 0.6}, {0.7, 0.5}}};
             }),
             Contains("elastic.throughput"));
  CHECK_THAT(refusal([](C& c) {
               c.failures[0].removed = exactly(1.0);
               c.failures[0].repair = time_of(50000);
               c.repair_crews = 10;
             }),
             Contains("repair_crews") && Contains("pile up"));
  CHECK_THAT(refusal([](C& c) { c.detection = time_of(std::nan("")); }), Contains("detection"));
}

TEST_CASE("goodput: a range holds the best guess and widens with the inputs") {
  GoodputCase input = plain_case(5000, 20, 300);
  const GoodputRange exact = goodput_range(input);
  CHECK(exact.effective.low == exact.effective.value);
  CHECK(exact.effective.high == exact.effective.value);
  input.failures[0].rate.low = Hertz(1 / 10000.0);
  input.failures[0].rate.high = Hertz(1 / 2500.0);
  const GoodputRange wide = goodput_range(input);
  CHECK(wide.effective.low < wide.effective.value - 0.02);
  CHECK(wide.effective.high > wide.effective.value + 0.02);
  // The only uncertain input is the rate: its ends are the ends of what follows from it.
  CHECK(wide.mean_time_to_failure.low.si() == Approx(2500).epsilon(0.15));
  CHECK(wide.mean_time_to_failure.high.si() == Approx(10000).epsilon(0.15));
}

TEST_CASE("goodput: remedies are listed with what each gives back") {
  GoodputJob job = large_job();
  job.spare_gpus = 0;
  job.storage = {{.bandwidth = bytes_per_second(5e10), .asynchronous = false}};
  const GoodputCase input = cluster_case("h100-roce", 8192, "llama3-h100", job);
  const double before = goodput(input).effective;
  const RemedyOptions options = remedy_options(load_reliability("llama3-h100"));
  const std::vector<Remedy> all = goodput_remedies(input, options);
  REQUIRE(all.size() == 8);
  for (const char* name :
       {"hot spares", "asynchronous checkpoints", "in-memory replicas", "elastic data parallelism",
        "faster restart", "eviction of bad hosts", "checks for corruption"}) {
    const Remedy& one = remedy(all, name);
    INFO(name << ": " << one.action << one.reason);
    CHECK(one.reason.empty());
    CHECK_FALSE(one.action.empty());
    CHECK(one.gain > 0);
    CHECK(one.days_saved > 0);
    CHECK(one.effective == Approx(before + one.gain));
    CHECK(goodput(one.changed).effective == one.effective);
    CHECK(remedy(all, "all of them").effective > one.effective);
  }
  RemedyOptions twice = options;
  for (const char* name : {"faster restart", "all of them"}) {
    twice.applied = name;
    const std::vector<Remedy> rest = goodput_remedies(input, twice);
    CHECK_THAT(remedy(rest, "faster restart").reason, Contains("applied already"));
    CHECK_THAT(remedy(rest, "all of them").action, !Contains("faster restart"));
  }
  CHECK_THAT(remedy(goodput_remedies(input, twice), "all of them").reason, Contains("none"));
  GoodputCase one_replica = input;
  one_replica.replicas = 1;
  const Remedy refused = remedy(goodput_remedies(one_replica, options), "elastic data parallelism");
  CHECK_THAT(refused.reason, Contains("one data-parallel replica"));
  CHECK(refused.gain == 0);
}

TEST_CASE("goodput: what remedies reach are values of the profile, with their ranges") {
  ReliabilityProfile profile = load_reliability("llama3-h100");
  const GoodputCase input = cluster_case("h100-roce", 8192, "llama3-h100", large_job());
  const auto faster = [&] {
    return remedy(goodput_remedies(input, remedy_options(profile)), "faster restart");
  };
  const Remedy half = faster();
  CHECK(half.changed.diagnosis.value.si() == Approx(0.5 * input.diagnosis.value.si()));
  CHECK_THAT(half.action, Contains(" to ") && Contains("instead of"));
  profile.restart_factor.value = 0.2;
  CHECK(faster().changed.diagnosis.value.si() == Approx(0.2 * input.diagnosis.value.si()));
  CHECK(faster().gain > half.gain);
  profile.corruption_latency.value = seconds(60);
  const Remedy checks =
      remedy(goodput_remedies(input, remedy_options(profile)), "checks for corruption");
  double latency = 0;
  for (const FailureClass& failure : checks.changed.failures)
    latency = std::max(latency, failure.latency.value.si());
  CHECK(latency == 60);
  // Every profile that ships has them, as what they are: not facts.
  for (const std::string& name : catalog_names("hw_models/catalog/reliability")) {
    INFO(name);
    const ReliabilityProfile one = load_reliability(name);
    CHECK(is_uncertain(one.restart_factor.evidence));
    CHECK(*one.restart_factor.low < *one.restart_factor.high);
    CHECK(is_uncertain(one.corruption_latency.evidence));
    CHECK(is_uncertain(one.elastic_recovery.evidence));
  }
}

TEST_CASE("goodput: what must improve for a target, exactly") {
  const GoodputCase input = plain_case(2000, 5, 600);
  const GoodputRequirement needed = goodput_requirement(input, 0.85);
  CHECK(needed.recovery > 0);
  CHECK(needed.recovery < 1);
  GoodputCase one = input;
  one.start.value *= needed.recovery;
  one.start.low = one.start.value;
  CHECK(goodput(one).effective == Approx(0.85).epsilon(1e-6));
  one = input;
  one.failures[0].rate = exactly(input.failures[0].rate.value * needed.failures);
  CHECK(goodput(one).effective == Approx(0.85).epsilon(1e-6));
  CHECK(goodput_requirement(input, 0.1).recovery == 1);
  CHECK(goodput_requirement(input, 0.9999).recovery == 0);  // saves alone cost more
  CHECK_THAT(error_text([&] { goodput_requirement(input, 1.5); }), Contains("target"));
}

TEST_CASE("goodput: fleets that start new have infants, and spares that follow the failures") {
  GoodputJob job = large_job();
  const GoodputCase old = cluster_case("h100-roce", 4096, "llama3-h100", job);
  job.fleet_age = seconds(0);
  const GoodputCase fresh = cluster_case("h100-roce", 4096, "llama3-h100", job);
  CHECK(fresh.failures.size() == old.failures.size() + 1);
  CHECK(fresh.spares > old.spares);
  CHECK(goodput(fresh).effective < goodput(old).effective);
  job.fleet_age = seconds(3e7);  // a year: grown up
  CHECK(goodput(cluster_case("h100-roce", 4096, "llama3-h100", job)).effective ==
        Approx(goodput(old).effective).epsilon(1e-3));
  GoodputCase stuck = old;
  stuck.spare_probability = 0;
  CHECK(goodput_range(stuck).effective.low < goodput_range(old).effective.low);
}

}  // namespace orrery
