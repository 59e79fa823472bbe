// SPDX-License-Identifier: Apache-2.0
// Reads programs of RL post-training.
#include "workloads/rl/rl_program.h"

#include <vector>

#include "sim/base/errors/check.h"
#include "sim/base/json/json.h"

namespace orrery {
namespace {

namespace fs = std::filesystem;

JsonValue entry_of(const std::string& name, const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code ignored;
  for (const auto& file : fs::directory_iterator(folder, ignored))
    if (file.path().extension() == ".json") names.push_back(file.path().stem().string());
  for (const std::string& known : names)
    if (known == name) return JsonValue::load(folder / (name + ".json"));
  throw Error({.file = "RL program",
               .found = in_quotes(name),
               .expected = "an entry of " + folder.filename().string(),
               .nearest = nearest_name(name, names)});
}

// A fact that is no number: {"value", "source", "reason"}.
bool stated(const JsonValue& at) {
  at.expect_only({"value", "source", "reason"});
  return at.at("value").boolean();
}

}  // namespace

RlProgram load_rl_program(const std::string& name, const fs::path& folder) {
  const std::size_t at = name.find('@');
  const JsonValue file = entry_of(name.substr(0, at), folder);
  file.expect_only({"name", "title", "shared_sync", "split_sync", "host_copy", "logit_forward",
                    "logit_backward", "logit_sequence", "reference_copies", "engine_step",
                    "engine_ranks", "ranks_ahead", "response", "places_by_domain", "training",
                    "releases"});
  RlProgram program{.name = file.at("name").text(),
                    .release = {},
                    .title = file.at("title").text(),
                    .training_stack = {},
                    .serving_stack = {},
                    .shared_sync = read_sourced<BytesPerSecond>(file.at("shared_sync")),
                    .split_sync = read_sourced<BytesPerSecond>(file.at("split_sync")),
                    .host_copy = read_sourced<BytesPerSecond>(file.at("host_copy")),
                    .logit_forward = read_sourced<double>(file.at("logit_forward")),
                    .logit_backward = read_sourced<double>(file.at("logit_backward")),
                    .logit_sequence = read_sourced<double>(file.at("logit_sequence")),
                    .reference_copies = read_sourced<double>(file.at("reference_copies")),
                    .engine_step = read_sourced<Seconds>(file.at("engine_step")),
                    .engine_ranks = read_sourced<Seconds>(file.at("engine_ranks")),
                    .ranks_ahead = stated(file.at("ranks_ahead")),
                    .response = read_sourced<Seconds>(file.at("response")),
                    .places_by_domain = stated(file.at("places_by_domain"))};
  if (const auto training = file.find("training")) {
    training->expect_only({"set", "source", "reason"});
    program.training_settings = training->at("set");
  }
  const std::string wanted = at == std::string::npos ? "" : name.substr(at + 1);
  std::vector<std::string> releases;
  for (const JsonValue& release : file.at("releases").items()) {
    release.expect_only({"release", "training_stack", "serving_stack"});
    releases.push_back(release.at("release").text());
    if (!wanted.empty() && wanted != releases.back()) continue;
    program.release = releases.back();
    program.training_stack = release.at("training_stack").text();
    program.serving_stack = release.at("serving_stack").text();
  }
  if (program.release.empty())
    throw Error({.file = name.substr(0, at),
                 .path = "releases",
                 .found = in_quotes(wanted),
                 .expected = "a release of the list",
                 .nearest = nearest_name(wanted, releases)});
  return program;
}

}  // namespace orrery
