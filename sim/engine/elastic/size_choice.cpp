// SPDX-License-Identifier: Apache-2.0
// Solves the multiple-choice knapsack of sizes: a greedy bound first, then what the bound leaves.
//
// Accelerators are handed out along the lower hulls of the jobs' options, steepest first. Where the
// first step does not fit, its slope is the price of an accelerator: with it every option of every
// job has a loss of 0 or more against the best one of that job, and a choice costs what the bound
// says, plus all losses, plus the price of what stays free. So only options whose loss is below
// the distance of a known choice from the bound can be part of a better one; a table over those
// ends the search (Pisinger, A minimal algorithm for the multiple-choice knapsack problem, 1995).
#include "sim/engine/elastic/size_choice.h"

#include <algorithm>
#include <numeric>

namespace orrery {
namespace {

using Wide = __int128;

// A step from one option of a hull to the next.
struct HullStep {
  std::size_t job = 0, from = 0, to = 0;
  std::int64_t gpus = 0, gain = 0;
};

// Whether a is steeper than b; the order of equals is that of jobs.
bool is_steeper(const HullStep& a, const HullStep& b) {
  const Wide left = static_cast<Wide>(a.gain) * b.gpus, right = static_cast<Wide>(b.gain) * a.gpus;
  return left != right ? left > right : a.job != b.job ? a.job < b.job : a.from < b.from;
}

struct PlacedOption {
  SizeOption option;
  std::size_t at = 0;
};

// Options that no cheaper one of as few accelerators beats, and of these the lower hull.
std::vector<PlacedOption> lower_hull(const std::vector<SizeOption>& options) {
  std::vector<PlacedOption> sorted;
  sorted.reserve(options.size());
  for (std::size_t i = 0; i < options.size(); ++i) sorted.push_back({options[i], i});
  std::stable_sort(sorted.begin(), sorted.end(), [](const PlacedOption& a, const PlacedOption& b) {
    return a.option.gpus != b.option.gpus ? a.option.gpus < b.option.gpus
                                          : a.option.cost < b.option.cost;
  });
  std::vector<PlacedOption> hull;
  for (const PlacedOption& one : sorted) {
    if (!hull.empty() && one.option.cost >= hull.back().option.cost) continue;
    while (hull.size() > 1) {
      const SizeOption &a = hull[hull.size() - 2].option, &b = hull.back().option;
      const Wide before = static_cast<Wide>(a.cost - b.cost) * (one.option.gpus - b.gpus);
      const Wide after = static_cast<Wide>(b.cost - one.option.cost) * (b.gpus - a.gpus);
      if (before > after) break;
      hull.pop_back();
    }
    hull.push_back(one);
  }
  return hull;
}

class SizeSearch {
 public:
  SizeSearch(const std::vector<std::vector<SizeOption>>& jobs, std::int64_t gpus)
      : jobs_(jobs), free_(gpus), chosen_(jobs.size()) {}
  std::vector<std::size_t> run();

 private:
  // Options of one job that may be part of a better choice.
  struct OpenOption {
    std::size_t at = 0;
    std::int64_t gpus = 0;  // more than the best one has
    Wide loss = 0;
  };
  struct OpenJob {
    std::size_t job = 0;
    std::vector<OpenOption> options;
    std::int64_t least = 0, most = 0;  // of gpus
  };
  // Sums over the jobs so far.
  struct SearchState {
    std::int64_t gpus = 0;
    Wide loss = 0;
    std::uint32_t before = 0;  // its place in the table before
    std::uint32_t option = 0;
  };
  using StateTable = std::vector<SearchState>;

  std::vector<HullStep> steps();
  // Loss of an option times the price's denominator.
  Wide priced(const SizeOption& o) const {
    return static_cast<Wide>(o.cost) * price_gpus_ + static_cast<Wide>(o.gpus) * price_gain_;
  }
  void open_jobs(Wide gap);
  StateTable next_table(const StateTable& before, const OpenJob& job, std::int64_t least_after,
                        std::int64_t most_after, Wide gap) const;
  static StateTable least_losses(StateTable all);
  void search(Wide gap);
  void take(const std::vector<StateTable>& tables, std::size_t at);

  const std::vector<std::vector<SizeOption>>& jobs_;
  std::int64_t free_;
  std::vector<std::size_t> chosen_;
  std::int64_t price_gpus_ = 1, price_gain_ = 0;  // of an accelerator: gain / gpus
  std::vector<std::size_t> best_;                 // of each job at that price
  std::vector<OpenJob> open_;
  std::int64_t room_ = 0;  // what the best ones at that price leave free; below 0: they lack
};

std::vector<HullStep> SizeSearch::steps() {
  std::vector<HullStep> out;
  for (std::size_t j = 0; j < jobs_.size(); ++j) {
    const std::vector<PlacedOption> hull = lower_hull(jobs_[j]);
    chosen_[j] = hull.front().at;
    free_ -= hull.front().option.gpus;
    for (std::size_t i = 1; i < hull.size(); ++i)
      out.push_back({j, hull[i - 1].at, hull[i].at, hull[i].option.gpus - hull[i - 1].option.gpus,
                     hull[i - 1].option.cost - hull[i].option.cost});
  }
  std::sort(out.begin(), out.end(), is_steeper);
  return out;
}

std::vector<std::size_t> SizeSearch::run() {
  const std::vector<HullStep> all = steps();
  std::size_t i = 0;
  for (; i < all.size() && all[i].gpus <= free_; ++i) {
    chosen_[all[i].job] = all[i].to;
    free_ -= all[i].gpus;
  }
  if (i == all.size() || free_ == 0) return chosen_;
  price_gpus_ = all[i].gpus;
  price_gain_ = all[i].gain;
  best_ = chosen_;
  room_ = free_;
  // A choice to begin with: what still fits behind the first step that does not.
  Wide gap = static_cast<Wide>(price_gain_) * free_;
  for (; i < all.size(); ++i) {
    if (all[i].gpus > free_ || chosen_[all[i].job] != all[i].from) continue;
    chosen_[all[i].job] = all[i].to;
    free_ -= all[i].gpus;
    gap -= static_cast<Wide>(all[i].gain) * price_gpus_;
  }
  if (gap > 0) search(gap);
  return chosen_;
}

void SizeSearch::open_jobs(Wide gap) {
  for (std::size_t j = 0; j < jobs_.size(); ++j) {
    const SizeOption& best = jobs_[j][best_[j]];
    OpenJob open{.job = j, .options = {}};
    for (std::size_t at = 0; at < jobs_[j].size(); ++at) {
      const SizeOption& option = jobs_[j][at];
      const Wide loss = priced(option) - priced(best);
      if (at != best_[j] && (loss >= gap || option.gpus == best.gpus)) continue;
      open.options.push_back({at, option.gpus - best.gpus, loss});
      open.least = std::min(open.least, option.gpus - best.gpus);
      open.most = std::max(open.most, option.gpus - best.gpus);
    }
    if (open.options.size() > 1) open_.push_back(std::move(open));
  }
}

// Of each number of accelerators the state of the least loss, the first of equals; ascending.
SizeSearch::StateTable SizeSearch::least_losses(StateTable all) {
  if (all.empty()) return all;
  const auto [low, high] = std::minmax_element(
      all.begin(), all.end(),
      [](const SearchState& a, const SearchState& b) { return a.gpus < b.gpus; });
  const std::int64_t first = low->gpus, range = high->gpus - first + 1;
  StateTable out;
  // A slot for each number, unless that were many more than there are states.
  if (range <= 4 * static_cast<std::int64_t>(all.size())) {
    std::vector<const SearchState*> best(static_cast<std::size_t>(range), nullptr);
    for (const SearchState& state : all) {
      const SearchState*& slot = best[static_cast<std::size_t>(state.gpus - first)];
      if (slot == nullptr || state.loss < slot->loss) slot = &state;
    }
    for (const SearchState* state : best)
      if (state != nullptr) out.push_back(*state);
    return out;
  }
  std::stable_sort(all.begin(), all.end(), [](const SearchState& a, const SearchState& b) {
    return a.gpus != b.gpus ? a.gpus < b.gpus : a.loss < b.loss;
  });
  for (const SearchState& state : all)
    if (out.empty() || state.gpus != out.back().gpus) out.push_back(state);
  return out;
}

// States of more accelerators at no less cost are dropped, and such as cannot end within the room
// or below the gap.
SizeSearch::StateTable SizeSearch::next_table(const StateTable& before, const OpenJob& job,
                                              std::int64_t least_after, std::int64_t most_after,
                                              Wide gap) const {
  StateTable all;
  for (std::size_t s = 0; s < before.size(); ++s)
    for (std::size_t o = 0; o < job.options.size(); ++o) {
      const std::int64_t gpus = before[s].gpus + job.options[o].gpus;
      const Wide loss = before[s].loss + job.options[o].loss;
      if (gpus + least_after > room_) continue;
      const std::int64_t stays = std::max<std::int64_t>(0, room_ - gpus - most_after);
      if (loss + static_cast<Wide>(stays) * price_gain_ >= gap) continue;
      all.push_back({gpus, loss, static_cast<std::uint32_t>(s), static_cast<std::uint32_t>(o)});
    }
  const auto cost = [&](const SearchState& s) {
    return s.loss - static_cast<Wide>(s.gpus) * price_gain_;
  };
  StateTable out;
  for (const SearchState& state : least_losses(std::move(all)))
    if (out.empty() || cost(state) < cost(out.back())) out.push_back(state);
  return out;
}

void SizeSearch::search(Wide gap) {
  open_jobs(gap);
  std::vector<std::int64_t> least(open_.size() + 1, 0), most(open_.size() + 1, 0);
  for (std::size_t j = open_.size(); j-- > 0;) {
    least[j] = least[j + 1] + open_[j].least;
    most[j] = most[j + 1] + open_[j].most;
  }
  std::vector<StateTable> tables = {{SearchState{}}};
  for (std::size_t j = 0; j < open_.size(); ++j) {
    tables.push_back(next_table(tables.back(), open_[j], least[j + 1], most[j + 1], gap));
    if (tables.back().empty()) return;  // nothing is better than what is known
    // One that meets the bound is the best, with the best options of all jobs to come.
    const StateTable& table = tables.back();
    for (std::size_t s = 0; s < table.size(); ++s)
      if (table[s].gpus == room_ && table[s].loss == 0) return take(tables, s);
  }
  // The last state is the one of the least cost.
  take(tables, tables.back().size() - 1);
}

// Goes back from a state of the last table.
void SizeSearch::take(const std::vector<StateTable>& tables, std::size_t at) {
  chosen_ = best_;
  for (std::size_t j = tables.size() - 1; j-- > 0;) {
    const SearchState& state = tables[j + 1][at];
    chosen_[open_[j].job] = open_[j].options[state.option].at;
    at = state.before;
  }
}

}  // namespace

std::vector<std::size_t> choose_sizes(const std::vector<std::vector<SizeOption>>& jobs,
                                      std::int64_t gpus) {
  return SizeSearch(jobs, gpus).run();
}

}  // namespace orrery
