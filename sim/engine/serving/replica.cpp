// SPDX-License-Identifier: Apache-2.0
// Prices the steps of an engine and leaps over those that nothing interrupts.
#include "sim/engine/serving/replica.h"

#include <algorithm>
#include <limits>

#include "sim/base/errors/check.h"

namespace orrery {
namespace {

constexpr Ticks never{std::numeric_limits<std::int64_t>::max()};

}  // namespace

Replica::Replica(const ServingRun& run, ServingLedger& ledger)
    : run_(run), ledger_(ledger), scheduler_(make_scheduler(run.policy)), next_(never) {
  ranks_.reserve(static_cast<std::size_t>(run.shape.ranks));
  for (std::int64_t i = 0; i < run.shape.ranks; ++i) ranks_.emplace_back(run, ledger);
}

std::size_t Replica::choose(const Request&) const {
  if (run_.policy.rank_choice == RankChoice::round_robin) return turn_;
  std::size_t best = 0;
  for (std::size_t i = 1; i < ranks_.size(); ++i)
    if (ranks_[i].waiting() + ranks_[i].running() < ranks_[best].waiting() + ranks_[best].running())
      best = i;
  return best;
}

std::int64_t Replica::waiting(const Request& request) const {
  return ranks_[choose(request)].waiting();
}

std::int64_t Replica::requests() const {
  std::int64_t all = 0;
  for (const Rank& rank : ranks_) all += rank.waiting() + rank.running();
  return all;
}

bool Replica::enqueue(Ticks now, const Waiting& waiting) {
  const std::size_t rank = choose(run_.requests.requests[waiting.request]);
  if (++turn_ == ranks_.size()) turn_ = 0;
  const bool matters = ranks_[rank].enqueue(now, waiting);
  if (!busy() || !matters) return false;
  const Ticks before = next_;
  cut(now);
  return next_ != before;
}

// The steps end with the one during which, or at whose end, the time comes.
void Replica::cut(Ticks now) {
  std::int64_t low = 0, high = series_.steps;  // ended before now; not before
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    (series_.after(middle) < now ? low : high) = middle;
  }
  series_.steps = high;
  next_ = series_.end();
}

void Replica::settle(Ticks now, std::vector<std::uint32_t>& ended) {
  if (!busy()) return;  // it only waited for what is being loaded
  CHECK_THAT(now == series_.end(), "an engine's steps end at another time");
  ServiceTotals& totals = ledger_.totals;
  const std::int64_t lasted = (now - series_.start).ps;
  bool decodes = false, prompts = false;
  for (const Rank& rank : ranks_) {
    const RankPlan& plan = rank.plan();
    decodes = decodes || plan.shape.decodes > 0;
    prompts = prompts || !plan.parts.empty();
  }
  totals.steps += series_.steps;
  totals.busy += lasted;
  if (!prompts) {
    totals.decode_steps += series_.steps;
    totals.decode_time += lasted;
  } else if (decodes) {
    totals.mixed_steps += series_.steps;
    totals.mixed_time += lasted;
  }
  const StepRun made = series_;
  series_.steps = 0;
  for (Rank& rank : ranks_) {
    const bool alone = rank.plan().shape.decodes > 0 && rank.plan().parts.empty();
    rank.settle(made, ended);
    if (alone) scheduler_->stepped(rank, made.steps);
  }
}

void Replica::start(Ticks now) {
  if (busy()) return;
  series_ = {.start = now, .steps = 0};
  next_ = never;
  for (Rank& rank : ranks_) {
    const RankPlan& plan = scheduler_->plan(rank, now);
    if (plan.most_steps == 0) continue;
    series_.steps = series_.steps == 0 ? plan.most_steps : std::min(series_.steps, plan.most_steps);
  }
  Ticks ready = never;
  for (const Rank& rank : ranks_) ready = min(ready, rank.next_ready());
  if (series_.steps == 0) {
    next_ = ready;
    return;
  }
  // A rank without work takes part in the steps of the others; what it waits for ends them.
  price();
  CHECK_THAT(series_.first > Ticks{}, "a step takes no time");
  next_ = series_.end();
  if (ready < next_) cut(ready);
}

// All ranks wait for the slowest. Times of ranks are straight lines over the steps: the slowest
// stays the slowest until another line crosses its own.
void Replica::price() {
  Ticks slowest, slope;
  lines_.clear();
  for (const Rank& rank : ranks_) {
    const StepShape& shape = rank.plan().shape;
    if (rank.plan().most_steps == 0) continue;
    Line line;
    if (shape.chunks.empty() && shape.drafts == 0 && run_.leaps) {
      const DecodePiece piece = run_.prices.decode(shape.decodes, shape.contexts);
      line.first = piece.at_first + piece.per_token * (shape.contexts - piece.first);
      line.slope = piece.per_token * shape.decodes;
      series_.steps = std::min(series_.steps, (piece.last - shape.contexts) / shape.decodes + 1);
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
      series_.steps =
          std::min(series_.steps, (slowest - line.first).ps / (line.slope - slope).ps + 1);
  series_.first = slowest;
  series_.slope = slope;
}

void Replica::close(Ticks now) {
  for (Rank& rank : ranks_) rank.close(now);
}

bool Replica::consistent() const {
  return std::all_of(ranks_.begin(), ranks_.end(),
                     [](const Rank& rank) { return rank.consistent(); });
}

}  // namespace orrery
