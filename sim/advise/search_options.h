// Knows the grid's list for each dimension of a family of layouts.
#pragma once

#include "sim/advise/search_space.h"

namespace orrery {

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
