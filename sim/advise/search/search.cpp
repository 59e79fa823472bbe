// SPDX-License-Identifier: Apache-2.0
// Splits the most promising parts, batch by batch, until none can hold anything better.
#include "sim/advise/search/search.h"

#include <algorithm>
#include <chrono>
#include <map>

#include "sim/advise/search/attempt.h"
#include "sim/advise/search/shared_search.h"
#include "sim/base/errors/interrupt.h"
#include "sim/base/parallel.h"

namespace orrery {
namespace {

// Batches have a fixed size and the incumbents change only between them: what is pruned, and so
// every count, is the same on any number of threads.
constexpr std::size_t batch_size = 64;

// The part that is split next is the last one.
bool later(const Part& a, const Part& b) {
  if (a.least != b.least) return a.least > b.least;
  // Deeper parts first: they end sooner in layouts.
  if (a.level != b.level) return a.level < b.level;
  return b.place < a.place;
}

class Search {
 public:
  Search(const SearchGround& ground, const SearchOptions& options, const SearchSlice& slice)
      : ground_(ground),
        options_(options),
        slice_(slice),
        incumbents_(std::max<std::size_t>(1, options.keep), options.variants),
        start_(std::chrono::steady_clock::now()) {
    if (options.front) front_.emplace(*options.front);
  }
  SearchResult run();

 private:
  FamilyOutcome& family(const Place& p) {
    return result_.families[static_cast<std::size_t>(p.recipe)][static_cast<std::size_t>(p.family)];
  }
  Cutoff cutoff() const {
    return {.incumbents = incumbents_,
            .front = front_ ? &*front_ : nullptr,
            .prune = options_.prune,
            .variants = options_.variants,
            .by_energy = options_.front == Front::Axis::energy};
  }
  void open();
  void begin();
  std::vector<Part> next_batch();
  void prune(const Part& part) {
    family(part.place).pruned += part.leaves;
    result_.pruned += part.leaves;
  }
  void merge(const Part& part, Expansion&& expansion);
  bool out_of_budget() const;
  void report() const;

  const SearchGround& ground_;
  const SearchOptions& options_;
  const SearchSlice& slice_;
  Incumbents incumbents_;
  std::optional<Front> front_;
  std::vector<Part> parts_;  // a heap
  SearchResult result_;
  std::chrono::steady_clock::time_point start_;
};

void Search::open() {
  parts_ = whole_grid(ground_);
  if (slice_.has) std::erase_if(parts_, [&](const Part& part) { return !slice_.has(part.place); });
  for (const SearchSpace& space : ground_.spaces)
    result_.families.emplace_back(space.families().size());
  for (const Part& part : parts_) {
    family(part.place).leaves = part.leaves;
    result_.considered += part.leaves;
  }
  std::make_heap(parts_.begin(), parts_.end(), later);
}

// What is good enough rules out most of the grid at once, and a search that is stopped early has
// something to say.
void Search::begin() {
  for (const FirstAttempt& first : slice_.attempts) {
    incumbents_.add(first.found);
    if (front_) front_->add(first.found);
    if (!slice_.has || slice_.has(first.family)) family(first.family).first = first.found;
  }
}

std::vector<Part> Search::next_batch() {
  std::vector<Part> batch;
  const Cutoff known = cutoff();
  while (!parts_.empty() && batch.size() < batch_size) {
    std::pop_heap(parts_.begin(), parts_.end(), later);
    const Part part = parts_.back();
    parts_.pop_back();
    if (known.rules_out(part))
      prune(part);
    else
      batch.push_back(part);
  }
  return batch;
}

void Search::merge(const Part& part, Expansion&& expansion) {
  FamilyOutcome& of = family(part.place);
  of.rejected += expansion.rejected;
  of.pruned += expansion.pruned;
  of.simulated += static_cast<std::int64_t>(expansion.found.size());
  result_.rejected += expansion.rejected;
  result_.pruned += expansion.pruned;
  result_.simulated += static_cast<std::int64_t>(expansion.found.size());
  for (const Found& found : expansion.found) {
    if (!of.best || better(found, *of.best)) of.best = found;
    incumbents_.add(found);
    if (front_) front_->add(found);
  }
  for (const Part& inner : expansion.parts) {
    parts_.push_back(inner);
    std::push_heap(parts_.begin(), parts_.end(), later);
  }
}

bool Search::out_of_budget() const {
  if (interrupted()) return true;
  if (options_.most_batches > 0 && result_.batches >= options_.most_batches) return true;
  const std::chrono::duration<double> used = std::chrono::steady_clock::now() - start_;
  return options_.time_limit > Seconds(0) && used.count() > options_.time_limit.si();
}

void Search::report() const {
  if (!options_.progress || result_.considered == 0) return;
  const std::int64_t done = result_.rejected + result_.pruned + result_.simulated;
  options_.progress(static_cast<double>(done) / static_cast<double>(result_.considered),
                    result_.simulated);
}

SearchResult Search::run() {
  open();
  begin();
  for (;;) {
    const std::vector<Part> batch = next_batch();
    if (batch.empty()) break;
    std::vector<Expansion> expansions(batch.size());
    const Cutoff known = cutoff();
    parallel_for(batch.size(), options_.threads,
                 [&](std::size_t i) { expansions[i] = expand(ground_, batch[i], known); });
    for (std::size_t i = 0; i < batch.size(); ++i) merge(batch[i], std::move(expansions[i]));
    ++result_.batches;
    report();
    if (parts_.empty() || !out_of_budget()) continue;
    result_.stopped_early = true;
    result_.least_left = parts_.front().least;
    for (const Part& part : parts_) result_.left += part.leaves;
    break;
  }
  result_.best = incumbents_.best();
  if (front_) result_.front = front_->points();
  return std::move(result_);
}

}  // namespace

// More ranks share a sequence as long as that pays.
std::vector<FirstAttempt> first_attempts(const SearchGround& ground, const SearchOptions& options) {
  std::vector<FirstAttempt> attempts;
  if (!options.prune) return attempts;
  std::map<std::int64_t, std::vector<Place>> by_context;
  for (const Part& part : whole_grid(ground))
    by_context[ground.family(part.place).base.cp].push_back(part.place);
  std::optional<double> best;
  for (const auto& same : by_context) {
    const std::vector<Place>& families = same.second;
    const std::optional<double> before = best;
    std::vector<std::optional<Found>> first(families.size());
    parallel_for(families.size(), options.threads,
                 [&](std::size_t i) { first[i] = attempt(ground, families[i]); });
    for (std::size_t i = 0; i < first.size(); ++i) {
      if (!first[i]) continue;
      best = best ? std::min(*best, first[i]->score) : first[i]->score;
      attempts.push_back({families[i], std::move(*first[i])});
    }
    if (before && *best >= *before) break;
  }
  return attempts;
}

SearchResult search_slice(const SearchGround& ground, const SearchOptions& options,
                          const SearchSlice& slice) {
  return Search(ground, options, slice).run();
}

SearchResult search(const SearchGround& ground, const SearchOptions& options) {
  if (options.tasks != nullptr) return shared_search(ground, options);
  const std::vector<FirstAttempt> attempts = first_attempts(ground, options);
  return search_slice(ground, options, {.attempts = attempts, .has = {}});
}

}  // namespace orrery
