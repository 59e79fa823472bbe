// SPDX-License-Identifier: Apache-2.0
// Knows how people write whole numbers: 8192, 8k, 1e6, and a batch of 4M tokens.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "sim/base/json/tree.h"

namespace orrery {

// Digits, or a number such as 1e6 or 1.5e3 that is whole. nullopt for anything else.
std::optional<std::int64_t> whole_in(const std::string& text);

// What k, M and G after a number mean for a key of settings. Nothing is guessed: what may mean two
// things is an Error that names them.
//   tokens of a sequence (seq, context, mean_document): 1,024 and its powers, so 128k is 131,072;
//   global_batch: M and G count tokens by 1,024 too, and make sequences of `seq`; k is refused;
//   every other key: refused.
// A batch in tokens waits for its sequence length: it stays as it is written.
SortedJson count_in(const std::string& key, const std::string& text, const std::string& place);

// The settings with every count that is written as text resolved, the batch by their own "seq".
// `file`: where they stand, for errors.
SortedJson with_counts(SortedJson settings, const std::string& file);

}  // namespace orrery
