// SPDX-License-Identifier: Apache-2.0
// Tests that files are replaced whole, and that failures are errors that leave nothing behind.
#include "sim/base/output_file.h"

#include <catch2/catch.hpp>

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <vector>

#include "sim/base/errors/interrupt.h"
#include "sim/base/input_file.h"
#include "tests/base/error_text.h"
#include "tests/base/scratch_folder.h"

namespace {

// What this program syncs, in order, and whether syncing fails.
struct Syncs {
  std::vector<std::string> names;
  bool fails = false;
};
Syncs& syncs() {
  static Syncs all;
  return all;
}

}  // namespace

// In place of the C library's: a test program may bring its own.
extern "C" int fsync(int descriptor) {
  std::error_code ignored;
  syncs().names.push_back(
      std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(descriptor), ignored));
  if (syncs().fails) {
    errno = EIO;
    return -1;
  }
  return static_cast<int>(syscall(SYS_fsync, descriptor));
}

namespace orrery {
namespace {

namespace fs = std::filesystem;

TEST_CASE("a file is written whole and replaced") {
  const ScratchFolder folder("output");
  write_file(folder / "a.json", "first");
  CHECK(content_of(folder / "a.json") == "first");
  write_file(folder / "a.json", "second\n");
  CHECK(content_of(folder / "a.json") == "second\n");
  fs::create_symlink(folder / "a.json", folder / "link.json");
  write_file(folder / "link.json", "third");
  CHECK(fs::is_symlink(folder / "link.json"));
  CHECK(content_of(folder / "a.json") == "third");
  CHECK(std::distance(fs::directory_iterator(folder / ""), {}) == 2);
}

TEST_CASE("a file is on the disk before it takes the old one's place, its name after") {
  const ScratchFolder folder("output_sync");
  write_file(folder / "a.json", "first");
  syncs() = {};
  write_file(folder / "a.json", "second");
  REQUIRE(syncs().names.size() == 2);
  CHECK(syncs().names[0].find("a.json.partial") != std::string::npos);
  CHECK(fs::equivalent(syncs().names[1], folder / ""));
  syncs() = {.fails = true};
  CHECK(error_text([&] { write_file(folder / "a.json", "third"); }) ==
        (folder / "a.json").string() +
            ": found Input/output error; expected a file that can be written");
  syncs() = {};
  CHECK(content_of(folder / "a.json") == "second");
  CHECK(std::distance(fs::directory_iterator(folder / ""), {}) == 1);
  write_file("/dev/null", "gone");
  CHECK(syncs().names.empty());
}

TEST_CASE("what cannot be written is an error") {
  const ScratchFolder folder("output_errors");
  CHECK(error_text([&] { write_file(folder / "", "x"); }) ==
        (folder / "").string() + ": found a directory; expected a file that can be written");
  CHECK(error_text([&] { write_file(folder / "none/a.json", "x"); }) ==
        (folder / "none/a.json").string() +
            ": found No such file or directory; expected a file that can be written");
  CHECK(error_text([&] { write_file("/dev/full", std::string(100000, 'x')); }) ==
        "/dev/full: found No space left on device; expected a file that can be written");
  write_file("/dev/null", "gone");
  CHECK(fs::is_character_file("/dev/null"));
}

TEST_CASE("places are tried before there is anything to write, and nothing stays behind") {
  const ScratchFolder folder("output_places");
  write_file(folder / "old.json", "kept");
  fs::create_symlink(folder / "nowhere/at/all", folder / "link");
  check_writable_file(folder / "new.json");
  check_writable_file(folder / "old.json");
  check_writable_file("/dev/null");
  check_writable_folder(folder / "");
  check_writable_folder(folder / "a/b/c");
  const auto refused = [](const std::string& text, const std::string& part) {
    INFO(text);
    CHECK(text.find(part) != std::string::npos);
  };
  for (const char* bad : {"", "none/a.json", "old.json/a.json"}) {
    INFO(bad);
    refused(error_text([&] { check_writable_file(folder / bad); }), "can be written");
  }
  for (const char* bad : {"old.json", "old.json/a", "link"}) {
    INFO(bad);
    refused(error_text([&] { check_writable_folder(folder / bad); }), "can be made");
    refused(error_text([&] { make_folder(folder / bad); }), "can be made");
  }
  refused(error_text([&] { check_writable_folder("/proc/none/a"); }), "/proc/none/a");
  CHECK(content_of(folder / "old.json") == "kept");
  CHECK(fs::is_symlink(folder / "link"));
  CHECK(std::distance(fs::directory_iterator(folder / ""), {}) == 2);
  make_folder(folder / "a/b");
  CHECK(fs::is_directory(folder / "a/b"));
}

TEST_CASE("the interrupt flag is set by the signal") {
  set_interrupted(false);
  install_interrupt_handler();
  CHECK_FALSE(interrupted());
  std::raise(SIGINT);
  CHECK(interrupted());
  set_interrupted(false);
}

}  // namespace
}  // namespace orrery
