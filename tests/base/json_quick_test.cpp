// SPDX-License-Identifier: Apache-2.0
// Tests that the quick reader of JSON says what the strict one says, or nothing.
#include <catch2/catch.hpp>

#include <filesystem>
#include <string>

#include "sim/base/errors/check.h"
#include "sim/base/input_file.h"
#include "sim/base/json/parser.h"
#include "sim/base/json/quick.h"
#include "sim/base/json/tree.h"
#include "sim/base/random.h"
#include "tests/base/fresh_seed.h"

namespace orrery {
namespace {

namespace fs = std::filesystem;

std::optional<SortedJson> strictly(const std::string& text) {
  try {
    return parse_strictly(text, "text");
  } catch (const Error&) {
    return std::nullopt;
  }
}

// Equal values of equal types: 1 and 1.0 compare equal, but are not written alike.
void same(const std::string& text) {
  const auto quick = parse_quickly(text);
  if (!quick) return;
  const auto strict = strictly(text);
  INFO(text);
  REQUIRE(strict.has_value());
  REQUIRE(*quick == *strict);
  REQUIRE(quick->dump() == strict->dump());
}

std::string random_json(RandomStream& random, int depth) {
  static const char* leaves[] = {"0",
                                 "-0",
                                 "-7",
                                 "18446744073709551615",
                                 "1.5e3",
                                 "2E-7",
                                 "0.1",
                                 "true",
                                 "null",
                                 "18446744073709551616",
                                 "-1e5",
                                 "\"\"",
                                 "\"a b\"",
                                 "\"\\n\\\"\"",
                                 "\"\\u00e9\"",
                                 "\"\xc3\xa9\"",
                                 "1e400",
                                 "-9223372036854775808",
                                 "-9223372036854775809",
                                 "0.30000000000000004"};
  if (depth == 0 || random.below(3) == 0) return leaves[random.below(std::size(leaves))];
  std::string text;
  const bool object = random.below(2) == 0;
  for (auto left = random.below(4); left > 0; --left) {
    if (!text.empty()) text += random.below(20) == 0 ? "," : " ,\n";
    if (object) text += "\"" + std::string(1, static_cast<char>('a' + random.below(6))) + "\": ";
    text += random_json(random, depth - 1);
  }
  return object ? "{" + text + "}" : "[ " + text + "]";
}

TEST_CASE("law: what the quick reader reads is what the strict one reads") {
  RandomStream random(fresh(16), 12);
  int read = 0;
  constexpr int rounds = 20000;
  for (int round = 0; round < rounds; ++round) {
    std::string text = random_json(random, 4);
    read += parse_quickly(text).has_value();
    same(text);
    // The same with a byte changed, added or taken away.
    const auto at = random.below(text.size());
    const char byte = random.below(2) == 0 ? static_cast<char>(random.next())
                                           : "{}[]\",:\\-+.e0 1tn"[random.below(17)];
    switch (random.below(3)) {
      case 0:
        text[at] = byte;
        break;
      case 1:
        text.insert(at, 1, byte);
        break;
      default:
        text.erase(at, 1);
    }
    same(text);
  }
  CHECK(read > rounds / 10);
}

TEST_CASE("the quick reader leaves to the strict one what is not plain or not right") {
  for (const char* text : {"",
                           " ",
                           "{",
                           "[1,]",
                           "{\"a\":1,}",
                           "{\"a\":1,\"a\":2}",
                           "01",
                           "1.",
                           ".5",
                           "+1",
                           "1e",
                           "nul",
                           "truex",
                           "[1 2]",
                           "{\"a\" 1}",
                           "\"\n\"",
                           "\"\\x\"",
                           "\"\\u0041\"",
                           "\"\xc3\xa9\"",
                           "1e400",
                           "// x\n1",
                           "1 1",
                           "\"\x7f\""})
    CHECK_FALSE(parse_quickly(text).has_value());
  const std::string deep(64, '['), shut(64, ']');
  CHECK(parse_quickly(deep + shut).has_value());
  CHECK_FALSE(parse_quickly("[" + deep + shut + "]").has_value());
}

TEST_CASE("every file of the catalogues is read quickly, as the strict reader reads it") {
  int files = 0;
  for (const char* folder : {"hw_models", "topologies", "workloads", "sim/engine"})
    for (const auto& item :
         fs::recursive_directory_iterator(fs::path(ORRERY_SOURCE_DIR) / folder)) {
      if (item.path().extension() != ".json") continue;
      const std::string text = content_of(item.path());
      INFO(item.path().string());
      CHECK(parse_quickly(text).has_value());
      same(text);
      ++files;
    }
  CHECK(files > 500);
}

}  // namespace
}  // namespace orrery
