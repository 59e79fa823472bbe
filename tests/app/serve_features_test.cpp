// SPDX-License-Identifier: Apache-2.0
// Runs the flags that the page of features names for what works.
#include <catch2/catch.hpp>

#include <map>
#include <sstream>

#include "tests/app/pages.h"
#include "tests/app/run_binary.h"

namespace orrery {
namespace {

using Flags = std::map<std::string, std::string>;

// Flags with their values, as a shell would part them.
Flags flags_of(const std::string& text) {
  Flags flags;
  std::string flag, word;
  bool quoted = false;
  for (const char c : text + " ") {
    if (c == '\'') quoted = !quoted;
    if (quoted || (c != ' ' && c != '\n')) {
      word += c;
      continue;
    }
    if (word.empty()) continue;
    if (word.starts_with("--"))
      flags[flag = word] = "";
    else
      flags[flag] = word;
    word.clear();
  }
  return flags;
}

// What stands in backticks behind `from` of a line; "": nothing.
std::string code_in(const std::string& text, std::size_t from = 0) {
  const std::size_t open = text.find('`', from);
  if (open == std::string::npos) return "";
  return text.substr(open + 1, text.find('`', open + 1) - open - 1);
}

std::string line_of(Flags all, const Flags& own) {
  if (own.contains("--arrivals") || own.contains("--for") || own.contains("--trace"))
    all.erase("--concurrency");
  if (own.contains("--trace"))
    for (const char* length : {"--isl", "--osl"}) all.erase(length);
  if (own.contains("--prefill")) all.erase("--engines");
  for (const auto& [flag, value] : own) all[flag] = value;
  std::string line;
  for (const auto& [flag, value] : all) line += " " + flag + " " + value;
  return line;
}

}  // namespace

TEST_CASE("serve: each feature that is marked works with the flags that show it") {
  const std::string page = test::read_file(test::source_folder() / "docs/serving-features.md");
  const ScratchFolder scratch("features");
  const Flags base = flags_of(code_in(page, page.find("beside these: ")));
  REQUIRE(base.size() == 8);
  std::istringstream lines(page);
  int shown = 0, blank = 0;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("| ") || line.starts_with("| feature")) continue;
    const bool works = line.find("| ✓ |") != std::string::npos;
    const bool part = line.find("| part |") != std::string::npos;
    const std::string flags = code_in(line);
    INFO(line);
    CHECK((works || part) == !flags.empty());
    blank += works || part ? 0 : 1;
    if (!flags.starts_with("--")) continue;
    const test::Outcome o = test::run_shell("cd " + (scratch / "").string() + "; " + ORRERY_BINARY +
                                            " serve --quiet" + line_of(base, flags_of(flags)));
    CAPTURE(line_of(base, flags_of(flags)), o.err);
    CHECK(o.code == 0);
    ++shown;
  }
  CHECK(shown > 30);
  CHECK(blank > 5);
}

}  // namespace orrery
