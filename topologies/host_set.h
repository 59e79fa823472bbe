// SPDX-License-Identifier: Apache-2.0
// Holds a set of hosts by their numbers, and finds the first one from any number on.
#pragma once

#include <cstdint>
#include <vector>

namespace orrery {

// A bit a host, and above it a bit for each word that is not empty: with 64 to a word, three levels
// hold 262,144 hosts.
class HostSet {
 public:
  explicit HostSet(std::int32_t hosts = 0);
  void insert(std::int32_t host);
  void erase(std::int32_t host);
  bool contains(std::int32_t host) const;
  // The lowest host that is not below `from`; -1: none.
  std::int32_t first(std::int32_t from = 0) const;
  std::int32_t size() const { return size_; }

 private:
  std::vector<std::vector<std::uint64_t>> levels_;
  std::int32_t size_ = 0;
};

}  // namespace orrery
