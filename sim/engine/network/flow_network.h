// SPDX-License-Identifier: Apache-2.0
// Finds when collectives end on the network as it is wired: shared links, hashing, faults, others.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/engine/event_queue.h"
#include "sim/engine/flows/clock.h"
#include "sim/engine/flows/ground.h"
#include "sim/engine/flows/limiting_links.h"
#include "sim/engine/flows/symmetry.h"
#include "sim/engine/network/alone_price.h"
#include "sim/engine/network/flow_price.h"
#include "sim/engine/network/laid_flows.h"
#include "sim/engine/network/network.h"
#include "sim/engine/network/streams.h"

namespace orrery {

class FlowMemory;

// Collectives first wait their latency, then their flows share the links max-min fairly with all
// that runs; a collective ends when its slowest flow has ended. Groups of a kind start together.
//
// price() looks at the whole job, with its faults. start() runs collectives beside each other; of a
// large job it runs a healthy part (shared_part.h), in which groups keep their rates and steps but
// have fewer members.
class FlowNetwork final : public Network {
 public:
  // Fabric, costs and memory must outlive the network. `memory`: what better() is kept in.
  FlowNetwork(const Fabric& fabric, const CollectiveCosts& costs, const JobGround& job,
              const Conditions& conditions, const FlowOptions& options = {},
              FlowMemory* memory = nullptr);
  CollectiveId start(const Collective& collective, Ticks time) override;
  std::optional<Completion> next_completion() override;
  const CollectiveTime& price(const Collective& collective, std::int64_t stage = 0) override;
  // What this network is never faster than, null: itself. Of a broken or busy one the same with
  // nothing broken and no traffic of others; of a scattered job's the same with its domains side by
  // side, since what others leave free of a switch today is theirs tomorrow.
  FlowNetwork* better();
  const FlowPrice& details(const Collective& collective);
  // Of a network in a memory, what these streams took before; null: not known. To the bit, since
  // what has ended leaves no trace in what runs now.
  const TwoStreams* known(std::span<const StreamItem> main, std::span<const StreamItem> side) const;
  void remember(std::span<const StreamItem> main, std::span<const StreamItem> side,
                const TwoStreams& streams);
  // From now on links that are guessed not to limit anybody are left out. Once all has ended,
  // missed_limits() says whether some might have: then they count, and the same has to start again.
  void guess_limits();
  bool missed_limits();
  Ticks now() const { return now_; }  // of the last completion returned

  std::size_t flows() const { return ground_->table().flows.size(); }  // entries before folding
  std::size_t classes() const { return folded_.table.flows.size(); }

 private:
  // A collective's flows in the table; used again by later ones of the same shape and rates.
  struct Instance {
    Collective like;  // bytes apart
    CollectiveTime alone;
    FlowRange range;
    bool busy = false;
  };
  struct Running {
    CollectiveId id;
    std::size_t instance = 0;
    double bytes = 0;      // of a busiest rank, that flows' shares refer to
    std::size_t left = 0;  // flow classes still moving
  };
  std::size_t instance_for(const Collective& collective, const CollectiveTime& alone);
  LaidFlows& laid_flows();
  LaidFlows& part_flows();
  std::optional<Ticks> end_alone(const Running& running);
  void forget_flows();
  void refold(Ticks now);
  void note_rates();
  void begin_flows(std::size_t running, Ticks now);

  const Fabric& fabric_;
  const CollectiveCosts& costs_;
  Conditions conditions_;
  FlowMemory* memory_;
  std::unique_ptr<FlowNetwork> own_better_;  // where there is no memory
  FlowNetwork* better_ = nullptr;            // once it was asked for
  FlowOptions options_;
  JobGround job_;
  std::optional<FlowGround> ground_;  // of the part that start() runs
  Folded folded_;
  std::unique_ptr<FlowClock> clock_;
  // Of the ground's table: flows that were begun so far, and when classes were last made. Flows of
  // collectives that start again lie there already.
  struct FlowCounts {
    std::size_t begun = 0, folded = 0;
  };
  FlowCounts counts_;
  struct Guess {
    LimitingLinks links;
    std::vector<double> most_rates;  // of every flow, with classes that were given up
    std::size_t begun_before = 0;    // flows, when what may have to start again started
  };
  std::optional<Guess> guess_;
  std::vector<Instance> instances_;
  std::vector<Running> running_;
  struct EndAlone {
    std::size_t instance;
    double bytes;
    std::optional<Ticks> end;
  };
  std::vector<std::size_t> owner_;  // of a flow class: index into running_
  EventQueue begins_;               // of flows, after a collective's latency
  std::int64_t started_ = 0;
  Ticks now_;
  std::unordered_map<Collective, FlowPrice, CollectiveHash> memo_;
  struct Streams {
    std::vector<StreamItem> main, side;
    TwoStreams took;
  };
  std::vector<Streams> streams_;
  // Flows of single collectives: of the whole job, and of the part of a large one.
  std::unique_ptr<LaidFlows> laid_;
  struct Part {
    std::unique_ptr<LaidFlows> laid;
    std::vector<EndAlone> ends;
  };
  Part part_;
};

}  // namespace orrery
