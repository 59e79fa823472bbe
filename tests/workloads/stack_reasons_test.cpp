// SPDX-License-Identifier: Apache-2.0
// Holds that no catalogue asks to be believed: what is estimated or assumed says from what it was
// got.
#include <catch2/catch.hpp>

#include <filesystem>
#include <string>

#include "sim/base/json/tree.h"
#include "workloads/stack/values.h"

namespace orrery {
namespace {

namespace fs = std::filesystem;

fs::path folder(const char* below) { return fs::path(ORRERY_SOURCE_DIR) / below; }
fs::path stacks() { return folder("workloads/catalog/stacks"); }

// Calls visit(path, value) for every estimated or assumed value below `value`.
template <class Visit>
void visit_judged(const SortedJson& value, const std::string& path, const Visit& visit) {
  if (!value.is_structured()) return;
  if (value.is_object() && value.contains("evidence")) {
    const std::string& evidence = value.at("evidence").text();
    if (evidence == "estimated" || evidence == "assumed") visit(path, value);
    return;
  }
  if (value.is_object())
    for (const auto& [key, inner] : value.items()) visit_judged(inner, path + "/" + key, visit);
  else
    for (const SortedJson& inner : value) visit_judged(inner, path + "/[]", visit);
}

// Counts the judged values of all files below, each of which has a reason.
int judged_with_reasons(const fs::path& below, bool sentence) {
  int judged = 0;
  for (const auto& item : fs::recursive_directory_iterator(below)) {
    if (item.path().extension() != ".json") continue;
    const JsonValue file = JsonValue::load(item.path());
    visit_judged(file.raw(), item.path().string(),
                 [&](const std::string& path, const SortedJson& value) {
                   ++judged;
                   INFO(path);
                   REQUIRE(value.contains("reason"));
                   const std::string& reason = value.at("reason").text();
                   CHECK_FALSE(reason.empty());
                   if (sentence) CHECK(reason.find(' ') != std::string::npos);
                 });
  }
  return judged;
}

TEST_CASE("every estimated or assumed value of a stack has a reason") {
  CHECK(judged_with_reasons(stacks(), true) > 200);
}

TEST_CASE("so have those of machines, sites, wirings and clusters") {
  CHECK(judged_with_reasons(folder("hw_models/catalog"), false) > 500);
  CHECK(judged_with_reasons(folder("topologies/catalog"), false) > 20);
  CHECK(judged_with_reasons(folder("sim/engine/catalog"), false) > 20);
}

TEST_CASE("a stack's reasons survive its reading, release by release") {
  for (const std::string& name : stack_names(stacks())) {
    for (const std::string& release : stack_releases(name, stacks())) {
      const Stack stack = load_stack(name + "@" + release, {}, stacks());
      visit_stack_values(stack, [&](const std::string& path, const auto& value) {
        // What no file states is assumed to cost nothing, or one pass.
        if (!value.known() || value.evidence != Evidence::estimated) return;
        INFO(name << "@" << release << " " << path);
        CHECK_FALSE(value.reason.empty());
      });
    }
  }
}

}  // namespace
}  // namespace orrery
