// Knows how to walk the grid of layouts: family by family, every equivalent combination once.
#include "sim/advise/search_space.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace orrery {

namespace {

// Context parallelism pays from long sequences on; a rank with fewer tokens than this has too
// little attention to hide the exchange of keys and values (Llama 3 trains 8K with cp 1, 128K with
// cp 16: arXiv 2407.21783, table 4).
constexpr std::int64_t least_sequence_for_context = 8192;
constexpr std::int64_t least_tokens_per_rank = 4096;
constexpr std::int64_t most_chunks = 8;
constexpr std::int64_t most_micro_batch = 16;

bool is_power_of_two(std::int64_t n) { return n > 0 && (n & (n - 1)) == 0; }

std::vector<std::int64_t> divisors(std::int64_t n) {
  std::vector<std::int64_t> low, high;
  for (std::int64_t d = 1; d * d <= n; ++d) {
    if (n % d != 0) continue;
    low.push_back(d);
    if (d != n / d) high.push_back(n / d);
  }
  low.insert(low.end(), high.rbegin(), high.rend());
  return low;
}

std::vector<std::int64_t> powers_of_two(std::int64_t most) {
  std::vector<std::int64_t> powers;
  for (std::int64_t p = 1; p <= most; p *= 2) powers.push_back(p);
  return powers;
}

template <class T>
std::vector<T> fixed_or(const std::optional<T>& fixed, std::vector<T> list) {
  return fixed ? std::vector<T>{*fixed} : std::move(list);
}

}  // namespace

SearchSpace::SearchSpace(const Model& model, const Job& job, std::int64_t gpus, std::int64_t domain,
                         const SearchLimits& limits, const Stack& stack)
    : model_(model),
      job_(job),
      gpus_(gpus),
      domain_(std::max<std::int64_t>(1, domain)),
      limits_(limits),
      sequence_parallel_(limits.sequence_parallel.value_or(stack.defaults.sequence_parallel)) {
  for (Schedule s : {Schedule::one_f_one_b, Schedule::interleaved, Schedule::zero_bubble,
                     Schedule::zero_bubble_v, Schedule::dual_pipe, Schedule::dual_pipe_v})
    if (stack.has(s)) schedules_.push_back(s);
  add_families();
}

std::vector<std::int64_t> SearchSpace::tensor_sizes() const {
  if (limits_.tp) return {*limits_.tp};
  std::int64_t heads = 0;
  for (const LayerClass& layer : model_.classes) heads = std::max(heads, layer.mixer.heads);
  std::vector<std::int64_t> sizes;
  for (std::int64_t tp = 1; tp <= std::min(domain_, gpus_); ++tp)
    if (gpus_ % tp == 0 && (is_power_of_two(tp) || (heads > 0 && heads % tp == 0)))
      sizes.push_back(tp);
  return sizes;
}

std::vector<std::int64_t> SearchSpace::context_sizes() const {
  if (limits_.cp) return {*limits_.cp};
  if (job_.task == Task::decode || job_.sequence < least_sequence_for_context) return {1};
  return powers_of_two(job_.sequence / least_tokens_per_rank);
}

std::vector<std::int64_t> SearchSpace::pipeline_sizes(std::int64_t rest) const {
  if (limits_.pp) return {*limits_.pp};
  std::vector<std::int64_t> sizes = divisors(rest);
  std::erase_if(sizes, [this](std::int64_t pp) { return pp > model_.layer_count(); });
  return sizes;
}

void SearchSpace::add_families() {
  for (const std::int64_t tp : tensor_sizes())
    for (const std::int64_t cp : context_sizes()) {
      const bool divides = tp > 0 && cp > 0 && gpus_ % (tp * cp) == 0;
      if (!divides && !limits_.tp && !limits_.cp) continue;  // not a point of the grid
      if (!divides) {
        reject(fmt::format("tp {} x cp {} does not divide {} GPUs", tp, cp, gpus_));
        continue;
      }
      for (const std::int64_t pp : pipeline_sizes(gpus_ / (tp * cp))) {
        if (pp > 0 && gpus_ % (tp * cp * pp) == 0)
          families_.push_back({.tp = tp, .cp = cp, .pp = pp});
        else
          reject(fmt::format("tp {} x cp {} x pp {} does not divide {} GPUs", tp, cp, pp, gpus_));
      }
    }
}

std::vector<Layout> SearchSpace::expert_layouts(const Layout& outer) const {
  std::vector<Layout> layouts;
  Layout layout = outer;
  if (!model_.has_experts()) {
    layout.ep = limits_.ep.value_or(1);
    layout.etp = limits_.etp.value_or(1);
    return {layout};
  }
  const std::int64_t ranks = outer.dp * outer.cp * outer.tp;
  std::vector<std::int64_t> tensor = {1};
  if (outer.tp > 1) tensor.push_back(outer.tp);
  for (const std::int64_t etp : fixed_or(limits_.etp, tensor))
    for (const std::int64_t ep : fixed_or(limits_.ep, divisors(model_.max_experts()))) {
      if (!limits_.ep && !limits_.etp && ranks % (ep * etp) != 0) continue;
      layout.ep = ep;
      layout.etp = etp;
      layouts.push_back(layout);
    }
  return layouts;
}

namespace {
bool holds_two_chunks(Schedule s) { return s == Schedule::dual_pipe || is_v_shaped(s); }
}  // namespace

std::vector<SearchSpace::Scheduling> SearchSpace::schedulings(std::int64_t pp) const {
  const std::optional<Schedule>& fixed = limits_.schedule;
  std::vector<Scheduling> all;
  const auto chunks_allow = [this](std::int64_t vpp) {
    return !limits_.vpp || *limits_.vpp == vpp;
  };
  if (pp == 1 || !is_training(job_.task)) {
    const Schedule one = fixed.value_or(Schedule::one_f_one_b);
    // With one stage the plain schedules are one and the same; the others need a pipeline.
    const bool plain = one != Schedule::interleaved && !holds_two_chunks(one);
    if (plain && chunks_allow(1)) all.push_back({.schedule = one});
    return all;
  }
  const auto wanted = [&](Schedule s) {
    return fixed ? *fixed == s
                 : std::find(schedules_.begin(), schedules_.end(), s) != schedules_.end();
  };
  if (chunks_allow(1)) {
    if (fixed == Schedule::gpipe) all.push_back({.schedule = Schedule::gpipe});
    if (wanted(Schedule::one_f_one_b)) all.push_back({.schedule = Schedule::one_f_one_b});
    if (wanted(Schedule::zero_bubble)) all.push_back({.schedule = Schedule::zero_bubble});
    if (wanted(Schedule::dual_pipe) && (fixed || model_.has_experts()))
      all.push_back({.schedule = Schedule::dual_pipe});
  }
  const std::int64_t fullest = (model_.layer_count() + pp - 1) / pp;
  if (chunks_allow(2) && fullest > 1) {
    if (wanted(Schedule::zero_bubble_v))
      all.push_back({.schedule = Schedule::zero_bubble_v, .vpp = 2});
    if (wanted(Schedule::dual_pipe_v) && (fixed || model_.has_experts()))
      all.push_back({.schedule = Schedule::dual_pipe_v, .vpp = 2});
  }
  if (!wanted(Schedule::interleaved)) return all;
  if (limits_.vpp) {
    if (*limits_.vpp > 1) all.push_back({.schedule = Schedule::interleaved, .vpp = *limits_.vpp});
    return all;
  }
  for (std::int64_t vpp = 2; vpp <= most_chunks; ++vpp)
    if (fullest % vpp == 0) all.push_back({.schedule = Schedule::interleaved, .vpp = vpp});
  return all;
}

std::vector<SearchSpace::Sharding> SearchSpace::shardings(const Layout& outer) const {
  const std::int64_t replicas = outer.dense_replicas();
  std::vector<Sharding> all;
  const bool full_sharding = limits_.zero_stage
                                 ? *limits_.zero_stage == 3
                                 : outer.pp == 1 && replicas > 1 && is_training(job_.task);
  if (limits_.zero_stage && *limits_.zero_stage != 3) return {{.zero_stage = *limits_.zero_stage}};
  if (!limits_.zero_stage) all.push_back({.zero_stage = 1});
  if (!full_sharding) return all;
  if (limits_.shard_group) {
    all.push_back({.zero_stage = 3, .shard_group = *limits_.shard_group});
    return all;
  }
  all.push_back({.zero_stage = 3});
  // The largest group of data-parallel ranks that lies in one scale-up domain.
  std::int64_t group = std::max<std::int64_t>(1, domain_ / outer.tp);
  while (replicas % group != 0) --group;
  if (group > 1 && group < replicas) all.push_back({.zero_stage = 3, .shard_group = group});
  return all;
}

std::vector<SearchSpace::Exchange> SearchSpace::exchanges(const Layout& outer) const {
  if (outer.cp == 1) return {{}};
  std::vector<Exchange> all;
  for (const ContextKind kind :
       fixed_or(limits_.context, {ContextKind::ring, ContextKind::all_gather,
                                  ContextKind::all_to_all, ContextKind::hierarchical})) {
    if (kind != ContextKind::hierarchical) {
      all.push_back({.kind = kind});
      continue;
    }
    std::int64_t inner = std::min(std::max<std::int64_t>(1, domain_ / outer.tp), outer.cp);
    while (outer.cp % inner != 0) --inner;
    if (limits_.context_inner)
      all.push_back({.kind = kind, .inner = *limits_.context_inner});
    else if (inner > 1 && inner < outer.cp)
      all.push_back({.kind = kind, .inner = inner});
  }
  return all;
}

void SearchSpace::fill(const Family& family) {
  Layout outer;
  outer.tp = family.tp;
  outer.cp = family.cp;
  outer.pp = family.pp;
  outer.dp = gpus_ / (family.tp * family.cp * family.pp);
  if (limits_.dp && *limits_.dp != outer.dp) return;
  outer.sequence_parallel = family.tp > 1 && sequence_parallel_;
  outer.precision = limits_.precision;
  outer.optimizer = limits_.optimizer;
  const bool training = is_training(job_.task);
  const auto micro_batches =
      fixed_or(limits_.micro_batch,
               training ? powers_of_two(most_micro_batch) : std::vector<std::int64_t>{1});
  std::vector<RecomputeChoice> recomputes = {{Recompute::none}};
  if (training)
    recomputes =
        fixed_or(limits_.recompute, {{Recompute::none}, {Recompute::selective}, {Recompute::full}});
  const std::vector<Exchange> contexts = exchanges(outer);
  const std::vector<Scheduling> orders = schedulings(family.pp);
  const std::vector<Sharding> sharded = shardings(outer);
  for (Layout layout : expert_layouts(outer))
    for (const Scheduling& order : orders)
      for (const std::int64_t micro_batch : micro_batches)
        for (const Sharding& sharding : sharded)
          for (const RecomputeChoice recompute : recomputes)
            for (const Exchange& context : contexts) {
              layout.schedule = order.schedule;
              layout.vpp = order.vpp;
              layout.micro_batch = micro_batch;
              layout.zero_stage = sharding.zero_stage;
              layout.shard_group = sharding.shard_group;
              layout.set(recompute);
              layout.context = context.kind;
              layout.context_inner = context.inner;
              add(layout);
            }
}

void SearchSpace::add(const Layout& layout) {
  if (auto reason = invalid_reason(layout, model_, job_, gpus_))
    reject(std::move(*reason));
  else
    ready_.push_back(layout);
}

void SearchSpace::reject(std::string reason) {
  if (invalid_++ == 0) invalid_example_ = std::move(reason);
}

std::optional<Layout> SearchSpace::next() {
  while (next_ready_ == ready_.size()) {
    if (next_family_ == families_.size()) return std::nullopt;
    ready_.clear();
    next_ready_ = 0;
    fill(families_[next_family_++]);
  }
  return ready_[next_ready_++];
}

double SearchSpace::share() const {
  if (families_.empty()) return 1;
  return static_cast<double>(next_family_) / static_cast<double>(families_.size());
}

}  // namespace orrery
