// SPDX-License-Identifier: Apache-2.0
// Runs the console blocks of every page and compares them with what the page shows.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <map>

#include "sim/base/output_file.h"
#include "sim/paper/tables.h"
#include "tests/app/pages.h"
#include "tests/app/run_binary.h"

namespace orrery {
namespace {

namespace fs = std::filesystem;

// ```console blocks hold one command after "$ " and what it prints.
const std::string fence = "```console\n", opening = fence + "$ ", closing = "```\n";

bool updates() {
  const char* update = std::getenv("UPDATE_EXPECTED");
  return update != nullptr && std::string(update) == "1";
}

// What commands print. Several blocks show parts of one long answer: what stands before the first
// pipe runs once.
class Consoles {
 public:
  std::string output_of(const std::string& shown) {
    const std::size_t pipe = shown.find(" | ");
    const std::string source = shown.substr(0, pipe);
    const auto known = answers_.find(source);
    const bool whole = pipe == std::string::npos;
    const std::string answer = known != answers_.end() ? known->second : answer_of(source, whole);
    answers_[source] = answer;
    return whole ? test::read_file(answer) : printed("cat " + answer + shown.substr(pipe), true);
  }

 private:
  std::string answer_of(const std::string& source, bool succeeds) {
    const std::string launcher = "./orrery ";
    const bool runs = source.starts_with(launcher);
    INFO(source << ": a block runs ./orrery, or looks at a file with grep or sed");
    REQUIRE((runs || source.starts_with("grep ") || source.starts_with("sed ")));
    const std::string command =
        runs ? std::string(ORRERY_BINARY) + " --quiet " + source.substr(launcher.size()) : source;
    return test::add(scratch_, std::to_string(answers_.size()), printed(command, succeeds));
  }

  // Before a pipe any exit code will do, as in a shell.
  static std::string printed(const std::string& command, bool succeeds) {
    const test::Outcome o = test::run_shell("cd " ORRERY_SOURCE_DIR "; " + command);
    INFO(command << "\n" << o.err);
    CHECK((o.code == 0 || !succeeds));
    CHECK(o.err.empty());
    return o.out;
  }

  ScratchFolder scratch_{"pages"};
  std::map<std::string, std::string> answers_;  // by command, the file that holds what it printed
};

// The text with the output of every block as it is now.
std::string refreshed(const std::string& text, Consoles& consoles, int& blocks) {
  std::string out;
  std::size_t at = 0;
  for (std::size_t begin = text.find(opening); begin != std::string::npos;
       begin = text.find(opening, at)) {
    const std::size_t command = begin + opening.size();
    const std::size_t output = text.find('\n', command) + 1;
    out += text.substr(at, output - at);
    out += consoles.output_of(text.substr(command, output - 1 - command));
    at = text.find(closing, output);
    REQUIRE(at != std::string::npos);
    ++blocks;
  }
  return out + text.substr(at);
}

int count(const std::string& text, const std::string& part) {
  int found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++found;
  return found;
}

// The file's blocks are what its commands print; rewrites it where that is asked for.
int check_blocks(const fs::path& file, Consoles& consoles) {
  INFO(file);
  const std::string text = test::read_file(file);
  int blocks = 0;
  const std::string now = refreshed(text, consoles, blocks);
  // A fence that opens in another way is a block that nobody runs.
  CHECK(count(text, "```console") == blocks);
  CHECK(count(text, "\n$ ") == blocks);
  if (updates() && now != text) {
    write_file(file, now);
    return blocks;
  }
  INFO("UPDATE_EXPECTED=1 rewrites " << file << ": tests/README.md");
  CHECK(text == now);
  return blocks;
}

}  // namespace

TEST_CASE("README and every page show what their commands print", "[snapshot]") {
  Consoles consoles;
  int blocks = 0;
  const char* some = std::getenv("PAGES");  // a part of their paths: these alone
  for (const fs::path& page : test::pages())
    if (some == nullptr || page.string().find(some) != std::string::npos)
      blocks += check_blocks(page, consoles);
  CHECK(blocks > (some == nullptr ? 25 : 0));
}

}  // namespace orrery
