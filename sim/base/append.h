// SPDX-License-Identifier: Apache-2.0
// Adds a list to the end of another.
#pragma once

#include <iterator>
#include <utility>

namespace orrery {

// `more` gives its items away.
template <class List>
void append(List& list, List&& more) {
  list.insert(list.end(), std::make_move_iterator(more.begin()),
              std::make_move_iterator(more.end()));
}

}  // namespace orrery
