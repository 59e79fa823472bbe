// SPDX-License-Identifier: Apache-2.0
// Knows that the microbenchmarks are those of their README and that nvcc, where it is, takes them.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <mutex>
#include <regex>
#include <set>
#include <sstream>

#include "sim/base/input_file.h"

namespace fs = std::filesystem;

namespace {

const fs::path& folder() {
  static const fs::path path = fs::path(ORRERY_SOURCE_DIR) / "validation/microbench";
  return path;
}

// Programs that rows of the table name: "| gemm | gemm.cu | 1 | ...".
std::set<std::string> named_programs() {
  static const std::regex row(R"(^\| [a-z-]+ \| ([a-z_]+\.(?:cu|py)) \|)");
  std::set<std::string> names;
  std::istringstream lines(orrery::content_of(folder() / "README.md"));
  for (std::string line; std::getline(lines, line);) {
    std::smatch found;
    if (std::regex_search(line, found, row)) names.insert(found[1]);
  }
  return names;
}

// "" where there is none. The first candidate is the one on the PATH.
std::string find_nvcc() {
  for (const std::string candidate : {"nvcc", "/usr/local/cuda/bin/nvcc"})
    if (std::system((candidate + " --version >/dev/null 2>&1").c_str()) == 0) return candidate;
  return "";
}

// What the compiler said of a program that it did not take; else "".
std::string complaint_about(const std::string& nvcc, const fs::path& source) {
  // The front end reads the host code as well; only the device code is made.
  const fs::path log =
      fs::temp_directory_path() / fmt::format("orrery-{}-{}", std::rand(), source.stem().string());
  const std::string command =
      fmt::format("{} -std=c++20 --ptx -arch=sm_90 -o /dev/null '{}' >'{}' 2>&1", nvcc,
                  source.string(), log.string());
  const bool taken = std::system(command.c_str()) == 0;
  const std::string said = taken ? "" : orrery::content_of(log);
  fs::remove(log);
  return taken ? "" : source.filename().string() + ": " + (said.empty() ? "failed" : said);
}

}  // namespace

TEST_CASE("the README's table and the folder name the same programs") {
  const std::set<std::string> named = named_programs();
  CHECK(named.size() > 10);
  for (const std::string& name : named) {
    INFO(name);
    CHECK(fs::exists(folder() / name));
  }
  for (const auto& entry : fs::directory_iterator(folder())) {
    if (entry.path().extension() != ".cu") continue;
    INFO(entry.path().filename());
    CHECK(named.contains(entry.path().filename().string()));
  }
}

TEST_CASE("the microbenchmarks compile where there is nvcc") {
  const std::string nvcc = find_nvcc();
  if (nvcc.empty()) {
    WARN("no nvcc on the PATH or in /usr/local/cuda: the microbenchmarks were not compiled");
    return;
  }
  std::vector<fs::path> sources;
  for (const auto& entry : fs::directory_iterator(folder()))
    if (entry.path().extension() == ".cu") sources.push_back(entry.path());
  std::sort(sources.begin(), sources.end());
  REQUIRE_FALSE(sources.empty());
  std::mutex lock;
  std::size_t next = 0;
  std::vector<std::string> complaints;
  const auto work = [&] {
    for (;;) {
      std::unique_lock guard(lock);
      if (next == sources.size()) return;
      const fs::path source = sources[next++];
      guard.unlock();
      std::string said = complaint_about(nvcc, source);
      guard.lock();
      if (!said.empty()) complaints.push_back(std::move(said));
    }
  };
  auto other = std::async(std::launch::async, work);
  work();
  other.get();
  for (const std::string& said : complaints) UNSCOPED_INFO(said);
  CHECK(complaints.empty());
}
