// SPDX-License-Identifier: Apache-2.0
// Holds the list of the stacks' uncertain values to the catalogue, and its shares to small fits
// that a hand can do.
#include "sim/validate/nested/free_values.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "hw_models/catalog.h"
#include "sim/base/json/json.h"
#include "sim/base/parallel.h"
#include "sim/calibrate/steps/learned.h"
#include "sim/validate/score/predict.h"
#include "tests/validate/training_rows.h"
#include "workloads/stack/values.h"

namespace orrery {
namespace {

// A number as the catalogue states it.
struct Number {
  std::string name, reason;
  double value = 0, low = 0, high = 0;
  bool uncertain = false;

  // Absent effects are no numbers: 0, or a factor of 1, with a range of nothing.
  bool counts() const { return uncertain && low < high; }
  // The same in list and catalogue.
  std::string key() const {
    return fmt::format("{} {:.9g}, {:.9g} to {:.9g}: {}", name, value, low, high, reason);
  }
};

std::vector<Number> numbers_of(const Stack& stack) {
  std::vector<Number> numbers;
  visit_stack_values(stack, [&](const std::string& name, const auto& value) {
    if (!value.known()) return;
    const auto end = [](const auto& bound) { return bound ? in_si(*bound) : 0; };
    numbers.push_back({.name = name,
                       .reason = value.reason,
                       .value = in_si(value.get()),
                       .low = end(value.low),
                       .high = end(value.high),
                       .uncertain = is_uncertain(value.evidence)});
  });
  return numbers;
}

// Units of the values of stacks; nullopt for plain numbers.
std::map<std::string, std::optional<Dimension>> units_of_values() {
  std::map<std::string, std::optional<Dimension>> units;
  const Stack any;
  visit_stack_values(any, [&](const std::string& name, const auto& value) {
    using Value = std::remove_cvref_t<decltype(*value.value)>;
    if constexpr (std::is_same_v<Value, double>)
      units[name] = std::nullopt;
    else
      units[name] = Value::dimension;
  });
  return units;
}

// Every number with evidence below this place of a file, whoever reads it.
void collect(const JsonValue& json, const std::string& name, std::vector<Number>& numbers) {
  static const auto units = units_of_values();
  if (json.is_array())
    for (const JsonValue& item : json.items()) collect(item, "", numbers);
  if (!json.is_object()) return;
  if (!json.has("evidence") || !json.find("value")) {
    for (const auto& [key, value] : json.members())
      collect(value, name == "operations" ? "operations." + key : key, numbers);
    return;
  }
  INFO(json.file() << " " << json.path());
  REQUIRE(units.contains(name));  // else nothing could list it
  const auto si = [&](const char* key) {
    const auto found = json.find(key);
    if (!found) return 0.0;
    return units.at(name) ? found->si(*units.at(name)) : found->number();
  };
  const auto reason = json.find("reason");
  const std::string evidence = json.at("evidence").text();
  numbers.push_back(
      {.name = name,
       .reason = reason ? reason->text() : "",
       .value = si("value"),
       .low = si("low"),
       .high = si("high"),
       .uncertain = evidence == "estimated" || evidence == "assumed" || evidence == "announced"});
}

// All that the files of stacks say, and what holds where they say nothing.
std::vector<Number> catalogue() {
  std::vector<Number> numbers = numbers_of(Stack());
  for (const auto& entry :
       std::filesystem::directory_iterator(data_root() / "workloads/catalog/stacks"))
    if (entry.path().extension() == ".json") collect(JsonValue::load(entry.path()), "", numbers);
  return numbers;
}

// All measured training runs, without their ranges.
struct Runs {
  RowReader reader = RowReader(load_aliases(data_root() / "validation/aliases.json"));
  std::vector<PreparedRow> rows;
  std::vector<ScoredRow> scored;

  Runs() {
    const ModelError error = load_model_error(data_root() / "validation/model_error.json");
    for (const char* part : {"steps", "training"})
      for (PreparedRow& row : test::training_rows(reader, part)) rows.push_back(std::move(row));
    scored.resize(rows.size());
    parallel_for(rows.size(), 0, [&](std::size_t i) {
      settle_recompute(rows[i], error);
      scored[i] = score_row(rows[i], predict_speed(rows[i]));
    });
  }
};

}  // namespace

TEST_CASE("the list of free values is what stacks do not know for sure and runs use") {
  const std::vector<Number> stated = catalogue();
  const Runs runs;
  std::set<std::string> used, listed, expected;
  for (const ScoredRow& s : runs.scored)
    if (is_scored(s))
      for (const Number& number : numbers_of(s.row->stack)) used.insert(number.key());
  for (const FreeValue& v : free_values(runs.scored)) {
    const Number number{
        .name = v.name, .reason = v.reason, .value = v.value, .low = v.low, .high = v.high};
    INFO(number.key());
    CHECK(listed.insert(number.key()).second);
    CHECK(!v.points.empty());
  }
  for (const Number& number : stated) {
    INFO(number.key());
    if (number.uncertain && !number.counts()) CHECK((number.value == 0 || number.value == 1));
    if (number.counts() && used.contains(number.key())) expected.insert(number.key());
    if (!number.uncertain) CHECK(!listed.contains(number.key()));
  }
  CHECK(expected.size() > 100);
  CHECK(listed == expected);
}

TEST_CASE("a value made from runs has five points, and on one family a range as wide as others") {
  const Runs runs;
  const std::vector<FreeValue> values = free_values(runs.scored);
  std::size_t on_one_family = 0;
  for (const FreeValue& v : values) {
    INFO(v.stack << " " << v.name << ": " << v.reason);
    CHECK(!v.on_few_points());
    on_one_family += v.on_one_family() ? 1 : 0;
  }
  CHECK(on_one_family > 5);
  for (const NarrowValue& n : narrow_values(values)) {
    INFO(n.value->stack << " " << n.value->name << " x " << n.range << ", others x " << n.spread);
    CHECK(n.range >= n.spread);
  }
}

TEST_CASE("free values tell their prior, what a fit makes of them and how far runs decide them") {
  Runs runs;
  std::erase_if(runs.scored, [](const ScoredRow& s) {
    return s.row->stack.name != "llm-foundry" && s.row->stack.name != "automodel";
  });
  std::vector<FreeValue> values = free_values(runs.scored);
  compare_with_fit(values, runs.scored, {.threads = 0, .quiet = true});
  std::size_t refitted = 0;
  for (const FreeValue& v : values) {
    INFO(v.stack << " " << v.name);
    CHECK(v.prior.has_value() == v.share.has_value());
    if (!v.prior) continue;
    CHECK((*v.prior >= v.low && *v.prior <= v.high));
    CHECK((*v.share >= 0 && *v.share < 1));
    if (!v.refit_low) continue;
    ++refitted;
    CHECK(*v.refit_low <= *v.refit_high);
    CHECK((v.low < *v.refit_high && *v.refit_low < 1.5 * v.high));
  }
  CHECK(refitted >= 5);
  const std::vector<FreeCounts> counts = free_counts(values);
  CHECK(counts.back().stack.empty());
  CHECK(counts.back().fitted + counts.back().judged == values.size());
  CHECK((counts.back().effective > 0 &&
         counts.back().effective < static_cast<double>(counts.back().fitted)));
  CHECK(counts.back().effective_of_both > counts.back().effective);
  // One model family alone.
  const auto foundry = std::find_if(counts.begin(), counts.end(),
                                    [](const auto& c) { return c.stack == "llm-foundry"; });
  REQUIRE(foundry != counts.end());
  CHECK(foundry->one_family == foundry->fitted);
  const Json json = free_values_json(values);
  CHECK(json["free"]["values"].size() == values.size());
  CHECK(free_values_text(values).find("one family") != std::string::npos);
}

TEST_CASE("shares are those of the hat matrix") {
  // One value, one sample as wide as the prior: half and half.
  const std::vector<std::vector<double>> one = {{0.15}};
  CHECK(learned_shares(1, one, 0.15)[0] == Approx(0.5));
  // Nine times the information: nine tenths.
  const std::vector<std::vector<double>> three = {{0.45}};
  CHECK(learned_shares(1, three, 0.15)[0] == Approx(0.9));
  // Two values that no sample tells apart share what is known of their sum.
  const std::vector<std::vector<double>> both = {{0.15, 0.15}, {0.15, 0.15}};
  const std::vector<double> shared = learned_shares(2, both, 0.15);
  CHECK(shared[0] == Approx(shared[1]));
  CHECK(shared[0] + shared[1] == Approx(0.8));
  // A value that no sample feels stays with its prior.
  const std::vector<std::vector<double>> other = {{0.15, 0}};
  CHECK(learned_shares(2, other, 0.15)[1] == 0);
}

}  // namespace orrery
