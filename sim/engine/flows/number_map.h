// SPDX-License-Identifier: Apache-2.0
// Finds indices by numbers of which neighbours come together: pages that are made when touched.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace orrery {

class NumberMap {
 public:
  // The index kept for a number, and whether it is new: then it is `fresh`.
  std::pair<std::uint32_t, bool> find_or_add(std::int64_t number, std::uint32_t fresh) {
    const auto page = static_cast<std::size_t>(number / page_size);
    if (page >= begins_.size()) begins_.resize(page + 1, none);
    if (begins_[page] == none) {
      begins_[page] = static_cast<std::uint32_t>(indices_.size());
      indices_.resize(indices_.size() + page_size, none);
    }
    std::uint32_t& index = indices_[begins_[page] + static_cast<std::size_t>(number % page_size)];
    if (index != none) return {index, false};
    index = fresh;
    return {fresh, true};
  }

 private:
  static constexpr std::uint32_t none = UINT32_MAX;
  static constexpr std::int64_t page_size = 32;  // links of a switch have numbers in a row
  std::vector<std::uint32_t> begins_, indices_;
};

}  // namespace orrery
