// SPDX-License-Identifier: Apache-2.0
// Makes flags of settings, and settings of flags.
#include "sim/app/line/setting_flags.h"

#include <fmt/format.h>

#include "sim/base/text/lines.h"

namespace orrery {
namespace {

constexpr const char* no_sequence_parallel = "--no-sequence-parallel";

const char* value_of(SettingKind kind) {
  switch (kind) {
    case SettingKind::text:
      return "NAME";
    case SettingKind::integer:
      return "N";
    case SettingKind::number:
      return "X";
    case SettingKind::quantity:
      return "X|VALUE";
    case SettingKind::on_off:
      return "true|false";
    case SettingKind::list:
      return "A,B";
    case SettingKind::file:
      return "FILE";
    case SettingKind::json:
      return "JSON";
    case SettingKind::settings:
      return "FILE|JSON";
  }
  return "";
}

}  // namespace

std::vector<Flag> flags_of(const std::vector<Setting>& settings) {
  std::vector<Flag> flags;
  for (const Setting& setting : settings) {
    const bool on_off = setting.kind == SettingKind::on_off;
    const bool folder = std::string_view(setting.completes) == "folder";
    flags.push_back({setting.flag(), folder ? "DIR" : value_of(setting.kind), setting.group,
                     setting.help, on_off ? "true false" : setting.completes});
    if (flags.back().name == "--sequence-parallel")
      flags.push_back(
          {no_sequence_parallel, "", setting.group, "the same as --sequence-parallel false"});
  }
  return flags;
}

std::vector<Flag> setting_flags(SettingOf command) {
  std::vector<Setting> own;
  for (const Setting& setting : settings())
    if (setting.command == SettingOf::both || setting.command == command) own.push_back(setting);
  return flags_of(own);
}

Argument settings_file() {
  return {"file",
          "file with settings: JSON, keys as the flags with _, or what a program is started with "
          "(docs/configurations.md); flags win over it",
          "file"};
}

GivenSettings settings_of(const Given& given) {
  GivenSettings own{.file = given.word(0)};
  for (const Setting& setting : settings())
    if (given.has(setting.flag()))
      own.flags[setting.key] = setting_value(setting, given.text(setting.flag()));
  if (given.has(no_sequence_parallel)) own.flags["sequence_parallel"] = false;
  return own;
}

void refuse_seed(const CommonFlags& common, const std::string& expected) {
  if (common.seed)
    throw Error({.file = "--seed", .found = fmt::format("{}", *common.seed), .expected = expected});
}

SortedJson listed_value(const Setting& setting, const std::string& text, bool one_value) {
  const auto value = [&](const std::string& part) {
    const bool range = setting.kind != SettingKind::json && part.find("..") != part.npos;
    return range ? SortedJson(part) : setting_value(setting, part);
  };
  const bool json = text.starts_with('{') || text.starts_with('[');  // entries that stand inline
  if (json || text.find(',') == text.npos || one_value) return value(text);
  SortedJson list = SortedJson::array();
  for (const std::string_view part : fields_of(text, ',')) list.push_back(value(std::string(part)));
  return list;
}

GivenSettings listed_settings_of(const Given& given, const std::vector<Setting>& settings,
                                 bool (*is_one_value)(const std::string& key)) {
  GivenSettings own{.file = given.word(0)};
  for (const Setting& setting : settings)
    if (given.has(setting.flag()))
      own.flags[setting.key] =
          listed_value(setting, given.text(setting.flag()), is_one_value(setting.key));
  return own;
}

}  // namespace orrery
