// SPDX-License-Identifier: Apache-2.0
// Prices the steps of an engine and leaps over those that nothing interrupts.
#include "sim/engine/serving/replica.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/base/errors/check.h"
#include "sim/base/random.h"

namespace orrery {
namespace {

std::int64_t running_of(const std::vector<Rank>& ranks) {
  std::int64_t sum = 0;
  for (const Rank& rank : ranks) sum += rank.running();
  return sum;
}

std::int64_t waiting_of(const std::vector<Rank>& ranks) {
  std::int64_t sum = 0;
  for (const Rank& rank : ranks) sum += rank.waiting();
  return sum;
}

// Whether what was planned computes some.
bool with_prompts(const std::vector<Rank>& ranks) {
  return std::any_of(ranks.begin(), ranks.end(),
                     [](const Rank& rank) { return !rank.plan().shape.chunks.empty(); });
}

}  // namespace

Replica::Replica(const ServingRun& run, ServingLedger& ledger, std::int32_t number)
    : run_(run),
      ledger_(ledger),
      scheduler_(make_scheduler(run.policy)),
      lanes_(static_cast<std::size_t>(run.shape.lanes)),
      number_(number),
      next_(end_of_time) {
  for (Lane& lane : lanes_) {
    lane.next = end_of_time;
    lane.ranks.reserve(static_cast<std::size_t>(run.shape.ranks));
    for (std::int64_t i = 0; i < run.shape.ranks; ++i) lane.ranks.emplace_back(run, ledger);
  }
}

bool Replica::busy() const {
  return std::all_of(lanes_.begin(), lanes_.end(), [](const Lane& lane) { return lane.busy(); });
}

std::int64_t Replica::waiting(const Lane& lane, std::size_t rank) {
  const auto own = [rank](const auto& one) { return one.first == rank; };
  return lane.ranks[rank].waiting() + std::count_if(lane.unseen.begin(), lane.unseen.end(), own);
}

std::pair<std::size_t, std::size_t> Replica::choose() const {
  const std::size_t ranks = lanes_.front().ranks.size();
  if (run_.policy.rank_choice == RankChoice::round_robin) return {turn_ / ranks, turn_ % ranks};
  std::pair<std::size_t, std::size_t> best;
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (std::size_t lane = 0; lane < lanes_.size(); ++lane)
    for (std::size_t i = 0; i < ranks; ++i) {
      const std::int64_t all = waiting(lanes_[lane], i) + lanes_[lane].ranks[i].running();
      if (all >= least) continue;
      least = all;
      best = {lane, i};
    }
  return best;
}

std::int64_t Replica::waiting() const {
  const auto [lane, rank] = choose();
  return waiting(lanes_[lane], rank);
}

bool Replica::enqueue(Ticks now, const Waiting& waiting) {
  const auto [number, rank] = choose();
  if (++turn_ == lanes_.size() * lanes_.front().ranks.size()) turn_ = 0;
  Lane& lane = lanes_[number];
  Rank& to = lane.ranks[rank];
  to.arrived(now, waiting);
  const bool stops = lane.busy() && matters(lane, to, waiting, now);
  const Ticks before = lane.next;
  if (stops) cut(lane, now);
  if (stops && now < lane.next && next_is_planned(lane, now))
    lane.unseen.emplace_back(rank, waiting);
  else
    to.enqueue(waiting);
  if (!stops || lane.next == before) return false;
  next_ = min(next_, lane.next);
  return true;
}

// Whether the steps that were planned must stop for a request. The first step of a leap may hold
// prompts back and the one that runs now let them in, or the other way. While they are held the
// host that plans the next step does not see what comes; else a full rank needs not stop.
bool Replica::matters(const Lane& lane, const Rank& to, const Waiting& waiting, Ticks now) const {
  if (!lane.counts) return to.matters(waiting);
  const std::int64_t done = steps_before(lane, now);
  if ((lane.held + done) % run_.policy.balance_steps > 0) return true;
  if (lane.held == 0) return to.matters(waiting);
  const bool room = to.running() < run_.policy.max_sequences;
  return to.matters(waiting, room && to.waiting() == 0);
}

// Of the step that is planned: that of the rank whose host takes longest.
Ticks Replica::launching(const Lane& lane) const {
  if (!with_prompts(lane.ranks)) return {};
  Ticks longest;
  for (const Rank& rank : lane.ranks)
    longest = max(longest, run_.prices.launching(rank.plan().shape, lane.steps.first));
  return longest;
}

// While the last of its steps runs.
bool Replica::next_is_planned(const Lane& lane, Ticks now) const {
  if (!run_.shape.plans_ahead) return false;
  return now > lane.steps.after(lane.steps.steps - 1) + launching(lane);
}

// The host began to launch the step that starts now as soon as the one before was launched, and
// reads that one's tokens when it is done with it.
void Replica::read_late(Lane& lane, Ticks now) {
  if (!run_.shape.reads_after_launch || lane.ended != now || lanes_.size() > 1) return;
  late_ = max(Ticks{}, launching(lane) - lane.after_launching);
  // Where other engines decode, those hand out the first tokens.
  if (late_ > Ticks{} && !run_.shape.prefill_only)
    for (Rank& rank : lane.ranks) rank.delay_first_tokens(late_);
}

// What came while the step before ran: the one that was planned then starts without it. Where
// nothing was planned the host sees it now.
void Replica::take_in(Lane& lane, Ticks now) {
  if (lane.unseen.empty()) return;
  bool matters = false;
  for (const auto& [rank, waiting] : lane.unseen) {
    matters = lane.ranks[rank].matters(waiting) || matters;
    lane.ranks[rank].enqueue(waiting);
  }
  lane.unseen.clear();
  if (!lane.busy()) {
    lane.ended = Ticks{-1};  // the host has read what that step made
    start(lane, now);
  } else if (matters) {
    cut(lane, now + Ticks{1});
  }
}

// Steps that ended before the time, of those that are planned; the last one never counts.
std::int64_t Replica::steps_before(const Lane& lane, Ticks now) {
  std::int64_t low = 0, high = lane.steps.steps;  // ended before now; not before
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    (lane.steps.after(middle) < now ? low : high) = middle;
  }
  return low;
}

// The steps end with the one during which, or at whose end, the time comes.
void Replica::cut(Lane& lane, Ticks now) {
  lane.steps.steps = steps_before(lane, now) + 1;
  lane.next = lane.steps.end();
}

void Replica::settle(Ticks now, std::vector<std::uint32_t>& ended) {
  for (Lane& lane : lanes_)
    if (lane.busy() && lane.next == now) settle(lane, now, ended);
}

void Replica::count(const Lane& lane, Ticks now) {
  ServiceTotals& totals = ledger_.totals;
  const std::int64_t steps = lane.steps.steps, lasted = (now - lane.steps.start).ps;
  bool decodes = false, prompts = false;
  for (const Rank& rank : lane.ranks) {
    decodes = decodes || rank.plan().shape.decodes > 0;
    prompts = prompts || !rank.plan().parts.empty();
  }
  totals.steps += steps;
  totals.busy += lasted;
  if (!prompts) {
    totals.decode_steps += steps;
    totals.decode_time += lasted;
  } else if (decodes) {
    totals.mixed_steps += steps;
    totals.mixed_time += lasted;
  }
}

void Replica::settle(Lane& lane, Ticks now, std::vector<std::uint32_t>& ended) {
  CHECK_THAT(now == lane.steps.end(), "an engine's steps end at another time");
  count(lane, now);
  const StepRun made = lane.steps;
  lane.ended = now;
  lane.after_launching = max(Ticks{}, now - made.after(made.steps - 1) - launching(lane));
  const StepRecord steps = ledger_.log ? record(lane) : StepRecord{};
  if (lane.counts) lane.held = (lane.held + made.steps - 1) % run_.policy.balance_steps;
  lane.steps.steps = 0;
  for (Rank& rank : lane.ranks) {
    const bool alone = rank.plan().shape.decodes > 0 && rank.plan().parts.empty();
    rank.settle(made, ended);
    if (alone) scheduler_->stepped(rank, made.steps);
  }
  if (ledger_.log) keep(steps, lane);
}

// What the lane's steps computed, before they are settled.
StepRecord Replica::record(const Lane& lane) const {
  StepRecord record{.start = lane.steps.start,
                    .end = lane.steps.end(),
                    .replica = number_,
                    .lane = static_cast<std::int32_t>(&lane - lanes_.data()),
                    .steps = lane.steps.steps,
                    .running = lane.running,
                    .queued = lane.queued};
  for (const Rank& rank : lane.ranks) {
    record.decodes += rank.plan().shape.decodes;
    for (const RankPlan::Part& part : rank.plan().parts) record.prompt_tokens += part.tokens;
  }
  return record;
}

void Replica::keep(StepRecord record, const Lane& lane) {
  StepLog& log = *ledger_.log;
  log.cut = log.cut || kept_ == log.most;
  if (kept_ == log.most) return;
  ++kept_;
  record.running_after = running_of(lane.ranks);
  record.queued_after = waiting_of(lane.ranks);
  log.steps.push_back(record);
}

void Replica::sent(std::uint32_t request) {
  for (Lane& lane : lanes_)
    for (Rank& rank : lane.ranks)
      if (rank.sent(request)) return;
}

void Replica::start(Ticks now) {
  next_ = end_of_time;
  for (Lane& lane : lanes_) {
    if (!lane.busy()) start(lane, now);
    next_ = min(next_, lane.next);
  }
}

void Replica::start(Lane& lane, Ticks now) {
  lane.steps = {.start = now, .steps = 0};
  lane.next = end_of_time;
  late_ = {};
  if (now < entrance_) {
    const bool idle = std::all_of(lane.ranks.begin(), lane.ranks.end(),
                                  [](const Rank& rank) { return rank.idle(); });
    if (!idle || !lane.unseen.empty()) lane.next = entrance_;
    return;
  }
  hold_prompts(lane);
  for (Rank& rank : lane.ranks) {
    const std::int64_t most = scheduler_->plan(rank, now).most_steps;
    if (most == 0) continue;
    lane.steps.steps = lane.steps.steps == 0 ? most : std::min(lane.steps.steps, most);
  }
  // A prompt that is loaded from elsewhere has left its queue, and takes no tokens of the step.
  if (lane.steps.steps > 1 && counts_on(lane) != lane.counts) lane.steps.steps = 1;
  Ticks ready = end_of_time;
  for (const Rank& rank : lane.ranks) ready = min(ready, rank.next_ready());
  if (!lane.busy()) {
    lane.next = ready;
    return take_in(lane, now);
  }
  // A rank without work takes part in the steps of the others; what it waits for ends them.
  price(lane);
  read_late(lane, now);
  if (run_.shape.stalls.share > 0) lane.steps.first += stall(lane, now);
  CHECK_THAT(lane.steps.first > Ticks{}, "a step takes no time");
  if (lanes_.size() > 1) {
    lane.steps.steps = 1;
    entrance_ = now + Ticks{lane.steps.first.ps / static_cast<std::int64_t>(lanes_.size())};
  }
  lane.next = lane.steps.end();
  if (ready < lane.next) cut(lane, ready);
  take_in(lane, now);
  if (!ledger_.log) return;
  lane.running = running_of(lane.ranks);
  lane.queued = waiting_of(lane.ranks);
}

// TensorRT-LLM 1.0 (tensorrt_llm/_torch/pyexecutor/py_executor.py: _balance_adp_requests): prompts
// start when each rank has one, when a rank decodes nothing, or when as many steps have passed
// since either, whether one waited or not.
void Replica::hold_prompts(Lane& lane) {
  const std::int64_t most = run_.policy.balance_steps;
  lane.counts = counts_on(lane);
  lane.held = lane.counts ? (lane.held + 1) % most : 0;
  for (Rank& rank : lane.ranks) rank.plan().holds_prompts = lane.held > 0;
}

bool Replica::counts_on(const Lane& lane) const {
  if (run_.policy.balance_steps == 0 || lane.ranks.size() == 1) return false;
  const auto all = [&](const auto& holds) {
    return std::all_of(lane.ranks.begin(), lane.ranks.end(), holds);
  };
  const bool prompts = all([&](const Rank& rank) {
    return !rank.prefills().empty() ||
           (rank.waiting() > 0 && rank.running() < run_.policy.max_sequences);
  });
  return !prompts && all([](const Rank& rank) { return rank.decodes().count() > 0; });
}

Ticks Replica::stall(const Lane& lane, Ticks now) const {
  const Ticks launching = this->launching(lane);
  if (launching == Ticks{}) return {};
  const HostStalls& stalls = run_.shape.stalls;
  RandomStream stream(run_.seed, static_cast<std::uint64_t>(now.ps));
  if (stream.uniform() >= stalls.share) return {};
  const Ticks taken{std::llround(stream.exponential(static_cast<double>(stalls.mean.ps)))};
  const Ticks hidden = max(Ticks{}, lane.steps.first - launching);
  return max(Ticks{}, taken - hidden);
}

// A prompt on one rank changes the steps of all that share experts with it. One without work has a
// row at most, which is left out.
void Replica::share_rows(Lane& lane) {
  if (lane.ranks.size() == 1) return;
  GroupRows group;
  bool prompts = false;
  for (Rank& rank : lane.ranks) {
    if (rank.plan().most_steps == 0) continue;
    const StepShape& shape = rank.plan().shape;
    prompts = prompts || !shape.chunks.empty();
    group.largest = std::max(group.largest, shape.rows());
    group.all += shape.rows();
  }
  for (Rank& rank : lane.ranks) rank.plan().shape.group = prompts ? group : GroupRows{};
}

// All ranks wait for the slowest. Times of ranks are straight lines over the steps: the slowest
// stays the slowest until another line crosses its own.
void Replica::price(Lane& lane) {
  Ticks slowest, slope;
  lines_.clear();
  std::int64_t& steps = lane.steps.steps;
  share_rows(lane);
  for (const Rank& rank : lane.ranks) {
    const StepShape& shape = rank.plan().shape;
    if (rank.plan().most_steps == 0) continue;
    Line line;
    if (!shape.beside_prompts() && shape.drafts == 0 && run_.leaps) {
      const DecodePiece piece = run_.prices.decode(shape.decodes, shape.contexts);
      line.first = piece.at_first + piece.per_token * (shape.contexts - piece.first);
      line.slope = piece.per_token * shape.decodes;
      steps = std::min(steps, (piece.last - shape.contexts) / shape.decodes + 1);
    } else {
      line.first = run_.prices.step(shape);
    }
    if (line.first > slowest || (line.first == slowest && line.slope > slope)) {
      slowest = line.first;
      slope = line.slope;
    }
    lines_.push_back(line);
  }
  for (const Line& line : lines_)
    if (line.slope > slope)
      steps = std::min(steps, (slowest - line.first).ps / (line.slope - slope).ps + 1);
  lane.steps.first = slowest;
  lane.steps.slope = slope;
  const auto has_prompts = [](const Rank& rank) { return !rank.plan().parts.empty(); };
  if (fresh_ && std::any_of(lane.ranks.begin(), lane.ranks.end(), has_prompts)) {
    fresh_ = false;
    lane.steps.first += run_.policy.first_prompts;
  }
}

void Replica::close(Ticks now) {
  for (Lane& lane : lanes_)
    for (Rank& rank : lane.ranks) rank.close(now);
}

bool Replica::consistent() const {
  return std::all_of(lanes_.begin(), lanes_.end(), [](const Lane& lane) {
    return std::all_of(lane.ranks.begin(), lane.ranks.end(),
                       [](const Rank& rank) { return rank.consistent(); });
  });
}

}  // namespace orrery
