// SPDX-License-Identifier: Apache-2.0
// Reads bandwidths of a shared store, and refuses those that no store has.
#include "sim/question/losses/store_entry.h"

namespace orrery {
namespace {

// The largest that are known write terabytes a second.
constexpr double least_rate = 1e6, most_rate = 1e18;

BytesPerSecond read_rate(const JsonValue& at) {
  const BytesPerSecond rate = at.quantity<BytesPerSecond>();
  if (!(rate.si() >= least_rate && rate.si() <= most_rate))
    at.fail("a bandwidth from 1 MB/s to 1 EB/s, such as \"500 GB/s\"");
  return rate;
}

}  // namespace

std::optional<StoreRates> read_store(const JsonValue& settings) {
  const auto store = settings.find("store");
  if (!store) {
    for (const char* key : {"store_write", "store_host"})
      if (const auto v = settings.find(key))
        v->fail("nothing without store: then nobody shares one");
    return std::nullopt;
  }
  StoreRates rates{.read = read_rate(*store)};
  rates.write = rates.read;
  if (const auto write = settings.find("store_write")) rates.write = read_rate(*write);
  if (const auto host = settings.find("store_host")) rates.host = read_rate(*host);
  return rates;
}

}  // namespace orrery
