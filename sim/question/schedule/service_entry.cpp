// SPDX-License-Identifier: Apache-2.0
// Finds what a replica does by serve, and how many of them a load needs.
#include "sim/question/schedule/service_entry.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <string_view>

#include "hw_models/catalog.h"
#include "sim/base/errors/cannot_exist.h"
#include "sim/base/text/words.h"
#include "sim/outcome/fleet/job_months.h"
#include "sim/outcome/host_power.h"
#include "sim/question/schedule/inline_jobs.h"
#include "sim/question/schedule/settings.h"
#include "sim/question/serve/engine_text.h"
#include "sim/question/serve/policy.h"
#include "sim/question/serve/serve.h"

namespace orrery {
namespace {

constexpr std::int64_t most_replicas = 100'000;
constexpr std::size_t most_lives = 1'000'000;
constexpr std::int64_t most_checks = 1'000'000;
constexpr double most_batch = 1e12;

// LLaMA-2-70B, 130 GB, is in the memory of 8 GPUs of a host after 84 s with PyTorch (Fu et al.,
// ServerlessLLM, OSDI 2024, section 2). What streams weights is several times faster there.
constexpr double loaded_bytes_per_s = 130e9 / 84;
// vLLM 0.9 answers 59 s after it was started, 1 s of which is the weights of a small model; its
// compiled graphs were in a cache (github.com/vllm-project/vllm, issue 20264).
constexpr double engine_start_s = 58;

// Of serve; the load of the entry says who asks when, and the cluster of the question where.
constexpr std::array<const char*, 10> not_of_replicas = {
    "cluster",  "gpus",   "arrivals", "concurrency", "for",
    "requests", "warmup", "turns",    "turn_tokens", "think_time"};

JsonValue replica_settings(const JsonValue& given, const SortedJson& cluster) {
  for (const char* key : not_of_replicas)
    if (const auto v = given.find(key))
      v->fail("nothing: the entry says who asks when, and the question on which machine");
  SortedJson settings = given.raw();
  settings["cluster"] = cluster;
  settings["arrivals"] = "offline";
  return JsonValue::from(std::move(settings), place_of(given));
}

// How long so many replicas load their weights that start at a time and share a store with nobody.
Seconds load_of(const ServedReplica& replica, const std::optional<StoreRates>& store,
                std::int64_t replicas = 1) {
  double host = loaded_bytes_per_s;
  if (store && store->host) host = std::min(host, store->host->si());
  const double alone = replica.weights.si() / (replica.hosts * host);
  if (!store) return seconds(alone);
  return seconds(
      std::max(alone, static_cast<double>(replicas) * replica.weights.si() / store->read.si()));
}

Seconds start_of(Seconds load) { return seconds(load.si() + engine_start_s); }

ServedReplica replica_of(const JsonValue& settings, Catalogues& catalogues) {
  ServedReplica out{.asked = read_service(settings, catalogues, 1)};
  const ServiceCase& asked = out.asked;
  if (const auto unused = unused_settings(settings, asked); !unused.empty())
    settings.at(unused.front().key).fail(unused.front().expected);
  out.deployment =
      fmt::format("{}, {}, {}", asked.model.title, asked.stack.title, to_text(asked.engines));
  if (asked.decode) out.deployment += " and " + to_text(*asked.decode) + " that decode";
  const SaturatedRun run = saturated_service(asked);
  if (!run.refusal.empty())
    throw CannotExist({.file = settings.file(),
                       .found = "a replica that serves nothing: " + run.refusal,
                       .expected = "engines that serve some request"});
  out.saturated = run.service;
  const Drafter* drafter = asked.guessing ? &asked.guessing->drafter : nullptr;
  const double gpus = static_cast<double>(asked.gpus());
  out.hosts = std::ceil(gpus / static_cast<double>(asked.cluster.gpus_per_host));
  out.weights =
      engine_memory(asked.cluster, asked.model, asked.engines.layout, asked.stack, drafter)
          .weights *
      gpus;
  return out;
}

double read_rate(const JsonValue& at) {
  constexpr const char* expected = "requests a second above 0, such as \"12/s\"";
  if (at.is_number()) at.fail(expected);
  std::string text = at.text();
  if (!text.ends_with("/s")) at.fail(expected);
  text.resize(text.size() - 2);
  char* end = nullptr;
  const double rate = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !(rate > 0) || !std::isfinite(rate)) at.fail(expected);
  return rate;
}

template <std::size_t n>
std::array<double, n> read_shares(const JsonValue& at) {
  const std::vector<JsonValue> items = at.items();
  if (items.size() != n) at.fail(fmt::format("{} shares", n), plural(items.size(), "share"));
  std::array<double, n> out{};
  double sum = 0;
  for (std::size_t i = 0; i < n; ++i) {
    out[i] = items[i].number();
    if (!(out[i] >= 0)) items[i].fail("a share of 0 or more");
    sum += out[i];
  }
  if (!(sum > 0)) at.fail("some share above 0");
  return out;
}

LoadCurve week_of(const JsonValue& at) {
  at.expect_only({"peak", "by_hour", "by_weekday", "like"});
  const double peak = read_rate(at.at("peak"));
  JobArrivals shape;
  if (const auto like = at.find("like")) {
    for (const char* key : {"by_hour", "by_weekday"})
      if (at.has(key)) at.at(key).fail("nothing beside like: the mix says when people ask");
    shape = mix_of_jobs(*like).arrivals;
  }
  if (const auto hours = at.find("by_hour")) shape.by_hour = read_shares<24>(*hours);
  if (const auto days = at.find("by_weekday")) shape.by_weekday = read_shares<7>(*days);
  return LoadCurve::of_week(peak, shape.by_hour, shape.by_weekday);
}

LoadCurve read_load(const JsonValue& at) {
  if (at.is_object()) return week_of(at);
  const std::string text = at.text();
  if (text.find(':') == std::string::npos)
    return LoadCurve({{.length = seconds(86'400), .rate = Hertz(read_rate(at))}});
  const Arrivals arrivals = parse_arrivals(text, "load");
  const auto* daily = std::get_if<DailyArrivals>(&arrivals);
  if (daily == nullptr)
    at.fail("requests a second: \"12/s\", \"daily:8h:2/s:16h:12/s\", or {\"peak\": \"12/s\", ..}");
  for (const RatePiece& piece : daily->pieces)
    if (piece.length < seconds(60)) at.fail("rates that hold for a minute or longer");
  return LoadCurve(daily->pieces);
}

// What the promises themselves ask for: the largest percentile among them.
double read_target(const JsonValue& entry, const ServiceTarget& promises) {
  if (const auto target = entry.find("target")) {
    const double share = target->number();
    if (!(share > 0 && share <= 1)) target->fail("a share above 0, at most 1, such as 0.95");
    return share;
  }
  double percent = 0;
  for (const LatencyBound& bound : promises.bounds) percent = std::max(percent, bound.percent);
  if (percent == 0)
    entry.fail("target beside promises of means: the share of requests that keeps them");
  return percent / 100;
}

FleetTime time_of(const JsonValue& entry, const char* key, FleetTime otherwise, Seconds least) {
  const auto at = entry.find(key);
  return at ? read_fleet_time(*at, least, "a time, such as \"5 min\"") : otherwise;
}

// All but what depends on what a replica bears.
ReplicaRule read_rule(const JsonValue& entry, const ServedCase& with, Seconds start) {
  ReplicaRule rule{.scale = with.scale};
  if (const auto headroom = entry.find("headroom")) {
    rule.headroom = headroom->number();
    if (!(rule.headroom >= 0 && rule.headroom <= 10)) headroom->fail("a share from 0 to 10");
  }
  rule.start = time_of(entry, "start", to_fleet_time(start), Seconds{});
  // The time for which the autoscaler of Kubernetes waits before it takes replicas away
  // (kubernetes.io, horizontal pod autoscaling, stabilizationWindowSeconds).
  rule.check_every = time_of(entry, "check_every", to_fleet_time(seconds(300)), seconds(1));
  if (const auto least = entry.find("least")) rule.least = least->integer(0, most_replicas);
  if (const auto most = entry.find("most"))
    rule.most = most->integer(std::max<std::int64_t>(1, rule.least), most_replicas);
  const FleetTime open_for = *with.end - rule.start;
  if (open_for.us <= 0)
    entry.fail(fmt::format("days or a horizon longer than the {} until a replica serves",
                           to_text(to_seconds(rule.start))));
  if (open_for.us / rule.check_every.us > most_checks)
    entry.fail(
        fmt::format("check_every such that there are at most {} checks", grouped(most_checks)));
  return rule;
}

void set_what_it_bears(const JsonValue& entry, const ServiceTable& table, const LoadCurve& load,
                       const std::string& promises, double target, ReplicaRule& rule) {
  rule.bears = table.most_at(target);
  if (!(rule.bears > 0)) {
    const std::string best = percent_figure(table.loads().front().kept);
    throw CannotExist({.file = entry.file(),
                       .path = entry.path(),
                       .found = fmt::format("a target of {}%", percent_figure(target)),
                       .expected = fmt::format("at most {}%: so many requests keep all promises "
                                               "({}) where hardly any come",
                                               best, promises)});
  }
  if (entry.has("most")) return;
  rule.most = std::max(rule.least, replicas_for(load.peak(), rule));
  if (rule.most > most_replicas)
    entry.at("load").fail(
        fmt::format("a peak of at most {} replicas, of {:.4g} requests a second "
                    "each",
                    grouped(most_replicas), rule.bears));
}

// A replica that is told nothing of its load: the mean over those that serve, if all of them come
// in time.
Watts mean_power_of(const FleetService& service, const std::vector<ReplicaLife>& lives) {
  ClusterJobs jobs;
  FleetRecord record{.last_end = service.close};
  for (const ReplicaLife& life : lives) {
    jobs.jobs.push_back({.work = service.work});
    record.jobs.push_back({.start = life.submit, .end = life.until});
  }
  return service_measures(service, jobs, record).power;
}

// The first part of a start.
StoreRead weights_read(Bytes weights, Seconds load, FleetTime start) {
  StoreRead read{.alone = std::min(to_fleet_time(load), start)};
  if (read.alone.us == 0) return read;
  read.after = start - read.alone;
  read.bytes_per_s =
      std::max<std::int64_t>(1, std::llround(weights.si() / to_seconds(read.alone).si()));
  return read;
}

// Replicas and requests that are done stay so when a job is stopped.
JobWork work_of(const ServedCase& with, const ServiceCase& asked, Watts accelerator,
                FleetTime start) {
  JobWork work;
  if (with.profile) work.restart = recorded_work(*with.profile, Seconds{}).restart;
  work.save_steps = 1;
  work.start = start;
  work.milliwatts = milliwatts_with_host(accelerator, asked.cluster);
  return work;
}

}  // namespace

ServedReplica& ServedReplicas::of(const JsonValue& settings, Catalogues& catalogues) {
  const std::string key = settings.raw().dump();
  const auto found = known_.find(key);
  if (found != known_.end()) return found->second;
  return known_.emplace(key, replica_of(settings, catalogues)).first->second;
}

const std::shared_ptr<const ServiceTable>& ServedReplicas::table(ServedReplica& replica,
                                                                 double variation, int threads) {
  auto& table = replica.tables[variation];
  if (!table)
    table =
        std::make_shared<const ServiceTable>(replica.asked, replica.saturated, variation, threads);
  return table;
}

FleetServedModel read_served_model(const JsonValue& entry, const ServedCase& with) {
  entry.expect_only({"id", "serve", "load", "target", "least", "most", "headroom", "check_every",
                     "start", "variation", "queue", "priority", "preemptible", "within"});
  if (!with.end)
    throw Error({.file = entry.file(),
                 .path = "days",
                 .found = "nothing",
                 .expected = "days or horizon: for how long a model is served"});
  const JsonValue given = entry.at("serve");
  if (!given.has("slo")) given.at("slo");  // says what is missing
  const LoadCurve load = read_load(entry.at("load"));
  double variation = 1;
  if (const auto v = entry.find("variation")) {
    variation = v->number();
    if (!(variation > 0 && variation <= 100)) v->fail("a deviation over the mean, above 0");
  }
  ServedReplica& replica = with.replicas.of(replica_settings(given, with.cluster), with.catalogues);
  const ServiceTarget& promises = replica.asked.target;
  const double target = read_target(entry, promises);
  const Seconds load_time = load_of(replica, with.store);
  ReplicaRule rule = read_rule(entry, with, start_of(load_time));
  const auto& table = ServedReplicas::table(replica, variation, with.threads);
  set_what_it_bears(entry, *table, load, to_text(promises), target, rule);
  FleetServedModel out{.service = {.id = entry.at("id").text(),
                                   .table = table,
                                   .load = load,
                                   .rule = rule,
                                   .gpus = static_cast<std::int32_t>(replica.asked.gpus()),
                                   .open = rule.start,
                                   .close = *with.end},
                       .deployment = replica.deployment,
                       .promises = to_text(promises),
                       .target = target,
                       .for_the_peak = replicas_for(load.peak(), rule)};
  const FleetService& service = out.service;
  if (out.for_the_peak > rule.most)
    out.notes.push_back(fmt::format(
        "{}: its peak of {:.4g} requests a second needs {} replicas, and at most {} stand",
        service.id, load.peak(), grouped(out.for_the_peak), grouped(rule.most)));
  out.lives = replica_lives(load, rule, service.open, service.close);
  if (out.lives.size() > most_lives)
    entry.fail(fmt::format("a load and checks with at most {} replicas that come and go",
                           grouped(most_lives)));
  out.work = work_of(with, replica.asked, mean_power_of(service, out.lives), rule.start);
  out.work.first_read = weights_read(replica.weights, load_time, rule.start);
  return out;
}

BatchInference read_batch(const JsonValue& entry, const ServedCase& with) {
  entry.expect_only({"id", "batch", "requests", "replicas", "gpus", "submit", "chunk", "start",
                     "queue", "priority", "preemptible", "within", "deadline", "slack", "after"});
  const JsonValue given = entry.at("batch");
  if (const auto slo = given.find("slo")) slo->fail("nothing: nobody waits for the answers");
  const ServedReplica& replica =
      with.replicas.of(replica_settings(given, with.cluster), with.catalogues);
  const std::int64_t gpus = replica.asked.gpus();
  BatchInference out{.id = entry.at("id").text(), .deployment = replica.deployment};
  out.requests = std::floor(entry.at("requests").number());
  if (!(out.requests >= 1 && out.requests <= most_batch))
    entry.at("requests").fail("from 1 to 10^12 requests");
  const auto replicas = entry.find("replicas"), all = entry.find("gpus");
  if (replicas && all) all->fail("nothing beside replicas");
  if (replicas) out.replicas = replicas->integer(1, most_replicas);
  if (all) {
    out.replicas = all->integer(1, most_replicas * gpus) / gpus;
    if (out.replicas * gpus != all->integer())
      all->fail(fmt::format("whole replicas of {}", plural(gpus, "accelerator")));
  }
  const auto n = static_cast<double>(out.replicas);
  out.rate = n * replica.saturated.rate;
  out.tokens = n * replica.saturated.tokens;
  const Seconds load = load_of(replica, with.store, out.replicas);
  // Of what runs as a job is stopped half is done, in the mean: as of a chunk of so many requests.
  out.chunk = out.replicas * replica.saturated.in_flight;
  if (const auto chunk = entry.find("chunk"))
    out.chunk = chunk->integer(1, static_cast<std::int64_t>(most_batch));
  out.work = work_of(with, replica.asked, replica.saturated.power,
                     time_of(entry, "start", to_fleet_time(start_of(load)), Seconds{}));
  out.work.first_read = weights_read(replica.weights * n, load, out.work.start);
  out.work.step_ps = std::max<std::int64_t>(1, std::llround(1e12 / out.rate));
  out.work.save_steps = out.chunk;
  out.job.submit = time_of(entry, "submit", FleetTime{}, Seconds{});
  out.job.gpus = static_cast<std::int32_t>(out.replicas * gpus);
  const double length_us = out.requests * static_cast<double>(out.work.step_ps) * 1e-6;
  if (!(length_us < static_cast<double>(most_fleet_time.us)))
    entry.at("requests")
        .fail(fmt::format("at most 1,000 years of {:.4g} requests a second", out.rate));
  out.job.length.us = static_cast<std::int64_t>(std::ceil(length_us));
  out.job.limit = out.job.length;
  return out;
}

}  // namespace orrery
