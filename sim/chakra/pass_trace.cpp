// SPDX-License-Identifier: Apache-2.0
// Cuts passes at their collectives and shares out their time among the pieces.
#include "sim/chakra/pass_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace orrery {
namespace {

// Of an operation that a pass runs more often one node stands for several.
constexpr double most_of_one = 64;

std::size_t slot(Label label) { return static_cast<std::size_t>(label); }

TraceCollective trace_kind(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::all_gather:
      return TraceCollective::all_gather;
    case CollectiveKind::reduce_scatter:
      return TraceCollective::reduce_scatter;
    case CollectiveKind::all_to_all:
      return TraceCollective::all_to_all;
    case CollectiveKind::broadcast:
    case CollectiveKind::send_receive:  // of a ring's steps: each rank hands on its buffer
      return TraceCollective::broadcast;
    case CollectiveKind::all_reduce:
      break;
  }
  return TraceCollective::all_reduce;
}

Seconds sum_of(const PhaseTime& phase) {
  Seconds sum;
  for (const Seconds s : phase.time) sum += s;
  return sum;
}

}  // namespace

StepCollective TracePrices::collective(const Collective& c, StepGroup group, std::int64_t stage,
                                       std::string_view name) {
  StepCollective out{.name = std::string(name), .group = group, .kind = trace_kind(c.kind)};
  const std::vector<std::int64_t> ranks =
      group_ranks(layout_, group, stage * layout_.stride(Parallel::pp));
  // Whole bytes, as the file will have them.
  const bool gathers = out.kind == TraceCollective::all_gather;
  out.bytes = std::round(c.bytes.si() / (gathers ? static_cast<double>(ranks.size()) : 1.0));
  out.time = ground_.price(ground_.collective(out.kind, out.bytes, ground_.shape(ranks)));
  return out;
}

Seconds TracePrices::message(std::int64_t from, std::int64_t to, Bytes bytes) {
  const std::int64_t stride = layout_.stride(Parallel::pp);
  return ground_.price(ground_.message(from * stride, to * stride, std::round(bytes.si())));
}

PassTraces::PassTraces(const PricedStep& step, TracePrices& prices, std::int64_t stage,
                       StageTrace& out)
    : step_(step),
      prices_(prices),
      stage_(stage),
      out_(out),
      context_(price_context(
          step.asked, step.layers,
          step.layers.speeds[step.layers.speed_of_stage[static_cast<std::size_t>(stage)]])) {}

const PassTraces::Pieces& PassTraces::pieces_of(const Segment& segment) {
  const auto known = known_.find(&segment);
  if (known != known_.end()) return known->second;
  Pieces pieces(1);
  Seconds most;  // of one operation since the last collective: it names the piece
  for (const Operation& o : segment.operations) {
    const PhaseTime alone = price_segment({.operations = {o}, .host_time = {}}, context_);
    const CollectiveOperation* own = o.collective();
    if (own == nullptr || own->told_again) {
      pieces.back().kernels += sum_of(alone);
      if (sum_of(alone) > most) pieces.back().name = phrase(o.label);
      most = std::max(most, sum_of(alone));
      continue;
    }
    std::optional<Collective> c = collective_of(*own, step_.layers.placement);
    if (!c) continue;
    const double nodes = std::clamp(std::round(o.count), 1.0, most_of_one);
    c->bytes = c->bytes * (o.count / nodes);
    Link link{
        .collective = prices_.collective(*c, step_group(own->group), stage_, to_text(o.label)),
        .label = o.label,
        .shown = sum_of(alone) / nodes};
    if (own->beside_compute)
      link.stream = o.label == Label::context_comm ? Stream::context : Stream::data;
    for (double i = 0; i < nodes; ++i) {
      pieces.back().link = link;
      pieces.emplace_back();
    }
    most = {};
  }
  return known_[&segment] = std::move(pieces);
}

void PassTraces::append(Pieces& to, const LayerProgram& layer, double times, double recomputed,
                        const std::string& name, PassKind kind) {
  const auto add = [&](const Segment& segment, double count, const std::string& of) {
    const auto whole = static_cast<std::int64_t>(std::ceil(count));
    for (std::int64_t i = 0; i < whole; ++i)
      for (Piece piece : pieces_of(segment)) {
        piece.name = of + (piece.name.empty() ? "" : ": " + piece.name);
        to.push_back(std::move(piece));
      }
  };
  switch (kind) {
    case PassKind::forward:
      add(layer.forward, times, name);
      return;
    case PassKind::backward:
      add(layer.recompute, recomputed, name + " again");
      add(layer.backward, times, name);
      return;
    case PassKind::input_gradient:
      add(layer.recompute, recomputed, name + " again");
      add(layer.input_gradient, times, name);
      return;
    case PassKind::weight_gradient:
      add(layer.weight_gradient, times, name);
      return;
  }
}

PassTraces::Pieces PassTraces::pieces_of(const Pass& pass) {
  struct Part {
    const LayerProgram* layer;
    double times, recomputed;
    std::string name;
  };
  std::vector<Part> layers, ends;
  const StepProgram& program = *step_.layers.program;
  const ChunkProgram& chunk = step_.chunks.at(stage_, pass.chunk).program;
  visit_parts(program, chunk, [&](const LayerProgram& layer, double plain, double again) {
    if (plain + again == 0) return;
    Part part{&layer, plain + again, again, "layer"};
    if (&layer == &program.embedding) part.name = "embedding";
    if (&layer == &program.head) part.name = "head";
    if (&layer == &program.module) part.name = "module";
    const bool first = &layer == &program.embedding;
    const bool last = &layer == &program.head || &layer == &program.module;
    if (last)
      ends.push_back(part);
    else
      layers.insert(first ? layers.begin() : layers.end(), part);
  });
  layers.insert(layers.end(), ends.begin(), ends.end());
  if (pass.kind != PassKind::forward) std::reverse(layers.begin(), layers.end());
  Pieces pieces;
  for (const Part& part : layers)
    append(pieces, *part.layer, part.times, part.recomputed, part.name, pass.kind);
  return pieces;
}

PassTicks PassTraces::ticks_of(const Pass& pass) const {
  const ChunkTime& t = step_.chunks.at(stage_, pass.chunk);
  switch (pass.kind) {
    case PassKind::forward:
      return t.forward;
    case PassKind::input_gradient:
      return t.input_gradient;
    case PassKind::weight_gradient:
      return t.weight_gradient;
    case PassKind::backward:
      break;
  }
  if (!splits_backward(step_.asked.layout.schedule)) return t.backward;
  PassTicks both = t.input_gradient;
  for (std::size_t i = 0; i < both.label.size(); ++i) both.label[i] += t.weight_gradient.label[i];
  both.total += t.weight_gradient.total;
  return both;
}

// Kernels take what the collectives' shown shares leave of the pass. What a collective hides, it
// hides under kernels of its own span.
struct PassTraces::Plan {
  std::vector<Seconds> beside;  // of each piece's collective: kernels meanwhile
  std::vector<bool> free;       // it hides under more than the pass has
  Seconds alone, kernels;       // of all kernels in no such span; of them, as they were priced
  Seconds data_start, context_start;  // of side streams, from the pass's start
};

PassTraces::Plan PassTraces::plan(const Pieces& pieces, const PassTicks& ticks, Ticks time) const {
  std::array<Seconds, label_count> shown{}, whole{};
  Seconds data, context;
  Plan plan{.beside = std::vector<Seconds>(pieces.size()),
            .free = std::vector<bool>(pieces.size())};
  for (const Piece& piece : pieces) {
    plan.kernels += piece.kernels;
    if (!piece.link) continue;
    const Link& link = *piece.link;
    if (link.stream == Stream::data) data += link.collective.time;
    if (link.stream == Stream::context) context += link.collective.time;
    if (link.stream != Stream::main) continue;
    shown[slot(link.label)] += link.shown;
    whole[slot(link.label)] += link.collective.time;
  }
  // Side streams show what the label has beyond the collectives that kernels wait for.
  const auto side_shown = [&](Seconds traffic, Label label) {
    if (traffic == Seconds(0)) return Seconds(0);
    return std::max(Seconds(0), to_seconds(ticks.label[slot(label)]) - shown[slot(label)]);
  };
  const Seconds data_shown = side_shown(data, Label::data_comm),
                context_shown = side_shown(context, Label::context_comm);
  const Seconds total = to_seconds(time);
  if (data_shown > Seconds(0)) plan.data_start = std::max(Seconds(0), total - data);
  if (context_shown > Seconds(0)) plan.context_start = std::max(Seconds(0), total - context);
  const auto shown_of = [&](const Link& link) {
    const std::size_t l = slot(link.label);
    Seconds all = to_seconds(ticks.label[l]);
    if (link.label == Label::data_comm) all -= data_shown;
    if (link.label == Label::context_comm) all -= context_shown;
    all = std::max(Seconds(0), all);
    const Seconds own = shown[l] > Seconds(0) ? all * (link.shown / shown[l])
                                              : all * (link.collective.time / whole[l]);
    return std::min(own, link.collective.time);
  };
  Seconds left = total - data_shown - context_shown;
  for (const Piece& piece : pieces)
    if (piece.link && piece.link->stream == Stream::main) left -= shown_of(*piece.link);
  left = std::max(Seconds(0), left);
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    if (!pieces[i].link || pieces[i].link->stream != Stream::main) continue;
    const Seconds own = shown_of(*pieces[i].link);
    const Seconds hidden = pieces[i].link->collective.time - own;
    plan.free[i] = hidden > left;
    if (plan.free[i]) {
      plan.alone += own;
    } else {
      plan.beside[i] = hidden;
      left -= hidden;
    }
  }
  plan.alone += left;
  return plan;
}

NodeIndex PassTraces::collective(const StepCollective& c, const std::string& pass,
                                 const NodeList& after, bool aside) {
  return out_.add({.name = pass + ": " + c.name,
                   .type = TraceNodeType::collective,
                   .after = after,
                   .collective = c.kind,
                   .bytes = c.bytes,
                   .group = c.group,
                   .aside = aside});
}

NodeList PassTraces::side(const Pieces& pieces, Stream stream, Seconds start,
                          const std::string& name, const NodeList& after) {
  NodeList last;
  for (const Piece& piece : pieces) {
    if (!piece.link || piece.link->stream != stream) continue;
    if (last.empty()) last = out_.host(name + ": side stream", start, after);
    last = {collective(piece.link->collective, name, last, true)};
  }
  return last;
}

NodeList PassTraces::add(const Pass& pass, Ticks time, const NodeList& after) {
  const std::string name = fmt::format("{} {}.{}", to_text(pass.kind), pass.microbatch, pass.chunk);
  const Pieces pieces = pieces_of(pass);
  const Plan plan = this->plan(pieces, ticks_of(pass), time);
  const NodeList sides = side(pieces, Stream::data, plan.data_start, name, after) +
                         side(pieces, Stream::context, plan.context_start, name, after);
  NodeList now = after;
  Seconds waiting;  // of kernels, up to a collective
  std::string of;   // the last of them
  const auto flush = [&] {
    now = out_.compute(name + ", " + (of.empty() ? "kernels" : of), waiting, now,
                       StageTrace::Span::alone);
    waiting = {};
  };
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    if (plan.kernels > Seconds(0)) waiting += plan.alone * (pieces[i].kernels / plan.kernels);
    if (pieces[i].kernels > Seconds(0)) of = pieces[i].name;
    if (!pieces[i].link || pieces[i].link->stream != Stream::main) continue;
    flush();
    const NodeIndex own = collective(pieces[i].link->collective, name, now, plan.free[i]);
    if (plan.free[i]) {
      beside_all_.push_back(own);
      continue;
    }
    const NodeList meanwhile = out_.compute(name + ", beside " + pieces[i].link->collective.name,
                                            plan.beside[i], now, StageTrace::Span::beside);
    now = meanwhile == now ? NodeList{own} : meanwhile + NodeList{own};
  }
  if (plan.kernels == Seconds(0)) waiting += plan.alone;
  flush();
  return now + sides;
}

}  // namespace orrery
