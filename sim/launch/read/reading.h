// SPDX-License-Identifier: Apache-2.0
// Knows how a program's reader says what each line of a configuration means.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/launch/read/given_run.h"
#include "sim/launch/read/program_facts.h"
#include "sim/launch/source/said.h"

namespace orrery {

inline constexpr std::int64_t most_of_a_size = 1'000'000'000;

// Values as programs write them. Errors name place, setting, and what stands there.
[[noreturn]] void fail(const Said& said, const std::string& expected);
std::int64_t whole_of(const Said& said, std::int64_t low = 1, std::int64_t high = most_of_a_size);
double number_of(const Said& said, double low, double high);
bool truth_of(const Said& said);  // a switch, true, false, 1, 0
std::string text_of(const Said& said);
std::vector<std::string> texts_of(const Said& said);  // "a b", "a,b", [a, b]
bool is_nothing(const Said& said);                    // null, None
std::string value_text(const SortedJson& value);      // as people wrote it, on one line
// One of the names, in any case; Error with the nearest.
std::string one_of(const Said& said, const std::vector<std::string>& names);

class GivenReading;
// What a setting does to the reading.
using Take = std::function<void(const Said&)>;
using Rules = std::map<std::string, Take, std::less<>>;

// Takes notes while a configuration is read. Of a setting that comes twice the last counts, as it
// does for the programs.
class GivenReading {
 public:
  // `asked`: what the question says itself, which wins over the file.
  GivenReading(GivenRun& run, ProgramFacts facts, SortedJson asked)
      : run_(run), facts_(std::move(facts)), asked_(std::move(asked)) {
    run_.program = facts_.title;
  }

  void set(const Said& said, const std::string& key, const SortedJson& value,
           const std::string& note = "");
  // Understood, as part of what `key` becomes in the end.
  void part_of(const Said& said, const std::string& key) { understood(said, key, "", ""); }
  void without_effect(const Said& said, const std::string& note = "");
  void not_understood(const Said& said, const std::string& note);
  // Nothing stands in the file; `name` would have said it.
  void missing(const std::string& name, const std::string& note);
  void assume(const std::string& name, const std::string& key, const SortedJson& value,
              const std::string& note);
  // A value that follows from several settings; it is no line of its own.
  void follow(const std::string& key, const SortedJson& value) { run_.settings[key] = value; }
  void forget(const std::string& key) { run_.settings.erase(key); }

  // Applies the rule of each setting's name as `named` spells it; what has none is without effect,
  // as the catalogue says, or not understood.
  void apply(const std::vector<Said>& all, const Rules& rules,
             const std::function<std::string(const std::string&)>& named);
  void apply_defaults();

  bool has(const std::string& key) const { return run_.settings.contains(key); }
  // Of the question or the file; nullopt: neither says it.
  std::optional<std::int64_t> size(const std::string& key) const;
  std::int64_t size_or_one(const std::string& key) const { return size(key).value_or(1); }
  std::optional<std::string> text(const std::string& key) const;
  const SortedJson& asked() const { return asked_; }
  const ProgramFacts& facts() const { return facts_; }
  GivenRun& run() { return run_; }

 private:
  void understood(const Said& said, const std::string& key, const std::string& becomes,
                  const std::string& note);

  GivenRun& run_;
  ProgramFacts facts_;
  SortedJson asked_;
};

}  // namespace orrery
