// SPDX-License-Identifier: Apache-2.0
// Tests that every fuzz target starts from seeds that its reader takes, and what fuzzing has found.
#include "tests/fuzz/readers.h"

#include <catch2/catch.hpp>

namespace orrery::fuzz {
namespace {

TEST_CASE("each reader that is fuzzed takes seeds that the catalogues hold") {
  for (const Reader& reader : readers()) {
    INFO(reader.name);
    const std::vector<std::string> texts = seed_texts(reader);
    CHECK(texts.size() >= 1);
    std::size_t taken = 0;
    for (const std::string& text : texts) {
      INFO(text.substr(0, 200));
      taken += accepts(reader, text) ? 1 : 0;
    }
    // An entry may be based on one beside it, which a text that stands inline is not; the first
    // lines of a log may lack what its tables need.
    CHECK(3 * taken >= texts.size());
    // Tables of operators without text are tables without rows.
    CHECK(accepts(reader, "") == (reader.name == "operators"));
    CHECK(dictionary(texts).size() > 100);
  }
}

}  // namespace
}  // namespace orrery::fuzz
