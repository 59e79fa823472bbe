// Knows how little a microbatch takes through a whole model, for all families and optimizers whose
// layers cost the same.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <vector>

#include "sim/engine/step_series.h"

namespace orrery {

// Safe to share between threads: what is remembered does not depend on who asked first.
class PassFloors {
 public:
  // The time of one microbatch through all layers depends on tensor, context and expert ranks, rows
  // and precision, and hardly on how many stages share the layers: of layouts like this one at any
  // pp, schedule without split backward, rank order and optimizer, and whatever runs again, at
  // least so long, without what data parallelism adds.
  Seconds of(const StepContext& context, const Model& model, const Job& job, const Stack& stack,
             const Layout& layout) const;

  // The whole model of layouts with the same passes, of which all layers run again or none, under
  // the layout's optimizer. `price` is asked for that of the default optimizer, where it is not
  // known yet: only the update differs.
  WholeModel whole(const Layout& layout, Links links, const Model& model, const Job& job,
                   const Stack& stack, const std::function<WholeModel(const Layout&)>& price) const;

 private:
  using Key = std::vector<std::int64_t>;
  template <class Value, class Find>
  static Value known(std::mutex& mutex, std::map<Key, Value>& map, const Key& key, Find&& find);
  mutable std::mutex mutex_;
  mutable std::map<Key, Seconds> times_;
  mutable std::map<Key, WholeModel> wholes_;
};

}  // namespace orrery
