// Knows what an exchange of tokens between expert ranks is, beside its bytes.
#pragma once

#include <cstdint>

#include "sim/base/names.h"

namespace orrery {

// What an exchange of tokens among experts' ranks does: send each token to its experts, bring the
// results back and add them, or tell how many will come. Anything else is of the first kind.
enum class ExchangePhase : std::uint8_t { dispatch, combine, prepare };

// What a library that knows tokens is told, beside the bytes (which are tokens x experts of a token
// x bytes of one row). tokens = 0: unknown; then every copy is taken to travel by itself.
struct TokenExchange {
  ExchangePhase phase = ExchangePhase::dispatch;
  std::int64_t tokens = 0;   // of one rank
  std::int64_t experts = 0;  // that one token goes to
  std::int64_t pool = 0;     // experts that there are, each with a counter of its own; 0: unknown
  double reaches = 0;        // ranks that one token goes to; 0: experts are drawn at random
  std::int64_t most_domains = 0;  // that one token may go to (group-limited routing); 0: any
  std::int64_t sms = 0;           // that the kernel is given; 0: the library's own choice
  bool operator==(const TokenExchange&) const = default;
};

// Whether the library is told of tokens: DeepEP's kernels and those of an NVLink domain.
constexpr bool knows_tokens(CollectiveLibrary l) {
  return l == CollectiveLibrary::deepep || l == CollectiveLibrary::nvlink_two_sided ||
         l == CollectiveLibrary::nvlink_one_sided;
}

}  // namespace orrery
