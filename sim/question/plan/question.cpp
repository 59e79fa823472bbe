// SPDX-License-Identifier: Apache-2.0
// Reads question files of plan.
#include "sim/question/plan/question.h"
#include "sim/base/json/tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "hw_models/catalog.h"
#include "sim/question/plan/keys.h"
#include "sim/question/plan/terms.h"
#include "sim/question/settings/counts.h"
#include "sim/question/settings/settings.h"

namespace orrery {
namespace {

constexpr const char* question_folder = "workloads/catalog/questions";
constexpr std::size_t most_choices = 4096;

std::string text_of(const SortedJson& value) {
  if (value.is_string()) {
    const std::string text = value.get<std::string>();
    return text.ends_with(".json") ? std::filesystem::path(text).stem().string() : text;
  }
  if (value.is_object() && value.contains("name") && value["name"].is_string())
    return value["name"].get<std::string>();
  if (value.is_number_integer()) return fmt::format("{}", value.get<std::int64_t>());
  if (value.is_number()) {
    std::string text = fmt::format("{:.6g}", value.get<double>());
    if (const std::size_t plus = text.find("e+"); plus != std::string::npos)
      text.erase(plus + 1, 1);
    return text;
  }
  return value.dump();
}

struct Variable {
  std::string key;
  std::vector<SortedJson> values;
  bool optional = false;  // values that the question does not fit are left out, not refused
};

std::vector<Variable> read_variables(const JsonValue& file) {
  std::vector<Variable> variables;
  for (const PlanKey& point : plan_point_keys()) {
    const std::string& key = point.key;
    const auto at = file.find(key);
    if (!at) continue;
    const bool one = point.text == PlanText::parts;
    Variable v{key, one ? std::vector<SortedJson>{at->raw()} : plan_values(*at)};
    if (key == "cluster" && v.values.size() == 1 && v.values.front() == "all") {
      const std::vector<std::string> all = cluster_names();
      v.values.assign(all.begin(), all.end());
      v.optional = true;
    }
    // Of flags a list is one text: today's kernels may stand before others in it.
    if (key == "speedup")
      for (SortedJson& value : v.values)
        if (value.is_string() && value.get<std::string>().starts_with("none,"))
          value = value.get<std::string>().substr(5);
    // A faster kernel is worth what it changes: today's stand beside it.
    if (key == "speedup" && std::find(v.values.begin(), v.values.end(), "none") == v.values.end())
      v.values.insert(v.values.begin(), "none");
    variables.push_back(std::move(v));
  }
  return variables;
}

// What every question needs, all at once where more than one is missing.
void check_missing(const JsonValue& file) {
  std::vector<std::string> missing;
  for (const char* key : {"model", "cluster", "seq", "global_batch"})
    if (!file.has(key)) missing.emplace_back(key);
  if (missing.size() == 1) static_cast<void>(file.at(missing.front()));
  if (missing.empty()) return;
  if (!file.has("tokens") && !file.has("flop")) missing.emplace_back("tokens");
  refuse_missing(file, missing);
}

void check_keys(const JsonValue& file) {
  std::vector<std::string> keys;
  for (const PlanKey& key : plan_keys()) keys.push_back(key.key);
  file.expect_only(keys, "a key of a question");
  check_missing(file);
  if (file.has("tokens") == file.has("flop"))
    throw Error({.file = file.file(),
                 .path = file.has("tokens") ? "flop" : "tokens",
                 .found = file.has("tokens") ? "both tokens and flop" : "nothing",
                 .expected = "either tokens (\"15T\") or flop (\"1e26\")"});
  const auto limited = [&](const char* key) { return file.has(key); };
  if (!file.has("gpus") && !limited("deadline") && !limited("budget") && !limited("capital") &&
      !limited("power") && !limited("racks") && !limited("square_metres"))
    throw Error({.file = file.file(),
                 .path = "gpus",
                 .found = "nothing",
                 .expected = "a count, or a limit that finds it: deadline, budget, capital, power, "
                             "racks or square_metres"});
}

// Model, machine and settings of a choice, without money, tokens and limits.
PlanChoice read_machine(const PlanReading& reading, const SortedJson& values) {
  PlanChoice choice;
  const JsonValue at = JsonValue::from(values, reading.file.file());
  const JsonValue& cluster = reading.cluster_files.at(values.at("cluster").dump());
  SortedJson settings = SortedJson::object();
  for (const auto& [key, value] : values.items())
    if (!is_among(plan_machine_keys(), key) && !is_among(plan_money_keys(), key))
      settings[key] = value;
  settings.erase("tokens");
  settings.erase("flop");
  settings["model"] = values.at("model");
  settings["cluster"] = reading.base_name(values.at("cluster"));
  settings["gpus"] = values.contains("gpus") ? values.at("gpus") : SortedJson(1);
  choice.any_count = !values.contains("gpus");
  choice.question = read_question(JsonValue::from(settings, reading.file.file()));
  choice.question.cluster = read_plan_cluster(at, cluster, choice.question.cluster.gpus);
  change_machine(at, choice);
  return choice;
}

// The machine of a choice that differs from this one in its count, if that can be seen at a glance.
bool set_count(const SortedJson& values, PlanChoice& choice) {
  if (choice.any_count) return true;
  const SortedJson& gpus = values.at("gpus");
  if (!gpus.is_number_integer() || gpus.get<std::int64_t>() < 1 ||
      gpus.get<std::int64_t>() > INT64_C(1'000'000'000) ||
      gpus.get<std::int64_t>() % choice.question.cluster.gpus_per_host != 0 ||
      choice.question.cluster.fabric.scale_out.kind == ScaleOutKind::none)
    return false;
  choice.question.cluster.gpus = gpus.get<std::int64_t>();
  return true;
}

PlanChoice read_choice(PlanReading& reading, const SortedJson& values) {
  SortedJson key = values;
  // Least energy counts the hosts' load, which is the owner's assumption.
  const bool energy = counts_energy(reading.objective);
  for (const PlanKey& money : plan_money_keys())
    if (!energy || money.key != "economics") key.erase(money.key);
  for (const char* other : {"tokens", "flop", "gpus"}) key.erase(other);
  const std::string step_key = key.dump();
  const auto known = reading.machines.find(step_key);
  PlanChoice choice;
  if (known != reading.machines.end()) choice = known->second;
  if (known == reading.machines.end() || !set_count(values, choice)) {
    choice = read_machine(reading, values);
    reading.machines.emplace(step_key, choice);
  }
  choice.step_key = step_key;
  const JsonValue at = JsonValue::from(values, reading.file.file());
  read_goal(reading, at, choice);
  read_terms(reading, at, choice);
  return choice;
}

void tell_shared(const std::vector<Variable>& variables, PlanFile& plan) {
  std::string text;
  for (const Variable& v : variables)
    if (v.values.size() == 1 && v.key != "model" && v.key != "tokens" && v.key != "flop")
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", v.key, text_of(v.values.front()));
  if (!text.empty()) plan.shared.push_back(text);
}

// Beside each choice whose wiring ends before its limits do, the same machine on larger ones.
void add_wirings(PlanReading& reading, const std::vector<SortedJson>& values, PlanFile& plan) {
  std::vector<PlanChoice>& choices = plan.plan.choices;
  std::vector<PlanChoice> more;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i].contains("fabric") || !choices[i].any_count) continue;
    std::vector<std::string> names = wirings_beyond(choices[i]);
    if (names.empty()) continue;
    const std::string text = wirings_text(choices[i].question.cluster, names);
    if (std::find(plan.premises.begin(), plan.premises.end(), text) == plan.premises.end())
      plan.premises.push_back(text);
    names.resize(std::min(names.size(), most_wirings));
    for (const std::string& name : names) {
      SortedJson with = values[i];
      with["fabric"] = name;
      more.push_back(read_choice(reading, with));
      more.back().values = choices[i].values;
      more.back().values.push_back(name);
    }
  }
  if (more.empty() || choices.size() + more.size() > most_choices) return;
  plan.plan.varied.push_back("fabric");
  for (PlanChoice& choice : choices) choice.values.push_back(choice.question.cluster.fabric.name);
  for (PlanChoice& choice : more) choices.push_back(std::move(choice));
}

// How many combinations the values have; the most that can be counted where they are more.
std::size_t combinations(const std::vector<Variable>& variables) {
  std::size_t all = 1;
  for (const Variable& v : variables)
    if (__builtin_mul_overflow(all, v.values.size(), &all)) return SIZE_MAX;
  return all;
}

// Values of one combination, in the order of points: the last variable counts fastest.
SortedJson combination(const std::vector<Variable>& variables, std::size_t index) {
  SortedJson values = SortedJson::object();
  std::size_t below = combinations(variables);
  for (const Variable& v : variables) {
    below /= v.values.size();
    values[v.key] = v.values[index / below];
    index %= below;
  }
  return values;
}

std::vector<std::string> varied_texts(const std::vector<Variable>& variables,
                                      const SortedJson& values) {
  std::vector<std::string> texts;
  for (const Variable& v : variables)
    if (v.values.size() > 1) texts.push_back(text_of(values.at(v.key)));
  return texts;
}

std::vector<std::string> varied_keys(const std::vector<Variable>& variables) {
  std::vector<std::string> keys;
  for (const Variable& v : variables)
    if (v.values.size() > 1) keys.push_back(v.key);
  return keys;
}

void add_choices(PlanReading& reading, const std::vector<Variable>& variables, PlanFile& plan) {
  const std::size_t all = combinations(variables);
  if (all > most_choices)
    throw Error({.file = reading.file.file(),
                 .found = "more than 4,096 points",
                 .expected = "fewer values in its lists and ranges; orrery.distributed.sweep() of "
                             "Python takes any number, as rows"});
  plan.plan.varied = varied_keys(variables);
  const bool optional =
      std::any_of(variables.begin(), variables.end(), [](const Variable& v) { return v.optional; });
  std::map<std::string, std::string> left_out;
  std::optional<Error> last;
  std::vector<SortedJson> asked;
  for (std::size_t i = 0; i < all; ++i) {
    SortedJson values = combination(variables, i);
    std::vector<std::string> texts = varied_texts(variables, values);
    values = with_counts(std::move(values), reading.file.file());
    try {
      plan.plan.choices.push_back(read_choice(reading, values));
    } catch (const Error& refused) {
      if (!optional) throw;
      left_out.emplace(text_of(values.at("cluster")), refused.message());
      last = refused;
      continue;
    }
    plan.plan.choices.back().values = std::move(texts);
    asked.push_back(std::move(values));
  }
  add_wirings(reading, asked, plan);
  if (plan.plan.choices.empty()) throw Error(*last);
  for (const auto& [cluster, why] : left_out)
    plan.left_out.push_back(fmt::format("left out: {}: {}", cluster, why));
  check_ownership(reading.file, plan.plan);
}

// The clusters of all points, each read once.
void add_clusters(PlanReading& reading, const std::vector<Variable>& variables) {
  for (const Variable& v : variables)
    if (v.key == "cluster")
      for (const SortedJson& value : v.values) reading.add_cluster(value);
}

}  // namespace

JsonValue load_plan_file(const std::string& name) {
  if (name.empty())
    throw Error({.file = "plan",
                 .found = "no question",
                 .expected = "a file, or a name: `orrery catalog list question` prints them"});
  if (name.find('/') != std::string::npos || name.ends_with(".json")) return JsonValue::load(name);
  return load_catalog_entry(question_folder, "question", name);
}

JsonValue merge_plan_flags(const std::string& name, const SortedJson& flags) {
  if (name.empty() && flags.empty()) return load_plan_file(name);
  if (name.empty()) return JsonValue::from(flags, command_line_place);
  return merge_plan_flags(load_plan_file(name), flags);
}

JsonValue merge_plan_flags(const JsonValue& file, const SortedJson& flags) {
  if (flags.empty() || !file.is_object()) return file;
  SortedJson merged = file.raw();
  if (flags.contains("tokens") || flags.contains("flop"))
    for (const char* key : {"tokens", "flop"}) merged.erase(key);
  merged.update(flags);
  return JsonValue::from(std::move(merged), file.file());
}

PlanFile read_plan(const JsonValue& question) {
  const JsonValue file = JsonValue::from(without_nulls(question.raw()), question.file());
  check_keys(file);
  PlanFile plan{.question = file.raw()};
  if (const auto v = file.find("title")) plan.title = v->text();
  if (plan.title.empty() && file.at("model").is_string())
    plan.title = fmt::format("Plan for {}", text_of(file.at("model").raw()));
  if (const auto v = file.find("note")) plan.note = v->text();
  plan.plan.memory_reserve = read_memory_reserve(file);
  const std::vector<Variable> variables = read_variables(file);
  PlanReading reading(file);
  plan.start = reading.start;
  add_clusters(reading, variables);
  add_choices(reading, variables, plan);
  tell_shared(variables, plan);
  plan.availability = availability_of(reading, plan.plan);
  plan.availability.insert(plan.availability.end(), plan.left_out.begin(), plan.left_out.end());
  for (std::string& text : premises_of(plan.plan)) plan.premises.push_back(std::move(text));
  return plan;
}

PlanPoints::PlanPoints(const JsonValue& asked)
    : question_(JsonValue::from(without_nulls(asked.raw()), asked.file())) {
  check_keys(question_);
  const std::vector<Variable> variables = read_variables(question_);
  count_ = combinations(variables);
  for (const Variable& v : variables)
    if (v.values.size() > 1) varied_.push_back({v.key, v.values});
}

PlanPart PlanPoints::read(std::size_t from, std::size_t to) const {
  PlanPart part;
  part.file.question = question_.raw();
  part.file.plan.memory_reserve = read_memory_reserve(question_);
  const std::vector<Variable> variables = read_variables(question_);
  part.file.plan.varied = varied_keys(variables);
  PlanReading reading(question_);
  add_clusters(reading, variables);
  for (std::size_t i = from; i < std::min(to, count_); ++i) {
    const SortedJson values = combination(variables, i);
    SortedJson own = SortedJson::object();
    for (const Varied& one : varied_) own[one.key] = values.at(one.key);
    part.points.push_back({.values = std::move(own), .choice = {}, .error = {}});
    try {
      part.file.plan.choices.push_back(read_choice(reading, with_counts(values, question_.file())));
      part.file.plan.choices.back().values = varied_texts(variables, values);
      part.points.back().choice = part.file.plan.choices.size() - 1;
    } catch (const Error& refused) {
      part.points.back().error = refused;
    }
  }
  return part;
}

}  // namespace orrery
