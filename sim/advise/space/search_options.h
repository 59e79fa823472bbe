// SPDX-License-Identifier: Apache-2.0
// Knows the grid's list for each dimension of a family of layouts.
#pragma once

#include "sim/advise/space/search_space.h"

namespace orrery {

// Where the grid ends lists that have no end of their own (left_out() names them).
// A tile of attention's queries has 128 rows (FlashAttention's forward on Hopper and Blackwell):
// with fewer a part of every tile is empty.
inline constexpr std::int64_t least_tokens_per_rank = 128;
inline constexpr std::int64_t most_chunks = 16;
// Sequences; of short ones as many as hold these tokens (MosaicML runs small models with 96
// sequences of 512 tokens a microbatch, or 24 of 2,048).
inline constexpr std::int64_t most_micro_batch = 16, most_micro_batch_tokens = 65536;
inline constexpr std::int64_t most_layers_less = 3;  // on the first and on the last position

// Sizes; fixed ones alone.
std::vector<std::int64_t> tensor_sizes(const SearchSubject& s, const SearchLimits& limits);
std::vector<std::int64_t> context_sizes(const SearchSubject& s, const SearchLimits& limits);
std::vector<std::int64_t> pipeline_sizes(const SearchSubject& s, const SearchLimits& limits,
                                         std::int64_t ranks);
// Sequence parallelism, on before off.
std::vector<bool> row_options(const SearchSubject& s, const SearchLimits& limits,
                              const Layout& base);
// Whether the program can split experts as the sizes say.
bool offers_expert_tensor(const SearchSubject& s, const Layout& base);
std::vector<std::int64_t> expert_sizes(const SearchSubject& s, const SearchLimits& limits);

// Candidates of one dimension for these sizes. Not all need be valid.
std::vector<std::int64_t> micro_batch_options(const SearchSubject& s, const SearchLimits& limits,
                                              const Layout& base);
std::vector<PipelineOption> pipeline_options(const SearchSubject& s, const SearchLimits& limits,
                                             const Layout& base);
std::vector<ExchangeOption> exchange_options(const SearchSubject& s, const SearchLimits& limits,
                                             const Layout& base);
std::vector<RecomputeOption> recompute_options(const SearchSubject& s, const SearchLimits& limits,
                                               const Layout& base);
std::vector<ShardOption> shard_options(const SearchSubject& s, const SearchLimits& limits,
                                       const Layout& base);
std::vector<Offload> offload_options(const SearchSubject& s, const SearchLimits& limits);

}  // namespace orrery
