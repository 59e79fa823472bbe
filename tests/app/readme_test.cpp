// SPDX-License-Identifier: Apache-2.0
// README.md shows real output: its console blocks are run and compared.
#include <catch2/catch.hpp>
#include <cstdlib>

#include "sim/app/tables.h"
#include "sim/base/output_file.h"
#include "tests/app/run_binary.h"

namespace orrery {
namespace {

namespace fs = std::filesystem;

// ```console blocks hold one command after "$ " and what it prints.
const std::string opening = "```console\n$ ", closing = "```\n";

std::string output_of(std::string command) {
  const std::string launcher = "./orrery ";
  REQUIRE(command.starts_with(launcher));
  command.replace(0, launcher.size(), std::string(ORRERY_BINARY) + " --quiet ");
  const test::Outcome o = test::run_shell("cd " ORRERY_SOURCE_DIR "; " + command);
  INFO(command << "\n" << o.err);
  CHECK(o.code == 0);
  CHECK(o.err.empty());
  return o.out;
}

// The text with the output of every block as it is now.
std::string refreshed(const std::string& text, int& blocks) {
  std::string out;
  std::size_t at = 0;
  for (std::size_t begin = text.find(opening); begin != std::string::npos;
       begin = text.find(opening, at)) {
    const std::size_t command = begin + opening.size();
    const std::size_t output = text.find('\n', command) + 1;
    out += text.substr(at, output - at);
    out += output_of(text.substr(command, output - 1 - command));
    at = text.find(closing, output);
    REQUIRE(at != std::string::npos);
    ++blocks;
  }
  return out + text.substr(at);
}

// The file's blocks are what its commands print; rewrites it where that is asked for.
void check_blocks(const fs::path& file, int least) {
  const std::string text = test::read_file(file);
  int blocks = 0;
  const std::string now = refreshed(text, blocks);
  CHECK(blocks >= least);
  const char* update = std::getenv("UPDATE_EXPECTED");
  if (update != nullptr && std::string(update) == "1") {
    write_file(file, now);
    return;
  }
  INFO("UPDATE_EXPECTED=1 rewrites " << file << ": tests/README.md");
  CHECK(text == now);
}

}  // namespace

TEST_CASE("the README shows what its commands print", "[snapshot]") {
  check_blocks(fs::path(ORRERY_SOURCE_DIR) / "README.md", 3);
}

TEST_CASE("the README of validation shows what its commands print", "[snapshot]") {
  check_blocks(fs::path(ORRERY_SOURCE_DIR) / "validation/README.md", 1);
}

}  // namespace orrery
