// SPDX-License-Identifier: Apache-2.0
// Keeps the best layouts and the front.
#include "sim/advise/search/incumbents.h"

#include <algorithm>

namespace orrery {

bool better(const Found& a, const Found& b) {
  return a.score != b.score ? a.score < b.score : a.place < b.place;
}

Shape shape_of(const Layout& l) {
  return {{static_cast<std::int64_t>(l.precision), static_cast<std::int64_t>(l.optimizer), l.tp,
           l.pp, l.dp, l.cp, l.ep, l.etp, static_cast<std::int64_t>(l.schedule), l.vpp,
           l.micro_batch}};
}

void Incumbents::add(const Found& found) {
  const Shape shape = shape_of(found.candidate.layout);
  // What a first attempt found is found again.
  if (std::any_of(best_.begin(), best_.end(),
                  [&](const Found& f) { return f.place == found.place; }))
    return;
  if (!variants_) {
    const auto same = std::find(shapes_.begin(), shapes_.end(), shape);
    if (same != shapes_.end()) {
      const auto index = same - shapes_.begin();
      if (!better(found, best_[static_cast<std::size_t>(index)])) return;
      best_.erase(best_.begin() + index);
      shapes_.erase(same);
    }
  }
  if (full() && !better(found, best_.back())) return;
  const auto at = std::upper_bound(best_.begin(), best_.end(), found, better);
  shapes_.insert(shapes_.begin() + (at - best_.begin()), shape);
  best_.insert(at, found);
  if (best_.size() > keep_) {
    best_.pop_back();
    shapes_.pop_back();
  }
}

bool Incumbents::hopeless(double least, const Place& first,
                          const std::optional<Shape>& shape) const {
  const auto beats = [&](const Found& f) {
    return f.score != least ? f.score < least : f.place < first;
  };
  if (full() && beats(best_.back())) return true;
  if (variants_ || !shape) return false;
  const auto same = std::find(shapes_.begin(), shapes_.end(), *shape);
  return same != shapes_.end() && beats(best_[static_cast<std::size_t>(same - shapes_.begin())]);
}

void Front::add(const Found& found) {
  const auto second_of = [&](const Candidate& c) {
    return second(c.energy_per_step, c.peak_memory);
  };
  const double time = found.candidate.step_time.si(), other = second_of(found.candidate);
  if (covers(time, other, found.place)) return;
  std::erase_if(points_, [&](const Found& p) {
    return p.candidate.step_time.si() >= time && second_of(p.candidate) >= other;
  });
  const auto faster = [](const Found& a, const Found& b) {
    return a.candidate.step_time < b.candidate.step_time;
  };
  points_.insert(std::upper_bound(points_.begin(), points_.end(), found, faster), found);
}

bool Front::covers(Seconds time, Joules energy, Bytes memory, const Place& first) const {
  return covers(time.si(), second(energy, memory), first);
}

bool Front::covers(double time, double other, const Place& first) const {
  for (const Found& p : points_) {
    const double t = p.candidate.step_time.si();
    const double s = second(p.candidate.energy_per_step, p.candidate.peak_memory);
    if (t > time) return false;  // and all after it
    if (s > other) continue;
    if (t < time || s < other || p.place < first) return true;
  }
  return false;
}

}  // namespace orrery
