// SPDX-License-Identifier: Apache-2.0
// Changes bytes of good traces: each is run, or gets one line.
#include <catch2/catch.hpp>
#include <random>

#include "sim/chakra/replay.h"
#include "sim/chakra/step_trace.h"
#include "sim/chakra/trace_file.h"
#include "tests/base/error_text.h"
#include "tests/base/scratch_folder.h"
#include "tests/engine/step_case.h"

namespace orrery {
namespace {

class Mutator {
 public:
  explicit Mutator(std::uint64_t seed) : random_(seed) {}
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(random_() % n); }
  char byte() { return static_cast<char>(random_()); }

  std::string operator()(std::string bytes) {
    for (std::size_t changes = 1 + below(3); changes > 0; --changes) {
      const std::size_t at = below(bytes.size());
      switch (below(4)) {
        case 0:
          bytes[at] = byte();
          break;
        case 1:
          bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(7)));
          break;
        case 2:
          bytes.erase(at, 1 + below(8));
          break;
        default:
          bytes.insert(at, 1, byte());
      }
    }
    return bytes;
  }

 private:
  std::mt19937_64 random_;
};

}  // namespace

TEST_CASE("300 files with bytes that were changed are run or get one line") {
  test::Case c = test::make_case("llama3.2-1b", "dgx-h100", 4, "nemo");
  c.job.global_batch = 4;
  const Layout layout{.tp = 2, .pp = 2};
  const Scenario scenario{
      .cluster = c.cluster, .model = c.model, .job = c.job, .layout = layout, .stack = c.stack};
  const StepTraces traces = step_traces(scenario);
  const ScratchFolder scratch("chakra_mutated");
  std::vector<std::pair<std::string, std::string>> good = {
      {trace_groups_name, trace_groups_text(traces.groups)}};
  for (std::int64_t rank = 0; rank < layout.gpus(); ++rank)
    good.emplace_back("t." + std::to_string(rank) + ".et",
                      trace_bytes(rank_nodes(traces, rank), traces.ranks_per_domain));
  for (const auto& [name, bytes] : good) scratch.add(name, bytes);
  const auto run = [&] {
    return error_text([&] { replay(read_traces({scratch / ""}, {}), c.cluster); });
  };
  REQUIRE(run() == "no error");
  Mutator mutate(20260611);
  int refused = 0;
  for (int i = 0; i < 300; ++i) {
    const auto& [name, bytes] = good[mutate.below(good.size())];
    const std::string changed = mutate(bytes);
    scratch.add(name, changed);
    const std::string error = run();
    INFO(name << ": " << error);
    CHECK(error.find('\n') == std::string::npos);
    CHECK(!error.empty());
    refused += error != "no error" ? 1 : 0;
    scratch.add(name, bytes);
  }
  CHECK(refused > 200);
}

}  // namespace orrery
