// SPDX-License-Identifier: Apache-2.0
// Knows how a pass of a stage becomes nodes: kernels, the collectives between them and beside them.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/chakra/ground.h"
#include "sim/chakra/stage_trace.h"
#include "sim/engine/pipeline/run.h"
#include "sim/engine/step/chunks.h"

namespace orrery {

// A collective of a step as a trace has it.
struct StepCollective {
  std::string name;
  StepGroup group = StepGroup::tensor;
  TraceCollective kind = TraceCollective::all_reduce;
  double bytes = 0;  // as traces count them
  Seconds time;      // on the trace's network
};

// The collectives of one stage's ranks, priced as a replay will price them.
class TracePrices {
 public:
  TracePrices(const Layout& layout, TraceGround& ground) : layout_(layout), ground_(ground) {}
  StepCollective collective(const Collective& collective, StepGroup group, std::int64_t stage,
                            std::string_view name);
  Seconds message(std::int64_t from_stage, std::int64_t to_stage, Bytes bytes);
  const Layout& layout() const { return layout_; }

 private:
  const Layout& layout_;
  TraceGround& ground_;
};

// Appends passes to the nodes of one stage.
class PassTraces {
 public:
  // All must outlive it.
  PassTraces(const PricedStep& step, TracePrices& prices, std::int64_t stage, StageTrace& out);

  // What `pass` takes is `time`, which the nodes add up to. Returns what ends it.
  NodeList add(const Pass& pass, Ticks time, const NodeList& after);
  // Collectives that hide under later passes.
  const NodeList& beside_all() const { return beside_all_; }

 private:
  // Where a collective runs: between kernels that wait for it, or on a side stream of the pass.
  enum class Stream : std::uint8_t { main, data, context };
  struct Link {
    StepCollective collective;
    Stream stream = Stream::main;
    Label label = Label::tensor_comm;
    Seconds shown;  // of its time, as it was priced alone
  };
  // Kernels, then a collective.
  struct Piece {
    std::string name;
    Seconds kernels;
    std::optional<Link> link;
  };
  using Pieces = std::vector<Piece>;
  struct Plan;  // of a pass: which spans its pieces get

  const Pieces& pieces_of(const Segment& segment);
  Pieces pieces_of(const Pass& pass);
  void append(Pieces& to, const LayerProgram& layer, double times, double recomputed,
              const std::string& name, PassKind kind);
  PassTicks ticks_of(const Pass& pass) const;
  Plan plan(const Pieces& pieces, const PassTicks& ticks, Ticks time) const;
  NodeList side(const Pieces& pieces, Stream stream, Seconds start, const std::string& name,
                const NodeList& after);
  NodeIndex collective(const StepCollective& c, const std::string& pass, const NodeList& after,
                       bool aside);

  const PricedStep& step_;
  TracePrices& prices_;
  std::int64_t stage_;
  StageTrace& out_;
  PriceContext context_;
  std::map<const Segment*, Pieces> known_;
  NodeList beside_all_;
};

}  // namespace orrery
