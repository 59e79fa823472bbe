// SPDX-License-Identifier: Apache-2.0
// Snapshots: what whole predictions come to, to six digits, and one fingerprint of them all.
// UPDATE_EXPECTED=1 rewrites the expected files and the signature (tests/README.md).
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <vector>

#include "sim/base/json/leaves.h"
#include "sim/base/output_file.h"
#include "sim/question/settings/settings.h"
#include "tests/app/run_binary.h"

namespace orrery {
namespace {

namespace fs = std::filesystem;

const fs::path tests = fs::path(ORRERY_SOURCE_DIR) / "tests";

bool updating() {
  const char* value = std::getenv("UPDATE_EXPECTED");
  return value != nullptr && std::string(value) == "1";
}

double rounded(double v) { return std::strtod(fmt::format("{:.6g}", v).c_str(), nullptr); }

Json stage_result(const StageBreakdown& stage) {
  Json out = Json::object();
  for (int i = 0; i < label_count; ++i)
    if (const Ticks part = stage[static_cast<Label>(i)]; part.ps > 0)
      out[std::string(to_text(static_cast<Label>(i))) + "_s"] = rounded(to_seconds(part).si());
  return out;
}

Json simulated(const JsonValue& settings) {
  const Scenario s = read_scenario(settings);
  const Prediction p = simulate(s, read_simulate_options(settings));
  Json most_felt = Json::array();
  for (std::size_t i = 0; i < std::min<std::size_t>(3, p.assumptions.size()); ++i)
    most_felt.push_back(p.assumptions[i].path);
  return {{"layout", to_text(s.layout)},
          {"stack", s.stack.name + "@" + s.stack.release},
          {"step_time_s", rounded(p.step_time.si())},
          {"low_s", rounded(p.low.si())},
          {"high_s", rounded(p.high.si())},
          {"tokens_per_s_per_gpu", rounded(p.tokens_per_second_per_gpu)},
          {"mfu", rounded(p.utilisation.mfu)},
          {"hfu", rounded(p.hfu())},
          {"energy_per_token_j", rounded(p.energy_per_token.si())},
          {"throttle", rounded(p.throttle)},
          {"dollars_per_million_tokens", rounded(p.price.per_million_tokens.si())},
          {"scale_up_bytes", rounded(p.scale_up_bytes.si())},
          {"scale_out_bytes", rounded(p.scale_out_bytes.si())},
          {"fits", p.memory.fits},
          {"allocated_bytes", rounded(p.memory.peak.si())},
          {"reserved_bytes", rounded(p.memory.reserved.si())},
          {"needed_bytes", rounded(p.memory.needed.si())},
          {"bottleneck_stage", p.bottleneck_stage},
          {"bottleneck", stage_result(p.stages[static_cast<std::size_t>(p.bottleneck_stage)])},
          {"most_felt_assumptions", most_felt}};
}

Json candidates(const std::vector<Candidate>& list) {
  Json out = Json::array();
  for (const Candidate& c : list)
    out.push_back({{"layout", to_text(c.layout)},
                   {"step_time_s", rounded(c.step_time.si())},
                   {"energy_per_step_j", rounded(c.energy_per_step.si())},
                   {"peak_memory_bytes", rounded(c.peak_memory.si())}});
  return out;
}

Json advised(const JsonValue& settings) {
  const Advice a = advise(read_question(settings), read_advise_options(settings));
  return {{"best", candidates(a.best)},
          {"pareto", candidates(a.pareto)},
          {"considered", a.considered},
          {"rejected_for_memory", a.rejected_for_memory}};
}

std::vector<fs::path> scenario_files() {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(tests / "scenarios"))
    if (const std::string name = entry.path().filename().string();
        name.ends_with(".json") && !name.ends_with(".expected.json"))
      files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

// What differs, a line per value.
std::string difference(const Json& expected, const Json& found) {
  std::string text;
  const auto before = leaves_of(expected), after = leaves_of(found);
  for (const auto& [path, value] : after)
    if (!before.contains(path))
      text += fmt::format("  {}: is new: {}\n", path, value.dump());
    else if (before.at(path) != value)
      text +=
          fmt::format("  {}: found {}, expected {}\n", path, value.dump(), before.at(path).dump());
  for (const auto& [path, value] : before)
    if (!after.contains(path)) text += fmt::format("  {}: is gone\n", path);
  return text;
}

// FNV-1a of 64 bits: enough to see a change, the same everywhere.
std::uint64_t fingerprint(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

// Compares a text with a file of the source tree, or writes it there.
void expect_text(const fs::path& file, const std::string& text) {
  if (updating()) {
    write_file(file, text);
    return;
  }
  INFO(file.string() << " (UPDATE_EXPECTED=1 rewrites it: tests/README.md)");
  CHECK(test::read_file(file) == text);
}

}  // namespace

TEST_CASE("scenarios come to what they came to", "[snapshot]") {
  const std::vector<fs::path> files = scenario_files();
  REQUIRE(files.size() >= 15);
  std::string all;
  for (const fs::path& file : files) {
    const JsonValue settings = merge_settings(file.string(), SortedJson::object());
    const std::string name = file.stem().string();
    const Json found = name.starts_with("advise") ? advised(settings) : simulated(settings);
    const std::string text = found.dump(2) + "\n";
    all += name + "\n" + text;
    const fs::path expected_file = tests / "scenarios" / (name + ".expected.json");
    if (updating()) {
      write_file(expected_file, text);
      continue;
    }
    INFO(name << " (UPDATE_EXPECTED=1 rewrites it: tests/README.md)");
    REQUIRE(fs::exists(expected_file));
    const Json expected = Json::parse(test::read_file(expected_file));
    if (expected != found) FAIL_CHECK("differs:\n" << difference(expected, found));
  }
  expect_text(tests / "signature.txt",
              fmt::format("{:016x} of {} scenarios\n", fingerprint(all), files.size()));
}

}  // namespace orrery
