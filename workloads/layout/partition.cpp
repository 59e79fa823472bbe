// SPDX-License-Identifier: Apache-2.0
// Knows how frameworks spread layers, embedding and head over pipeline positions.
#include <algorithm>

#include "sim/base/errors/check.h"
#include "workloads/layout/layout.h"

namespace orrery {
namespace {

void mark_ends(std::vector<Position>& positions) {
  positions.front().embedding = true;
  positions.back().head = true;
}

std::vector<Position> from_counts(const std::vector<std::int64_t>& counts) {
  std::vector<Position> positions;
  positions.reserve(counts.size());
  std::int64_t first = 0;
  for (std::int64_t n : counts) {
    positions.push_back({.first_layer = first, .layers = n});
    first += n;
  }
  mark_ends(positions);
  return positions;
}

// `blocks` over `count` positions, one more on the first ones where it does not come out even.
std::vector<std::int64_t> spread(std::int64_t blocks, std::int64_t count) {
  std::vector<std::int64_t> counts(static_cast<std::size_t>(count), blocks / count);
  for (std::int64_t i = 0; i < blocks % count; ++i) ++counts[static_cast<std::size_t>(i)];
  return counts;
}

// Megatron-Core with account_for_embedding_in_pipeline_split and
// account_for_loss_in_pipeline_split: embedding and head count as one layer each.
std::vector<Position> head_as_layer(std::int64_t layers, std::int64_t count) {
  std::vector<std::int64_t> counts = spread(layers + 2, count);
  --counts.front();
  // The block of the head is on the last position that has any.
  auto last = std::find_if(counts.rbegin(), counts.rend(), [](std::int64_t n) { return n > 0; });
  if (last != counts.rend()) --*last;
  return from_counts(counts);
}

// As many layers as fill all but the last position with whole ones; the last ones, which also hold
// MTP modules and the head, take what is left.
std::vector<Position> rest_last(std::int64_t layers, std::int64_t count) {
  const std::int64_t full = (layers + count - 1) / count;
  std::vector<std::int64_t> counts(static_cast<std::size_t>(count));
  for (std::int64_t& n : counts) {
    n = std::min(full, layers);
    layers -= n;
  }
  return from_counts(counts);
}

// Parameters of a layer's products, which is what nanotron's get_block_compute_costs counts.
double layer_cost(const Model& model, const LayerClass& layer) {
  const LayerParameters p = layer_parameters(model, layer);
  return static_cast<double>(p.mixer + p.ffn + p.active_experts);
}

// nanotron's build_model: blocks (embedding and final norm cost nothing) go to the current position
// until their summed cost passes the position's share of the total; the block that passes it still
// belongs to it. A position takes at least one block, so that late positions can stay empty.
std::vector<Position> by_cost(const Model& model, std::int64_t count) {
  std::vector<double> of_class;
  for (const LayerClass& c : model.classes) of_class.push_back(layer_cost(model, c));
  const double head = static_cast<double>(model.vocab) * static_cast<double>(model.hidden);
  double total = head;
  for (std::uint8_t c : model.layers) total += of_class[c];

  std::vector<Position> positions(static_cast<std::size_t>(count));
  std::size_t current = 0;
  double sum = 0;
  const auto next_after = [&](double cost) {
    sum += cost;
    const double share = total * static_cast<double>(current + 1) / static_cast<double>(count);
    if (sum > share && current + 1 < positions.size()) ++current;
  };
  positions[0].embedding = true;
  for (std::int64_t i = 0; i < model.layer_count(); ++i) {
    ++positions[current].layers;
    next_after(of_class[model.layers[static_cast<std::size_t>(i)]]);
  }
  next_after(0);  // the final norm, a block of its own
  positions[current].head = true;
  std::int64_t first = 0;
  for (Position& p : positions) {
    p.first_layer = first;
    first += p.layers;
  }
  return positions;
}

}  // namespace

std::vector<Position> partition_layers(const Model& model, const Layout& layout,
                                       Partition partition) {
  const std::int64_t count = layout.pp * layout.vpp, layers = model.layer_count();
  CHECK_THAT(count > 0, "invalid_reason must have accepted the layout");
  if (!layout.stage_layers.empty()) {
    CHECK_THAT(static_cast<std::int64_t>(layout.stage_layers.size()) == count,
               "invalid_reason must have accepted the layout");
    return from_counts(layout.stage_layers);
  }
  switch (partition) {
    case Partition::even:
      break;
    case Partition::by_cost:
      return by_cost(model, count);
    case Partition::head_as_layer:
      return head_as_layer(layers, count);
    case Partition::rest_last:
      return rest_last(layers, count);
  }
  return from_counts(spread(layers, count));
}

}  // namespace orrery
