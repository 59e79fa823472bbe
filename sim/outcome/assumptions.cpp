// SPDX-License-Identifier: Apache-2.0
// Collects uncertain values and moves them, alone or those together that probably do not matter.
#include "sim/outcome/assumptions.h"
#include "sim/base/sorting.h"
#include "workloads/stack/values.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <map>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace orrery {
namespace {

std::string value_text(double v) { return fmt::format("{:.4g}", v); }
template <Dimension D>
std::string value_text(Quantity<D> q) {
  using Q = Quantity<D>;
  if constexpr (std::is_same_v<Q, JoulesPerFlop>)
    return fmt::format("{:.3g} pJ/FLOP", q.si() * 1e12);
  if constexpr (std::is_same_v<Q, JoulesPerByte>) return fmt::format("{:.3g} pJ/B", q.si() * 1e12);
  if constexpr (std::is_same_v<Q, Seconds> || std::is_same_v<Q, Bytes> ||
                std::is_same_v<Q, BytesPerSecond> || std::is_same_v<Q, FlopPerSecond> ||
                std::is_same_v<Q, Watts> || std::is_same_v<Q, Dollars> || std::is_same_v<Q, Hertz>)
    return to_text(q);
  else
    return fmt::format("{:.4g} {}", q.si(), unit_name(D));
}

double si(double v) { return v; }
template <Dimension D>
double si(Quantity<D> q) {
  return q.si();
}

template <class T>
void collect(std::vector<UncertainValue>& out, const std::string& path, Sourced<T>& sourced) {
  if (!sourced.known() || !is_uncertain(sourced.evidence)) return;
  UncertainValue u;
  u.path = path;
  u.value = si(*sourced.value);
  u.low = sourced.low ? si(*sourced.low) : u.value;
  u.high = sourced.high ? si(*sourced.high) : u.value;
  // Of most values nobody asks for the text.
  u.described = [&sourced, path, value = *sourced.value] {
    return Assumption{.path = path,
                      .value = value_text(value),
                      .low = value_text(sourced.low.value_or(value)),
                      .high = value_text(sourced.high.value_or(value)),
                      .evidence = sourced.evidence,
                      .source = sourced.source};
  };
  u.set = [&sourced](double v) { sourced.value = static_cast<T>(v); };
  out.push_back(std::move(u));
}

// The values at which a dependency shows: the range's ends and 10% either way (a microsecond or a
// millionth where the value is zero).
std::vector<double> probes(const UncertainValue& u) {
  std::vector<double> at = {u.low, u.high};
  if (u.value == 0) {
    at.push_back(1e-6);
  } else {
    at.push_back(u.value * 1.1);
    at.push_back(u.value * 0.9);
  }
  return at;
}

// Moves of many values at once: all to their low, all to their high, all up, all down, and mixtures
// of lows and highs, since what is slower may hide under what is faster. No two values move by the
// same share, so that a ratio of two does not keep its bits.
constexpr int group_moves = 7;
double moved_value(const UncertainValue& u, std::size_t index, int move) {
  const double own = 1e-3 * static_cast<double>(1 + index % 97);
  if (move >= 4) move = static_cast<int>((index >> (move - 4)) & 1);
  if (move == 0) return u.low;
  if (move == 1) return u.high;
  if (u.value == 0) return 1e-6 * (1 + own);
  return u.value * (move == 2 ? 1.1 + own : 0.9 - own);
}

constexpr const char* unused = "unused";  // the group of values that probably no step reads

// Of a serving engine, which no training step reads.
bool is_serving_value(std::string_view name) {
  static const StackServing engine;
  bool found = false;
  visit_serving_values(engine,
                       [&](std::string_view key, const auto&) { found = found || key == name; });
  return found;
}

template <class IsOneOf>
std::string group_of_stack_value(const IsOneOf& is_one_of, const Scenario& s) {
  const Layout& l = s.layout;
  const auto used_if = [](bool used, const char* group) { return used ? group : unused; };
  if (is_one_of({"operations.moe", "operations.expert"}))
    return used_if(s.model.has_experts(), "host");
  if (is_one_of({"operations.", "dispatch", "softmax_fallback", "bucket_per_rank"})) return "host";
  if (is_one_of({"moe_sync", "permute_passes", "expert_exposed", "expert_bias_passes",
                 "sync_exposed", "overlapped_expert_exposed"}))
    return used_if(s.model.has_experts(), "experts");
  if (is_one_of({"slow_host"})) return "slow hosts";
  if (is_one_of({"scan_"})) return used_if(s.model.has_scans(), "scans");
  if (is_one_of({"biased_activation_passes", "adapter_passes", "host_update_share", "delta_rule"}))
    return unused;
  if (is_one_of({"score_dropout", "flash_dropout"}))
    return used_if(s.job.attention_dropout > 0, "");
  if (is_one_of({"hidden_dropout"})) return used_if(s.job.hidden_dropout > 0, "");
  if (is_one_of({"tensor_exposed"})) return used_if(l.tp > 1, "");
  if (is_one_of({"context_exposed"})) return used_if(l.cp > 1, "");
  if (is_one_of({"data_overlap_window"})) return used_if(l.dp * l.cp > 1, "");
  if (is_one_of({"quantise_passes"})) return used_if(!is_sixteen_bit(l.precision), "");
  return "";
}

// Values that matter together or not at all, judged by their paths; "" for those that are looked
// at alone. A group that holds one value that matters is searched, so that a wrong guess is slow
// and not wrong.
std::string group_of(const std::string& path, const Scenario& s,
                     const std::vector<std::string>& used_curves) {
  const std::size_t colon = path.find(": ");
  const std::string owner = path.substr(0, path.find(' '));
  const std::string name = colon == std::string::npos ? path : path.substr(colon + 2);
  const auto is_one_of = [&name](std::initializer_list<std::string_view> starts) {
    return std::any_of(starts.begin(), starts.end(),
                       [&](std::string_view start) { return name.starts_with(start); });
  };
  if (owner == "accelerator") {
    if (is_one_of({"power.", "price.rental", "reliability.board_spread", "cache."})) return "";
    if (is_one_of({"price."})) return unused;
    if (!name.starts_with("calibration.")) return "device";
    const std::string curve = name.substr(std::string_view("calibration.").size());
    if (curve.starts_with("tensor_energy")) return "energies";
    if (curve.find('.') == std::string::npos) return "device";
    const bool used = std::find(used_curves.begin(), used_curves.end(), curve) != used_curves.end();
    return used ? "" : unused;
  }
  if (owner == "collectives") return is_one_of({"efa_hop"}) ? unused : owner;
  // Collectives inside a domain have latencies of their own.
  if (owner == "fabric" && is_one_of({"scale_up.latency"})) return unused;
  if (owner == "fabric") return name.find("latency") == std::string::npos ? "" : "latencies";
  if (owner != "stack") return "";
  return is_serving_value(name) ? unused : group_of_stack_value(is_one_of, s);
}

// One search for the values that matter.
struct Search {
  Scenario& scenario;
  const std::function<Outputs(const Scenario&)>& evaluate;
  Outputs base;
  std::vector<UncertainValue> values;
  std::vector<std::pair<std::size_t, Assumption>> used;  // by index of the value

  void look_at(std::size_t index);
  void look_in(std::span<const std::size_t> members);
};

void Search::look_at(std::size_t index) {
  UncertainValue& u = values[index];
  bool matters = false;
  std::vector<double> change;
  for (const double probe : probes(u)) {
    // The ends of the range are always evaluated, the others only until a dependency is seen.
    if (change.size() >= 2 && matters) break;
    Outputs moved = base;
    if (probe != u.value) {
      u.set(probe);
      moved = evaluate(scenario);
      u.set(u.value);
    }
    matters = matters || !(moved == base);
    change.push_back(moved.step / base.step - 1);
  }
  if (!matters) return;
  Assumption described = u.described();
  described.effect_low = change[0];
  described.effect_high = change[1];
  used.emplace_back(index, std::move(described));
}

void Search::look_in(std::span<const std::size_t> members) {
  if (members.empty()) return;
  if (members.size() == 1) return look_at(members.front());
  bool matters = false;
  for (int move = 0; move < group_moves && !matters; ++move) {
    for (std::size_t at = 0; at < members.size(); ++at)
      values[members[at]].set(moved_value(values[members[at]], at, move));
    matters = !(evaluate(scenario) == base);
  }
  for (const std::size_t i : members) values[i].set(values[i].value);
  if (!matters) return;
  const std::size_t half = members.size() / 2;
  look_in(members.first(half));
  look_in(members.subspan(half));
}

}  // namespace

std::vector<UncertainValue> collect_uncertain(Scenario& s) {
  std::vector<UncertainValue> out;
  const auto visit = [&](const std::string& owner) {
    return [&out, owner](const std::string& path, auto& sourced) {
      collect(out, owner + path, sourced);
    };
  };
  visit_device_values(s.cluster.device, visit("accelerator " + s.cluster.device.name + ": "));
  visit_calibration(s.cluster.calibration, visit("accelerator " + s.cluster.device.name + ": "));
  visit_fabric_values(s.cluster.fabric, visit("fabric " + s.cluster.fabric.name + ": "));
  visit_collective_values(s.cluster.collective_costs,
                          visit("collectives " + s.cluster.collective_costs.name + ": "));
  visit("cluster " + s.cluster.name + ": ")("site.clock_factor", s.cluster.site.clock_factor);
  visit_stack_values(s.stack, visit("stack " + s.stack.name + "@" + s.stack.release + ": "));
  return out;
}

std::vector<Assumption> find_assumptions(Scenario scenario,
                                         const std::function<Outputs(const Scenario&)>& evaluate,
                                         const std::vector<std::string>& used_curves) {
  Search search{.scenario = scenario,
                .evaluate = evaluate,
                .base = evaluate(scenario),
                .values = collect_uncertain(scenario),
                .used = {}};
  std::map<std::string, std::vector<std::size_t>> groups;
  for (std::size_t i = 0; i < search.values.size(); ++i)
    groups[group_of(search.values[i].path, scenario, used_curves)].push_back(i);
  for (const auto& [name, members] : groups) {
    if (!name.empty()) {
      search.look_in(members);
      continue;
    }
    for (const std::size_t i : members) search.look_at(i);
  }
  // The fixed order of the values decides between equal effects.
  std::sort(search.used.begin(), search.used.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Assumption> used;
  for (auto& [index, assumption] : search.used) used.push_back(std::move(assumption));
  const auto size = [](const Assumption& a) {
    return std::max(std::abs(a.effect_low), std::abs(a.effect_high));
  };
  sort_stably(used, [&](const Assumption& a, const Assumption& b) { return size(a) > size(b); });
  return used;
}

LogRange join_effects(const std::vector<Assumption>& assumptions) {
  double below = 0, above = 0;
  for (const Assumption& a : assumptions) {
    // A step of nothing is no effect that a range can end at.
    const auto shift = [](double effect) { return std::log1p(std::max(effect, -0.95)); };
    const double down = std::min({0.0, shift(a.effect_low), shift(a.effect_high)});
    const double up = std::max({0.0, shift(a.effect_low), shift(a.effect_high)});
    below += down * down;
    above += up * up;
  }
  return {.below = std::sqrt(below), .above = std::sqrt(above)};
}

}  // namespace orrery
