// SPDX-License-Identifier: Apache-2.0
// Reads values of configurations, and keeps what became of each.
#include "sim/launch/read/reading.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "sim/base/errors/check.h"
#include "sim/base/json/quick.h"
#include "sim/base/text/words.h"
#include "sim/launch/source/marks.h"

namespace orrery {
namespace {

constexpr std::size_t most_value_text = 80;

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

// A number that a script holds as text.
std::optional<double> number_in(const SortedJson& value) {
  if (value.is_number()) return value.get<double>();
  if (!value.is_string()) return std::nullopt;
  const std::string& text = value.text();
  if (text.empty() || text.find_first_not_of("0123456789+-.eE_") != std::string::npos)
    return std::nullopt;
  std::string digits;
  for (const char c : text)
    if (c != '_') digits += c;
  char* end = nullptr;
  const double number = std::strtod(digits.c_str(), &end);
  if (digits.empty() || *end != '\0' || !std::isfinite(number)) return std::nullopt;
  return number;
}

std::optional<std::string> mark_of(const SortedJson& value) {
  if (value.is_string() && has_mark(value.text())) return unknown_reason(value.text());
  if (value.is_structured())
    for (const SortedJson& item : value)
      if (auto reason = mark_of(item)) return reason;
  return std::nullopt;
}

std::string list_text(const SortedJson& value) {
  std::vector<std::string> items;
  for (const SortedJson& item : value) items.push_back(value_text(item));
  return joined(items, " ");
}

GivenItem item_of(const Said& said) {
  std::string value = value_text(said.value);
  if (value.size() > most_value_text) {
    std::size_t cut = most_value_text;
    while (cut > 0 && (static_cast<unsigned char>(value[cut]) & 0xc0U) == 0x80) --cut;
    value = value.substr(0, cut) + "...";
  }
  return {.place = said.place(), .name = shown(said.name), .value = std::move(value)};
}

}  // namespace

std::string value_text(const SortedJson& value) {
  std::string text = value.is_string()  ? shown(value.text())
                     : value.is_array() ? list_text(value)
                                        : shown(value.dump());
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  return text;
}

void fail(const Said& said, const std::string& expected) {
  std::string text = value_text(said.value);
  throw Error({.file = said.place(),
               .path = shown(said.name),
               .found = said.value.is_boolean() && said.value.get<bool>() ? "no value"
                        : said.value.is_number()                          ? text
                                                                          : in_quotes(text),
               .expected = expected});
}

std::int64_t whole_of(const Said& said, std::int64_t low, std::int64_t high) {
  const auto number = number_in(said.value);
  if (!number || *number != std::floor(*number) || *number < static_cast<double>(low) ||
      *number > static_cast<double>(high))
    fail(said, fmt::format("a whole number from {} to {}", low, high));
  return static_cast<std::int64_t>(*number);
}

double number_of(const Said& said, double low, double high) {
  const auto number = number_in(said.value);
  if (!number || *number < low || *number > high)
    fail(said, fmt::format("a number from {} to {}", low, high));
  return *number;
}

bool truth_of(const Said& said) {
  if (said.value.is_boolean()) return said.value.get<bool>();
  if (said.value.is_number()) {
    const double number = said.value.get<double>();
    if (number == 0 || number == 1) return number == 1;
  }
  if (said.value.is_string()) {
    const std::string text = lower(said.value.text());
    for (const char* yes : {"true", "1", "yes", "on"})
      if (text == yes) return true;
    for (const char* no : {"false", "0", "no", "off"})
      if (text == no) return false;
  }
  fail(said, "true or false");
}

std::string text_of(const Said& said) {
  if (!said.value.is_string()) fail(said, "a name");
  return said.value.text();
}

std::vector<std::string> texts_of(const Said& said) {
  std::vector<std::string> out;
  const auto add = [&](const std::string& text) {
    std::string word;
    for (const char c : text + ",") {
      if (std::string_view(" ,[]()'\"").find(c) == std::string_view::npos) {
        word += c;
      } else if (!word.empty()) {
        out.push_back(word);
        word.clear();
      }
    }
  };
  if (said.value.is_array())
    for (const SortedJson& item : said.value) add(value_text(item));
  else if (said.value.is_string() || said.value.is_number())
    add(value_text(said.value));
  if (out.empty()) fail(said, "a list of names");
  return out;
}

bool is_nothing(const Said& said) {
  if (said.value.is_null()) return true;
  if (!said.value.is_string()) return false;
  const std::string text = lower(said.value.text());
  return text == "null" || text == "none" || text.empty();
}

std::string one_of(const Said& said, const std::vector<std::string>& names) {
  const std::string text = lower(said.value.is_string() ? said.value.text() : said.value.dump());
  if (std::find(names.begin(), names.end(), text) != names.end()) return text;
  throw Error({.file = said.place(),
               .path = shown(said.name),
               .found = in_quotes(value_text(said.value)),
               .expected = "one of " + joined(names, ", "),
               .nearest = nearest_name(text, names)});
}

void GivenReading::understood(const Said& said, const std::string& key, const std::string& becomes,
                              const std::string& note) {
  GivenItem item = item_of(said);
  item.key = key;
  item.becomes = becomes;
  item.note = note;
  if (asked_.contains(key)) {
    item.note = fmt::format("the question says {} itself", key);
    run_.without_effect.push_back(std::move(item));
    return;
  }
  run_.understood.push_back(std::move(item));
}

void GivenReading::set(const Said& said, const std::string& key, const SortedJson& value,
                       const std::string& note) {
  run_.settings[key] = value;
  understood(said, key, value_text(value), note);
}

void GivenReading::without_effect(const Said& said, const std::string& note) {
  GivenItem item = item_of(said);
  item.note = note;
  run_.without_effect.push_back(std::move(item));
}

void GivenReading::not_understood(const Said& said, const std::string& note) {
  GivenItem item = item_of(said);
  item.note = note;
  run_.not_understood.push_back(std::move(item));
}

void GivenReading::missing(const std::string& name, const std::string& note) {
  run_.not_understood.push_back({.place = run_.file, .name = name, .note = note});
}

void GivenReading::assume(const std::string& name, const std::string& key, const SortedJson& value,
                          const std::string& note) {
  run_.settings[key] = value;
  run_.defaulted.push_back({.name = name, .key = key, .becomes = value_text(value), .note = note});
}

void GivenReading::apply(const std::vector<Said>& all, const Rules& rules,
                         const std::function<std::string(const std::string&)>& named) {
  std::map<std::string, std::size_t> last;
  for (std::size_t i = 0; i < all.size(); ++i) last[named(all[i].name)] = i;
  std::vector<std::string> known;
  for (const auto& [name, take] : rules) known.push_back(name);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Said& said = all[i];
    const std::string name = named(said.name);
    const auto rule = rules.find(name);
    if (rule == rules.end() && (facts_.has_no_effect(name) || facts_.has_no_effect(said.name))) {
      without_effect(said);
    } else if (last.at(name) != i) {
      without_effect(said, "it is said again in " + all[last.at(name)].place());
    } else if (const auto reason = mark_of(said.value)) {
      not_understood(said, *reason);
    } else if (rule == rules.end()) {
      const std::string near = nearest_name(name, known);
      not_understood(said, near.empty() ? "" : fmt::format("the nearest that is read is {}", near));
    } else {
      rule->second(said);
    }
  }
}

void GivenReading::apply_defaults() {
  for (const ProgramDefault& d : facts_.defaults) {
    // What is said and not understood is no default.
    const auto said = [&](const GivenItem& item) { return item.name == d.name; };
    if (std::any_of(run_.not_understood.begin(), run_.not_understood.end(), said)) continue;
    if (run_.settings.contains(d.key) || asked_.contains(d.key)) continue;
    assume(d.name, d.key, d.value, fmt::format("releases {}; {}", d.releases, d.source));
  }
}

std::optional<std::int64_t> GivenReading::size(const std::string& key) const {
  for (const SortedJson* from : {&asked_, static_cast<const SortedJson*>(&run_.settings)}) {
    const auto at = from->find(key);
    if (at == from->end()) continue;
    if (at->is_number_integer()) return at->get<std::int64_t>();
    return std::nullopt;
  }
  return std::nullopt;
}

std::optional<std::string> GivenReading::text(const std::string& key) const {
  for (const SortedJson* from : {&asked_, static_cast<const SortedJson*>(&run_.settings)}) {
    const auto at = from->find(key);
    if (at != from->end() && at->is_string()) return at->text();
    if (at != from->end()) return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace orrery
