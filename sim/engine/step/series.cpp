// SPDX-License-Identifier: Apache-2.0
// Bounds and runs steps on layers that were priced once.
#include "sim/engine/step/series.h"

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

#include "sim/base/errors/check.h"
#include "sim/engine/network/ideal_network.h"
#include "sim/engine/step/run.h"

namespace orrery {
namespace {

// Collectives between neighbouring ranks alone take time: those of tensor parallelism, and of
// context parallelism as if its ranks came next; in a scale-up domain, or over as many as they may
// come to lie in, whichever is faster. All others end at once.
class NeighbourNetwork : public Network {
 public:
  NeighbourNetwork(const StepContext& context, const Layout& like)
      : prices_(context.fabric, context.collective_costs, context.loaded) {
    const std::int64_t domain = context.fabric.scale_up.domain;
    Layout near = like, packed = like;
    if (like.cp > 1) near.rank_order = packed.rank_order = RankOrder();
    packed.per_domain = domain;
    const Placement own = place(like, context.fabric), one = place(near, context.fabric),
                    two = place(packed, context.fabric);
    if (like.tp > 1)
      know(own.tensor,
           {own.tensor, two.tensor, GroupShape{.size = like.tp, .per_domain = like.tp}});
    // Paired directions hide each other's traffic.
    if (like.cp == 1 || pairs_directions(like.schedule)) return;
    std::vector<GroupShape> context_shapes = {own.context, one.context, two.context};
    if (like.tp * like.cp <= domain)
      context_shapes.push_back({.size = like.cp, .per_domain = like.cp});
    if (!(own.context == own.tensor)) know(own.context, context_shapes);
  }
  CollectiveId start(const Collective&, Ticks) override {
    CHECK_THAT(false, "a network for bounds runs nothing");
    return {};
  }
  std::optional<Completion> next_completion() override { return std::nullopt; }
  const CollectiveTime& price(const Collective& asked, std::int64_t stage) override {
    const bool exchange = asked.kind == CollectiveKind::send_receive ||
                          asked.kind == CollectiveKind::all_to_all;  // sizes vary with the domains
    if (exchange) return nothing_;
    for (const auto& [own, shapes] : known_) {
      if (asked.group != own) continue;
      for (std::size_t i = 0; i < shapes.size(); ++i) {
        Collective c = asked;
        c.group = shapes[i];
        const CollectiveTime& time = prices_.price(c, stage);
        if (i == 0 || time.time < least_.time) least_ = time;
      }
      return least_;
    }
    return nothing_;
  }

 private:
  void know(const GroupShape& own, const std::vector<GroupShape>& shapes) {
    known_.push_back({own, {}});
    for (const GroupShape& shape : shapes)
      if (std::find(known_.back().second.begin(), known_.back().second.end(), shape) ==
          known_.back().second.end())
        known_.back().second.push_back(shape);
  }

  IdealNetwork prices_;
  // Groups as they lie, and all shapes that the same ranks may have.
  std::vector<std::pair<GroupShape, std::vector<GroupShape>>> known_;
  CollectiveTime nothing_, least_;
};

// Calls that a debug wrapper checks depend on where ranks lie.
Stack without_debug(const Stack& stack) {
  Stack out = stack;
  out.debug.per_rank.value = Seconds(0);
  out.debug.per_remote_rank.value = Seconds(0);
  return out;
}

// Time on a stage before its first pass: the first forwards of the stages before it.
std::vector<Ticks> fills(const StepPipeline& p, std::int64_t chunk, bool upwards) {
  const auto pp = static_cast<std::size_t>(p.shape.stages);
  std::vector<Ticks> out(pp);
  Ticks sum;
  for (std::size_t i = 0; i < pp; ++i) {
    const std::size_t s = upwards ? pp - 1 - i : i;
    out[s] = sum;
    const ChunkCost& c =
        p.costs
            .chunk[s * static_cast<std::size_t>(p.shape.chunks) + static_cast<std::size_t>(chunk)];
    sum += c.forward + c.send_forward;
  }
  return out;
}

// Time from the end of a stage's last input gradient to the end of the last of those that wait for
// it on the stages before.
std::vector<Ticks> drains(const StepPipeline& p, std::int64_t chunk, bool upwards, bool split) {
  const auto pp = static_cast<std::size_t>(p.shape.stages);
  const auto at = [&](std::size_t s) -> const ChunkCost& {
    return p.costs
        .chunk[s * static_cast<std::size_t>(p.shape.chunks) + static_cast<std::size_t>(chunk)];
  };
  std::vector<Ticks> out(pp);
  Ticks sum;
  for (std::size_t i = 1; i < pp; ++i) {
    const std::size_t s = upwards ? pp - 1 - i : i, before = upwards ? s + 1 : s - 1;
    sum += at(s).send_backward + (split ? at(before).input_gradient : at(before).backward);
    out[s] = sum;
  }
  return out;
}

}  // namespace

// The time of each stage's passes, what comes before the first and after the last.
std::vector<StepRun::LeastStage> StepRun::least_stages(double& energy) {
  const StepPipeline p = pipeline();
  const auto chunks = static_cast<std::size_t>(p.shape.chunks);
  const bool split = splits_backward(layout_.schedule);
  const bool dual = layout_.schedule == Schedule::dual_pipe;
  const std::int64_t each = dual ? p.shape.microbatches / 2 : p.shape.microbatches;
  const std::vector<Ticks> fill = fills(p, 0, false), drain = drains(p, 0, false, split);
  const std::vector<Ticks> fill_up = dual ? fills(p, 1, true) : std::vector<Ticks>{};
  std::vector<LeastStage> stages(static_cast<std::size_t>(layout_.pp));
  for (std::size_t s = 0; s < stages.size(); ++s) {
    Ticks busy, ahead;  // of it: all but weight gradients
    LeastStage& stage = stages[s];
    for (std::size_t c = 0; c < chunks; ++c) {
      const ChunkCost& cost = p.costs.chunk[s * chunks + c];
      const ChunkTime& time =
          chunk_time(static_cast<std::int64_t>(s), static_cast<std::int64_t>(c));
      busy += (cost.forward + cost.backward) * each;
      ahead += (cost.forward + (split ? cost.input_gradient : cost.backward)) * each;
      stage.last.last_backward_start.push_back({});
      stage.last.last_backward.push_back(cost.backward);
      energy +=
          static_cast<double>(each) * (time.forward.energy + time.backward.energy +
                                       time.input_gradient.energy + time.weight_gradient.energy);
    }
    const Ticks start = dual ? std::min(fill[s], fill_up[s]) : fill[s];
    stage.passes = start + busy;
    if (!dual) stage.chain = start + ahead + drain[s];
  }
  energy /= static_cast<double>(layout_.pp);
  return stages;
}

Seconds StepRun::update_at_full_rate(double parameters, double expert_parameters) const {
  const double owned = parameters / static_cast<double>(layout_.dense_replicas()) +
                       expert_parameters / static_cast<double>(layout_.expert_replicas());
  return Bytes(owned * program_.optimizer_bytes_per_parameter) / context_.device.memory_bandwidth;
}

StepLeast StepRun::least(const std::vector<Layout>& endings, const WorthMore& worth) {
  constexpr Seconds never(std::numeric_limits<double>::infinity());
  double energy = 0;
  const std::vector<LeastStage> stages = least_stages(energy);
  // The step when each stage has this after its passes; where that is `enough` or more, at least
  // that much of it.
  const auto with = [&](auto&& tail_of, Seconds enough) {
    Ticks longest, first_tail, own_tail;
    for (std::size_t s = 0; s < stages.size() && to_seconds(longest) < enough; ++s) {
      // Inner stages with the same chunks end alike.
      const auto chunk = [&](std::size_t of) {
        return chunk_index_.begin() + static_cast<std::ptrdiff_t>(of) * chunks_per_stage();
      };
      const bool as_before =
          s > 1 && s + 1 < stages.size() && std::equal(chunk(s), chunk(s + 1), chunk(s - 1));
      if (!as_before) own_tail = tail_of(s);
      if (s == 0) first_tail = own_tail;
      longest = std::max(longest, stages[s].passes + own_tail);
      longest = std::max(longest, stages[s].chain + first_tail);
    }
    const Seconds time = to_seconds(longest);
    return StepLeast{time, Joules(energy) + context_.device.idle_power * time};
  };
  if (endings.empty() || worth) {
    const StepLeast any = with(
        [&](std::size_t s) {
          const auto stage = static_cast<std::int64_t>(s);
          return to_ticks(
              stack_.step_overhead.get() +
              update_at_full_rate(stage_parameters(stage), stage_expert_parameters(stage)));
        },
        never);
    if (endings.empty() || !worth(any)) return any;
  }
  StepLeast least{.time = never, .energy_per_gpu = Joules(0)};
  for (const Layout& end : endings) {
    ending_ = ending_of(end);
    const StepLeast one = with(
        [&](std::size_t s) { return tail(stages[s].last, static_cast<std::int64_t>(s)).total(); },
        least.time);
    if (one.time < least.time) least = one;
  }
  ending_ = ending_of(layout_);
  return least;
}

std::array<PassTicks, 3> StepRun::passes_of(const ChunkProgram& chunk) const {
  const ChunkTime t = time_chunk(chunk, chunk, 0, false);
  if (splits_backward(layout_.schedule)) return {t.forward, t.input_gradient, t.weight_gradient};
  return {t.forward, t.backward, PassTicks{}};
}

Seconds StepRun::lightest_layer(const ChunkProgram& like) const {
  ChunkProgram one = like;
  one.embedding = one.head = false;
  one.modules = 0;
  Seconds least(std::numeric_limits<double>::infinity());
  for (std::size_t i = 0; i < like.layers.size(); ++i) {
    std::fill(one.layers.begin(), one.layers.end(), 0);
    std::fill(one.recomputed.begin(), one.recomputed.end(), 0);
    one.layers[i] = 1;
    const auto of = passes_of(one);
    least = std::min(least, to_seconds(of[0].total + of[1].total));
  }
  return least;
}

// One pass through all layers closes no later than the passes of its parts one after the other.
WholeModel StepRun::whole_model(std::optional<Seconds>& lightest) const {
  ChunkProgram all = chunks_.front();
  all.embedding = all.head = true;
  all.parameters = all.expert_parameters = all.modules = 0;
  all.trained = all.trained_experts = 0;
  std::fill(all.layers.begin(), all.layers.end(), 0);
  std::fill(all.recomputed.begin(), all.recomputed.end(), 0);
  for (const ChunkProgram& chunk : chunks_) {
    for (std::size_t i = 0; i < all.layers.size(); ++i) {
      all.layers[i] += chunk.layers[i];
      all.recomputed[i] += chunk.recomputed[i];
    }
    all.modules += chunk.modules;
    all.recomputes_modules = all.recomputes_modules || chunk.recomputes_modules;
    all.parameters += chunk.parameters;
    all.expert_parameters += chunk.expert_parameters;
    all.trained += chunk.trained;
    all.trained_experts += chunk.trained_experts;
  }
  WholeModel out;
  for (const PassTicks& pass : passes_of(all)) {
    out.time += to_seconds(pass.total);
    out.energy += Joules(pass.energy);
  }
  if (!lightest) lightest = lightest_layer(all);
  out.lightest = std::min(out.time, *lightest);
  out.update = update_at_full_rate(all.trained, all.trained_experts);
  out.overhead = stack_.step_overhead.get();
  return out;
}

struct StepSeries::State {
  const StepContext& context;
  const Model& model;
  const Job& job;
  const Stack& stack;
  std::optional<Stack> own_stack;
  Layout like;
  PassPrices prices;
  std::optional<Seconds> lightest;  // WholeModel's, once it was asked for
  const Stack& used() const { return own_stack ? *own_stack : stack; }
};

PricedPasses priced_passes(const Layout& layout, const Stack& stack, const Job& job) {
  PricedPasses p{.layout = layout,
                 .launch = launch_mode(stack, layout),
                 .splits_backward = splits_backward(layout.schedule),
                 .exchange_beside = exchange_beside_passes(stack, layout),
                 .expert_exposed =
                     expert_exposed(stack, layout, static_cast<double>(layout.microbatches(job)))};
  Layout& l = p.layout;
  l.schedule = Schedule::one_f_one_b;
  l.vpp = 1;
  l.stage_layers.clear();
  l.recompute_layers = 0;
  if (l.zero_stage < 3) l.zero_stage = 1;
  l.bucket = Bytes(0);
  l.offload_nothing();
  return p;
}

bool same_passes(const Layout& a, const Layout& b, const Stack& stack, const Job& job) {
  return priced_passes(a, stack, job) == priced_passes(b, stack, job);
}

StepSeries::StepSeries(const StepContext& context, const Model& model, const Job& job,
                       const Layout& like, const Stack& stack, Links links)
    : state_(new State{.context = context,
                       .model = model,
                       .job = job,
                       .stack = stack,
                       .own_stack = links == Links::anywhere ? std::optional(without_debug(stack))
                                                             : std::nullopt,
                       .like = like,
                       .prices = {},
                       .lightest = {}}) {
  CHECK_THAT(is_training(job.task), "a series of inference steps");
  std::unique_ptr<Network> network;
  if (links == Links::anywhere) network = std::make_unique<NeighbourNetwork>(context, like);
  state_->prices =
      open_prices(context, model, job, state_->like, state_->used(), std::move(network));
}
StepSeries::~StepSeries() = default;
StepSeries::StepSeries(StepSeries&&) noexcept = default;

StepResult StepSeries::step(const Layout& layout) {
  State& s = *state_;
  return StepRun(s.context, s.model, s.job, layout, s.used(), s.prices).training();
}

StepLeast StepSeries::least(const Layout& layout) { return least(layout, {layout}); }

StepLeast StepSeries::least(const Layout& layout, const std::vector<Layout>& endings,
                            const WorthMore& worth) {
  State& s = *state_;
  return StepRun(s.context, s.model, s.job, layout, s.used(), s.prices).least(endings, worth);
}

// What is offloaded only lengthens a step, but by stage.
WholeModel StepSeries::whole_model(const Layout& layout) {
  State& s = *state_;
  Layout here = layout;
  here.offload_nothing();
  return StepRun(s.context, s.model, s.job, here, s.used(), s.prices).whole_model(s.lightest);
}

namespace {

// Layers that a chunk at this position of the model's order holds, where all are known without
// their cost.
std::int64_t layers_at(const Layout& layout, std::int64_t layers, std::int64_t position) {
  if (!layout.stage_layers.empty()) return layout.stage_layers[static_cast<std::size_t>(position)];
  const std::int64_t count = layout.pp * layout.vpp;
  return layers / count + (position < layers % count ? 1 : 0);
}

// The layers that pass on the busiest stage, with the first chunks of `thinnest` layers before its
// first and after its last pass: in forwards and backwards of one layer.
double busiest_chain(const Layout& layout, std::int64_t layers, double thinnest,
                     double microbatches) {
  double most = 0;
  for (std::int64_t s = 0; s < layout.pp; ++s) {
    std::int64_t own = 0;
    for (std::int64_t chunk = 0; chunk < layout.vpp; ++chunk)
      own += layers_at(layout, layers, layout.position(s, chunk));
    most =
        std::max(most, static_cast<double>(own) * microbatches + thinnest * static_cast<double>(s));
  }
  return most;
}

}  // namespace

Seconds WholeModel::least(const Layout& layout, const Job& job, const Model& model,
                          Partition partition) const {
  const auto pp = static_cast<double>(layout.pp);
  const auto microbatches = static_cast<double>(layout.microbatches(job));
  const bool counted = layout.schedule != Schedule::dual_pipe &&
                       (!layout.stage_layers.empty() || partition == Partition::even);
  const std::int64_t layers = model.layer_count();
  std::int64_t thinnest = counted && layout.pp > 1 ? layers : 0;  // of a stage's first chunk
  for (std::int64_t s = 0; s < layout.pp && thinnest > 0; ++s)
    thinnest = std::min(thinnest, layers_at(layout, layers, s));
  const auto first = static_cast<double>(thinnest);
  // The slowest stage takes as long as the mean stage at least. Before its first and after its last
  // pass a stage waits for the first chunks of those before it.
  const Seconds mean = (time * microbatches + update) / pp + lightest * (first * (pp - 1) / 2);
  // Layers that are all alike take in proportion to their number, but for rounding.
  if (!counted || model.classes.size() != 1) return mean + overhead;
  constexpr double rounding = 1 - 1e-9;
  const Seconds busiest =
      lightest * (busiest_chain(layout, layers, first, microbatches) * rounding);
  return std::max(mean, busiest) + overhead;
}

}  // namespace orrery
