// SPDX-License-Identifier: Apache-2.0
// Looks for the fewest properties of recipes that decide a value.
#include "workloads/recipes/varies.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "sim/base/text/words.h"

namespace orrery {
namespace {

constexpr std::size_t key_count = 7;
using Keys = std::array<std::string, key_count>;

// One for each number of GPUs that a recipe is written for.
std::vector<Keys> keys_of(const RecipeBook& book, const Recipe& recipe) {
  const RecipeSource& source = book.source_of(recipe);
  Keys keys = {recipe.device.empty() ? "any device" : recipe.device,
               recipe.precision,
               "",
               recipe.variant,
               recipe.sequence.empty() ? "" : "sequences of " + recipe.sequence,
               book.model_of(recipe).name,
               source.program + " " + source.program_releases};
  if (recipe.gpus.empty()) return {keys};
  std::vector<Keys> all;
  for (const std::string& gpus : recipe.gpus) {
    if (!gpus.empty()) keys[2] = gpus + " GPUs";
    all.push_back(keys);
  }
  return all;
}

// Places of properties in Keys, the outer one first.
using Order = std::vector<std::size_t>;
using Decision = std::map<std::vector<std::string>, std::size_t>;

// What each combination of the properties decides; nothing where one leaves two values open.
std::optional<Decision> decided_by(const std::vector<Keys>& keys,
                                   const std::vector<std::size_t>& value_of, const Order& order) {
  Decision decision;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    std::vector<std::string> chosen;
    for (const std::size_t k : order) chosen.push_back(keys[i][k]);
    const auto [at, is_new] = decision.emplace(std::move(chosen), value_of[i]);
    if (!is_new && at->second != value_of[i]) return std::nullopt;
  }
  return decision;
}

// Every choice of up to `most` properties, the small ones first, each in order.
std::vector<Order> choices(std::size_t most) {
  std::vector<Order> all;
  for (unsigned s = 1; s < 1U << key_count; ++s) {
    Order order;
    for (std::size_t k = 0; k < key_count; ++k)
      if ((s >> k & 1U) != 0) order.push_back(k);
    if (order.size() <= most) all.push_back(std::move(order));
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Order& a, const Order& b) { return a.size() < b.size(); });
  return all;
}

// "64 GPUs" before "128 GPUs".
struct ByNumber {
  bool operator()(const std::string& a, const std::string& b) const {
    const std::size_t digits_a = std::min(a.find_first_not_of("0123456789"), a.size());
    const std::size_t digits_b = std::min(b.find_first_not_of("0123456789"), b.size());
    if (digits_a > 0 && digits_b > 0 && digits_a != digits_b) return digits_a < digits_b;
    return a < b;
  }
};

// Combinations of a value as text: those that share all but their last property stand together, and
// a property that decides alone stands alone.
std::string text_of(const Decision& decision, std::size_t value, std::size_t depth = 0,
                    const std::vector<std::string>& before = {}) {
  std::map<std::string, std::set<std::size_t>, ByNumber> values;  // by the property at this depth
  std::size_t size = 0;
  for (const auto& [key, v] : decision) {
    if (!std::equal(before.begin(), before.end(), key.begin())) continue;
    size = key.size();
    values[key[depth]].insert(v);
  }
  std::vector<std::string> alone, groups;
  for (const auto& [property, held] : values) {
    if (!held.contains(value)) continue;
    const std::string name = property.empty() ? "no variant" : property;
    if (held.size() == 1) {
      alone.push_back(name);
      continue;
    }
    std::vector<std::string> longer = before;
    longer.push_back(property);
    if (depth + 1 < size)
      groups.push_back(fmt::format("{} ({})", name, text_of(decision, value, depth + 1, longer)));
  }
  alone.insert(alone.end(), groups.begin(), groups.end());
  return joined(alone, ", ");
}

// The texts of all values in the order of properties that makes them shortest.
std::vector<std::string> shortest(const std::vector<Keys>& keys,
                                  const std::vector<std::size_t>& value_of, Order order,
                                  std::size_t count) {
  std::vector<std::string> best;
  std::size_t least = 0;
  do {
    const auto decision = decided_by(keys, value_of, order);
    std::vector<std::string> texts;
    std::size_t size = 0;
    for (std::size_t value = 0; value < count; ++value) {
      texts.push_back(text_of(*decision, value));
      size += texts.back().size();
    }
    if (!best.empty() && size >= least) continue;
    best = std::move(texts);
    least = size;
  } while (std::next_permutation(order.begin(), order.end()));
  return best;
}

// How many recipes of each device hold a value, where nothing decides it.
std::vector<std::string> shares(const RecipeBook& book, const std::vector<std::size_t>& recipes,
                                const std::vector<std::size_t>& value_of, std::size_t count) {
  std::map<std::string, std::vector<std::size_t>> devices;  // recipes by value
  for (std::size_t i = 0; i < recipes.size(); ++i) {
    auto& held = devices[keys_of(book, book.recipes[recipes[i]]).front()[0]];
    held.resize(count);
    ++held[value_of[i]];
  }
  std::vector<std::string> where(count);
  for (const auto& [device, held] : devices) {
    const std::size_t all = std::accumulate(held.begin(), held.end(), std::size_t{0});
    for (std::size_t value = 0; value < count; ++value) {
      if (held[value] == 0) continue;
      if (!where[value].empty()) where[value] += ", ";
      where[value] += device;
      if (held[value] < all) where[value] += fmt::format(" ({} of {} recipes)", held[value], all);
    }
  }
  return where;
}

}  // namespace

std::vector<std::string> where_values_hold(const RecipeBook& book,
                                           const std::vector<std::size_t>& recipes,
                                           const std::vector<std::size_t>& value_of,
                                           std::size_t count) {
  static const std::vector<Order> orders = choices(4);
  std::vector<std::string> where(count);
  if (count < 2) return where;
  std::vector<Keys> keys;
  std::vector<std::size_t> values;
  for (std::size_t i = 0; i < recipes.size(); ++i)
    for (Keys& one : keys_of(book, book.recipes[recipes[i]])) {
      keys.push_back(std::move(one));
      values.push_back(value_of[i]);
    }
  for (const Order& order : orders)
    if (decided_by(keys, values, order)) return shortest(keys, values, order, count);
  return shares(book, recipes, value_of, count);
}

}  // namespace orrery
