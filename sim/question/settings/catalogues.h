// SPDX-License-Identifier: Apache-2.0
// Knows catalogue entries that many questions share, each read once.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "sim/engine/scenario.h"
#include "sim/outcome/model_error.h"
#include "sim/outcome/serving/served_error.h"

namespace orrery {

// Entries by what they were asked for by: a name, a path or JSON text (JsonValue::reference). What
// is read once is not read again, so a file that changes meanwhile is not noticed. Any thread may
// ask.
class Catalogues {
 public:
  Model model(const std::string& reference);
  Cluster cluster(const std::string& reference, std::int64_t gpus);
  // As catalogue_stack finds it.
  Stack stack(const std::string& reference, const StackContext& context);
  // The known release that "name@release" stands for (workloads/stack/stack.h); empty: none.
  std::string known_release(const std::string& name);
  const ModelError& model_error();
  const ServedError& served_error();
  std::string version();  // catalogue_hash()

 private:
  // Shared, so that nobody copies while others wait. JSON text is of one question: it is not kept.
  template <class Key, class Value, class Load>
  std::shared_ptr<const Value> known(std::map<Key, std::shared_ptr<const Value>>& kept,
                                     const Key& key, bool keep, Load&& load);

  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const Model>> models_;
  std::map<std::string, std::shared_ptr<const Cluster>> clusters_;
  std::map<std::pair<std::string, StackContext>, std::shared_ptr<const Stack>> stacks_;
  std::map<std::string, std::shared_ptr<const std::string>> releases_;
  std::optional<ModelError> error_;
  std::optional<ServedError> served_error_;
  std::string version_;
};

}  // namespace orrery
