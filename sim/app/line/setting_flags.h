// SPDX-License-Identifier: Apache-2.0
// Knows the flags of advise and simulate: their settings, and how these are read from a line.
#pragma once

#include "sim/app/line/command.h"
#include "sim/base/json/tree.h"
#include "sim/question/settings/settings.h"

namespace orrery {

// Each setting as a flag.
std::vector<Flag> flags_of(const std::vector<Setting>& settings);
// Flags of the settings that a command has.
std::vector<Flag> setting_flags(SettingOf command);
// The argument that both commands take: a file of settings.
Argument settings_file();

// Settings of a line: what its flags say, over its file.
struct GivenSettings {
  std::string file;  // "": none
  SortedJson flags = SortedJson::object();
  JsonValue merged() const { return merge_settings(file, flags); }
};
GivenSettings settings_of(const Given& given);

// Text of a flag whose values may be several: with commas a list, but for what is one value
// whatever commas it has. Ranges are read later.
SortedJson listed_value(const Setting& setting, const std::string& text, bool one_value);
// The settings of a line whose values may be so; `is_one_value` of a key.
GivenSettings listed_settings_of(const Given& given, const std::vector<Setting>& settings,
                                 bool (*is_one_value)(const std::string& key));

// Where nothing is drawn a seed would change nothing: an Error that says `expected`.
void refuse_seed(const CommonFlags& common, const std::string& expected);

}  // namespace orrery
