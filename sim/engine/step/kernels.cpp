// SPDX-License-Identifier: Apache-2.0
// Lists the kernels of a step: what its prediction of compute rests on.
#include "sim/engine/step/kernels.h"

#include "sim/engine/step/tail.h"

namespace orrery {
namespace {

void add_segment(const Segment& segment, double times, std::vector<UsedKernel>& out) {
  if (times <= 0) return;
  for (const Operation& o : segment.operations)
    if (const Kernel* kernel = o.kernel())
      out.push_back({.kernel = *kernel, .count = o.count * times});
}

// How often a layer's passes run, and those of each part of a program.
struct Passes {
  double plain = 0, recomputed = 0;
};
struct PartPasses {
  std::vector<Passes> classes;
  Passes embedding, head, module;
};

std::vector<UsedKernel> kernels_of(const PricedStep& step) {
  const Layout& layout = step.asked.layout;
  const StepProgram& program = *step.layers.program;
  const bool training = step.asked.training();
  const double microbatches =
      training ? static_cast<double>(layout.microbatches(step.asked.job)) : 1.0;
  PartPasses passes;
  passes.classes.resize(program.classes.size());
  for (const ChunkProgram& chunk : program.chunks)
    visit_parts(passes, chunk, [](Passes& part, double plain, double recomputed) {
      part.plain += plain;
      part.recomputed += recomputed;
    });
  std::vector<UsedKernel> out;
  const auto add = [&](const LayerProgram& layer, const Passes& own) {
    const double all = (own.plain + own.recomputed) * microbatches;
    add_segment(layer.forward, all, out);
    if (!training) return;
    if (splits_backward(layout.schedule)) {
      add_segment(layer.input_gradient, all, out);
      add_segment(layer.weight_gradient, all, out);
    } else {
      add_segment(layer.backward, all, out);
    }
    add_segment(layer.recompute, own.recomputed * microbatches, out);
  };
  for (std::size_t i = 0; i < program.classes.size(); ++i)
    add(program.classes[i], passes.classes[i]);
  add(program.embedding, passes.embedding);
  add(program.head, passes.head);
  add(program.module, passes.module);
  // Stages differ little in what they hold; the first stands for all.
  const Ending ending = ending_of(layout);
  if (training && ending.offloaded < 1)
    out.push_back(
        {.kernel = update_kernel(step, ending, 0), .count = static_cast<double>(layout.pp)});
  if (training && program.optimizer_products_per_parameter > 0)
    out.push_back({.kernel = program.optimizer_product,
                   .count = update_products(step, ending, 0) * static_cast<double>(layout.pp)});
  return out;
}

}  // namespace

std::vector<UsedKernel> step_kernels(const StepContext& context, const Model& model, const Job& job,
                                     const Layout& layout, const Stack& stack) {
  StepContext alone = context;
  alone.network = NetworkMode::ideal;
  const StepCase asked{alone, model, job, layout, stack};
  const PricedLayers layers = price_layers(asked);
  KnownChunks known;
  return kernels_of({asked, layers, PricedChunks(asked, layers, layers.program->chunks, known)});
}

}  // namespace orrery
