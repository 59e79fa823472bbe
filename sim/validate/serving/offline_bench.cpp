// SPDX-License-Identifier: Apache-2.0
// Chooses the limits of an engine as TensorRT-LLM's own benchmark does.
#include "sim/validate/serving/offline_bench.h"

#include <algorithm>
#include <cmath>

namespace orrery {
namespace {

std::int64_t up_to_multiple(double value, std::int64_t of) {
  return of * static_cast<std::int64_t>(std::ceil(value / static_cast<double>(of)));
}

// Bytes of keys and values of one token on all ranks; each rank has a head at least.
double cache_of_token(const Model& model, std::int64_t ranks) {
  double bytes = 0;
  for (std::int64_t i = 0; i < model.layer_count(); ++i) {
    const Mixer& mixer = model.layer(i).mixer;
    if (mixer.kind == MixerKind::attention)
      bytes += static_cast<double>(std::max(ranks, mixer.kv_heads) * (mixer.qk_dim + mixer.v_dim));
  }
  return bytes;
}

}  // namespace

std::int64_t OfflineBench::count_of(double prompt, double output) const {
  const auto away = [prompt, output](const Requests& r) {
    return std::abs(static_cast<double>(r.prompt) - prompt) +
           std::abs(static_cast<double>(r.output) - output);
  };
  const auto nearest =
      std::min_element(requests.begin(), requests.end(),
                       [&away](const auto& a, const auto& b) { return away(a) < away(b); });
  return nearest == requests.end() ? 0 : nearest->count;
}

std::vector<GraphSizes> graphs_up_to(const std::vector<GraphSizes>& sizes, std::int64_t most) {
  std::vector<GraphSizes> kept;
  std::int64_t from = 0;
  for (const GraphSizes& s : sizes) {
    const std::int64_t last = from + (std::min(s.to, most) - from) / s.by * s.by;
    if (last > from) kept.push_back({.to = last, .by = s.by});
    from = std::max(from, last);
    if (s.to >= most) break;
  }
  if (from < most) kept.push_back({.to = most, .by = most - from});
  return kept;
}

OfflineLimits offline_limits(const OfflineBench& bench, const Model& model, Bytes memory,
                             std::int64_t gpus, double weight_bytes, const ServingLoad& load) {
  const double weights = weight_bytes * static_cast<double>(count_parameters(model).total);
  const double room = memory.si() * static_cast<double>(gpus) - weights;
  const double held = cache_of_token(model, gpus) * (load.prompt_tokens + load.output_tokens);
  const double fit = held > 0 ? std::max(0.0, room * bench.memory_share / held) : 0;
  const double sequences = std::min(fit, static_cast<double>(bench.most_sequences));
  const double tokens = std::min(sequences * (1 + load.prompt_tokens / load.output_tokens),
                                 static_cast<double>(bench.most_tokens));
  OfflineLimits limits;
  if (sequences < 256)
    limits.sequences = std::max<std::int64_t>(64, up_to_multiple(sequences, 32));
  else
    limits.sequences = up_to_multiple(sequences, sequences < 1024 ? 128 : 256);
  if (tokens < 4096)
    limits.tokens = std::max<std::int64_t>(2048, up_to_multiple(tokens, 256));
  else
    limits.tokens = up_to_multiple(tokens, tokens < 8192 ? 512 : 1024);
  // Prompts are whole, and one has room beside all others' tokens.
  const auto prompt = static_cast<std::int64_t>(std::llround(load.prompt_tokens));
  limits.tokens = std::max(limits.tokens, prompt + limits.sequences);
  return limits;
}

}  // namespace orrery
