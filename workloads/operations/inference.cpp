// SPDX-License-Identifier: Apache-2.0
// Lowers one inference step: forward segments of a prefill or a decode.
#include "workloads/operations/inference.h"

#include "workloads/operations/layer_operations.h"

namespace orrery {

StepProgram lower_inference(const Model& model, const Job& job, const Layout& layout,
                            const Stack& stack) {
  StepProgram program;
  const LayerOperations operations(model, job, layout, stack);
  for (const LayerClass& layer : model.classes) program.classes.push_back(operations.layer(layer));
  program.embedding = operations.embedding();
  program.head = operations.head();
  const std::vector<Position> positions = partition_layers(model, layout, stack.sharding.partition);
  for (const Position& position : positions) {
    ChunkProgram chunk;
    chunk.layers.assign(model.classes.size(), 0);
    chunk.recomputed.assign(model.classes.size(), 0);
    chunk.embedding = position.embedding;
    chunk.head = position.head;
    for (std::int64_t l = 0; l < position.layers; ++l)
      ++chunk.layers[model.layers[static_cast<std::size_t>(position.first_layer + l)]];
    program.chunks.push_back(chunk);
  }
  program.send_bytes = Bytes(2.0 * static_cast<double>(operations.shape().tokens * model.hidden));
  return program;
}

}  // namespace orrery
