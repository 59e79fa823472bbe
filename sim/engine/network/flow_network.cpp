// SPDX-License-Identifier: Apache-2.0
// Knows how collectives end on the network as it is wired: shared links, hashing, faults, others.
#include "sim/engine/network/flow_network.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <span>

#include "sim/base/errors/check.h"
#include "sim/engine/flows/last_end.h"
#include "sim/engine/flows/short_job.h"
#include "sim/engine/network/flow_memory.h"
#include "sim/engine/network/loaded_transfer.h"

namespace orrery {
namespace {

constexpr std::size_t nobody = SIZE_MAX;

Folded unfolded(const FlowTable& table) {
  Folded f{.table = table};
  f.flow_class.resize(table.flows.size());
  std::iota(f.flow_class.begin(), f.flow_class.end(), FlowIndex{0});
  f.representative = f.flow_class;
  f.link_class.resize(table.links.size());
  std::iota(f.link_class.begin(), f.link_class.end(), LinkIndex{0});
  return f;
}

// The first flow of every class of a range.
std::vector<FlowIndex> one_of_each(const Folded& folded, const FlowRange& range) {
  std::vector<FlowIndex> flows;
  std::vector<char> seen(folded.table.flows.size(), 0);
  for (FlowIndex f = range.first; f < range.last; ++f) {
    if (seen[folded.flow_class[f]]) continue;
    seen[folded.flow_class[f]] = 1;
    flows.push_back(f);
  }
  return flows;
}

// Bytes that the shares of a collective's flows refer to.
double rank_bytes(const FlowRange& range, const CollectiveTime& alone) {
  return (range.crosses ? alone.scale_out_bytes : alone.scale_up_bytes).si();
}

Ticks latency(const CollectiveTime& alone) {
  return to_ticks(std::max(Seconds(0), alone.time - alone.transfer));
}

void start_background(const FlowTable& table, FlowClock& clock, Ticks now) {
  for (FlowIndex f = 0; f < table.flows.size(); ++f)
    if (std::isinf(table.flows[f].bytes)) clock.start(f, now);
}

// Bytes by the highest layer that each flow passes.
void add_layers(const FlowGround& ground, const FlowRange& range, double bytes, FlowPrice& price) {
  const FlowTable& table = ground.table();
  for (FlowIndex f = range.first; f < range.last; ++f) {
    const FlowEntry& flow = table.flows[f];
    int layer = 0;
    for (const FlowUse& use : table.uses_of(flow)) {
      layer = std::max(layer, ground.tier(use.link));
      if (ground.tier(use.link) == 0 && range.crosses)
        price.bytes[0] += flow.bytes * bytes * flow.count * use.weight;
    }
    price.bytes[static_cast<std::size_t>(layer)] += flow.bytes * bytes * flow.count;
  }
}

// Stages wait for their own flows: those that start in their domains. A domain that several stages
// share belongs to each of them.
void add_stages(const FlowGround& ground, const Folded& folded, const FlowRange& range,
                const std::vector<Ticks>& ends, const CollectiveTime& alone, FlowPrice& price) {
  const JobGround& job = ground.job();
  std::vector<Ticks> last(static_cast<std::size_t>(job.stages));
  const auto stage_of = [&](std::int64_t rank) {
    return std::min(rank, job.ranks - 1) * job.stages / job.ranks;
  };
  for (FlowIndex f = range.first; f < range.last; ++f) {
    const std::int64_t first = ground.home(f) * job.ranks_per_domain;
    for (std::int64_t s = stage_of(first); s <= stage_of(first + job.ranks_per_domain - 1); ++s) {
      Ticks& end = last[static_cast<std::size_t>(s)];
      end = max(end, ends[folded.flow_class[f]]);
    }
  }
  for (const Ticks end : last) {
    price.by_stage.push_back(price.time);
    if (end == Ticks{}) continue;  // none starts here, as with sends of the last stage
    price.by_stage.back().transfer = to_seconds(end);
    price.by_stage.back().time = to_seconds(latency(alone) + end);
  }
}

// On a better network all stages are as slow as the one with the slowest paths (which one that is
// only the cluster knows); none is faster than that because something else is broken or busy, or
// because domains are farther apart.
void not_below(const CollectiveTime& better, FlowPrice& price) {
  const auto raise = [&](CollectiveTime& time) {
    if (time.time < better.time) time = better;
  };
  raise(price.time);
  for (CollectiveTime& stage : price.by_stage) raise(stage);
}

void find_busiest(const FlowGround& ground, const Folded& folded, const FlowRange& range,
                  double bytes, double seconds, FlowPrice& price) {
  if (!(seconds > 0)) return;
  std::vector<double> carried(folded.table.links.size(), 0);
  for (const FlowIndex f : one_of_each(folded, range)) {
    const FlowEntry& flow = folded.table.flows[folded.flow_class[f]];
    for (const FlowUse& use : folded.table.uses_of(flow))
      carried[use.link] += use.weight * ground.table().flows[f].bytes * bytes;
  }
  std::vector<LinkIndex> example(carried.size(), 0);
  for (LinkIndex l = static_cast<LinkIndex>(folded.link_class.size()); l-- > 0;)
    example[folded.link_class[l]] = l;
  std::vector<LinkIndex> order;
  for (LinkIndex c = 0; c < carried.size(); ++c)
    if (carried[c] > 0 && ground.tier(example[c]) > 0) order.push_back(c);
  const auto load = [&](LinkIndex c) {
    const double capacity = folded.table.links[c].capacity;
    return capacity > 0 ? carried[c] / capacity / seconds : 0;
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](LinkIndex a, LinkIndex b) { return load(a) > load(b); });
  for (std::size_t i = 0; i < std::min<std::size_t>(3, order.size()); ++i)
    price.busiest.push_back({.name = ground.describe(example[order[i]]),
                             .load = load(order[i]),
                             .links = folded.table.links[order[i]].count});
}

std::optional<ShortJob> short_job(const Collective& collective, const CollectiveTime& alone,
                                  const Fabric& fabric, const JobGround& job,
                                  const Conditions& conditions, const FlowOptions& options) {
  const bool hashed = fabric.scale_out.routing == Routing::ecmp && !options.spread_hashed;
  if (!options.folded || !conditions.healthy_network() || hashed) return std::nullopt;
  return shorten(collective, alone.algorithm, clos_shape(fabric, job.domains() * job.domain), job);
}

// When each class of a collective's flows ends.
std::vector<Ticks> ends_of(const FlowGround& ground, const Folded& folded, const FlowRange& range,
                           double bytes) {
  FlowClock clock(folded.table);
  start_background(folded.table, clock, {});
  for (const FlowIndex f : one_of_each(folded, range))
    clock.start(folded.flow_class[f], ground.table().flows[f].bytes * bytes, {});
  std::vector<Ticks> ends(folded.table.flows.size());
  while (const auto ended = clock.next()) ends[ended->flow] = ended->time;
  return ends;
}

void set_transfer(Ticks end, const CollectiveTime& alone, FlowPrice& price) {
  price.time.transfer = to_seconds(end);
  price.time.time = to_seconds(latency(alone) + end);
}

// Messages between stages are each stage's own, on a healthy network too: hashing favours some.
bool stages_differ(const Collective& collective, bool is_short, const JobGround& job,
                   const Conditions& conditions) {
  const bool between_stages = collective.kind == CollectiveKind::send_receive && !is_short;
  return (!conditions.healthy_network() || between_stages) && job.stages > 1;
}

// A collective's flows alone. They are folded where that is worth it: hashed ones never are alike.
void run_alone(const FlowGround& ground, const FlowRange& range, double bytes,
               const CollectiveTime& alone, const Collective& collective,
               const Conditions& conditions, FlowPrice& price) {
  const bool by_stage = stages_differ(collective, false, ground.job(), conditions);
  if (!by_stage && conditions.background.empty())
    if (const auto end = last_end(ground.table(), bytes)) return set_transfer(*end, alone, price);
  const Folded folded = ground.hashed() ? unfolded(ground.table()) : fold(ground.table());
  const std::vector<Ticks> ends = ends_of(ground, folded, range, bytes);
  set_transfer(*std::max_element(ends.begin(), ends.end()), alone, price);
  if (by_stage) add_stages(ground, folded, range, ends, alone, price);
}

bool is_large(const JobGround& job) { return job.domains() > most_shared_domains; }

// Some of the domains of a scattered job, about as many as asked for: of the groups of a tier that
// it is on some that are evenly chosen, at least two, whole; where these are too much, the same
// share of each, taken likewise. Leaves and pods are as full as in the job as far as they fit.
class SharedDomains {
 public:
  SharedDomains(const JobGround& job, const Fabric& fabric) : job_(job), fabric_(fabric) {
    const auto tiers = fabric.scale_out.tiers.size();
    take(job.domain_at, static_cast<std::size_t>(most_shared_domains), tiers);
  }
  std::vector<std::int64_t> taken;

 private:
  using Domains = std::span<const std::int64_t>;
  // `tiers`: those whose groups may still divide them.
  void take(Domains from, std::size_t count, std::size_t tiers) {
    if (tiers == 0 || from.size() <= count) {
      const Domains first = from.first(std::min(count, from.size()));
      taken.insert(taken.end(), first.begin(), first.end());
      return;
    }
    const std::vector<Domains> groups = groups_of(from, fabric_.scale_out.tiers[tiers - 1].reach);
    const std::size_t all = groups.size();
    const std::size_t chosen = std::min(all, std::max<std::size_t>(2, all * count / from.size()));
    const auto nth = [&](std::size_t i) { return groups[(2 * i + 1) * all / (2 * chosen)]; };
    std::size_t sum = 0;
    for (std::size_t i = 0; i < chosen; ++i) sum += nth(i).size();
    for (std::size_t i = 0; i < chosen; ++i) {
      const std::size_t whole = nth(i).size();
      take(nth(i), sum <= count ? whole : std::max<std::size_t>(1, whole * count / sum), tiers - 1);
    }
  }
  std::vector<Domains> groups_of(Domains from, std::int64_t reach) const {
    const auto group = [&](std::int64_t at) { return reach == 0 ? 0 : at * job_.domain / reach; };
    std::vector<Domains> groups;
    for (std::size_t begin = 0, end = 1; begin < from.size(); begin = end++) {
      while (end < from.size() && group(from[end]) == group(from[begin])) ++end;
      groups.push_back(from.subspan(begin, end - begin));
    }
    return groups;
  }

  const JobGround& job_;
  const Fabric& fabric_;
};

JobGround shared_part(JobGround job, const Fabric& fabric) {
  if (!is_large(job)) return job;
  if (job.scattered()) job.domain_at = SharedDomains(job, fabric).taken;
  job.ranks =
      job.ranks_per_domain * (job.scattered() ? std::ssize(job.domain_at) : most_shared_domains);
  return job;
}

// The same neighbours as far as they are in the part, else halfway across it.
Collective shared_part(Collective c) {
  GroupShape& g = c.group;
  g.domain_step = std::min(g.domain_step, most_shared_domains / 2);
  g.domains = std::min(g.domains, most_shared_domains / std::max<std::int64_t>(1, g.domain_step));
  return c;
}

}  // namespace

FlowPrice flow_price(const Collective& collective, const Fabric& fabric,
                     const CollectiveCosts& costs, const JobGround& job,
                     const Conditions& conditions, const FlowOptions& options) {
  const CollectiveTime alone = collective_time(collective, fabric, costs);
  FlowPrice price{.time = alone};
  price.undisturbed = alone.time - alone.transfer + loaded_transfer(collective, alone, fabric, job);
  // Inside a healthy domain nothing is shared that the alpha-beta model does not know.
  if (collective.group.domains <= 1 && conditions.scale_up_faults.empty()) return price;
  const auto small = short_job(collective, alone, fabric, job, conditions, options);
  FlowGround ground = small ? FlowGround(fabric, small->shape, small->job, options)
                            : FlowGround(fabric, job, conditions, options);
  const FlowRange range = ground.add(small ? small->collective : collective, alone);
  if (range.first == range.last) return price;
  const Folded folded = options.folded ? fold(ground.table()) : unfolded(ground.table());
  price.flows = ground.table().flows.size();
  price.classes = folded.table.flows.size();
  const double bytes = rank_bytes(range, alone);
  const std::vector<Ticks> ends = ends_of(ground, folded, range, bytes);
  const Ticks end = *std::max_element(ends.begin(), ends.end());
  set_transfer(end, alone, price);
  if (stages_differ(collective, small.has_value(), job, conditions))
    add_stages(ground, folded, range, ends, alone, price);
  add_layers(ground, range, bytes, price);
  if (small)
    for (std::size_t i = 0; i < price.bytes.size(); ++i) price.bytes[i] *= small->layer_scale[i];
  find_busiest(ground, folded, range, bytes, to_seconds(end).si(), price);
  return price;
}

FlowNetwork::FlowNetwork(const Fabric& fabric, const CollectiveCosts& costs, const JobGround& job,
                         const Conditions& conditions, const FlowOptions& options,
                         FlowMemory* memory)
    : fabric_(fabric),
      costs_(costs),
      conditions_(conditions),
      memory_(memory),
      options_(options),
      job_(job),
      ground_(std::in_place, fabric, shared_part(job, fabric),
              is_large(job) ? Conditions{} : conditions, options) {}

std::size_t FlowNetwork::instance_for(const Collective& collective, const CollectiveTime& alone) {
  Collective like = collective;
  like.bytes = {};
  const auto rate = [](const CollectiveTime& t, Bytes bytes) {
    return std::bit_cast<std::uint64_t>(t.transfer.si() > 0 ? (bytes / t.transfer).si() : 0.0);
  };
  for (std::size_t i = 0; i < instances_.size(); ++i) {
    const Instance& other = instances_[i];
    if (!other.busy && other.like == like && other.alone.algorithm == alone.algorithm &&
        other.alone.protocol == alone.protocol &&
        rate(other.alone, other.alone.scale_up_bytes) == rate(alone, alone.scale_up_bytes) &&
        rate(other.alone, other.alone.scale_out_bytes) == rate(alone, alone.scale_out_bytes))
      return i;
  }
  instances_.push_back({.like = like, .alone = alone, .range = ground_->add(collective, alone)});
  return instances_.size() - 1;
}

CollectiveId FlowNetwork::start(const Collective& collective, Ticks time) {
  const CollectiveTime alone = collective_time(collective, fabric_, costs_);
  const std::size_t instance =
      instance_for(is_large(job_) ? shared_part(collective) : collective, alone);
  instances_[instance].busy = true;
  const CollectiveId id{started_++};
  begins_.push(time + latency(alone),
               {.kind = 0, .a = static_cast<std::int64_t>(running_.size()), .b = 0});
  running_.push_back(
      {.id = id, .instance = instance, .bytes = rank_bytes(instances_[instance].range, alone)});
  return id;
}

// New collectives split classes; what runs goes on in the parts with what it has left.
void FlowNetwork::refold(Ticks now) {
  if (clock_ && folded_flows_ == ground_->table().flows.size()) return;
  folded_flows_ = ground_->table().flows.size();
  const std::vector<FlowIndex> old_class = std::move(folded_.flow_class);
  const std::vector<std::size_t> old_owner = std::move(owner_);
  const std::unique_ptr<FlowClock> old_clock = std::move(clock_);
  const FlowTable old_table = std::move(folded_.table);
  folded_ = options_.folded ? fold(ground_->table()) : unfolded(ground_->table());
  clock_ = std::make_unique<FlowClock>(folded_.table);
  owner_.assign(folded_.table.flows.size(), nobody);
  start_background(folded_.table, *clock_, now);
  for (Running& r : running_) r.left = 0;
  for (FlowIndex c = 0; c < owner_.size(); ++c) {
    const FlowIndex flow = folded_.representative[c];
    if (flow >= old_class.size()) continue;
    const std::size_t owner = old_owner[old_class[flow]];
    if (owner == nobody) continue;
    // Not its size less what moved: it may be in its second table already.
    clock_->start(c, old_clock->bytes_left(old_class[flow]), now);
    owner_[c] = owner;
    ++running_[owner].left;
  }
}

void FlowNetwork::begin_flows(std::size_t running, Ticks now) {
  refold(now);
  Running& r = running_[running];
  for (const FlowIndex f : one_of_each(folded_, instances_[r.instance].range)) {
    const FlowIndex c = folded_.flow_class[f];
    clock_->start(c, r.bytes * ground_->table().flows[f].bytes, now);
    owner_[c] = running;
    ++r.left;
  }
}

std::optional<Completion> FlowNetwork::next_completion() {
  while (true) {
    Ticks begin;
    Event event;
    const bool waits = begins_.peek(begin);
    std::optional<FlowClock::End> end;
    if (clock_) end = waits ? clock_->next_until(begin) : clock_->next();
    std::size_t owner;
    Ticks time;
    if (end) {
      owner = owner_[end->flow];
      owner_[end->flow] = nobody;
      time = end->time;
      --running_[owner].left;
    } else if (waits) {
      begins_.pop(time, event);
      owner = static_cast<std::size_t>(event.a);
      begin_flows(owner, time);
    } else {
      return std::nullopt;
    }
    if (running_[owner].left > 0) continue;
    instances_[running_[owner].instance].busy = false;
    now_ = time;
    return Completion{.id = running_[owner].id, .time = time};
  }
}

// flow_price() without what only reports read.
FlowPrice FlowNetwork::price_ends(const Collective& collective) {
  const CollectiveTime alone = collective_time(collective, fabric_, costs_);
  FlowPrice price{.time = alone};
  if (collective.group.domains <= 1 && conditions_.scale_up_faults.empty()) return price;
  if (short_job(collective, alone, fabric_, job_, conditions_, options_))
    return flow_price(collective, fabric_, costs_, job_, conditions_, options_);
  const LaidFlows::Laid& laid = laid_flows().of(collective, alone);
  if (laid.range.first == laid.range.last) return price;
  const double bytes = rank_bytes(laid.range, alone);
  run_alone(laid.ground, laid.range, bytes, alone, collective, conditions_, price);
  add_layers(laid.ground, laid.range, bytes, price);
  return price;
}

LaidFlows& FlowNetwork::laid_flows() {
  if (memory_ != nullptr && job_.scattered() && conditions_.healthy_network())
    return memory_->place(fabric_, job_, conditions_.seed, options_);
  if (!laid_) laid_ = std::make_unique<LaidFlows>(fabric_, job_, conditions_, options_);
  return *laid_;
}

const FlowPrice& FlowNetwork::details(const Collective& collective) {
  const auto known = memo_.find(collective);
  if (known != memo_.end()) return known->second;
  FlowPrice price = options_.ends_only
                        ? price_ends(collective)
                        : flow_price(collective, fabric_, costs_, job_, conditions_, options_);
  if (FlowNetwork* whole = better()) not_below(whole->details(collective).time, price);
  return memo_.emplace(collective, std::move(price)).first->second;
}

FlowNetwork* FlowNetwork::better() {
  const bool healthy = conditions_.healthy_network();
  if (healthy && !job_.scattered()) return nullptr;
  if (better_ != nullptr) return better_;
  const JobGround job = healthy ? job_.side_by_side() : job_;
  if (memory_ != nullptr)
    return better_ = &memory_->network(fabric_, costs_, job, conditions_, options_);
  own_better_ = std::make_unique<FlowNetwork>(fabric_, costs_, job,
                                              Conditions{.seed = conditions_.seed}, options_);
  return better_ = own_better_.get();
}

const TwoStreams* FlowNetwork::known(std::span<const StreamItem> main,
                                     std::span<const StreamItem> side) const {
  const auto like = [&](const Streams& s) {
    return std::equal(s.main.begin(), s.main.end(), main.begin(), main.end()) &&
           std::equal(s.side.begin(), s.side.end(), side.begin(), side.end());
  };
  const auto found = std::find_if(streams_.begin(), streams_.end(), like);
  return found == streams_.end() ? nullptr : &found->took;
}

// Of a scattered job no two networks are alike, and one network is asked once.
void FlowNetwork::remember(std::span<const StreamItem> main, std::span<const StreamItem> side,
                           const TwoStreams& streams) {
  if (memory_ == nullptr || job_.scattered()) return;
  streams_.push_back({{main.begin(), main.end()}, {side.begin(), side.end()}, streams});
  forget_flows();
}

// All have ended; others would only look at their links.
void FlowNetwork::forget_flows() {
  ground_.emplace(fabric_, shared_part(job_, fabric_), is_large(job_) ? Conditions{} : conditions_,
                  options_);
  folded_ = {};
  clock_.reset();
  folded_flows_ = 0;
  instances_.clear();
  running_.clear();
  owner_.clear();
  begins_ = {};
  now_ = {};
}

const CollectiveTime& FlowNetwork::price(const Collective& collective, std::int64_t stage) {
  const FlowPrice& price = details(collective);
  return price.by_stage.empty() ? price.time : price.by_stage[static_cast<std::size_t>(stage)];
}

}  // namespace orrery
