// SPDX-License-Identifier: Apache-2.0
// Knows what one layer, the embedding and the head keep for backward, and what their backward adds.
#pragma once

#include "workloads/layout/job.h"
#include "workloads/layout/layout.h"
#include "workloads/model/model.h"
#include "workloads/stack/memory_traits.h"

namespace orrery {

// Bytes on one rank for one microbatch.
struct LayerActivations {
  double attention = 0, ffn = 0, expert = 0, norm = 0;  // kept from forward to backward
  double checkpoint = 0;  // what full recompute keeps instead: the layer's input
  double transient = 0;   // added by the layer's own backward (and recompute), freed after it
  double exchange = 0;    // send and receive buffers of expert and context parallelism
  double kept() const { return attention + ffn + expert + norm; }
};

// Korthikanti et al. 2022 (arXiv:2205.05198), table 2, extended to flash attention, gated and
// expert FFNs, MLA, Mamba-2, context parallelism and quantised inputs. `selective` recompute is
// taken off.
LayerActivations layer_activations(const Model& model, const LayerClass& layer, const Job& job,
                                   const Layout& layout, const Stack& stack,
                                   const MemoryTraits& traits);

// The final norm, the vocabulary-parallel head and the loss.
struct HeadActivations {
  double norm = 0;     // input and output of the final norm
  double outputs = 0;  // of every microbatch, until the step ends
  double saved = 0;    // of the loss, from forward to backward
  double peak = 0;     // at the worst moment, `saved` included
};
HeadActivations head_activations(const Model& model, const Job& job, const Layout& layout,
                                 const Stack& stack, const MemoryTraits& traits);

}  // namespace orrery
