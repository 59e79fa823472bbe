// SPDX-License-Identifier: Apache-2.0
// Knows the best layouts found so far, and what can no longer be among them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "sim/advise/space/search_space.h"
#include "sim/base/units/units.h"
#include "sim/outcome/objective.h"

namespace orrery {

struct Candidate {
  Layout layout;
  Seconds step_time;
  Joules energy_per_step;
  Bytes peak_memory;
  double tokens_per_second_per_gpu = 0;
};

// A layout's place in the order of the whole grid: of equal ones the first wins.
struct Place {
  std::int32_t recipe = 0, family = 0;
  GridPoint point;
  auto operator<=>(const Place&) const = default;
};

struct Found {
  Candidate candidate;
  Place place;
  double score = 0;  // least is best
};
// By score, then in grid order.
bool better(const Found& a, const Found& b);

// What makes two layouts different plans rather than settings of one: precision and optimizer,
// parallel sizes, schedule, chunks and micro-batch.
struct Shape {
  std::array<std::int64_t, 11> numbers{};
  bool operator==(const Shape&) const = default;
};
Shape shape_of(const Layout& layout);

// The best `keep` layouts; of layouts of one shape only the best, unless `variants`.
class Incumbents {
 public:
  Incumbents(std::size_t keep, bool variants) : keep_(keep), variants_(variants) {}
  void add(const Found& found);
  // Whether no layout that scores `least` or more and stands at or after `first` in the grid can
  // still enter. `shape`: all such layouts have this one.
  bool hopeless(double least, const Place& first, const std::optional<Shape>& shape) const;
  const std::vector<Found>& best() const { return best_; }
  bool full() const { return best_.size() == keep_; }

 private:
  std::size_t keep_;
  bool variants_;
  std::vector<Found> best_;  // best first
  std::vector<Shape> shapes_;
};

// Layouts that nothing beats in both of two measures (seconds or joules a step, bytes).
class Front {
 public:
  enum class Axis : std::uint8_t { memory, energy };
  explicit Front(Axis second) : second_(second) {}
  void add(const Found& found);
  // Whether a layout that takes at least `time` and `second` and stands at or after `first` is
  // beaten or equalled for certain.
  bool covers(Seconds time, Joules energy, Bytes memory, const Place& first) const;
  const std::vector<Found>& points() const { return points_; }  // fastest first

 private:
  double second(Joules energy, Bytes memory) const {
    return second_ == Axis::memory ? memory.si() : energy.si();
  }
  bool covers(double time, double second, const Place& first) const;
  Axis second_;
  std::vector<Found> points_;
};

}  // namespace orrery
