// SPDX-License-Identifier: Apache-2.0
// Bounds and runs steps on layers that were priced once.
#include "sim/engine/step/series.h"

#include <algorithm>
#include <vector>

#include "sim/base/errors/check.h"
#include "sim/engine/network/ideal_network.h"
#include "sim/engine/step/chunks.h"
#include "sim/engine/step/step.h"
#include "workloads/operations/training.h"

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

// Calls that a debug wrapper checks depend on where ranks lie. Null where there is no wrapper, so
// that nothing is to be copied.
std::optional<Stack> without_debug(const Stack& stack) {
  const DebugWrappers& debug = stack.host.debug;
  if (debug.per_rank.value == Seconds(0) && debug.per_remote_rank.value == Seconds(0))
    return std::nullopt;
  Stack out = stack;
  out.host.debug.per_rank.value = Seconds(0);
  out.host.debug.per_remote_rank.value = Seconds(0);
  return out;
}

}  // namespace

struct StepSeries::State {
  const StepContext& context;
  const Model& model;
  const Job& job;
  const Stack& stack;
  std::optional<Stack> own_stack;  // where debug wrappers are left out
  // Of a scattered job. No step of it takes less than there, so what is a bound there is one here;
  // its steps themselves are run one by one.
  std::optional<StepContext> contiguous;
  Layout like;
  Links links = Links::real;
  std::optional<PricedLayers> priced;  // once they were asked for
  KnownChunks known;
  KnownWholes wholes;

  StepCase of(const Layout& layout) const {
    return {contiguous ? *contiguous : context, model, job, layout, own_stack ? *own_stack : stack};
  }
  const PricedLayers& layers() {
    if (!priced)
      priced = price_layers(of(like), links == Links::anywhere
                                          ? std::make_unique<NeighbourNetwork>(context, like)
                                          : nullptr);
    return *priced;
  }
  std::vector<ChunkProgram> chunks(const Layout& layout) const {
    return lower_chunks(model, job, layout, of(layout).stack);
  }
  PricedStep step(const Layout& layout) {
    return {of(layout), layers(), PricedChunks(of(layout), layers(), chunks(layout), known)};
  }
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
                       .own_stack = links == Links::anywhere ? without_debug(stack) : std::nullopt,
                       .contiguous = context.scattered()
                                         ? std::optional(contiguous_context(context))
                                         : std::nullopt,
                       .like = like,
                       .links = links,
                       .priced = {},
                       .known = {},
                       .wholes = {}}) {
  CHECK_THAT(is_training(job.task), "a series of inference steps");
}
StepSeries::~StepSeries() = default;
StepSeries::StepSeries(StepSeries&&) noexcept = default;

StepResult StepSeries::step(const Layout& layout) {
  State& s = *state_;
  if (s.contiguous) return orrery::step(s.context, s.model, s.job, layout, s.of(layout).stack);
  return run_training(s.step(layout));
}

StepLeast StepSeries::least(const Layout& layout) { return least(layout, {layout}); }

StepLeast StepSeries::least(const Layout& layout, const std::vector<Layout>& endings,
                            const WorthMore& worth) {
  return least_step(state_->step(layout), endings, worth);
}

// What is offloaded only lengthens a step, but by stage.
WholeModel StepSeries::whole_model(const Layout& layout) {
  State& s = *state_;
  Layout here = layout;
  here.offload_nothing();
  return orrery::whole_model(s.of(here), s.layers(), s.chunks(here), s.wholes);
}

}  // namespace orrery
