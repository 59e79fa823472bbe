// SPDX-License-Identifier: Apache-2.0
// Knows how little a microbatch takes through a whole model, for all families and optimizers whose
// layers cost the same.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <unordered_map>

#include "sim/engine/step/series.h"

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
  struct Key {
    PricedPasses passes;
    Links links;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const;
  };
  template <class Value>
  using Known = std::unordered_map<Key, Value, Hash>;
  template <class Value, class Find>
  static Value known(std::mutex& mutex, Known<Value>& map, const Key& key, Find&& find);
  mutable std::mutex mutex_;
  mutable Known<Seconds> times_;
  mutable Known<WholeModel> wholes_;
};

}  // namespace orrery
