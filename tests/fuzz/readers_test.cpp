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

const Reader& reader_of(const std::string& name) {
  for (const Reader& reader : readers())
    if (reader.name == name) return reader;
  throw std::out_of_range(name);
}

// A row is as long as the columns that differ: a cell of the second "n" was looked for behind it.
TEST_CASE(
    "a table of operators whose columns come twice, or whose counts are no counts, is refused") {
  const Reader& operators = reader_of("operators");
  const auto table = [](const std::string& head, const std::string& row) {
    return head + "\n" + row;
  };
  const std::string head = "batch_size,isl,num_heads,num_key_value_heads,head_dim,latency_ms";
  CHECK(accepts(operators, table(head, "2,16384,64,2,64,8.2087")));
  CHECK_FALSE(accepts(operators, table(head + ",head_dim,latency_ms", "2,16384,64,2,64,8.2087")));
  CHECK_FALSE(accepts(operators, table(head, "2,1e300,64,2,64,8.2087")));
}

// They were read as tables without rows and as shapes of nothing.
TEST_CASE("a table of kernels that names none, or a shape that is none, is refused") {
  const Reader& operators = reader_of("operators");
  const std::string head = "kernel,library,shape,ms,bytes\n";
  CHECK(accepts(operators, head + "gemm-forward,cublas,8192x4096x4096,0.3445,1.6e8"));
  CHECK(accepts(operators, head + "attention-forward,cudnn,b1s1024h128kv8d128v128,0.2,0"));
  CHECK(accepts(operators, head + "router,,8192x128,0.1,0"));  // a kernel that no curve is of
  CHECK_FALSE(accepts(operators, head + "gemm-forward,cublas,8192x4096,0.3445,1.6e8"));
  CHECK_FALSE(accepts(operators, head + "gemm-forward,cublas,8192x4096x0,0.3445,1.6e8"));
  CHECK_FALSE(accepts(operators, head + "attention-forward,cudnn,b1s1024,0.2,0"));
  CHECK_FALSE(accepts(operators, "library,shape,ms,bytes\ncublas,8192x4096x4096,0.3445,1.6e8"));
}

}  // namespace
}  // namespace orrery::fuzz
