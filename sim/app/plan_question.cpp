// Reads question files of plan.
#include "sim/app/plan_question.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "hw_models/catalog.h"
#include "sim/app/plan_terms.h"
#include "sim/app/settings.h"

namespace orrery {
namespace {

constexpr const char* question_folder = "workloads/catalog/questions";
constexpr std::size_t most_choices = 4096;

// Settings that have one value for all choices, or that plan has no use for.
bool is_plan_setting(const std::string& key) {
  static const std::set<std::string> others = {
      "phase", "batch",     "context", "launch",   "network",        "faults",        "slow_gpus",
      "trace", "objective", "top",     "variants", "pareto",         "time_limit",    "background",
      "dp",    "gpus",      "model",   "cluster",  "gpu_hour_price", "memory_reserve"};
  return !others.contains(key);
}
// Lists by nature: a list is one value.
bool is_list(const std::string& key) { return key == "offload" || key == "stage_layers"; }

const std::vector<std::string>& single_keys() {
  static const std::vector<std::string> keys = {
      "name", "title", "note", "start", "objective", "available", "checkpoint", "memory_reserve"};
  return keys;
}

std::vector<std::string> varying_keys() {
  std::vector<std::string> keys = {"model", "tokens", "compute", "cluster"};
  for (const std::string& key : machine_keys()) keys.push_back(key);
  for (const Setting& s : settings())
    if (is_plan_setting(s.key)) keys.emplace_back(s.key);
  for (const std::string& key : money_keys()) keys.push_back(key);
  keys.emplace_back("gpus");
  return keys;
}

std::string text_of(const nlohmann::json& value) {
  if (value.is_string()) {
    const std::string text = value.get<std::string>();
    return text.ends_with(".json") ? std::filesystem::path(text).stem().string() : text;
  }
  if (value.is_object() && value.contains("name") && value["name"].is_string())
    return value["name"].get<std::string>();
  if (value.is_number_integer()) return fmt::format("{}", value.get<std::int64_t>());
  if (value.is_number()) return fmt::format("{:.6g}", value.get<double>());
  return value.dump();
}

struct Variable {
  std::string key;
  std::vector<nlohmann::json> values;
};

std::vector<Variable> read_variables(const JsonValue& file) {
  std::vector<Variable> variables;
  for (const std::string& key : varying_keys()) {
    const auto at = file.find(key);
    if (!at) continue;
    Variable v{key, is_list(key) ? std::vector<nlohmann::json>{at->raw()} : plan_values(*at)};
    // A faster kernel is worth what it changes: today's stand beside it.
    if (key == "speedup" && std::find(v.values.begin(), v.values.end(), "none") == v.values.end())
      v.values.insert(v.values.begin(), "none");
    variables.push_back(std::move(v));
  }
  return variables;
}

void check_keys(const JsonValue& file) {
  file.expect_only(plan_keys(), "a key of a question");
  for (const char* key : {"model", "cluster", "seq", "global_batch"})
    static_cast<void>(file.at(key));
  if (file.has("tokens") == file.has("compute"))
    throw Error({.file = file.file(),
                 .path = "tokens",
                 .found = file.has("tokens") ? "both tokens and compute" : "nothing",
                 .expected = "either tokens (\"15T\") or compute (\"1e26 FLOP\")"});
  const auto limited = [&](const char* key) { return file.has(key); };
  if (!file.has("gpus") && !limited("deadline") && !limited("budget") && !limited("capital") &&
      !limited("power") && !limited("racks") && !limited("square_metres"))
    throw Error({.file = file.file(),
                 .path = "gpus",
                 .found = "nothing",
                 .expected = "a count, or a limit that finds it: deadline, budget, capital, power, "
                             "racks or square_metres"});
}

PlanChoice read_choice(const PlanReading& reading, const nlohmann::json& values) {
  PlanChoice choice;
  const JsonValue at = JsonValue::from(values, reading.file.file());
  const JsonValue& cluster = reading.cluster_files.at(values.at("cluster").dump());
  nlohmann::json settings = nlohmann::json::object();
  for (const auto& [key, value] : values.items())
    if (is_plan_setting(key)) settings[key] = value;
  for (const std::string& key : machine_keys()) settings.erase(key);
  for (const std::string& key : money_keys()) settings.erase(key);
  settings.erase("tokens");
  settings.erase("compute");
  settings["model"] = values.at("model");
  settings["cluster"] = reading.base_name(values.at("cluster"));
  settings["gpus"] = values.contains("gpus") ? values.at("gpus") : nlohmann::json(1);
  choice.any_count = !values.contains("gpus");
  choice.question = read_question(JsonValue::from(settings, reading.file.file()));
  choice.question.cluster = read_plan_cluster(at, cluster, choice.question.cluster.gpus);
  choice.edit = read_edit(at, choice.question.cluster);
  choice.question.cluster = with(choice.question.cluster, choice.edit);
  set_oversubscription(at, choice.question.cluster);
  read_goal(reading, at, choice);
  read_terms(reading, at, choice);
  nlohmann::json key = values;
  for (const std::string& money : money_keys()) key.erase(money);
  for (const char* other : {"tokens", "compute", "gpus"}) key.erase(other);
  choice.step_key = key.dump();
  return choice;
}

void tell_shared(const std::vector<Variable>& variables, PlanFile& plan) {
  std::string text;
  for (const Variable& v : variables)
    if (v.values.size() == 1 && v.key != "model" && v.key != "tokens" && v.key != "compute")
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", v.key, text_of(v.values.front()));
  if (!text.empty()) plan.shared.push_back(text);
}

void add_choices(const PlanReading& reading, const std::vector<Variable>& variables,
                 PlanFile& plan) {
  std::size_t all = 1;
  for (const Variable& v : variables) {
    all *= v.values.size();
    if (all > most_choices)
      throw Error({.file = reading.file.file(),
                   .found = "more than 4,096 points",
                   .expected = "fewer values in its lists and ranges"});
    if (v.values.size() > 1) plan.plan.varied.push_back(v.key);
  }
  for (std::size_t i = 0; i < all; ++i) {
    nlohmann::json values = nlohmann::json::object();
    std::vector<std::string> texts;
    std::size_t rest = i, below = all;
    for (const Variable& v : variables) {
      below /= v.values.size();
      const nlohmann::json& value = v.values[rest / below];
      rest %= below;
      values[v.key] = value;
      if (v.values.size() > 1) texts.push_back(text_of(value));
    }
    plan.plan.choices.push_back(read_choice(reading, values));
    plan.plan.choices.back().values = std::move(texts);
  }
}

}  // namespace

std::vector<std::string> plan_keys() {
  std::vector<std::string> keys = single_keys();
  for (std::string& key : varying_keys()) keys.push_back(std::move(key));
  return keys;
}

JsonValue load_plan_file(const std::string& name) {
  if (name.empty())
    throw Error({.file = "plan",
                 .found = "no question",
                 .expected = "a file, or a name: `orrery catalog list question` prints them"});
  if (name.find('/') != std::string::npos || name.ends_with(".json")) return JsonValue::load(name);
  return load_catalog_entry(question_folder, "question", name);
}

PlanFile read_plan(const JsonValue& file) {
  check_keys(file);
  PlanFile plan;
  if (const auto v = file.find("title")) plan.title = v->text();
  if (const auto v = file.find("note")) plan.note = v->text();
  if (const auto v = file.find("memory_reserve")) {
    plan.plan.memory_reserve = v->number();
    if (plan.plan.memory_reserve < 0 || plan.plan.memory_reserve > 0.9)
      v->fail("a share from 0 to 0.9");
  }
  const std::vector<Variable> variables = read_variables(file);
  PlanReading reading(file);
  if (reading.start) plan.start = date_text(*reading.start);
  for (const Variable& v : variables)
    if (v.key == "cluster")
      for (const nlohmann::json& value : v.values) reading.add_cluster(value);
  add_choices(reading, variables, plan);
  tell_shared(variables, plan);
  plan.availability = availability_of(reading, plan.plan);
  return plan;
}

}  // namespace orrery
