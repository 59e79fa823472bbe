// SPDX-License-Identifier: Apache-2.0
// Lists the keys of plan's questions and reads them from flags.
#include "sim/question/plan/keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <set>

#include "sim/base/json/json.h"
#include "sim/base/text/lines.h"
#include "sim/outcome/months/job.h"
#include "sim/question/settings/settings.h"
#include "sim/question/settings/what_if.h"

namespace orrery {
namespace {

constexpr const char* machine_group = "Machine and software";

// Settings of advise that a plan has no use for, or that it names by itself.
bool is_plan_setting(const std::string& key) {
  static const std::set<std::string> others = {
      "phase",     "batch",     "context", "launch",     "network",        "faults",
      "slow_gpus", "trace_out", "ranges",  "reasons",    "timeline",       "top",
      "like",      "variants",  "pareto",  "time_limit", "background",     "dp",
      "gpus",      "model",     "cluster", "objective",  "gpu_hour_price", "memory_reserve",
      "changes",   "chakra_out"};
  const std::vector<WhatIfKey>& machine = what_if_keys();
  return !others.contains(key) && std::none_of(machine.begin(), machine.end(),
                                               [&](const WhatIfKey& w) { return key == w.key; });
}

PlanText text_of(const Setting& setting) {
  if (setting.kind == SettingKind::list) return PlanText::parts;
  return std::string(setting.key) == "recompute" ? PlanText::whole : PlanText::values;
}

// The keys under a heading of the help.
std::vector<PlanKey> under(const char* group, std::vector<PlanKey> keys) {
  for (PlanKey& key : keys) key.group = group;
  return keys;
}

// A key of settings too: text and all.
PlanKey hypothetical(const std::string& key) {
  for (const WhatIfKey& what : what_if_keys())
    if (key == what.key) return {key, what.help};
  CHECK_THAT(false, "a key that makes a machine hypothetical");
  return {};
}

std::vector<PlanKey> joined(std::initializer_list<const std::vector<PlanKey>*> lists) {
  std::vector<PlanKey> all;
  for (const auto* list : lists) all.insert(all.end(), list->begin(), list->end());
  return all;
}

// A number where the text is nothing else, true or false, else the text.
SortedJson plain_value(const std::string& text) {
  if (text == "true" || text == "false") return text == "true";
  const bool numeric = !text.empty() && (std::isdigit(static_cast<unsigned char>(text[0])) != 0 ||
                                         std::string("+-.").find(text[0]) != std::string::npos);
  if (!numeric) return text;
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  // strtod reads 0x10 too, which nobody means here.
  if (*end != '\0' || !std::isfinite(number) || text.find_first_of("xX") != std::string::npos)
    return text;
  if (number == std::floor(number) && std::abs(number) < 1e15)
    return static_cast<std::int64_t>(number);
  return number;
}

std::vector<std::string> parts_of(const std::string& text) {
  std::vector<std::string> parts;
  for (const std::string_view field : fields_of(text, ',')) {
    std::string part(field);
    part.erase(0, std::min(part.find_first_not_of(' '), part.size()));
    part.erase(part.find_last_not_of(' ') + 1);
    parts.push_back(std::move(part));
  }
  return parts;
}

}  // namespace

std::string PlanKey::flag() const { return flag_of(key); }

const std::vector<PlanKey>& plan_common_keys() {
  using enum PlanText;
  static const std::vector<PlanKey> keys = under(
      "Question",
      {
          {"name", "the question's name", words},
          {"title", "heading of the report", words},
          {"note", "a sentence under it", words},
          {"start", "day on which the job may begin (\"2027-01-04\")", words},
          {"objective", "time, cost, energy, carbon or gpus", words},
          {"available", "from when clusters can be had: {\"vr200-nvl72\": \"2027-03-01\"}", json},
          {"checkpoint", "where checkpoints go: JSON, a tier or a list of tiers", json},
          {"memory_reserve", "share of memory to leave free (default 0.05)", values},
      });
  return keys;
}

const std::vector<PlanKey>& plan_machine_keys() {
  using enum PlanText;
  static const std::vector<PlanKey> keys = under(
      "The machine, changed",
      {
          {"fabric", "wiring of the catalogue in place of the cluster's", values},
          hypothetical("nic_bandwidth"),
          {"oversubscription", "of the first tier of switches: 1 (non-blocking) and more", values},
          {"routing", "adaptive, spray or ecmp", values},
          {"rails", "networks that the NICs of a host are spread over", values},
          {"planes", "networks that each NIC is split over", values},
          {"scale_up_domain", "accelerators of an NVLink domain", values},
          hypothetical("scale_up_bandwidth"),
          hypothetical("memory_capacity"),
          hypothetical("memory_bandwidth"),
          hypothetical("tensor_rate"),
          hypothetical("power_cap"),
          {"speedup", "faster kernels: gemm=1.15,attention=1.5 (several: a JSON list)", whole},
      });
  return keys;
}

const std::vector<PlanKey>& plan_money_keys() {
  using enum PlanText;
  static const std::vector<PlanKey> money = under(
      "Money, place and failures",
      {
          {"site", "where it stands: a data centre of the catalogue", values},
          {"ownership", "buy or rent", values},
          {"contract", "on-demand, reserved-1y, reserved-3y or spot", values},
          {"facility", "build or colocate", values},
          {"economics", "life, interest and maintenance: an entry of the catalogue", values},
          {"gpu_hour_price", "USD per accelerator and hour, rented", values},
          {"accelerator_price", "USD for one accelerator, bought", values},
          {"electricity_price", "USD a kWh", values},
          {"spot_interruptions", "how often a year one spot host is taken back", values},
          {"reliability", "failure rates: a profile of the catalogue", values},
          {"failure_rate", "of everything that fails: a factor of the profile's rates", values},
          {"spares",
           fmt::format("spare accelerators (default: enough in {:.3g}% of cases)",
                       100 * usual_spare_probability),
           values},
          {"remedies",
           "against failures: faster restart, elastic data parallelism, ..., all of them", values},
      });
  static const std::vector<PlanKey> limits =
      under("Limits", {
                          {"deadline", "\"90 days\", or a date beside start", values},
                          {"budget", "of the job, USD: \"20 million USD\"", values},
                          {"capital", "for everything that is bought, USD", values},
                          {"power", "that the facility may be provided with: \"50 MW\"", values},
                          {"racks", "that the machines may take", values},
                          {"square_metres", "of white space that they may take", values},
                      });
  static const std::vector<PlanKey> keys = joined({&money, &limits});
  return keys;
}

const std::vector<PlanKey>& plan_point_keys() {
  static const std::vector<PlanKey> keys = [] {
    const std::vector<PlanKey> first = {
        {"model", "model name, catalogue file or Hugging Face config.json", PlanText::values, "Job",
         "catalog model"},
        {"tokens", "tokens to train on: 15T", PlanText::values, "Job"},
        {"flop", "compute to train with, in place of tokens: 1e26", PlanText::values, "Job"},
        {"cluster", "cluster name or file", PlanText::values, machine_group, "catalog cluster"}};
    std::vector<PlanKey> advised;
    for (const Setting& s : settings())
      if (is_plan_setting(s.key))
        advised.push_back({s.key, s.help, text_of(s), s.group, s.completes});
    const std::vector<PlanKey> last = {{"gpus",
                                        "accelerators in use (default: what the limits ask for)",
                                        PlanText::values, machine_group}};
    return joined({&first, &plan_machine_keys(), &advised, &plan_money_keys(), &last});
  }();
  return keys;
}

const std::vector<PlanKey>& plan_keys() {
  static const std::vector<PlanKey> keys = joined({&plan_common_keys(), &plan_point_keys()});
  return keys;
}

bool is_among(const std::vector<PlanKey>& keys, const std::string& key) {
  return std::any_of(keys.begin(), keys.end(), [&](const PlanKey& k) { return k.key == key; });
}

SortedJson plan_flag_value(const PlanKey& key, const std::string& text) {
  if (text.starts_with('{') || text.starts_with('['))
    return JsonValue::parse(text, key.flag()).raw();
  if (key.text == PlanText::json || text.empty())
    throw Error({.file = key.flag(),
                 .found = in_quotes(text),
                 .expected = key.text == PlanText::json ? "JSON: " + key.help : key.help});
  if (key.text == PlanText::words || key.text == PlanText::whole) return text;
  SortedJson list = SortedJson::array();
  for (const std::string& part : parts_of(text)) list.push_back(plain_value(part));
  return list.size() == 1 && key.text == PlanText::values ? list.front() : list;
}

Error named_by_plan_flag(const Error& error, const std::string& file, const SortedJson& flags) {
  ErrorInfo info = error.info();
  if (info.file != (file.empty() ? command_line_place : file)) return error;
  const std::size_t end = std::min(info.path.find_first_of(".["), info.path.size());
  const std::string key = info.path.substr(0, end);
  for (const PlanKey& known : plan_keys()) {
    if (key != known.key || (!file.empty() && !flags.contains(key))) continue;
    info.file = known.flag();
    info.path = info.path.substr(
        std::min(end + (info.path.substr(end).starts_with('.') ? 1 : 0), info.path.size()));
    // Of a flag that is missing, and of which the error knows no more than that.
    if (!flags.contains(key) && info.expected == "this key") info.expected = known.help;
    return Error(info);
  }
  return error;
}

}  // namespace orrery
