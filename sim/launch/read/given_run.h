// SPDX-License-Identifier: Apache-2.0
// Knows what is left of a configuration once it has been read: settings, and what became of each
// line.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/json/json.h"
#include "sim/base/json/tree.h"

namespace orrery {

// One line of a configuration, or a default where it has none.
struct GivenItem {
  std::string place = {}, name = {}, value = {};  // as written; "train.sh:12"
  std::string key = {}, becomes = {};  // of a question's settings, and its value; empty: none
  std::string note = {};               // why; of a default the release and its source
};

// Groups of a serving engine, one of several alike.
struct GivenEngine {
  std::int64_t tp = 1, pp = 1, attention_dp = 1, ep = 1;
  std::int64_t copies = 0;  // of experts beyond one of each
  bool experts = false;     // the model has some, or is not known
};

struct GivenRun {
  std::string file;
  std::vector<std::string> also;               // files that it names and that were read with it
  std::string program = {};                    // "Megatron-LM"
  bool serves = false;                         // a serving engine; else a training run
  GivenEngine engine = {};                     // of one that serves
  SortedJson settings = SortedJson::object();  // keys of questions; what it does not say is absent
  std::vector<GivenItem> understood = {}, defaulted = {}, without_effect = {}, not_understood = {};
};

// As JSON, which a question may hold under "read_from", and back. Error: another form.
SortedJson to_json(const GivenRun& run);
GivenRun given_run_of(const JsonValue& at);

}  // namespace orrery
