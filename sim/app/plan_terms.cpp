// Reads machines, limits and money of question files.
#include "sim/app/plan_terms.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "hw_models/catalog.h"
#include "sim/app/plan_question.h"
#include "sim/outcome/goodput_remedies.h"
#include "sim/outcome/model_flop.h"

namespace orrery {
namespace {

constexpr const char* cluster_folder = "sim/engine/catalog/clusters";

// In overrides a plain value stands for one that the question takes for granted.
void dress_values(const nlohmann::json& target, nlohmann::json& patch) {
  for (auto& [key, value] : patch.items()) {
    if (!target.is_object() || !target.contains(key)) continue;
    const nlohmann::json& old = target.at(key);
    if (value.is_object()) {
      dress_values(old, value);
    } else if (old.is_object() && old.contains("evidence")) {
      value = {{"value", value},
               {"low", value},
               {"high", value},
               {"evidence", "assumed"},
               {"source", "orrery-estimate"},
               {"reason", "the question says so"}};
    }
  }
}

void dress_overrides(nlohmann::json& merged, const JsonValue& at) {
  if (!merged.contains("overrides") || !merged["overrides"].is_object()) return;
  const auto dress = [&](const char* part, const char* folder, const char* key) {
    nlohmann::json& overrides = merged["overrides"];
    if (!overrides.contains(part) || !overrides[part].is_object()) return;
    if (!merged.contains(key) || !merged[key].is_string()) at.fail("a cluster");
    dress_values(load_catalog_entry(folder, part, merged[key].get<std::string>()).raw(),
                 overrides[part]);
  };
  dress("accelerator", "hw_models/catalog/accelerators", "accelerator");
  dress("fabric", "topologies/catalog", "fabric");
}

double positive(const JsonValue& at, const char* what) {
  const double value = at.number();
  if (!(value > 0) || value > 1e6) at.fail(what);
  return value;
}

template <class Q>
Sourced<Q> granted(Q value) {
  return {.value = value,
          .low = value,
          .high = value,
          .evidence = Evidence::assumed,
          .source = "orrery-estimate",
          .reason = "the question says so"};
}

PlanObjective read_objective(const JsonValue& file) {
  const auto v = file.find("objective");
  if (!v) return file.has("deadline") ? PlanObjective::cost : PlanObjective::time;
  return static_cast<PlanObjective>(v->index_in({"time", "cost", "energy", "carbon", "gpus"}));
}

std::vector<StorageTier> read_checkpoint(const JsonValue& file) {
  const auto v = file.find("checkpoint");
  if (!v) return {StorageTier{}};
  std::vector<StorageTier> tiers;
  for (const JsonValue& at : v->is_array() ? v->items() : std::vector<JsonValue>{*v}) {
    at.expect_only({"to", "bandwidth", "asynchronous", "interval", "writing_hosts"});
    StorageTier tier;
    if (const auto to = at.find("to")) {
      std::vector<std::string> names;
      for (int k = 0; k < 4; ++k) names.emplace_back(to_text(static_cast<StorageKind>(k)));
      tier.kind = static_cast<StorageKind>(to->index_in(names));
    }
    if (const auto b = at.find("bandwidth")) tier.bandwidth = b->quantity<BytesPerSecond>();
    if (const auto a = at.find("asynchronous")) tier.asynchronous = a->boolean();
    if (const auto i = at.find("interval")) tier.interval = i->quantity<Seconds>();
    if (const auto w = at.find("writing_hosts")) tier.writing_hosts = w->integer(1, 1 << 20);
    if (tier.bandwidth.si() < 0 || tier.interval.si() < 0) at.fail("values above 0");
    tiers.push_back(tier);
  }
  const bool kept = std::any_of(tiers.begin(), tiers.end(),
                                [](const StorageTier& t) { return t.kind == StorageKind::remote; });
  if (!kept) v->fail("one that goes to the remote store: the others do not survive everything");
  return tiers;
}

template <class Q>
Q limit_of(const JsonValue& at, const char* key) {
  const auto v = at.find(key);
  if (!v) return Q{};
  const Q value = v->quantity<Q>();
  if (!(value.si() > 0)) v->fail("a limit above 0");
  return value;
}

}  // namespace

const std::vector<std::string>& machine_keys() {
  static const std::vector<std::string> keys = {
      "fabric",           "nic_bandwidth",      "oversubscription",
      "scale_up_domain",  "scale_up_bandwidth", "memory_capacity",
      "memory_bandwidth", "tensor_rate",        "power_cap",
      "speedup"};
  return keys;
}

const std::vector<std::string>& money_keys() {
  static const std::vector<std::string> keys = {"site",
                                                "ownership",
                                                "contract",
                                                "facility",
                                                "economics",
                                                "gpu_hour_price",
                                                "accelerator_price",
                                                "electricity_price",
                                                "reliability",
                                                "spares",
                                                "remedies",
                                                "deadline",
                                                "budget",
                                                "capital",
                                                "power",
                                                "racks",
                                                "square_metres"};
  return keys;
}

PlanReading::PlanReading(const JsonValue& question)
    : file(question), objective(read_objective(question)) {
  if (const auto v = file.find("start")) start = date_from(*v);
  if (const auto v = file.find("available")) {
    if (!start) v->fail("nothing without a start");
    for (const auto& [name, date] : v->members()) available[name] = date_from(date);
  }
}

std::string PlanReading::base_name(const nlohmann::json& value) const {
  const JsonValue at = JsonValue::from({{"cluster", value}}, file.file()).at("cluster");
  return at.is_object() ? at.at("based_on").text() : at.text();
}

void PlanReading::add_cluster(const nlohmann::json& value) {
  const std::string key = value.dump();
  if (cluster_files.contains(key)) return;
  const JsonValue at = JsonValue::from({{"cluster", value}}, file.file()).at("cluster");
  JsonValue entry = load_catalog_entry(cluster_folder, "cluster", base_name(value));
  if (at.is_object()) {
    nlohmann::json merged = entry.raw();
    nlohmann::json patch = value;
    patch.erase("based_on");
    static_cast<void>(at.at("name").text());
    merge_overlay(merged, patch);
    if (!patch.contains("title")) merged["title"] = at.at("name").text();
    dress_overrides(merged, at);
    entry = JsonValue::from(std::move(merged), file.file() + ": cluster " + at.at("name").text());
  }
  cluster_files.emplace(key, std::move(entry));
}

Cluster read_plan_cluster(const JsonValue& at, const JsonValue& cluster_file, std::int64_t gpus) {
  const auto fabric = at.find("fabric");
  if (!fabric) return read_cluster(cluster_file, gpus);
  nlohmann::json merged = cluster_file.raw();
  merged["fabric"] = fabric->text();
  return read_cluster(JsonValue::from(std::move(merged), cluster_file.file()), gpus);
}

WhatIf read_edit(const JsonValue& at, const Cluster& cluster) {
  WhatIf edit;
  const auto factor = [&](const char* key, double& value) {
    if (const auto v = at.find(key)) value = positive(*v, "a factor above 0 (1: as it is)");
  };
  factor("nic_bandwidth", edit.network_bandwidth);
  factor("scale_up_bandwidth", edit.scale_up_bandwidth);
  factor("memory_capacity", edit.memory_capacity);
  factor("memory_bandwidth", edit.memory_bandwidth);
  factor("tensor_rate", edit.tensor_rate);
  if (const auto v = at.find("scale_up_domain"))
    edit.scale_up_domain = static_cast<double>(v->integer(1, 1 << 20)) /
                           static_cast<double>(cluster.fabric.scale_up.domain);
  if (const auto v = at.find("power_cap")) {
    if (!v->is_string() || v->text() != "none") edit.power_limit = v->quantity<Watts>();
  }
  if (const auto v = at.find("speedup")) {
    if (v->text() != "none") {
      try {
        edit.kernels = kernel_speedups_from(v->text());
      } catch (const Error& error) {
        ErrorInfo info = error.info();
        info.file = at.file();
        info.path = "speedup";
        throw Error(info);
      }
    }
  }
  return edit;
}

void set_oversubscription(const JsonValue& at, Cluster& cluster) {
  const auto v = at.find("oversubscription");
  if (!v) return;
  const double ratio = v->number();
  if (!(ratio >= 1) || ratio > 1000) v->fail("a ratio from 1 (non-blocking) to 1000");
  if (cluster.fabric.scale_out.tiers.empty())
    v->fail("nothing: " + cluster.name + " has no switches");
  cluster.fabric.scale_out.tiers.front().oversubscription = granted(ratio);
}

void read_goal(const PlanReading& reading, const JsonValue& at, PlanChoice& choice) {
  PlanGoal& goal = choice.goal;
  const Question& q = choice.question;
  if (const auto v = at.find("tokens")) goal.tokens = tokens_from(*v);
  if (const auto v = at.find("compute")) {
    const double flop = v->quantity<Flop>().si();
    goal.tokens = flop / model_flop_per_token(q.model, q.job);
    if (!(goal.tokens >= 1) || goal.tokens > 1e24) v->fail("a budget such as \"1e26 FLOP\"");
  }
  if (const auto v = at.find("deadline")) {
    const std::string text = v->text();
    if (text.size() == 10 && text[4] == '-') {
      const std::int64_t date = date_from(*v);
      if (!reading.start) v->fail("a start beside a date, or a time such as \"90 days\"");
      goal.allowed = Seconds(static_cast<double>(date - *reading.start) * seconds_per_day);
    } else {
      goal.allowed = v->quantity<Seconds>();
    }
    if (!(goal.allowed.si() > 0)) v->fail("a deadline after the start");
  }
  goal.budget = limit_of<Dollars>(at, "budget");
  goal.capital = limit_of<Dollars>(at, "capital");
  goal.power = limit_of<Watts>(at, "power");
  if (const auto v = at.find("racks")) goal.racks = positive(*v, "a number of racks above 0");
  if (const auto v = at.find("square_metres"))
    goal.square_metres = positive(*v, "square metres above 0");
  goal.objective = reading.objective;
  if (goal.objective == PlanObjective::energy) choice.question.objective = Objective::energy;
}

void read_terms(const PlanReading& reading, const JsonValue& at, PlanChoice& choice) {
  PlanTerms& terms = choice.terms;
  const Cluster& cluster = choice.question.cluster;
  if (const auto v = at.find("ownership"))
    terms.ownership = v->one_of({"buy", "rent"}) == "buy" ? Ownership::buy : Ownership::rent;
  if (const auto v = at.find("facility"))
    terms.facility =
        v->one_of({"build", "colocate"}) == "build" ? Facility::build : Facility::colocate;
  if (const auto v = at.find("contract"))
    terms.contract =
        static_cast<Contract>(v->index_in({"on-demand", "reserved-1y", "reserved-3y", "spot"}));
  BillNames names;
  if (const auto v = at.find("site")) names.site = v->text();
  if (const auto v = at.find("economics")) names.economics = v->text();
  terms.facts = load_bill_facts(cluster, names, terms.ownership);
  if (const auto v = at.find("gpu_hour_price")) {
    if (!terms.facts.cloud) terms.facts.cloud = CloudPrices{.name = cluster.device.name};
    const auto price = granted(DollarsPerSecond(positive(*v, "USD an hour, above 0") / 3600));
    CloudPrices& cloud = *terms.facts.cloud;
    cloud.on_demand = cloud.reserved_1y = cloud.reserved_3y = cloud.spot = price;
  }
  if (const auto v = at.find("electricity_price")) {
    const Dollars per_hour = Dollars(positive(*v, "USD a kWh, above 0"));
    terms.facts.site.electricity_price = granted(DollarsPerJoule(per_hour.si() / 3.6e6));
  }
  if (const auto v = at.find("accelerator_price"))
    choice.question.cluster.device.price = granted(Dollars(positive(*v, "USD, above 0")));
  const auto profile = at.find("reliability");
  terms.reliability =
      load_reliability(profile ? profile->text() : default_reliability(cluster.device.name));
  if (const auto v = at.find("spares")) terms.spare_gpus = v->integer(0, INT64_C(1) << 30);
  if (const auto v = at.find("remedies")) {
    std::vector<std::string> known = remedy_names();
    known.insert(known.begin(), "none");
    const std::string remedy = v->one_of(known);
    if (remedy != "none") terms.remedy = remedy;
  }
  terms.storage = read_checkpoint(reading.file);
  if (const auto from = reading.available.find(cluster.name); from != reading.available.end())
    terms.wait =
        Seconds(static_cast<double>(std::max<std::int64_t>(0, from->second - *reading.start)) *
                seconds_per_day);
}

std::vector<std::string> availability_of(const PlanReading& reading, const Plan& plan) {
  std::vector<std::string> sentences;
  std::set<std::string> seen;
  for (const PlanChoice& choice : plan.choices) {
    const Cluster& cluster = choice.question.cluster;
    if (!seen.insert(cluster.name).second) continue;
    const auto from = reading.available.find(cluster.name);
    if (from != reading.available.end())
      sentences.push_back(fmt::format(
          "{} can be had from {}: {:.0f} days after the start, which its finish counts.",
          cluster.name, date_text(from->second), choice.terms.wait.si() / seconds_per_day));
    else if (cluster.device.status != "shipped")
      sentences.push_back(fmt::format(
          "{}: the catalogue has {} as {}, without a date; `available` in the question gives one.",
          cluster.name, cluster.device.title, cluster.device.status));
  }
  for (const auto& [name, date] : reading.available)
    if (!seen.contains(name)) {
      const std::vector<std::string> names(seen.begin(), seen.end());
      throw Error({.file = reading.file.file(),
                   .path = "available." + name,
                   .found = in_quotes(name),
                   .expected = fmt::format("one of the clusters: {}", fmt::join(names, ", ")),
                   .nearest = nearest_name(name, names)});
    }
  return sentences;
}

}  // namespace orrery
