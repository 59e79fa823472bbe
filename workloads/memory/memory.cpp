// SPDX-License-Identifier: Apache-2.0
// Adds up what a training step allocates on each pipeline stage.
#include "workloads/memory/memory.h"

#include <algorithm>
#include <utility>

#include "workloads/layout/pipeline.h"
#include "workloads/memory/activation_memory.h"
#include "workloads/memory/held_activations.h"
#include "workloads/parameters/state_memory.h"
#include "workloads/parameters/weight_split.h"

namespace orrery {
namespace {

using C = MemoryCategory;

// Of what chunks keep per microbatch in flight.
constexpr std::array<C, kept_kinds> kept_categories = {C::attention_activations, C::ffn_activations,
                                                       C::expert_activations, C::norm_activations,
                                                       C::checkpoints};

// A layer class, computed once.
struct ClassMemory {
  LayerActivations activations;
  LocalParameters parameters;
};

// One stage while its chunks are added.
struct StageSum {
  std::vector<Kept> chunks;
  Kept recomputed{};            // of the layer that is recomputed, worst by category
  double recomputed_layer = 0;  // worst single recomputed layer
  double transient = 0, exchange = 0;
  double boundary = 0;  // a stage's input
  StageParameters parameters;
  bool embedding = false, head = false;
  bool embedding_table = false, head_table = false;  // both where one serves both
  std::int64_t head_chunk = 0;
};

struct Context {
  const Model& model;
  const Job& job;
  const Layout& layout;
  const Stack& stack;
  MemoryTraits traits;
  HeadActivations head;
  std::vector<ClassMemory> classes;
  PipelineShape shape;
};

Context make_context(const Model& model, const Job& job, const Layout& layout, const Stack& stack) {
  Context c{.model = model,
            .job = job,
            .layout = layout,
            .stack = stack,
            .traits = memory_traits(stack),
            .head = {},
            .classes = {},
            .shape = {}};
  c.head = head_activations(model, job, layout, stack, c.traits);
  c.classes.reserve(model.classes.size());
  for (const LayerClass& layer : model.classes)
    c.classes.push_back({layer_activations(model, layer, job, layout, stack, c.traits),
                         local_parameters(model, layer, job, layout, stack)});
  c.shape = {.schedule = layout.schedule,
             .stages = layout.pp,
             .chunks = layout.vpp,
             .microbatches = std::max<std::int64_t>(layout.microbatches(job), 1)};
  return c;
}

void add_layer(StageSum& stage, Kept& kept, const ClassMemory& c, double count, bool recompute) {
  const LayerActivations& a = c.activations;
  const Kept layer = {a.attention, a.ffn, a.expert, a.norm, 0};
  if (recompute) {
    kept[4] += count * a.checkpoint;
    for (std::size_t i = 0; i < layer.size(); ++i)
      stage.recomputed[i] = std::max(stage.recomputed[i], layer[i]);
    stage.recomputed_layer = std::max(stage.recomputed_layer, a.kept());
  } else {
    for (std::size_t i = 0; i < layer.size(); ++i) kept[i] += count * layer[i];
  }
  stage.transient = std::max(stage.transient, a.transient);
  stage.exchange = std::max(stage.exchange, a.exchange);
  stage.boundary = std::max(stage.boundary, a.checkpoint);
  StageParameters& p = stage.parameters;
  p.dense += count * c.parameters.dense;
  p.expert += count * c.parameters.expert;
  p.products += count * c.parameters.products;
  p.adapters += count * c.parameters.adapters;
  p.largest_layer = std::max(p.largest_layer, c.parameters.dense + c.parameters.expert);
  p.largest_dense = std::max(p.largest_dense, c.parameters.dense);
  p.largest_weight = std::max(p.largest_weight, c.parameters.largest_weight);
}

void add_vocabulary(const Context& c, const Position& position, StageSum& stage) {
  if (!position.embedding && !position.head) return;
  const double hidden = static_cast<double>(c.model.hidden);
  const double table = vocabulary_parameters(c.model, c.stack, c.layout);
  double added = 0;
  if (position.embedding) {
    added += static_cast<double>(c.model.positions) * hidden;
    if (c.model.embedding_norm) added += hidden;
  }
  // MTP modules embed words beside the head. A stage that holds both ends of the model (one stage,
  // or DualPipe's first and last) has each table once; a tied head and the embedding are one there
  // and copies elsewhere.
  const bool modules = trained_modules(c.model, c.job) > 0;
  const bool embeds = position.embedding || (position.head && modules);
  const bool tied = c.model.tied_embeddings;
  const auto put = [&](bool needed, bool& there, bool& other) {
    if (!needed || there) return;
    added += table;
    there = true;
    if (tied) other = true;
  };
  put(embeds, stage.embedding_table, stage.head_table);
  put(position.head, stage.head_table, stage.embedding_table);
  if (position.head) {
    const double norm = (c.model.norm == NormKind::layer_norm ? 2 : 1) * hidden;
    stage.parameters.dense += norm;
  }
  stage.parameters.dense += added;
  stage.parameters.vocabulary += added;
  if (added > 0) stage.parameters.largest_weight = std::max(stage.parameters.largest_weight, table);
  stage.embedding = stage.embedding || position.embedding;
  stage.head = stage.head || position.head;
}

// MTP modules: a projection of two hidden states, norms and a layer like the model's last.
void add_modules(const Context& c, StageSum& stage, Kept& kept) {
  const auto count = static_cast<double>(trained_modules(c.model, c.job));
  add_layer(stage, kept, c.classes[c.model.layers.back()], count, recomputes_modules(c.layout));
  const LocalParameters own = module_parameters(c.model, c.layout);
  stage.parameters.dense += count * own.dense;
  stage.parameters.products += count * own.products;
  kept[3] += count * 2 * c.head.norm;  // of both inputs, and before the shared head
}

// Marks the classes of its layers in `present`; `counts` is room to count them.
void add_chunk(const Context& c, const Position& position, StageSum& stage,
               std::vector<bool>& present, std::vector<std::int64_t>& counts) {
  Kept kept{};
  const bool full = c.layout.recompute == Recompute::full;
  const std::int64_t wanted = !full                           ? 0
                              : c.layout.recompute_layers > 0 ? c.layout.recompute_layers
                                                              : position.layers;
  std::int64_t begin = position.first_layer;
  const std::int64_t end = position.first_layer + position.layers;
  for (const bool recompute : {true, false}) {
    const std::int64_t stop = recompute ? std::min(begin + wanted, end) : end;
    counts.assign(c.classes.size(), 0);
    if (counts.size() == 1) counts[0] = stop - std::exchange(begin, stop);
    for (; begin < stop; ++begin) ++counts[c.model.layers[static_cast<std::size_t>(begin)]];
    for (std::size_t k = 0; k < counts.size(); ++k) {
      if (counts[k] == 0) continue;
      present[k] = true;
      add_layer(stage, kept, c.classes[k], static_cast<double>(counts[k]), recompute);
    }
  }
  add_vocabulary(c, position, stage);
  if (position.head) {
    kept[3] += c.head.norm;
    stage.head_chunk = static_cast<std::int64_t>(stage.chunks.size());
    if (trained_modules(c.model, c.job) > 0) add_modules(c, stage, kept);
  }
  stage.chunks.push_back(kept);
}

// Distinct weight shapes of the classes present on a stage; every expert has the shape of the
// first.
double distinct_parameters(const Context& c, const std::vector<bool>& present) {
  double total = 0;
  for (std::size_t k = 0; k < c.classes.size(); ++k) {
    if (!present[k]) continue;
    const LayerClass& layer = c.model.classes[k];
    bool seen = false;
    for (std::size_t j = 0; j < k && !seen; ++j)
      seen = present[j] && c.model.classes[j].mixer == layer.mixer;
    const LayerParameters all = layer_parameters(c.model, layer);
    const double tp = static_cast<double>(c.layout.tp);
    if (!seen) total += static_cast<double>(all.mixer) / tp;
    total += static_cast<double>(all.ffn) / tp + c.classes[k].parameters.one_expert;
  }
  return total;
}

// Sums of a moment: at the loss, while a layer's backward is at work, in the optimizer's update.
struct Moments {
  double loss = 0, layer = 0, update = 0;
  double merge = 0;       // after the last backward, when outputs kept until then become one
  double last_layer = 0;  // `layer` when the step's last activations are used up
  double microbatch = 0;  // what one microbatch's backward frees
};

void add_state(const Context& c, const StageSum& stage, const StageState& state, std::int64_t index,
               StageMemory& m, Moments& t) {
  const double hidden_states = static_cast<double>(c.layout.micro_batch * c.job.sequence) /
                               static_cast<double>(c.layout.cp) * 2 *
                               static_cast<double>(c.model.hidden);
  const bool sequence_parallel = c.layout.sequence_parallel && c.layout.tp > 1;
  const double sequence_buffers =
      sequence_parallel ? c.traits.sequence_buffers * hidden_states : 0.0;
  const double lasting = sequence_buffers + state.buckets;
  // One message each way; torch.distributed.pipelining has a receive buffer for every microbatch.
  const bool ends = index == 0 || index + 1 == c.layout.pp;
  const double messages =
      c.traits.keeps_outputs
          ? std::max(2.0, static_cast<double>(c.shape.microbatches * c.layout.vpp * (ends ? 1 : 2)))
          : 2.0;
  const double sends = c.layout.pp > 1 ? messages * stage.boundary : 0;
  const double beside = lasting + state.sums + stage.exchange + sends;
  const double passes = beside + state.gathered;
  const double update = lasting + state.update_gather;
  const double caches = state.dummy_gradients + state.quantised_copies + c.traits.library_workspace;
  m[C::parameters] = bytes(state.parameters);
  m[C::gradients] = bytes(state.gradients);
  m[C::optimizer] = bytes(state.optimizer);
  m[C::communication] = bytes(std::max(passes, update));
  m[C::workspace] = bytes(caches + stage.transient);
  m.update_buffers = bytes(update + caches);
  m.offloaded += bytes(state.offloaded);
  const double kept = state.parameters + state.gradients + state.optimizer + caches;
  t.loss = kept + beside + state.gathered_at_loss;
  t.layer = kept + passes;
  t.update = kept + update;
  t.merge = kept + lasting + sends;
}

// The loss's worst moment and a layer's backward never meet. Offloaded activations leave the layer
// at work and the one that is copied.
void add_activations(const Context& c, const StageSum& stage, std::int64_t index, StageMemory& m,
                     Moments& t) {
  const Held held = held_activations(c.shape, stage.chunks, index, m.in_flight);
  double kept = held.worst_sum;
  double scale = 1;
  if (c.layout.offload_activations) {
    // The layer at work and the one that is copied stay.
    double layer = 0;
    for (const ClassMemory& k : c.classes) layer = std::max(layer, k.activations.kept());
    const double stays = std::min(kept, 2 * layer);
    scale = kept > 0 ? stays / kept : 1;
    m.offloaded += bytes(kept - stays);
    kept = stays;
  }
  for (std::size_t i = 0; i < kept_categories.size(); ++i)
    m[kept_categories[i]] = bytes(held.worst[i] * scale + stage.recomputed[i]);
  const double at_work = stage.transient + stage.recomputed_layer;
  t.last_layer = t.layer + at_work;
  t.layer += kept + at_work;
  t.microbatch = kept / static_cast<double>(c.shape.microbatches);
  if (!stage.head) {
    t.loss = 0;
    return;
  }
  const double heads = 1.0 + static_cast<double>(trained_modules(c.model, c.job));
  const auto waiting = static_cast<double>(waiting_heads(c.shape, index, stage.head_chunk));
  const double lasting =
      c.head.saved * heads * waiting + c.head.outputs * static_cast<double>(c.shape.microbatches);
  const double logits = lasting + c.head.peak - c.head.saved;
  // torch.distributed.pipelining joins every microbatch's output to one tensor when the step ends
  // (schedules.py, _merge_outputs): they are there twice.
  const double merged = 2 * c.head.outputs * static_cast<double>(c.shape.microbatches);
  m[C::logits] = bytes(std::max(logits, merged));
  t.merge += merged;
  t.loss += kept + logits;
  // Other microbatches keep theirs while a layer is at work.
  t.layer += lasting - c.head.saved * heads;
  t.last_layer += c.head.outputs * static_cast<double>(c.shape.microbatches);
  t.microbatch += c.head.saved * heads;
}

// The worst moment of the passes. Gradients that every step allocates anew grow while activations
// shrink: the first microbatch's last layer sees all activations and no gradients. The next
// microbatch sees both, unless all forwards are over before the first backward.
double worst_pass(const Context& c, const StageState& state, const StageMemory& m,
                  const Moments& t) {
  const double worst = std::max(t.loss, t.layer);
  const bool in_buffers =
      c.layout.zero_stage < 3 &&
      (c.layout.dense_replicas() > 1 || c.stack.sharding.gradient_storage == Format::fp32);
  const double fresh =
      state.sums + (c.traits.persistent_gradients || in_buffers ? 0 : m[C::gradients].si());
  const std::int64_t all = c.shape.microbatches;
  if (all > 1 && (c.layout.vpp > 1 || enters_at_both_ends(c.shape.schedule) || m.in_flight < all))
    return worst;
  const double next = all > 1 ? worst - t.microbatch : 0;
  return std::max({worst - fresh, next, t.last_layer});
}

StageMemory finish(const Context& c, const StageSum& stage, const StageState& state,
                   std::int64_t index) {
  StageMemory m;
  m.in_flight = peak_in_flight(c.shape, index);
  Moments t;
  add_state(c, stage, state, index, m, t);
  add_activations(c, stage, index, m, t);
  double total = 0;
  for (Bytes b : m.bytes) total += b.si();
  const double worst = std::max({worst_pass(c, state, m, t), t.update, t.merge});
  m.never_together = bytes(std::max(total - worst, 0.0));
  return m;
}

// One stage after the other. Stages with the same layers hold the same but for what the schedule
// keeps in flight: that is added up once.
class Stages {
 public:
  Stages(const Model& model, const Job& job, const Layout& layout, const Stack& stack)
      : c_(make_context(model, job, layout, stack)),
        positions_(partition_layers(model, layout, stack.sharding.partition)) {}
  StageMemory next();

 private:
  void list_chunks();
  bool alike(std::size_t a, std::size_t b) const;
  void add_up();

  Context c_;
  std::vector<Position> positions_;
  std::int64_t index_ = 0;
  std::vector<std::size_t> chunks_, before_;  // positions of this stage and of the one before
  StageSum sum_;
  StageState state_;
  std::vector<std::int64_t> counts_;
  std::vector<bool> present_;  // classes of layers on this stage
};

void Stages::list_chunks() {
  std::swap(chunks_, before_);
  chunks_.clear();
  chunks_.reserve(static_cast<std::size_t>(std::max<std::int64_t>(c_.layout.vpp, 2)));
  const auto add = [&](std::int64_t position) {
    chunks_.push_back(static_cast<std::size_t>(position));
  };
  if (enters_at_both_ends(c_.layout.schedule)) {
    add(index_);
    add(c_.layout.pp - 1 - index_);
    return;
  }
  for (std::int64_t chunk = 0; chunk < c_.layout.vpp; ++chunk)
    add(c_.layout.position(index_, chunk));
}

bool Stages::alike(std::size_t a, std::size_t b) const {
  const Position &one = positions_[a], &two = positions_[b];
  const auto layers = c_.model.layers.begin();
  return one.layers == two.layers && one.embedding == two.embedding && one.head == two.head &&
         std::equal(layers + one.first_layer, layers + one.first_layer + one.layers,
                    layers + two.first_layer);
}

void Stages::add_up() {
  std::vector<Kept> reused = std::move(sum_.chunks);
  reused.clear();
  sum_ = {};
  sum_.chunks = std::move(reused);
  sum_.chunks.reserve(chunks_.size());
  present_.assign(c_.classes.size(), false);
  for (const std::size_t chunk : chunks_) add_chunk(c_, positions_[chunk], sum_, present_, counts_);
  if (c_.traits.cached_weight_gradients)
    sum_.parameters.distinct = distinct_parameters(c_, present_);
  state_ = stage_state(sum_.parameters, c_.model, c_.job, c_.layout, c_.stack, c_.traits);
}

StageMemory Stages::next() {
  list_chunks();
  const bool as_before = std::equal(chunks_.begin(), chunks_.end(), before_.begin(), before_.end(),
                                    [&](std::size_t a, std::size_t b) { return alike(a, b); });
  if (!as_before) add_up();
  return finish(c_, sum_, state_, index_++);
}

}  // namespace

std::string_view to_text(MemoryCategory category) {
  constexpr auto texts =
      enum_names<C>({"parameters", "gradients", "optimizer", "attention activations",
                     "ffn activations", "expert activations", "norm activations", "checkpoints",
                     "logits", "communication", "workspace", "kv cache", "fragmentation"});
  return texts[category];
}

Bytes StageMemory::peak() const {
  Bytes total;
  for (int i = 0; i < memory_category_count; ++i)
    if (static_cast<C>(i) != C::fragmentation) total += bytes[static_cast<std::size_t>(i)];
  return total - never_together;
}

Bytes StageMemory::static_bytes() const {
  return (*this)[C::parameters] + (*this)[C::gradients] + (*this)[C::optimizer] + update_buffers;
}

std::vector<StageMemory> training_memory(const Model& model, const Job& job, const Layout& layout,
                                         const Stack& stack) {
  Stages stages(model, job, layout, stack);
  std::vector<StageMemory> out;
  out.reserve(static_cast<std::size_t>(layout.pp));
  for (std::int64_t s = 0; s < layout.pp; ++s) out.push_back(stages.next());
  return out;
}

bool every_training_stage(const Model& model, const Job& job, const Layout& layout,
                          const Stack& stack,
                          const std::function<bool(const StageMemory&)>& holds) {
  Stages stages(model, job, layout, stack);
  for (std::int64_t s = 0; s < layout.pp; ++s)
    if (!holds(stages.next())) return false;
  return true;
}

}  // namespace orrery
