// SPDX-License-Identifier: Apache-2.0
// Reads machines, limits and money of question files.
#include "sim/question/plan/terms.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "hw_models/catalog.h"
#include "sim/base/text/words.h"
#include "sim/outcome/model_flop.h"
#include "sim/outcome/months/remedies.h"
#include "sim/question/plan/question.h"

namespace orrery {
namespace {

double positive(const JsonValue& at, const char* what) {
  const double value = at.number();
  if (!(value > 0) || value > 1e6) at.fail(what);
  return value;
}

PlanObjective read_objective(const JsonValue& file) {
  const auto v = file.find("objective");
  if (!v) return file.has("deadline") ? PlanObjective::cost : PlanObjective::time;
  return plan_objective_text.from(*v);
}

std::vector<StorageTier> read_checkpoint(const JsonValue& file) {
  const auto v = file.find("checkpoint");
  if (!v) return {StorageTier{}};
  std::vector<StorageTier> tiers;
  for (const JsonValue& at : v->is_array() ? v->items() : std::vector<JsonValue>{*v}) {
    at.expect_only({"to", "bandwidth", "asynchronous", "interval", "writing_hosts"});
    StorageTier tier;
    if (const auto to = at.find("to")) tier.kind = storage_kind_text.from(*to);
    if (const auto b = at.find("bandwidth")) {
      tier.bandwidth = b->quantity<BytesPerSecond>();
      if (!(tier.bandwidth.si() > 0)) b->fail("a bandwidth above 0, such as \"100 GB/s\"");
    }
    if (const auto a = at.find("asynchronous")) tier.asynchronous = a->boolean();
    if (const auto i = at.find("interval")) {
      tier.interval = i->quantity<Seconds>();
      if (!(tier.interval.si() > 0)) i->fail("a time above 0, or no interval: the optimal one");
    }
    if (const auto w = at.find("writing_hosts")) tier.writing_hosts = w->integer(1, 1 << 20);
    tiers.push_back(tier);
  }
  const bool kept = std::any_of(tiers.begin(), tiers.end(),
                                [](const StorageTier& t) { return t.kind == StorageKind::remote; });
  if (!kept) v->fail("one that goes to the remote store: the others do not survive everything");
  return tiers;
}

// The question's date wins over the catalogue's.
std::optional<Date> had_from(const PlanReading& reading, const Cluster& cluster) {
  if (const auto own = reading.available.find(cluster.name); own != reading.available.end())
    return own->second;
  const auto& known = cluster.device.available;
  return known ? known->value : std::nullopt;
}

// Empty where nothing has to be said: it was there before the start, or ships.
std::string availability(const PlanReading& reading, const Cluster& cluster) {
  const std::string& title = cluster.device.title;
  const auto from = had_from(reading, cluster);
  if (!from)
    return cluster.device.status == "shipped"
               ? ""
               : fmt::format(
                     "{}: the catalogue has {} as {}, without a date; `available` in the "
                     "question gives one.",
                     cluster.name, title, cluster.device.status);
  std::string source = "as the question says";
  if (!reading.available.contains(cluster.name)) {
    const Sourced<Date>& known = *cluster.device.available;
    source = fmt::format("{}, source {}", to_text(known.evidence), known.source);
    if (known.low && known.high && *known.low != *known.high)
      source += fmt::format(", {} to {}", to_text(*known.low), to_text(*known.high));
  }
  if (!reading.start)
    return cluster.device.status == "shipped"
               ? ""
               : fmt::format(
                     "{}: {} can be had from {} ({}); without a `start` no wait is counted.",
                     cluster.name, title, to_text(*from), source);
  const std::int64_t wait = *from - *reading.start;
  if (wait <= 0) return "";
  return fmt::format(
      "{} can be had from {} ({}): {} days after the start, which its finish counts.", cluster.name,
      to_text(*from), source, wait);
}

bool any_owned(const Plan& plan, Ownership how) {
  return std::any_of(plan.choices.begin(), plan.choices.end(),
                     [&](const PlanChoice& c) { return c.terms.ownership == how; });
}

template <class Q>
Q limit_of(const JsonValue& at, const char* key) {
  const auto v = at.find(key);
  if (!v) return Q{};
  const Q value = v->quantity<Q>();
  if (!(value.si() > 0)) v->fail("a limit above 0");
  return value;
}

// Time from the start to a deadline: "90 days", "2027-06-30".
Seconds deadline_of(const JsonValue& at, const std::optional<Date>& start) {
  constexpr const char* expected =
      "a time from the start such as \"90 days\" or \"6 months\", or with a start a date such as "
      "\"2027-06-30\"";
  if (!at.is_string()) at.fail(expected);
  const std::string text = at.text();
  Seconds allowed;
  if (text.size() == 10 && text[4] == '-') {
    const Date date = read_date(at);
    if (!start) at.fail("a start beside a date, or a time such as \"90 days\"");
    allowed = Seconds(static_cast<double>(date - *start) * seconds_per_day);
    if (!(allowed.si() > 0)) at.fail(fmt::format("a date after the start, {}", to_text(*start)));
  } else {
    try {
      allowed = at.quantity<Seconds>();
    } catch (const Error&) {
      at.fail(expected);
    }
  }
  if (!(allowed.si() > 0)) at.fail(expected);
  return allowed;
}

}  // namespace

PlanReading::PlanReading(const JsonValue& question)
    : file(question), objective(read_objective(question)) {
  if (const auto v = file.find("start")) start = read_date(*v);
  if (const auto v = file.find("available")) {
    if (!start) v->fail("nothing without a start");
    for (const auto& [name, date] : v->members()) available[name] = read_date(date);
  }
}

bool counts_energy(PlanObjective objective) {
  return objective == PlanObjective::energy || objective == PlanObjective::carbon;
}

void read_goal(const PlanReading& reading, const JsonValue& at, PlanChoice& choice) {
  PlanGoal& goal = choice.goal;
  const Question& q = choice.question;
  if (const auto v = at.find("tokens")) goal.tokens = tokens_from(*v);
  if (const auto v = at.find("flop")) {
    goal.flop = flop_from(*v);
    goal.tokens = goal.flop.si() / model_flop_per_token(q.model, q.job);
    if (!(goal.tokens >= 1)) v->fail("enough for a token");
  }
  if (const auto v = at.find("deadline")) {
    goal.allowed = deadline_of(*v, reading.start);
  }
  goal.budget = limit_of<Dollars>(at, "budget");
  goal.capital = limit_of<Dollars>(at, "capital");
  goal.power = limit_of<Watts>(at, "power");
  if (const auto v = at.find("racks")) goal.racks = positive(*v, "a number of racks above 0");
  if (const auto v = at.find("square_metres"))
    goal.square_metres = positive(*v, "square metres above 0");
  goal.objective = reading.objective;
  if (counts_energy(goal.objective)) choice.question.objective = Objective::energy;
}

void read_terms(PlanReading& reading, const JsonValue& at, PlanChoice& choice) {
  PlanTerms& terms = choice.terms;
  const Cluster& cluster = choice.question.cluster;
  if (const auto v = at.find("ownership")) terms.ownership = ownership_text.from(*v);
  if (const auto v = at.find("facility")) terms.facility = facility_text.from(*v);
  if (const auto v = at.find("contract")) terms.contract = contract_text.from(*v);
  BillNames names;
  if (const auto v = at.find("site")) names.site = v->text();
  if (const auto v = at.find("economics")) names.economics = v->text();
  const std::string facts_key = SortedJson{at.at("cluster").raw(), names.site, names.economics,
                                           terms.ownership == Ownership::buy}
                                    .dump();
  auto facts = reading.facts.find(facts_key);
  if (facts == reading.facts.end())
    facts =
        reading.facts.emplace(facts_key, load_bill_facts(cluster, names, terms.ownership)).first;
  terms.facts = facts->second;
  choice.question.cluster.host_load = terms.facts.economics.host_load;
  if (const auto v = at.find("gpu_hour_price")) {
    if (!terms.facts.cloud) terms.facts.cloud = CloudPrices{.name = cluster.device.name};
    const auto price =
        granted(DollarsPerSecond(positive(*v, "USD an hour, above 0") / seconds_per_hour));
    CloudPrices& cloud = *terms.facts.cloud;
    choice.question.cluster.device.rental = cloud.reserved_1y = cloud.reserved_3y = cloud.spot =
        price;
  }
  if (const auto v = at.find("spot_interruptions"))
    terms.facts.economics.spot_interruption_rate =
        granted(Hertz(positive(*v, "times a year, above 0") / seconds_per_year));
  if (const auto v = at.find("electricity_price")) {
    const Dollars per_hour = Dollars(positive(*v, "USD a kWh, above 0"));
    terms.facts.site.electricity_price =
        granted(DollarsPerJoule(per_hour.si() / joules_per_kilowatt_hour));
  }
  if (const auto v = at.find("accelerator_price"))
    choice.question.cluster.device.price = granted(Dollars(positive(*v, "USD, above 0")));
  const auto profile = at.find("reliability");
  const std::string failures = profile ? profile->text() : "default of " + cluster.device.name;
  auto rates = reading.reliability.find(failures);
  if (rates == reading.reliability.end())
    rates = reading.reliability
                .emplace(
                    failures,
                    load_reliability(profile ? failures : default_reliability(cluster.device.name)))
                .first;
  terms.reliability = rates->second;
  if (const auto v = at.find("failure_rate"))
    terms.reliability = with_failure_rate(terms.reliability, positive(*v, "a factor above 0"));
  if (const auto v = at.find("spares")) terms.spare_gpus = v->integer(0, INT64_C(1) << 30);
  if (const auto v = at.find("remedies")) {
    std::vector<std::string> known = remedy_names();
    known.insert(known.begin(), "none");
    const std::string remedy = v->one_of(known);
    if (remedy != "none") terms.remedy = remedy;
  }
  terms.storage = read_checkpoint(reading.file);
  if (const auto from = had_from(reading, cluster); from && reading.start)
    terms.wait = Seconds(static_cast<double>(std::max<std::int64_t>(0, *from - *reading.start)) *
                         seconds_per_day);
}

void check_ownership(const JsonValue& file, const Plan& plan) {
  struct Owned {
    const char* key;
    Ownership of;
  };
  // A tenant pays by the hour: building, electricity and capital are the landlord's.
  constexpr std::array<Owned, 7> keys = {{{"contract", Ownership::rent},
                                          {"spot_interruptions", Ownership::rent},
                                          {"gpu_hour_price", Ownership::rent},
                                          {"accelerator_price", Ownership::buy},
                                          {"facility", Ownership::buy},
                                          {"electricity_price", Ownership::buy},
                                          {"capital", Ownership::buy}}};
  for (const auto& [key, of] : keys) {
    if (!file.has(key) || any_owned(plan, of)) continue;
    const bool bought = of == Ownership::rent;
    throw Error({.file = file.file(),
                 .path = key,
                 .found = fmt::format("a key that changes nothing: all machines are {}{}",
                                      bought ? "bought" : "rented",
                                      bought && !file.has("ownership") ? " (the default)" : ""),
                 .expected = fmt::format("no such key, or \"ownership\": \"{}\" beside it{}",
                                         bought ? "rent" : "buy",
                                         bought ? " (or [\"buy\", \"rent\"])" : "")});
  }
}

std::vector<std::string> availability_of(const PlanReading& reading, const Plan& plan) {
  std::vector<std::string> sentences;
  std::set<std::string> seen;
  for (const PlanChoice& choice : plan.choices) {
    const Cluster& cluster = choice.question.cluster;
    if (!seen.insert(cluster.name).second) continue;
    if (std::string text = availability(reading, cluster); !text.empty())
      sentences.push_back(std::move(text));
  }
  for (const auto& [name, date] : reading.available)
    if (!seen.contains(name)) {
      const std::vector<std::string> names(seen.begin(), seen.end());
      throw Error({.file = reading.file.file(),
                   .path = "available." + name,
                   .found = in_quotes(name),
                   .expected = fmt::format("one of the clusters: {}", joined(names, ", ")),
                   .nearest = nearest_name(name, names)});
    }
  return sentences;
}

}  // namespace orrery
