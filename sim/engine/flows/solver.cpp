// SPDX-License-Identifier: Apache-2.0
// Fills links progressively: which saturate first, and what that leaves on the others.
#include "sim/engine/flows/solver.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "sim/base/errors/check.h"

namespace orrery {

namespace {
// A residual under this share of the capacity is rounding of the levels before it: nothing is left.
constexpr double residual_rounding = 0x1.0p-40;
// Of a level: far more than sums of weights round by.
constexpr double level_margin = 0x1.0p-20;

double weight_of(std::int64_t units) { return static_cast<double>(units) * weight_unit; }
}  // namespace

double FlowSolver::first_key(const Link& link) {
  return link.key >= 0 ? link.key : link.residual / weight_of(link.weight);
}

bool FlowSolver::Link::finite() const { return capacity < infinite; }

FlowSolver::FlowSolver(const FlowTable& table) {
  const std::size_t flows = table.flows.size();
  rate_.assign(flows, 0);
  running_.assign(flows, 0);
  unfixed_.assign(flows, 0);
  marks_.flow.assign(flows, 0);
  marks_.link.assign(table.links.size(), 0);
  for (const FlowEntry& flow : table.flows) {
    CHECK_THAT(flow.cap >= 0, "a flow's cap is negative or not a number");
    cap_.push_back(flow.cap);
    priority_.push_back(flow.priority);
    one_priority_ &= flow.priority == priority_.front();
  }
  for (const LinkEntry& link : table.links) {
    CHECK_THAT(link.capacity >= 0, "a link's capacity is negative or not a number");
    links_.push_back({.capacity = link.capacity});
  }
  index_uses(table);
}

void FlowSolver::index_uses(const FlowTable& table) {
  uses_.reserve(table.uses.size());
  first_use_.reserve(table.flows.size() + 1);
  std::vector<std::uint32_t> end(links_.size() + 1, 0);
  for (const FlowEntry& flow : table.flows) {
    first_use_.push_back(static_cast<std::uint32_t>(uses_.size()));
    for (const FlowUse& use : table.uses_of(flow)) {
      CHECK_THAT(use.link < links_.size(), "a flow uses a link that the table lacks");
      const std::int64_t units = weight_units(use.weight);
      if (units == 0) continue;
      uses_.push_back({.link = use.link, .slot = 0, .units = units});
      ++end[use.link + 1];
    }
  }
  first_use_.push_back(static_cast<std::uint32_t>(uses_.size()));
  for (std::size_t l = 0; l < links_.size(); ++l) {
    end[l + 1] += end[l];
    links_[l].first = end[l];
  }
  slots_.resize(uses_.size());
  for (FlowIndex f = 0; f < rate_.size(); ++f)
    for (std::uint32_t u = first_use_[f]; u < first_use_[f + 1]; ++u) {
      uses_[u].slot = end[uses_[u].link]++;
      slots_[uses_[u].slot] = {.use = u, .flow = f};
    }
}

void FlowSolver::move_slot(std::uint32_t use, std::uint32_t slot) {
  const std::uint32_t from = uses_[use].slot;
  std::swap(slots_[from], slots_[slot]);
  uses_[slots_[from].use].slot = from;
  uses_[use].slot = slot;
}

void FlowSolver::start(FlowIndex flow) {
  CHECK_THAT(!running_[flow], "a flow starts that runs already");
  running_[flow] = 1;
  touched_.from = 0;
  touched_.flows.push_back(flow);
  for (std::uint32_t u = first_use_[flow]; u < first_use_[flow + 1]; ++u) {
    Link& link = links_[uses_[u].link];
    move_slot(u, link.first + link.active++);
  }
}

void FlowSolver::stop(FlowIndex flow) {
  CHECK_THAT(running_[flow], "a flow stops that does not run");
  running_[flow] = 0;
  touched_.from = one_priority_ ? std::min(touched_.from, rate_[flow]) : 0;
  rate_[flow] = 0;
  for (std::uint32_t u = first_use_[flow]; u < first_use_[flow + 1]; ++u) {
    Link& link = links_[uses_[u].link];
    move_slot(u, link.first + --link.active);
    touched_.links.push_back(uses_[u].link);
  }
}

void FlowSolver::set_capacity(LinkIndex link, double bytes_per_second) {
  CHECK_THAT(bytes_per_second >= 0, "a link's capacity is negative or not a number");
  Link& l = links_[link];
  if (std::bit_cast<std::uint64_t>(l.capacity) == std::bit_cast<std::uint64_t>(bytes_per_second))
    return;
  l.capacity = bytes_per_second;
  touched_.from = 0;
  // Each of its flows is a seed: they need not hang together when it limits nothing any more.
  for (std::uint32_t s = l.first; s < l.first + l.active; ++s)
    touched_.flows.push_back(slots_[s].flow);
}

void FlowSolver::reach_flow(FlowIndex flow) {
  if (marks_.flow[flow] == marks_.epoch || !running_[flow] || rate_[flow] < touched_.from) return;
  marks_.flow[flow] = marks_.epoch;
  component_.push_back(flow);
  for (const Use& use : uses_of(flow)) {
    if (marks_.link[use.link] == marks_.epoch || !links_[use.link].finite()) continue;
    marks_.link[use.link] = marks_.epoch;
    stack_.push_back(use.link);
  }
}

// Walks from what changed over running flows and finite links.
void FlowSolver::collect_component() {
  if (++marks_.epoch == 0) {
    std::fill(marks_.flow.begin(), marks_.flow.end(), 0);
    std::fill(marks_.link.begin(), marks_.link.end(), 0);
    marks_.epoch = 1;
  }
  component_.clear();
  stack_.clear();
  touched_.from -= touched_.from * level_margin;
  for (const FlowIndex flow : touched_.flows) reach_flow(flow);
  for (const LinkIndex link : touched_.links) {
    if (marks_.link[link] == marks_.epoch || !links_[link].finite()) continue;
    marks_.link[link] = marks_.epoch;
    stack_.push_back(link);
  }
  touched_.flows.clear();
  touched_.links.clear();
  while (!stack_.empty()) {
    Link& link = links_[stack_.back()];
    stack_.pop_back();
    keep_slower(link);
    for (std::uint32_t s = link.first; s < link.first + link.active; ++s)
      reach_flow(slots_[s].flow);
  }
  touched_.from = infinite;
}

// Brings a link to where the filling reaches touched_.from: slower flows were fixed, level by
// level, and its key was looked at whenever it came up.
void FlowSolver::keep_slower(Link& link) {
  link.residual = link.capacity;
  link.key = -1;
  if (touched_.from == 0) return;
  slower_.clear();
  std::int64_t units = 0;
  for (std::uint32_t s = link.first; s < link.first + link.active; ++s) {
    const double rate = rate_[slots_[s].flow];
    const std::int64_t own = uses_[slots_[s].use].units;
    units += own;
    if (rate < touched_.from) slower_.emplace_back(rate, own);
  }
  std::sort(slower_.begin(), slower_.end());
  double key = link.residual / weight_of(units);
  for (std::size_t i = 0; i < slower_.size();) {
    const double level = slower_[i].first;
    if (key <= level) key = std::max(key, link.residual / weight_of(units));
    std::int64_t fixed = 0;
    for (; i < slower_.size() && slower_[i].first == level; ++i) fixed += slower_[i].second;
    link.residual -= level * weight_of(fixed);
    units -= fixed;
  }
  link.key = key;
}

std::span<const FlowIndex> FlowSolver::solve() {
  changed_.clear();
  collect_component();
  const auto higher = [this](FlowIndex a, FlowIndex b) { return priority_[a] > priority_[b]; };
  if (!std::is_sorted(component_.begin(), component_.end(), higher))
    std::sort(component_.begin(), component_.end(), higher);
  for (auto first = component_.begin(); first != component_.end();) {
    const auto last = std::upper_bound(first, component_.end(), *first, higher);
    fill({first, last});
    first = last;
  }
  sort_changed();
  return changed_;
}

// None is there twice. Where many changed, a bit for each flow costs less than comparing them.
void FlowSolver::sort_changed() {
  constexpr std::size_t width = 64;
  const std::size_t words = (rate_.size() + width - 1) / width;
  if (changed_.size() < words) {
    std::sort(changed_.begin(), changed_.end());
    return;
  }
  bits_.assign(words, 0);
  for (const FlowIndex flow : changed_) bits_[flow / width] |= std::uint64_t{1} << (flow % width);
  changed_.clear();
  for (std::size_t w = 0; w < words; ++w)
    for (std::uint64_t left = bits_[w]; left != 0; left &= left - 1)
      changed_.push_back(
          static_cast<FlowIndex>(w * width + static_cast<std::size_t>(std::countr_zero(left))));
}

// The keys in the heap are never above the level at which a link truly saturates, since fixing
// flows at a lower level only raises it: a link is looked at again when its key comes up. Where
// rounding says less than the key, the key counts, so that levels rise strictly. Every link's
// sequence of keys, levels and residuals depends on nothing but its own component, and is the same
// for all links of a class (laws 4, 5).
void FlowSolver::fill(std::span<const FlowIndex> flows) {
  filled_.clear();
  heap_.clear();
  left_ = flows.size();
  for (const FlowIndex flow : flows) {
    unfixed_[flow] = 1;
    if (cap_[flow] < infinite) heap_.push_back({cap_[flow], flow, true});
    for (const Use& use : uses_of(flow)) {
      Link& link = links_[use.link];
      if (!link.finite()) continue;
      if (link.weight == 0) filled_.push_back(use.link);
      link.weight += use.units;
    }
  }
  for (const LinkIndex l : filled_) heap_.push_back({first_key(links_[l]), l, false});
  std::make_heap(heap_.begin(), heap_.end(), later);
  while (left_ > 0) {
    CHECK_THAT(!heap_.empty(), "a flow has neither a finite link nor a cap");
    gather_level();
    for (const FlowIndex flow : capped_) fix(flow);
    for (const LinkIndex l : saturated_) {
      const Link& link = links_[l];
      for (std::uint32_t s = link.first; s < link.first + link.active; ++s) fix(slots_[s].flow);
    }
    apply_level();
  }
  for (const LinkIndex l : filled_) {
    Link& link = links_[l];
    if (link.residual <= link.capacity * residual_rounding) link.residual = 0;
  }
}

// The least level, and all that saturates at it to the bit.
void FlowSolver::gather_level() {
  capped_.clear();
  saturated_.clear();
  level_ = heap_.front().level;
  while (!heap_.empty() && heap_.front().level == level_) {
    const Limit limit = heap_.front();
    std::pop_heap(heap_.begin(), heap_.end(), later);
    heap_.pop_back();
    if (limit.cap) {
      capped_.push_back(limit.index);
      continue;
    }
    const Link& link = links_[limit.index];
    if (link.weight == 0) continue;  // other links fixed all its flows
    const double level = link.residual / weight_of(link.weight);
    if (level > level_) {
      heap_.push_back({level, limit.index, false});
      std::push_heap(heap_.begin(), heap_.end(), later);
    } else {
      saturated_.push_back(limit.index);
    }
  }
}

void FlowSolver::fix(FlowIndex flow) {
  if (!unfixed_[flow]) return;
  unfixed_[flow] = 0;
  --left_;
  if (std::bit_cast<std::uint64_t>(rate_[flow]) != std::bit_cast<std::uint64_t>(level_)) {
    rate_[flow] = level_;
    changed_.push_back(flow);
  }
  for (const Use& use : uses_of(flow)) {
    Link& link = links_[use.link];
    if (!link.finite()) continue;
    if (link.fixed == 0) affected_.push_back(use.link);
    link.fixed += use.units;
  }
}

// One subtraction per link and level, of an exact weight: the order of the flows leaves no trace.
void FlowSolver::apply_level() {
  for (const LinkIndex l : affected_) {
    Link& link = links_[l];
    link.residual -= level_ * weight_of(link.fixed);
    link.weight -= link.fixed;
    link.fixed = 0;
  }
  affected_.clear();
}

double FlowSolver::load(LinkIndex link) const {
  const Link& l = links_[link];
  std::vector<std::uint32_t> uses;  // in the table's order, so that history leaves no trace
  for (std::uint32_t s = l.first; s < l.first + l.active; ++s) uses.push_back(slots_[s].use);
  std::sort(uses.begin(), uses.end());
  double sum = 0;
  for (const std::uint32_t u : uses)
    sum += weight_of(uses_[u].units) * rate_[slots_[uses_[u].slot].flow];
  return sum;
}

}  // namespace orrery
