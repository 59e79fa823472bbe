// SPDX-License-Identifier: Apache-2.0
// Reads catalogue entries once.
#include "sim/question/settings/catalogues.h"

#include "hw_models/catalog.h"
#include "hw_models/catalogue_hash.h"
#include "workloads/model/model_catalog.h"

namespace orrery {

// Two threads may read the same entry at first; both read the same.
template <class Key, class Value, class Load>
std::shared_ptr<const Value> Catalogues::known(std::map<Key, std::shared_ptr<const Value>>& kept,
                                               const Key& key, bool keep, Load&& load) {
  {
    const std::scoped_lock lock(mutex_);
    if (const auto at = kept.find(key); at != kept.end()) return at->second;
  }
  auto value = std::make_shared<const Value>(load());
  if (!keep) return value;
  const std::scoped_lock lock(mutex_);
  return kept.emplace(key, std::move(value)).first->second;
}

Model Catalogues::model(const std::string& reference) {
  return *known(models_, reference, !is_inline_entry(reference),
                [&] { return load_model(reference, data_root() / "workloads/catalog/models"); });
}

Cluster Catalogues::cluster(const std::string& reference, std::int64_t gpus) {
  const auto one = known(clusters_, reference, !is_inline_entry(reference),
                         [&] { return load_cluster(reference, 1); });
  return with_count(*one, gpus);
}

Stack Catalogues::stack(const std::string& reference, const StackContext& context) {
  return *known(stacks_, std::pair(reference, context), !is_inline_entry(reference), [&] {
    return load_stack(reference, context, data_root() / "workloads/catalog/stacks");
  });
}

std::string Catalogues::known_release(const std::string& name) {
  return *known(releases_, name, true, [&] {
    return orrery::known_release(name, data_root() / "workloads/catalog/stacks");
  });
}

const ModelError& Catalogues::model_error() {
  const std::scoped_lock lock(mutex_);
  if (!error_) error_ = load_model_error(data_root() / "validation/model_error.json");
  return *error_;
}

const ServedError& Catalogues::served_error() {
  const std::scoped_lock lock(mutex_);
  if (!served_error_)
    served_error_ = load_served_error(data_root() / "validation/served_error.json");
  return *served_error_;
}

std::string Catalogues::version() {
  const std::scoped_lock lock(mutex_);
  if (version_.empty()) version_ = catalogue_hash();
  return version_;
}

}  // namespace orrery
