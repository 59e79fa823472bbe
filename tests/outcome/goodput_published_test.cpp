// SPDX-License-Identifier: Apache-2.0
// Knows what others measured of goodput, and how near the model comes with their own inputs.
#include <algorithm>
#include <catch2/catch.hpp>

#include "hw_models/catalog.h"
#include "hw_models/price/economics.h"
#include "sim/base/json/json.h"
#include "sim/outcome/months/job.h"
#include "tests/outcome/goodput_case.h"

namespace orrery {
namespace {

JsonValue published(const char* part) {
  static const JsonValue file =
      JsonValue::load(std::string(ORRERY_SOURCE_DIR) + "/tests/outcome/goodput_published.json");
  return file.at(part);
}

// Mixed-precision Adam: fp32 copy and two moments.
Bytes adam_checkpoint(double parameters) {
  return checkpoint_bytes(parameters, {.master_bytes = 4, .state_bytes = 8});
}

GoodputCase read_case(const JsonValue& row) {
  const std::int64_t gpus = row.at("gpus").integer();
  GoodputJob job{.step = seconds(row.at("step_s").number()),
                 .checkpoint = adam_checkpoint(row.at("parameters").number()),
                 .replicas = row.at("replicas").integer(),
                 .spare_gpus = gpus / 32};
  if (row.at("peers").boolean()) job.storage.push_back({.kind = StorageKind::peer_memory});
  if (const auto interval = row.find("interval_s"))
    job.storage[0].interval = seconds(interval->number());
  if (const auto stall = row.find("elastic_s"))
    job.elastic = {
        .replicas = job.replicas, .stall = seconds(stall->number()), .rejoin = seconds(600)};
  GoodputCase input = goodput_case(load_cluster(row.at("cluster").text(), gpus),
                                   load_reliability(row.at("profile").text()), job);
  if (const auto recovery = row.find("recovery_s")) {
    input.detection = input.diagnosis = input.warm_up = time_of(0);
    input.start = time_of(recovery->number());
  }
  return input;
}

}  // namespace

TEST_CASE("goodput: every published figure names a known source") {
  const auto sources = load_sources();
  const auto known = [&](const JsonValue& row) {
    INFO(row.at("what").text());
    CHECK(sources.contains(row.at("source").text()));
  };
  for (const char* part :
       {"mean_time_to_failure", "expected_ratio", "stalls", "effective_time", "checkpoint_size"})
    for (const JsonValue& row : published(part).items()) known(row);
  known(published("bracket"));
  known(published("save"));
}

TEST_CASE("goodput: published times between failures") {
  for (const JsonValue& row : published("mean_time_to_failure").items()) {
    INFO(row.at("what").text());
    const ReliabilityProfile profile = load_reliability(row.at("profile").text());
    double hours = 0;
    if (const auto hosts = row.find("hosts")) {
      // A count that no shipped wiring of these machines joins: the rate of hosts alone.
      double rate = 0;
      for (const FailureMode& mode : profile.failures)
        if (mode.per == FailureUnit::host) rate += mode.rate.get().si() * hosts->number();
      hours = 1 / rate / 3600;
    } else {
      const Cluster cluster = load_cluster(row.at("cluster").text(), row.at("gpus").integer());
      const GoodputCase input = goodput_case(cluster, profile, {.checkpoint = bytes(1e12)});
      hours = goodput(input).mean_time_to_failure.si() / 3600;
    }
    CHECK(hours == Approx(row.at("hours").number()).epsilon(row.at("within").number()));
  }
}

TEST_CASE("goodput: Meta's expected ETTR within 5 points, by its formula and by ours") {
  for (const JsonValue& row : published("expected_ratio").items()) {
    const double minutes = 60;
    const double rate = row.at("per_1000_host_days").number() / 1000 / 86400;
    ExpectedRatio input{.hosts = row.at("hosts").number(),
                        .failure_rate = Hertz(rate),
                        .restart = seconds(row.at("restart_min").number() * minutes),
                        .interval = seconds(row.at("interval_min").number() * minutes),
                        .write = seconds(row.at("write_s").number())};
    GoodputCase own = plain_case(1 / (rate * input.hosts), input.write.si(), input.restart.si());
    own.tiers[0].interval = input.interval;
    const Goodput ours = goodput(own);
    input.interval = ours.tiers[0].interval;
    const double formula = expected_time_ratio(input);
    INFO(row.at("what").text() << ": formula " << formula << ", ours " << ours.time_ratio);
    CHECK(formula == Approx(row.at("published").number()).margin(0.05));
    CHECK(ours.time_ratio == Approx(row.at("published").number()).margin(0.05));
  }
}

TEST_CASE("goodput: what 100,000 GPUs lose to stalls, by the first-order formula") {
  for (const JsonValue& row : published("stalls").items()) {
    const ExpectedRatio input{.hosts = 1,
                              .failure_rate = Hertz(1 / (row.at("mttf_min").number() * 60)),
                              .restart = seconds(row.at("stall_min").number() * 60),
                              .interval = seconds(1)};
    INFO(row.at("what").text());
    CHECK(expected_time_ratio(input) ==
          Approx(row.at("published").number()).margin(row.at("within").number()));
  }
}

TEST_CASE("goodput: published shares of effective time, machines as in the catalogue") {
  for (const JsonValue& row : published("effective_time").items()) {
    const Goodput result = goodput(read_case(row));
    INFO(row.at("what").text() << ": " << result.time_ratio);
    CHECK(result.time_ratio > row.at("low").number());
    CHECK(result.time_ratio < row.at("high").number());
  }
}

TEST_CASE("goodput: the published share of a synchronous run lies between two intervals") {
  const JsonValue row = published("bracket");
  GoodputCase input = read_case(row);
  const double given = goodput(input).time_ratio;
  input.tiers[0].interval = {};
  const double best = goodput(input).time_ratio;
  INFO(given << " to " << best);
  CHECK(given < row.at("published").number());
  CHECK(best > row.at("published").number());
  CHECK(best - given < 0.2);
}

TEST_CASE("goodput: checkpoints are as large as published") {
  for (const JsonValue& row : published("checkpoint_size").items()) {
    INFO(row.at("what").text());
    CHECK(adam_checkpoint(row.at("parameters").number()).si() ==
          Approx(row.at("printed").quantity<Bytes>().si()).epsilon(row.at("within").number()));
  }
}

TEST_CASE("goodput: BLOOM's saves cost what its makers say") {
  const JsonValue row = published("save");
  const double stall =
      row.at("size").quantity<Bytes>().si() / row.at("bandwidth").quantity<BytesPerSecond>().si();
  GoodputCase input = plain_case(7 * 86400.0, stall, 600);
  input.tiers[0].interval = seconds(row.at("interval_h").number() * 3600);
  const Goodput result = goodput(input);
  CHECK(stall == Approx(40).epsilon(0.01));
  CHECK(share_of(result.shares, TimeShare::checkpoint) ==
        Approx(row.at("published").number()).epsilon(row.at("within").number()));
  CHECK(result.lost_per_failure.si() / 3600 == Approx(row.at("lost_h").number()).epsilon(0.02));
}

TEST_CASE("goodput: Llama 3's effective training time, over 90% on 16,384 GPUs as Meta counts it") {
  // Arithmetic of the paper (section 3.3.4): training over elapsed time, firmware and kernels
  // updated meanwhile. What evaluation, data and slow hosts take is training time there.
  const GoodputCase input =
      goodput_case(load_cluster("h100-roce", 16384), load_reliability("llama3-h100"),
                   {.step = seconds(4.6),
                    .tokens_per_step = 16e6,
                    .tokens = 15.6e12,
                    .checkpoint = adam_checkpoint(405e9),
                    .replicas = 128});
  const Goodput result = goodput(input);
  INFO(result.effective << ", " << result.time_ratio << ", " << result.effective_training_time);
  CHECK(result.time_ratio > 0.9);
  CHECK(result.effective_training_time > result.time_ratio);
  CHECK(result.effective_training_time < 0.99);
  CHECK(result.effective < result.time_ratio);
  CHECK(result.effective_training_time * (1 - share_of(result.shares, TimeShare::maintenance)) ==
        Approx(result.time_ratio));
  // What a reader asks of the checkpoints is in the result.
  const TierUse& store = result.tiers.back();
  CHECK(store.size.si() == Approx(405e9 * 14));
  CHECK(store.bandwidth.si() == Approx(16384 * 122e6));  // 2 TB/s, sustained, of the paper
  CHECK(store.write.si() == Approx(store.size.si() / store.bandwidth.si()));
  CHECK(store.stall > Seconds{});
  CHECK(store.interval > store.write);
  CHECK(result.start_extrapolation == Approx(16384 / 96000.0));
  const std::vector<std::string> notes = goodput_notes(input, result);
  REQUIRE(notes.size() == 2);  // of the checkpoint and of waiting
  CHECK(notes[0].starts_with("a checkpoint of 5.16 TiB every "));
  CHECK(notes[1].find("nothing fails while it does") != std::string::npos);
}

TEST_CASE("goodput: starts at scale as published") {
  const Cluster cluster = load_cluster("h100-roce", 16384);
  GoodputCase input =
      goodput_case(cluster, load_reliability("llama3-h100"), {.checkpoint = bytes(1e12)});
  const double fixed = load_reliability("llama3-h100").recovery.start.get().si();
  const double each = (input.start.value.si() - fixed) / 16384;
  // 265 s of the common library and 24 s of Meta's at 96,000; MegaScale under 30 s at 10,000.
  CHECK(each * 96000 < 265);
  CHECK(each * 96000 > 24);
  CHECK(each * 10000 < 30);
  input.gpus = 1'000'000;
  const std::vector<std::string> notes = goodput_notes(input, goodput(input));
  CHECK(std::any_of(notes.begin(), notes.end(), [](const std::string& note) {
    return note.find("10 times as many as the 96000") != std::string::npos;
  }));
}

TEST_CASE("goodput: spot hosts that are taken back are failures of the job") {
  const Cluster cluster = load_cluster("h100-roce", 16384);
  const ReliabilityProfile profile = load_reliability("llama3-h100");
  GoodputJob job{.checkpoint = bytes(1e12)};
  const Goodput kept = goodput(goodput_case(cluster, profile, job));
  const Economics economics = load_economics("standard");
  job.preemption = economics.spot_interruption_rate;
  job.replacement = economics.spot_replacement;
  const GoodputCase input = goodput_case(cluster, profile, job);
  const Goodput spot = goodput(input);
  REQUIRE(spot.interruptions.back().name == "preemption");
  // 15% of 2,048 hosts in a twelfth of a year.
  CHECK(spot.interruptions.back().per_day == Approx(2048 * 0.15 / 30.4).epsilon(0.01));
  CHECK(spot.effective < kept.effective);
  CHECK(spot.mean_time_to_failure < kept.mean_time_to_failure);
  CHECK(input.failures.back().rate.low.si() == Approx(input.failures.back().rate.value.si() / 3));
}

}  // namespace orrery
