// SPDX-License-Identifier: Apache-2.0
// Knows the settings of a question: flags and files in one strict form, flags win.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/advise/advisor.h"
#include "sim/base/json/json.h"
#include "sim/engine/scenario.h"
#include "sim/outcome/simulate.h"
#include "sim/question/settings/catalogues.h"

namespace orrery {

// quantity: a number, or a value with its unit.
enum class SettingKind : std::uint8_t {
  text,
  integer,
  number,
  quantity,
  on_off,
  list,
  file,
  json,
  settings
};
// Which command has the setting as a flag; a file may hold any of them for both.
enum class SettingOf : std::uint8_t { both, advise, simulate };

// What a question without a file is called in errors.
inline constexpr const char* command_line_place = "command line";
// A key as a flag: "--global-batch" of "global_batch".
std::string flag_of(const std::string& key);

// One setting: its key in files ('_'), its flag ("--global-batch") and what it means.
struct Setting {
  const char* key;
  SettingKind kind;
  const char* group;  // heading of the help that it stands under
  const char* help;
  SettingOf command = SettingOf::both;
  const char* completes = "";  // what a shell may complete it with (see Flag)
  std::string flag() const;
};

// Every setting of advise and simulate, in the order of the help text.
const std::vector<Setting>& settings();

// A whole number from `low` to `high`, or an Error that names `flag`.
std::int64_t whole_number(const std::string& flag, const std::string& text, std::int64_t low,
                          std::int64_t high);

// Text of a flag as a JSON value of the setting's kind. Error (file "--flag") when it is not one.
SortedJson setting_value(const Setting& setting, const std::string& text);

// The object without its members that are null: a key that is null says nothing.
SortedJson without_nulls(const SortedJson& object);

// The file's settings (file may be "") with `flags` on top. Unknown keys are errors.
JsonValue merge_settings(const std::string& file, const SortedJson& flags);

// The same for one line of many: keys of `refused` mean nothing there, `otherwise` holds where
// neither says anything.
JsonValue merge_line(const JsonValue& line, const SortedJson& flags,
                     const std::vector<std::string>& refused, const SortedJson& otherwise);

// The error with the flag in place of the setting's path, where the setting was a flag or, without
// a file, should have been one.
Error named_by_flag(const Error& error, const std::string& file, const SortedJson& flags,
                    const std::vector<Setting>& known = settings());

// The stack's name, or its entry where it stands inline. Error: a release that is no number, or
// before all that are known; a later one is taken.
std::string stack_reference(const JsonValue& stack, Catalogues& catalogues);

// Error at `gpus` when they are more than one host and not whole hosts.
void check_whole_hosts(const JsonValue& gpus, const Cluster& cluster);
// Error where several keys that a question needs are missing; the first that is missing alone is
// named by whoever reads it.
void check_complete(const JsonValue& settings);
// The Error that names all of them, as flags where there is no file.
[[noreturn]] void refuse_missing(const JsonValue& settings, const std::vector<std::string>& keys);

// Error when the fabric cannot join the cluster's accelerators, as plan says of such points.
void check_wiring(const Cluster& cluster);

// A scenario for simulate: dp defaults to what is left of the cluster. Errors name the setting.
// With catalogues: entries that other questions read are taken from there.
Scenario read_scenario(const JsonValue& settings);
Scenario read_scenario(const JsonValue& settings, Catalogues& catalogues);
SimulateOptions read_simulate_options(const JsonValue& settings);

// Share of the memory that layouts, and remedies of traps, leave free: "memory_reserve".
double read_memory_reserve(const JsonValue& settings);

// A question for advise: layout settings that are given fix their dimension.
Question read_question(const JsonValue& settings);
Question read_question(const JsonValue& settings, Catalogues& catalogues);
AdviseOptions read_advise_options(const JsonValue& settings);
// "like": a file or JSON with settings of the layout that runs now, or a whole scenario of the same
// model, cluster and job (`asked`), on a stack of its own if it names one, and launched as it says.
// The rest is the question's. What the comparison cannot hold (flows, faults, slow accelerators) is
// an Error. nullopt when it is not given.
std::optional<Scenario> read_like(const JsonValue& settings, const Job& asked);

}  // namespace orrery
