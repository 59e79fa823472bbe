// SPDX-License-Identifier: Apache-2.0
// Tests that a wrong dimension does not compile: each case compiles until its fault is planted.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;

bool compiles(const fs::path& file, const std::string& flags) {
  const std::string command = std::string("\"") + ORRERY_COMPILER +
                              "\" -std=c++20 -fsyntax-only -x c++ -I\"" + ORRERY_SOURCE_DIR +
                              "\" " + flags + " \"" + file.string() + "\" >/dev/null 2>&1";
  return std::system(command.c_str()) == 0;
}

TEST_CASE("a wrong dimension does not compile") {
  std::vector<fs::path> files;
  for (const auto& entry :
       fs::directory_iterator(fs::path(ORRERY_SOURCE_DIR) / "tests/base/compile_fail"))
    if (entry.path().extension() == ".cxx") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  REQUIRE(files.size() >= 5);
  for (const fs::path& file : files) {
    INFO(file);
    CHECK(compiles(file, ""));  // the control: without the fault all is well
    CHECK_FALSE(compiles(file, "-DWRONG"));
  }
}

}  // namespace
