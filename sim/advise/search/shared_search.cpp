// SPDX-License-Identifier: Apache-2.0
// Searches slices of a grid's families, and joins what was found.
#include "sim/advise/search/shared_search.h"

#include <algorithm>

#include "sim/advise/search/records.h"
#include "sim/base/content_hash.h"

namespace orrery {
namespace {

// Enough for some tens of processes to be busy till the end, few enough that each has families to
// rule out by each other.
constexpr std::size_t most_slices = 256;

// A family of the result, by recipe and place in the grid.
struct KeptFamily {
  std::int32_t recipe = 0, family = 0;
  FamilyOutcome outcome;
};

struct KeptSlice {
  std::vector<Found> best, front;
  std::vector<KeptFamily> families;
  std::int64_t considered = 0, rejected = 0, pruned = 0, simulated = 0, batches = 0;
};

auto fields(EitherConst<KeptFamily> auto& f) {
  auto& [recipe, family, outcome] = f;
  return std::tie(recipe, family, outcome);
}
auto fields(EitherConst<KeptSlice> auto& s) {
  auto& [best, front, families, considered, rejected, pruned, simulated, batches] = s;
  return std::tie(best, front, families, considered, rejected, pruned, simulated, batches);
}

std::uint64_t hash_of(std::int32_t recipe, std::int32_t family) {
  return joined_hash(static_cast<std::uint64_t>(recipe), static_cast<std::uint64_t>(family));
}

class SharedSearch {
 public:
  SharedSearch(const SearchGround& ground, const SearchOptions& options)
      : ground_(ground),
        options_(options),
        incumbents_(std::max<std::size_t>(1, options.keep), options.variants) {
    if (options.front) front_.emplace(*options.front);
    std::size_t families = 0;
    for (const SearchSpace& space : ground.spaces) {
      result_.families.emplace_back(space.families().size());
      families += space.families().size();
    }
    slices_ = std::clamp<std::size_t>(families, 1, most_slices);
  }

  SearchResult run() {
    for (std::size_t i = 0; i < slices_; ++i) {
      const auto record = options_.tasks->result(joined_hash(content_hash("families"), i),
                                                 [&] { return searched(i); });
      if (record && options_.tasks->whole()) join(from_record_text<KeptSlice>(*record));
      if (result_.stopped_early) break;
      if (options_.progress)
        options_.progress(static_cast<double>(i + 1) / static_cast<double>(slices_),
                          result_.simulated);
    }
    result_.best = incumbents_.best();
    if (front_) result_.front = front_->points();
    return std::move(result_);
  }

 private:
  std::size_t slice_of(std::int32_t recipe, std::int32_t family) const {
    return static_cast<std::size_t>(hash_of(recipe, family) % slices_);
  }

  std::optional<std::string> searched(std::size_t slice) {
    if (!attempts_) attempts_ = first_attempts(ground_, options_);
    SearchOptions alone = options_;
    alone.progress = {};
    const SearchResult found =
        search_slice(ground_, alone, {.attempts = *attempts_, .has = [&](const Place& place) {
                                        return slice_of(place.recipe, place.family) == slice;
                                      }});
    if (found.stopped_early) {
      stop(found);
      return std::nullopt;
    }
    return record_text(kept(found, slice));
  }

  // What Ctrl-C left of a slice is no result of it; what it found is the best so far.
  void stop(const SearchResult& found) {
    result_.stopped_early = true;
    result_.considered += found.considered;
    result_.left += found.considered;
    result_.least_left = found.least_left;
    for (const Found& one : found.best) incumbents_.add(one);
  }

  KeptSlice kept(const SearchResult& found, std::size_t slice) const {
    KeptSlice kept{.best = found.best,
                   .front = found.front,
                   .families = {},
                   .considered = found.considered,
                   .rejected = found.rejected,
                   .pruned = found.pruned,
                   .simulated = found.simulated,
                   .batches = found.batches};
    for (std::size_t r = 0; r < found.families.size(); ++r)
      for (std::size_t f = 0; f < found.families[r].size(); ++f) {
        const auto recipe = static_cast<std::int32_t>(r), family = static_cast<std::int32_t>(f);
        if (slice_of(recipe, family) == slice)
          kept.families.push_back({recipe, family, found.families[r][f]});
      }
    return kept;
  }

  void join(const KeptSlice& slice) {
    for (const Found& one : slice.best) incumbents_.add(one);
    if (front_)
      for (const Found& one : slice.front) front_->add(one);
    for (const KeptFamily& one : slice.families) {
      const auto r = static_cast<std::size_t>(one.recipe), f = static_cast<std::size_t>(one.family);
      expect_record(r < result_.families.size() && f < result_.families[r].size());
      result_.families[r][f] = one.outcome;
    }
    result_.considered += slice.considered;
    result_.rejected += slice.rejected;
    result_.pruned += slice.pruned;
    result_.simulated += slice.simulated;
    result_.batches += slice.batches;
  }

  const SearchGround& ground_;
  const SearchOptions& options_;
  std::size_t slices_ = 1;
  std::optional<std::vector<FirstAttempt>> attempts_;
  Incumbents incumbents_;
  std::optional<Front> front_;
  SearchResult result_;
};

}  // namespace

SearchResult shared_search(const SearchGround& ground, const SearchOptions& options) {
  return SharedSearch(ground, options).run();
}

}  // namespace orrery
