// SPDX-License-Identifier: Apache-2.0
// Lists the kernels of a step: what its prediction of compute rests on.
#include "sim/engine/step/run.h"

namespace orrery {
namespace {

void add_segment(const Segment& segment, double times, std::vector<UsedKernel>& out) {
  if (times <= 0) return;
  for (const Operation& o : segment.operations)
    if (o.kind == OperationKind::kernel)
      out.push_back({.kernel = o.kernel, .count = o.count * times});
}

// How often a layer's passes run.
struct Passes {
  double plain = 0, recomputed = 0;
};

}  // namespace

std::vector<UsedKernel> StepRun::kernels() {
  price_chunks();
  const bool training = is_training(job_.task);
  const double microbatches = training ? static_cast<double>(layout_.microbatches(job_)) : 1.0;
  std::vector<Passes> classes(program_.classes.size());
  Passes embedding, head, module;
  for (const ChunkProgram& chunk : chunks_) {
    for (std::size_t i = 0; i < classes.size(); ++i) {
      classes[i].plain += chunk.layers[i];
      classes[i].recomputed += chunk.recomputed[i];
    }
    if (chunk.embedding) embedding.plain += 1;
    if (chunk.head) head.plain += 1 + chunk.modules;
    (chunk.recomputes_modules ? module.recomputed : module.plain) += chunk.modules;
  }
  std::vector<UsedKernel> out;
  const auto add = [&](const LayerProgram& layer, const Passes& passes) {
    const double all = (passes.plain + passes.recomputed) * microbatches;
    add_segment(layer.forward, all, out);
    if (!training) return;
    if (splits_backward(layout_.schedule)) {
      add_segment(layer.input_gradient, all, out);
      add_segment(layer.weight_gradient, all, out);
    } else {
      add_segment(layer.backward, all, out);
    }
    add_segment(layer.recompute, passes.recomputed * microbatches, out);
  };
  for (std::size_t i = 0; i < classes.size(); ++i) add(program_.classes[i], classes[i]);
  add(program_.embedding, embedding);
  add(program_.head, head);
  add(program_.module, module);
  // Stages differ little in what they hold; the first stands for all.
  if (training && ending_.offloaded < 1)
    out.push_back({.kernel = update_kernel(0), .count = static_cast<double>(layout_.pp)});
  if (training && program_.optimizer_products_per_parameter > 0)
    out.push_back({.kernel = program_.optimizer_product,
                   .count = update_products(0) * static_cast<double>(layout_.pp)});
  return out;
}

std::vector<UsedKernel> step_kernels(const StepContext& context, const Model& model, const Job& job,
                                     const Layout& layout, const Stack& stack) {
  StepContext alone = context;
  alone.network = NetworkMode::ideal;
  return StepRun(alone, model, job, layout, stack).kernels();
}

}  // namespace orrery
