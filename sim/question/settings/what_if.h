// SPDX-License-Identifier: Apache-2.0
// Knows the keys that make a machine hypothetical: its rates times a factor, or values of their
// own.
#pragma once

#include <string>
#include <vector>

#include "sim/base/errors/check.h"
#include "sim/base/json/json.h"
#include "sim/explain/what_if.h"

namespace orrery {

// One rate of a machine that a question may change.
struct WhatIfKey {
  const char* key;   // "memory_bandwidth"
  const char* help;  // with an example
};
const std::vector<WhatIfKey>& what_if_keys();

// What the keys among `at` change about the cluster. A number is a factor, text a value with its
// unit. Errors name the key.
WhatIf read_what_if(const JsonValue& at, const Cluster& cluster);

// The cluster with what the keys say, which `changes` tells; as it is without any. Errors name the
// key.
Cluster with_what_if(Cluster cluster, const JsonValue& at);

// Runs it; an Error stands under the key that asked for it.
template <class Run>
void under_key(const JsonValue& at, const char* key, Run&& run) {
  try {
    run();
  } catch (const Error& error) {
    ErrorInfo info = error.info();
    info.file = at.file();
    info.path = key;
    throw Error(info);
  }
}

}  // namespace orrery
