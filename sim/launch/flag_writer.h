// SPDX-License-Identifier: Apache-2.0
// Knows how settings become text: command lines, overrides, Python, TOML, YAML and JSON.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/json/tree.h"
#include "sim/launch/flags.h"

namespace orrery {

enum class FlagStyle : std::uint8_t {
  command_line,  // --name value
  overrides,     // name=value, as Hydra reads it
  python,        // name = value
  toml,
  yaml,
  json,
};

// Collects what a program is told, and which keys of the layout are said by it.
class FlagWriter {
 public:
  FlagWriter(std::string program, FlagStyle style) : style_(style) {
    out_.program = std::move(program);
  }
  // Names with dots are sections of sections, but for flags and Python. `raw` text is written
  // without quotes.
  void set(std::string_view key, const std::string& name, const SortedJson& value,
           bool raw = false);
  void covers(std::string_view key) { covered_.insert(std::string(key)); }
  void missing(std::string_view key, std::string sentence);
  // Missing: "PROGRAM has no setting for WHAT."
  void lacks(std::string_view key, const std::string& what);
  void implied(std::string_view key, std::string sentence);
  // "NAME=VALUE", and when it is needed.
  void environment(std::string setting, std::string when) {
    out_.environment.push_back(std::move(setting));
    when_.push_back(std::move(when));
  }
  void source(std::string id) { out_.sources.push_back(std::move(id)); }
  const std::string& program() const { return out_.program; }

  // Names every other key in which the layout differs from the default as missing.
  LaunchFlags finish(const Layout& layout, std::string note) &&;

 private:
  std::string text(const Layout& layout) const;

  FlagStyle style_;
  LaunchFlags out_;
  std::vector<std::string> when_;  // environment settings are needed
  Json tree_;                      // toml, yaml, json
  std::set<std::string> covered_;
};

// The parts of a release's number: {0, 15} of "0.15", {25, 9} of "25.09"; what is no number is 0.
std::pair<int, int> release_number(const std::string& release);

// Programs, by the stack's launcher. Each says all keys that it can.
LaunchFlags megatron_flags(const Layout&, const Model&, const Job&, const Stack&,
                           const LaunchDevice&);
LaunchFlags megatron_deepspeed_flags(const Layout&, const Model&, const Job&, const Stack&);
LaunchFlags torchtitan_flags(const Layout&, const Model&, const Job&, const Stack&);
LaunchFlags automodel_flags(const Layout&, const Model&, const Job&, const Stack&,
                            const LaunchDevice&);
LaunchFlags nanotron_flags(const Layout&, const Model&, const Job&, const Stack&);
LaunchFlags deepspeed_flags(const Layout&, const Model&, const Job&, const Stack&);
LaunchFlags primus_flags(const Layout&, const Model&, const Job&, const Stack&,
                         const LaunchDevice&);
LaunchFlags maxtext_flags(const Layout&, const Model&, const Job&, const Stack&);
LaunchFlags neuronx_flags(const Layout&, const Model&, const Job&, const Stack&);
LaunchFlags gaudi_megatron_flags(const Layout&, const Model&, const Job&, const Stack&);

// Decisions that say nothing of a layout without context ranks, or of a model without experts.
inline void cover_absent(FlagWriter& out, const Layout& l, const Model& model) {
  if (l.cp == 1) {
    out.covers("context_parallel");
    out.covers("context_inner");
  }
  if (!model.has_experts()) {
    out.covers("ep");
    out.covers("etp");
  }
}

}  // namespace orrery
