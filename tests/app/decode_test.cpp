// Holds decode steps of whole models against a hand count of the bytes that they must read.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <map>
#include <string>

#include "sim/app/settings.h"
#include "sim/outcome/simulate.h"

namespace orrery {
namespace {

struct Counted {
  const char* model;
  int gpus, tp, ep;
  int layers;
  // Bytes that one accelerator holds and reads, counted by hand from the published sizes in bf16:
  // what every step reads, experts, and the cache of one token.
  double dense, experts, token;
};

// Llama 3.1 8B: 8.03e9 parameters less 0.53e9 of the input table. 70B: 70.6e9 less 1.05e9, over
// TP8. Qwen3-235B: 235e9, of which 227e9 are experts, over EP8, and 7.2e9 are dense, over TP4, with
// 4 key heads. DeepSeek-V3: 671e9, of which 654e9 are experts, over EP32, and 16e9 are dense; a
// token keeps 512 + 64 numbers in each of 61 layers.
constexpr Counted counted[] = {
    {"llama3.1-8b", 1, 1, 1, 32, 15.0e9, 0, 2.0 * 32 * 2 * 8 * 128},
    {"llama3.1-70b", 8, 8, 1, 80, 139e9 / 8, 0, 2.0 * 80 * 2 * 128},
    {"qwen3-235b-a22b", 8, 4, 8, 94, 14.4e9 / 4, 454e9 / 8, 2.0 * 94 * 2 * 128},
    {"deepseek-v3", 32, 1, 32, 61, 32e9, 1308e9 / 32, 2.0 * 61 * 576}};

Prediction decode(const Counted& c, const std::string& cluster, int batch, int context) {
  const nlohmann::json settings = {
      {"model", c.model}, {"cluster", cluster}, {"gpus", c.gpus},   {"phase", "decode"},
      {"tp", c.tp},       {"ep", c.ep},         {"batch", batch}, {"context", context}};
  return simulate(read_scenario(JsonValue::from(settings, "test")), {});
}

// Beyond the bytes a layer has a dozen kernels, two all-reduces or exchanges, and attention's start
// (13 to 47 us on H100 and H200).
constexpr double layer_seconds = 120e-6;

TEST_CASE("decode of whole models takes what reading their bytes takes, and a little of each layer") {
  for (const auto& [cluster, bandwidth] : std::map<std::string, double>{
           {"dgx-h100", 3.35e12}, {"dgx-h200", 4.8e12}, {"dgx-b200", 8e12}})
    for (const Counted& c : counted)
      for (const int batch : {1, 8, 64})
        for (const int context : {4096, 32768}) {
          const Prediction p = decode(c, cluster, batch, context);
          const double cache = c.token * batch * context;
          const double least = (c.dense + cache) / bandwidth;
          const double most = (c.dense + c.experts + cache) / bandwidth;
          const double time = p.step_time.si();
          const std::string line =
              fmt::format("{:16} {:9} batch {:2} context {:5}: by hand {:6.2f} to {:6.2f} ms, "
                          "predicted {:6.2f}, range {:6.2f} to {:6.2f} ms",
                          c.model, cluster, batch, context, 1e3 * least, 1e3 * most, 1e3 * time,
                          1e3 * p.low.si(), 1e3 * p.high.si());
          INFO(line);
          if (std::getenv("PRINT_DECODE")) fmt::print("{}\n", line);
          CHECK(time > least);
          CHECK(time < 1.6 * most + layer_seconds * c.layers);
        }
}

TEST_CASE("an H100 decodes faster than an A100, an H200 and a B200 faster still") {
  for (const Counted& c : {counted[0], counted[1]})
    for (const int batch : {1, 64})
      for (const int context : {4096, 32768}) {
        INFO(c.model << " batch " << batch << " context " << context);
        const auto time = [&](const char* cluster) {
          return decode(c, cluster, batch, context).step_time.si();
        };
        CHECK(time("dgx-h100") < time("dgx-a100"));
        CHECK(time("dgx-h200") < time("dgx-h100"));
        CHECK(time("dgx-b200") < time("dgx-h200"));
      }
}

}  // namespace
}  // namespace orrery
