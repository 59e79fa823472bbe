// SPDX-License-Identifier: Apache-2.0
// Makes a small dense model for tests of operations.
#pragma once

#include "workloads/model/model.h"

namespace orrery::test {

inline Model small_model(bool tied, Activation activation) {
  Model m;
  m.name = "small";
  m.hidden = 1024;
  m.vocab = 32000;
  m.tied_embeddings = tied;
  LayerClass layer;
  layer.mixer.heads = layer.mixer.kv_heads = 16;
  layer.mixer.qk_dim = layer.mixer.v_dim = 64;
  layer.ffn.activation = activation;
  layer.ffn.width = 4096;
  m.classes = {layer};
  m.layers.assign(3, 0);
  return m;
}

}  // namespace orrery::test
