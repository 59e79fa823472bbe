// SPDX-License-Identifier: Apache-2.0
// Knows how flags of a serving engine are collected, and which of its settings they say.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "sim/launch/serving/engine.h"

namespace orrery {

class EngineWriter {
 public:
  explicit EngineWriter(std::string program) { out_.program = std::move(program); }
  // Without a value: a switch.
  void flag(std::string_view key, std::string name, std::string value = "");
  void flag(std::string_view key, std::string name, std::int64_t value) {
    flag(key, std::move(name), std::to_string(value));
  }
  // A setting of the file; dots in the path are sections.
  void file(std::string_view key, std::string_view path, const Json& value);
  void covers(std::string_view key) { covered_.insert(std::string(key)); }
  void missing(std::string_view key, std::string sentence);
  // Missing: "PROGRAM has no flag for WHAT."
  void lacks(std::string_view key, std::string_view what);
  void implied(std::string_view key, std::string sentence);
  void environment(std::string_view key, std::string name, std::string value);
  void advice(std::string sentence) { out_.advice.push_back(std::move(sentence)); }
  void source(std::string id) { out_.sources.push_back(std::move(id)); }
  const std::string& program() const { return out_.program; }

  // Names every other setting that is not that of a plain engine as missing.
  EngineCommand finish(const ServedDeployment& deployment, const ServedEngine& engine) &&;

 private:
  EngineCommand out_;
  std::set<std::string> covered_;
};

// The release that was asked for, else the one that was predicted, as numbers.
std::pair<int, int> engine_release(const Stack& stack);

// "vLLM 0.14": the program and that release.
std::string engine_program(const Stack& stack);

// By the scheduler of the stack.
EngineCommand vllm_command(const ServedDeployment&, const ServedEngine&, EngineDialect);
EngineCommand sglang_command(const ServedDeployment&, const ServedEngine&);
EngineCommand trtllm_command(const ServedDeployment&, const ServedEngine&, EngineDialect);

}  // namespace orrery
