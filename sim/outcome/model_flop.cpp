// SPDX-License-Identifier: Apache-2.0
// Counts a model's operations per token.
#include "sim/outcome/model_flop.h"

#include <algorithm>

namespace orrery {

// The model's own operations, by which model FLOP utilisation is told: those of every active
// parameter and of causal attention, without what recompute repeats and without multi-token
// prediction modules. These help to train and are no part of the model that comes out
// (DeepSeek-V3's 671 billion parameters leave them out), so that training them lowers the
// utilisation. Megatron-Core's own throughput counts them: of the same step it tells more.
double forward_flop_per_token(const Model& model, const Job& job) {
  const ParameterCount count = count_parameters(model);
  const double lookup = model.tied_embeddings ? 0.0 : static_cast<double>(count.embedding);
  double flop = 2 * (static_cast<double>(count.active) - lookup);
  const double length =
      static_cast<double>(job.task == Task::decode ? job.context
                          : job.mean_document > 0  ? std::min(job.mean_document, job.sequence)
                                                   : job.sequence);
  for (const LayerClass& layer : model.classes) {
    if (layer.mixer.kind != MixerKind::attention && layer.mixer.kind != MixerKind::mla) continue;
    const auto layers =
        static_cast<double>(std::count(model.layers.begin(), model.layers.end(),
                                       static_cast<std::uint8_t>(&layer - model.classes.data())));
    double keys = job.task == Task::decode ? length : length / 2;
    if (layer.mixer.window > 0) keys = std::min(keys, static_cast<double>(layer.mixer.window));
    flop += layers * 2 * keys *
            static_cast<double>(layer.mixer.heads * (layer.mixer.qk_dim + layer.mixer.v_dim));
  }
  return flop;
}

double model_flop_per_token(const Model& model, const Job& job) {
  const double forward = forward_flop_per_token(model, job);
  if (!is_training(job.task)) return forward;
  // LoRA's adapters are left out, as in published figures: they are no part of the model.
  return (job.task == Task::lora ? 2 : 3) * forward;
}

}  // namespace orrery
