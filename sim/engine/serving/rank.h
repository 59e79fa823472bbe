// SPDX-License-Identifier: Apache-2.0
// Holds the requests of one rank of a serving engine: who waits, who runs, and their blocks.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "sim/engine/serving/block_pool.h"
#include "sim/engine/serving/decode_set.h"
#include "sim/engine/serving/request_queue.h"
#include "sim/engine/serving/service_timeline.h"
#include "sim/engine/serving/step_prices.h"
#include "workloads/serving/engine_policy.h"
#include "workloads/traffic/request.h"

namespace orrery {

// Steps with prompts that the host launches kernel by kernel and is kept from: a share of them, an
// exponential time each. A device that has more to do than launching takes hides the difference.
// What is drawn depends on the seed and on when the step starts.
struct HostStalls {
  double share = 0;
  Ticks mean;
};

// Blocks that a sequence keeps beside those of its tokens, from its start to its end: states of
// scans whatever its length, and keys of layers with a window as far as it fills that.
struct SequenceBlocks {
  std::int64_t states = 0, window = 0, window_tokens = 1;
  std::int64_t of(std::int64_t tokens) const {
    const std::int64_t filled = std::min(tokens, window_tokens);
    return states + (window * filled + window_tokens - 1) / window_tokens;
  }
};

// What one engine is made of, beside its policy.
struct EngineShape {
  std::int64_t blocks = 0;  // of each rank
  SequenceBlocks beside;
  std::int64_t ranks = 1;  // of data-parallel attention: they step together
  // Batches in flight of a pipeline of as many equal stages. Each has its own requests, and a part
  // of the blocks and sequences; it starts a step when the one before has left the first stage.
  std::int64_t lanes = 1;
  Bytes token;  // keys and values of a token on a rank: what tiers hold and load
  HostStalls stalls;
  Speculation speculation;
  bool prefill_only = false;  // its requests go on elsewhere after their first token
  // The host plans a step while the one before it runs: as soon as it has launched that.
  // What comes later joins the step after.
  bool plans_ahead = false;
  // The host reads what a step made once it has launched the next one. Where that one has prompts,
  // and its launching outlasts the step, first tokens are late.
  bool reads_after_launch = false;
  std::int64_t longest = 0;  // tokens of a request, prompt and output; longer are rejected; 0: any
};

// What all ranks of a run look at. `leaps` off: each step is one event.
struct ServingRun {
  const RequestList& requests;
  const EnginePolicy& policy;
  const EngineShape& shape;
  const StepPrices& prices;
  std::uint64_t seed = 0;
  bool leaps = true;
};

// What the ranks of one thread write.
struct ServingLedger {
  std::vector<RequestRecord>& records;
  ServiceTotals& totals;
  GapHistogram& gaps;
  StepLog* log = nullptr;  // none: steps are not kept
};

// Why a request could not start now.
enum class NotAdmitted { none, sequences, budget, blocks };

// Steps that follow each other: the first takes `first`, each next one `slope` more.
struct StepRun {
  Ticks start, first, slope;
  std::int64_t steps = 0;
  Ticks after(std::int64_t n) const { return start + first * n + slope * (n * (n - 1) / 2); }
  Ticks end() const { return after(steps); }
};

// A request of a rank, from its admission to its end.
struct Slot {
  enum class Phase : std::uint8_t { none, loading, prefill, decode };
  std::uint32_t request = 0;
  std::int32_t emitted = 0;               // tokens, before this admission and with its prompt
  std::int32_t target = 0, computed = 0;  // tokens of the prompt to be computed again or at first
  std::int32_t units = 0;                 // that it holds
  std::int64_t blocks = 0;                // of all its tokens, until it joins the decodes
  std::int64_t own = 0;                   // beside those, to its end
  std::uint32_t before = UnitMap::none, behind = UnitMap::none;  // in the order of admission
  std::uint64_t serial = 0;
  Ticks ready;               // when its cached tokens are there
  Ticks spoke;               // its last token, where that was not a step of the decodes
  std::int64_t joined = -1;  // step of the decodes before which it joined them
  Phase phase = Phase::none;
};

// What the next step computes.
struct RankPlan {
  struct Part {
    std::uint32_t slot;
    std::int64_t tokens;
  };
  StepShape shape;
  std::vector<Part> parts;      // of prompts, beside shape.chunks
  std::int64_t most_steps = 0;  // equal ones that may follow unless a request arrives; 0: idle
  std::int64_t taken = 0;       // blocks that the first step of the decodes takes
  bool open = true;             // a request that arrives could change what follows
  bool evictable = false;       // so could an eviction: text of a request that was refused
  bool holds_prompts = false;   // asked of the scheduler: none starts, since other ranks have none
};

class Rank {
 public:
  Rank(const ServingRun& run, ServingLedger& ledger);

  // Whether it would fit an empty rank; the others are rejected.
  bool fits(const Request& request) const;
  std::int64_t waiting() const { return queue_.size(); }
  std::int64_t running() const { return running_; }
  bool idle() const { return running_ == 0 && queue_.empty(); }
  // A request came, and waits from now on; then it is put into the queue.
  void arrived(Ticks now, const Waiting& waiting);
  void enqueue(const Waiting& waiting);
  // Whether the steps that were planned must stop for it, once it is in the queue. `open`: a
  // request that arrives could change what follows.
  bool matters(const Waiting& waiting, bool open) const;
  bool matters(const Waiting& waiting) const { return matters(waiting, plan_.open); }

  // For schedulers. `begin_plan` takes in what was loaded by now; `end_plan` counts the decodes.
  void begin_plan(Ticks now);
  RankPlan& end_plan(bool made_room, bool open, bool with_decodes = true);
  const ServingRun& run() const { return run_; }
  const RequestQueue& queue() const { return queue_; }
  const BlockPool& pool() const { return pool_; }
  const DecodeSet& decodes() const { return decodes_; }
  const std::vector<std::uint32_t>& prefills() const { return prefills_; }
  const Slot& slot(std::uint32_t s) const { return slots_[s]; }
  std::uint32_t last() const { return last_; }
  std::int64_t watermark() const;  // blocks that a start leaves free
  std::int64_t spare() const { return pool_.available() - decodes_.blocks_needed(1); }
  std::int64_t blocks_for(std::int64_t tokens) const;
  // The most tokens of a request that have blocks at once.
  std::int64_t most_tokens(const Request& r) const {
    return std::int64_t{r.prompt} + outputs(r) - 1 + run_.shape.speculation.drafts;
  }
  // Blocks that it keeps beside those of its tokens.
  std::int64_t own_blocks(const Request& r) const { return run_.shape.beside.of(most_tokens(r)); }
  // Tokens that a request emits here.
  std::int32_t outputs(const Request& r) const { return run_.shape.prefill_only ? 1 : r.output; }
  // More blocks that what runs may come to need.
  std::int64_t promised() const { return full_ - held_ - decodes_.blocks(); }
  // The front of the queue, `limit` tokens of it at most, with blocks for `reserve` of its tokens
  // (0: for what it computes) and as many free beside them. `planned` are its tokens of this step:
  // none of one whose text comes from a tier first.
  NotAdmitted admit(std::int64_t limit, std::int64_t reserve, std::int64_t keep_free,
                    std::int64_t& planned);
  bool extend(std::uint32_t slot, std::int64_t tokens);  // a chunk of it; false: no blocks
  void preempt(std::uint32_t slot, bool to_front);

  RankPlan& plan() { return plan_; }
  const RankPlan& plan() const { return plan_; }
  // Steps of the plan have been made. Appends the requests that ended.
  void settle(const StepRun& made, std::vector<std::uint32_t>& ended);
  // First tokens of the last step are read so much later.
  void delay_first_tokens(Ticks by);
  // Another engine has read the keys and values of a request that ended here; false: not from here.
  bool sent(std::uint32_t request);
  Ticks next_ready() const;  // of what is being loaded; the end of time where nothing is
  void close(Ticks now);     // integrals up to now
  bool consistent() const;

  // What schedulers know of it from one plan to the next.
  struct Kept {
    // SGLang: the share of new tokens that is reserved, in 2^-40 (steps take whole numbers off it),
    // and whether a request was refused since the last one ended.
    std::int64_t share = 0;
    bool full = false;
    // Decode steps since it looked for requests, and whether that look left some.
    std::int64_t since_look = 0;
    bool left = false;
    // TensorRT-LLM: steps for which prompts have waited for more of them, and whether they do.
    std::int64_t waited = 0;
    bool waits = false;
  };
  Kept kept;

 private:
  std::size_t level(const Waiting& waiting) const;
  std::uint32_t new_slot(const Waiting& waiting);
  void start(const Waiting& waiting, const PoolMatch& match, std::int64_t found,
             std::int64_t& planned);
  void unlink(std::uint32_t slot);
  void free_blocks(const Slot& slot, std::int64_t blocks);
  void keep_units(Slot& slot, std::int64_t computed);
  void forget_fresh(const Slot& slot);
  void join(std::uint32_t slot, Ticks spoke);
  void speak(std::uint32_t slot, Ticks now, std::vector<std::uint32_t>& ended);
  Ticks last_word(const Slot& slot) const;
  void finish(std::uint32_t slot, Ticks now, std::vector<std::uint32_t>& ended);
  void settle_decodes(const StepRun& made, std::vector<std::uint32_t>& ended);
  void count_gaps(const StepRun& made);
  Ticks load_time(const PoolMatch& match, std::int64_t swapped) const;

  const ServingRun& run_;
  ServingLedger& ledger_;
  BlockPool pool_;
  DecodeSet decodes_;
  RequestQueue queue_;
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> free_slots_, prefills_, loading_;
  std::vector<Slot> sending_;  // their blocks are still read from elsewhere
  struct Scratch {
    std::vector<std::uint32_t> finished;
    std::vector<std::uint32_t> first_words;  // requests that spoke first with the last step
    std::vector<std::int64_t> accepted;
  };
  Scratch scratch_;
  // Members of the decodes that spoke after its last step, by when they did.
  std::vector<std::pair<Ticks, std::int64_t>> fresh_;
  RankPlan plan_;
  std::uint32_t last_ = UnitMap::none;  // admitted last
  std::int64_t running_ = 0, unit_tokens_ = 0;
  std::int64_t full_ = 0, held_ = 0;  // blocks of all that run: at their end; before they decode
  std::uint64_t serial_ = 0;
  Ticks now_, spoke_, link_free_;  // of the plan; of the decodes' last step; of the next load
  Gauge queued_gauge_, running_gauge_;
};

}  // namespace orrery
