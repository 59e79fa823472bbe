// SPDX-License-Identifier: Apache-2.0
// Collects the collectives of a stage's passes, of its messages and of its tail.
#include "sim/engine/step/network_use.h"

#include <algorithm>

#include "sim/base/sorting.h"
#include "sim/engine/step/pipeline.h"
#include "sim/engine/step/tail.h"

namespace orrery {
namespace {

// Collects uses; the same collective under the same label counts up.
class Uses {
 public:
  Uses(const Placement& placement, FlowNetwork& network)
      : placement_(placement), network_(network) {}
  void add(Label label, const Collective& collective, double count) {
    if (!(count > 0)) return;
    for (NetworkUse& use : uses_)
      if (use.label == label && use.collective == collective) {
        use.count += count;
        return;
      }
    uses_.push_back({.label = label,
                     .collective = collective,
                     .count = count,
                     .price = network_.details(collective)});
  }
  void add(const Segment& segment, double times) {
    for (const Operation& o : segment.operations)
      if (const CollectiveOperation* own = o.collective())
        if (const auto collective = collective_of(*own, placement_))
          add(o.label, *collective, o.count * times);
  }
  std::vector<NetworkUse> take() {
    const auto seconds = [](const NetworkUse& u) { return u.count * u.price.time.time.si(); };
    sort_stably(uses_,
                [&](const NetworkUse& a, const NetworkUse& b) { return seconds(a) > seconds(b); });
    return std::move(uses_);
  }

 private:
  const Placement& placement_;
  FlowNetwork& network_;
  std::vector<NetworkUse> uses_;
};

}  // namespace

std::vector<NetworkUse> network_use(const PricedStep& step, std::int64_t stage) {
  const PricedLayers& layers = step.layers;
  if (!layers.flow) return {};
  const Layout& layout = step.asked.layout;
  const StepProgram& program = *layers.program;
  Uses uses(layers.placement, *layers.flow);
  const bool training = step.asked.training();
  const bool split = splits_backward(layout.schedule);
  const double passes = training ? static_cast<double>(microbatches_a_chunk(
                                       layout.schedule, layout.microbatches(step.asked.job)))
                                 : 1;
  const auto layer = [&](const LayerProgram& l, double plain, double recomputed) {
    uses.add(l.forward, passes * (plain + recomputed));
    if (!training) return;
    uses.add(split ? l.input_gradient : l.backward, passes * (plain + recomputed));
    if (split) uses.add(l.weight_gradient, passes * (plain + recomputed));
    uses.add(l.recompute, passes * recomputed);
  };
  for (std::int64_t c = 0; c < step.chunks.per_stage(); ++c) {
    const ChunkProgram& chunk = step.chunks.at(stage, c).program;
    visit_parts(program, chunk, layer);
    if (const auto message = stage_message(layout, layers.placement, program.send_bytes);
        message && !chunk.head)
      uses.add(Label::pipeline_comm, *message, passes);
    if (!training || chunk.embedding) continue;
    if (const auto message = stage_message(layout, layers.placement, program.gradient_send_bytes))
      uses.add(Label::pipeline_comm, *message, passes);
  }
  if (training)
    list_data_traffic(step, ending_of(layout), stage,
                      [&](const Collective& collective, double count) {
                        uses.add(Label::data_comm, collective, count);
                      });
  return uses.take();
}

}  // namespace orrery
