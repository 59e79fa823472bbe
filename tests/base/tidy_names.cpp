// SPDX-License-Identifier: Apache-2.0
// Finds names of catalogue entries in code: what an entry is or can do belongs into its file.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "tests/base/tidy.h"

namespace orrery {
namespace {

// A name that code may say, and why.
struct Allowed {
  std::string_view file, name, why;
};
constexpr Allowed allowed[] = {
    {"workloads/stack/launcher.cpp", "",
     "programs whose flags are written; some stacks bear their name"},
    {"workloads/serving/engine_policy.h", "",
     "schedulers; the stacks that have them bear their name"},
    {"sim/base/names.h", "vllm", "the engine's all-reduces, a library"},
    {"sim/calibrate/log/measurement.cpp", "sglang", "a column of operator tables"},
    {"sim/observe/counters/smi.cpp", "index", "a column of nvidia-smi"},
    {"sim/calibrate/log/measurement.cpp", "trtllm", "a column of operator tables"},
    {"sim/validate/parts/collectives.cpp", "trtllm", "a library in tables of collectives"},
    {"sim/validate/parts/collectives.cpp", "vllm", "a library in tables of collectives"},
    {"workloads/model/hugging_face.cpp", "gpt2", "a model_type of Hugging Face"},
    {"workloads/model/hugging_face.cpp", "grok-1", "a model_type of Hugging Face"},
    {"hw_models/device.cpp", "", "architectures; some devices bear their name"},
    {"hw_models/price/economics.h", "standard", "what a question has that names none"},
    {"sim/outcome/money/bill.h", "unspecified", "what a question has that names none"},
    {"sim/outcome/money/bill.cpp", "parallel-flash", "what a question has that names none"},
    {"sim/outcome/money/bill.cpp", "cloud-lustre", "what a question has that names none"},
    {"sim/question/losses/thresholds_entry.cpp", "polca", "what a question has that names none"},
    {"sim/explain/traps.cpp", "nanotron-debug", "the one stack measured with that setting"},
    {"sim/calibrate/log/measured_log.cpp", "pytorch", "a word of measured lines"},
    {"sim/calibrate/fit/software_fit.h", "pytorch", "the program that the samples are of"},
    {"hw_models/price/optics.cpp", "backplane", "a kind of link; its price has the same name"},
    {"hw_models/reliability.cpp", "backplane", "a kind of link"},
    {"topologies/parts.cpp", "backplane", "a kind of link"},
    {"sim/outcome/money/equipment.cpp", "backplane", "a kind of link"},
};

bool is_allowed(std::string_view path, std::string_view name) {
  return std::any_of(std::begin(allowed), std::end(allowed), [&](const Allowed& a) {
    return path == a.file && (a.name.empty() || a.name == name);
  });
}

// Entries of all catalogues: their files' names. Files of sources are no entries.
std::set<std::string> entry_names(const SourceTree& tree) {
  std::set<std::string> names;
  for (const auto& [path, text] : tree) {
    const bool entry = path.ends_with(".json") && path.find("/catalog/") != std::string::npos &&
                       path.find("/catalog/sources/") == std::string::npos &&
                       !path.starts_with("tests/");
    if (!entry) continue;
    const std::size_t name = path.rfind('/') + 1;
    names.insert(path.substr(name, path.size() - name - std::string_view(".json").size()));
  }
  return names;
}

}  // namespace

Complaints check_names(const SourceTree& tree) {
  const std::set<std::string> names = entry_names(tree);
  Complaints complaints;
  for (const auto& [path, text] : tree) {
    if (!is_code(path) || path.starts_with("tests/")) continue;
    const std::string blanked = code_only(text);
    for (std::size_t open = blanked.find('"'); open != std::string::npos;) {
      const std::size_t shut = blanked.find('"', open + 1);
      if (shut == std::string::npos) break;
      const std::string said = text.substr(open + 1, shut - open - 1);
      const std::string name = said.substr(0, said.find('@'));  // a release may follow
      if (names.contains(name) && !is_allowed(path, name))
        complaints.push_back(complaint(path, line_at(text, open),
                                       fmt::format("names \"{}\", an entry of a catalogue", name)));
      open = blanked.find('"', shut + 1);
    }
  }
  return complaints;
}

}  // namespace orrery
