// SPDX-License-Identifier: Apache-2.0
// Tests that every shared name reads back as itself and no two are alike.
#include "sim/base/names.h"

#include <catch2/catch.hpp>

#include <set>

#include "sim/base/units/sourced.h"
#include "sim/base/work.h"

namespace orrery {
namespace {

template <class Names>
void reads_back(const Names& table) {
  const std::vector<std::string> names = table.names();
  const std::set<std::string> unique(names.begin(), names.end());
  CHECK(unique.size() == names.size());
  CHECK(unique.count("") == 0);
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto value = table.find(names[i]);
    REQUIRE(value);
    CHECK(static_cast<std::size_t>(*value) == i);
    CHECK(to_text(*value) == names[i]);
  }
  CHECK_FALSE(table.find("no such name"));
}

TEST_CASE("names and values map onto each other") {
  reads_back(format_text);
  reads_back(library_text);
  reads_back(work_kind_text);
  reads_back(collective_kind_text);
  reads_back(collective_algorithm_text);
  reads_back(collective_protocol_text);
  reads_back(collective_library_text);
  CHECK(format_count == static_cast<int>(Format::int8) + 1);
  CHECK(library_count == static_cast<int>(Library::own) + 1);
  CHECK(work_kind_count == static_cast<int>(WorkKind::host_copy) + 1);
  CHECK(to_text(CollectiveKind::all_reduce) == "all-reduce");
  CHECK(to_text(Library::flash3) == "flash3");
  CHECK(to_text(Library::flashinfer) == "flashinfer");
  CHECK(to_text(WorkKind::attention_decode) == "attention-decode");
  CHECK(to_text(WorkKind::quantise) == "quantise");
}

TEST_CASE("evidence has names, and half of it is uncertain") {
  for (const char* name :
       {"measured", "specified", "derived", "announced", "estimated", "assumed"}) {
    REQUIRE(evidence_text.find(name));
    CHECK(to_text(*evidence_text.find(name)) == name);
  }
  CHECK_FALSE(evidence_text.find("guessed"));
  CHECK(is_uncertain(Evidence::announced));
  CHECK_FALSE(is_uncertain(Evidence::derived));
}

TEST_CASE("elements have their size") {
  CHECK(bytes_per_element(Format::bf16) == 2);
  CHECK(bytes_per_element(Format::tf32) == 4);
  CHECK(bytes_per_element(Format::fp6) == 0.75);
  CHECK(bytes_per_element(Format::fp4) == 0.5);
}

}  // namespace
}  // namespace orrery
