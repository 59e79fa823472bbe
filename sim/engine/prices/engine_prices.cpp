// SPDX-License-Identifier: Apache-2.0
// Compiles tables of step times, and reads them.
#include "sim/engine/prices/engine_prices.h"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <optional>
#include <utility>

#include "sim/base/errors/check.h"
#include "sim/engine/prices/row_tables.h"
#include "sim/engine/prices/segments.h"

namespace orrery {
namespace {

// Mean contexts at which attention is priced, four an octave.
std::vector<std::int64_t> context_nodes() {
  std::vector<std::int64_t> nodes{1};
  for (std::int64_t n = 128; n <= (std::int64_t{1} << 24); n *= 2)
    for (const std::int64_t part : {4, 5, 6, 7}) nodes.push_back(n / 4 * part);
  return nodes;
}

const std::vector<std::int64_t>& contexts_priced() {
  static const std::vector<std::int64_t> nodes = context_nodes();
  return nodes;
}

// Of two that take turns to be late: the longer, a fifth more where they are equal.
double joined(double a, double b) {
  const double longer = std::max(a, b), shorter = std::min(a, b);
  return longer > 0 ? longer * std::sqrt(std::sqrt(1 + std::pow(shorter / longer, 4))) : 0;
}

// Of launching a step operation by operation.
double launch_seconds(const ServingHost& host, const Launches& launches) {
  const double eager = host.eager_launch.get().si(), compiled = host.compiled_launch.get().si();
  return host.eager_step.get().si() + (launches.operations - launches.shown) * eager +
         launches.shown * (compiled > 0 ? compiled : eager) +
         launches.collectives * host.eager_collective.get().si();
}

// Keys that any indexer of a model chooses; 0: it has none.
std::int64_t fewest_chosen(const Model& model) {
  std::int64_t fewest = 0;
  for (const LayerClass& layer : model.classes) {
    if (layer.mixer.index_heads == 0) continue;
    const std::int64_t chosen = layer.mixer.index_topk;
    fewest = fewest == 0 ? chosen : std::min(fewest, chosen);
  }
  return fewest;
}

// Seconds in which a host launches a step with prompts kernel by kernel.
class StepLaunching {
 public:
  StepLaunching(const Host& host, const Model& model, const StackServing& serving,
                const Segments& segments)
      : usual_(host.launch_time.get() * launch_seconds(serving.host, segments.launches(true))),
        whole_(host.launch_time.get() * launch_seconds(serving.host, segments.launches(false))),
        in_graph_(serving.kernels.latents_outside_graphs
                      ? host.launch_time.get() *
                            launch_seconds(serving.host, {.operations = segments.latent_launches()})
                      : 0),
        chosen_(serving.kernels.short_prompts_whole ? fewest_chosen(model) : 0) {}
  // Of a step that graphs hold or do not: graphs of prompts may leave something out.
  double of(const StepShape& shape, bool in_graph) const {
    if (!in_graph) return of(shape.chunks);
    return shape.beside_prompts() ? in_graph_ : 0;
  }
  double of(const std::vector<PrefillChunk>& chunks) const {
    const auto whole = [&](const PrefillChunk& c) { return c.start + c.tokens <= chosen_; };
    return !chunks.empty() && std::all_of(chunks.begin(), chunks.end(), whole) ? whole_ : usual_;
  }

 private:
  double usual_, whole_;  // whether indexers choose among the keys of a prompt, or it sees them all
  double in_graph_;
  std::int64_t chosen_;  // prompts of up to so many tokens see all
};

// What a rank's host takes to prepare a step: all its batches, where it guesses tokens.
double host_seconds(const ServingHost& host, std::int64_t sequences, std::size_t chunks,
                    bool guessing) {
  const double batch =
      host.step.get().si() + static_cast<double>(sequences) * host.sequence.get().si();
  return batch * (guessing ? static_cast<double>(host.guess_batches) : 1) +
         static_cast<double>(chunks) * host.chunk.get().si();
}

}  // namespace

// A batch of decodes of one size.
struct Batch {
  std::vector<double> attention;    // seconds at each node of the mean context
  std::vector<DecodePiece> pieces;  // of a step with nothing else
};

// Entries are made when they are first asked for, once, and stay.
class EnginePrices::Tables {
 public:
  Tables(const Cluster& cluster, const Model& model, const EngineLayout& layout, const Stack& stack,
         std::int64_t most, const Drafter* drafts_by)
      : segments(cluster, model, layout, stack),
        serving(stack.serving),
        launching(cluster.host, model, stack.serving, segments),
        several_ranks(layout.gpus() > 1),
        drafter(drafts_by),
        drafts(drafts_by == nullptr ? 0 : drafts_by->drafts),
        uneven(segments, mutex, layout.attention_dp),
        once(static_cast<std::size_t>(most) + 1),
        batches(static_cast<std::size_t>(most) + 1) {
    if (drafts == 0 || !drafter->network) return;
    guesser.emplace(cluster, *drafter->network, drafter->layout(layout), stack);
    uneven_guesser.emplace(*guesser, mutex, layout.attention_dp);
  }

  // Of a table: exactly, or between nodes, as steps with prompts have any number of rows.
  template <class Price>
  double tabulated(SecondsByRows& table, std::int64_t n, bool exact, const Price& price) {
    const auto at = [&](std::int64_t rows) {
      return remembered(mutex, table, rows, [&](std::int64_t r) { return seconds_of(price(r)); });
    };
    if (n == 0) return 0;
    if (exact) return at(n);
    const std::vector<std::int64_t>& nodes = rows_priced();
    return interpolated(nodes, static_cast<double>(n), [&](std::size_t i) { return at(nodes[i]); });
  }
  double row_seconds(std::int64_t n, bool in_graph, bool exact) {
    return tabulated(in_graph ? graph_rows : eager_rows, n, exact,
                     [&](std::int64_t rows) { return segments.rows(rows, in_graph); });
  }
  double head_seconds(std::int64_t n, bool in_graph, bool exact) {
    return tabulated(in_graph ? graph_heads : eager_heads, n, exact,
                     [&](std::int64_t rows) { return segments.ended(rows, in_graph); });
  }

  double uneven_seconds(const StepShape& shape) {
    return uneven.seconds(shape.rows(), shape.group) + uneven_drafting_seconds(shape);
  }
  double uneven_drafting_seconds(const StepShape& shape) {
    return uneven_guesser ? uneven_guesser->seconds(shape.rows(), shape.group) : 0;
  }

  // Passes that guess, but for attention: the first over all rows, later ones a row a sequence.
  PhaseTime first_pass(std::int64_t rows, bool in_graph) const {
    PhaseTime pass = guesser->rows(rows, in_graph);
    pass.add(guesser->joined(drafter->joined, rows, true, in_graph), 1);
    return pass;
  }
  PhaseTime later_pass(std::int64_t sequences, bool in_graph) const {
    PhaseTime pass = guesser->rows(sequences, in_graph);
    pass.add(guesser->joined(drafter->joined, sequences, false, in_graph), 1);
    return pass;
  }
  double drafting_seconds(std::int64_t rows, std::int64_t sequences, bool in_graph, bool exact) {
    if (!guesser) return 0;
    const auto passes = static_cast<double>(drafts);
    return tabulated(in_graph ? graph_first : eager_first, rows, exact,
                     [&](std::int64_t n) { return first_pass(n, in_graph); }) +
           passes * tabulated(in_graph ? graph_guesses : eager_guesses, sequences, exact,
                              [&](std::int64_t n) { return guesser->head(n, in_graph); }) +
           (passes - 1) * tabulated(in_graph ? graph_later : eager_later, sequences, exact,
                                    [&](std::int64_t n) { return later_pass(n, in_graph); });
  }
  // Attention of decodes over histories of `context`: in the model, and in passes that guess.
  double attention_seconds(std::int64_t decodes, std::int64_t context) const {
    const double own = seconds_of(segments.decode(decodes, 1 + drafts, context));
    return guesser ? own + drafting_attention(decodes, context) : own;
  }
  double drafting_attention(std::int64_t decodes, std::int64_t context) const {
    return seconds_of(guesser->decode(decodes, 1 + drafts, context)) +
           static_cast<double>(drafts - 1) * seconds_of(guesser->decode(decodes, 1, context));
  }

  // `launched`: seconds of launching. Host and device vary, so that the longer one alone does not
  // decide.
  double with_host(double device, std::int64_t sequences, std::size_t chunks,
                   double launched) const {
    const double host = host_seconds(serving.host, sequences, chunks, guesser.has_value()) +
                        (several_ranks ? serving.host.ranks.get().si() : 0);
    const double busy = joined(device, launched);
    const double answers = static_cast<double>(sequences) * serving.host.answer.get().si() /
                           static_cast<double>(serving.policy.stream_interval);
    const bool ahead = serving.host.ahead(guesser.has_value());
    return (ahead ? std::max(busy, host) : busy + host) + answers;
  }

  // How a step runs: its rows, padded where a graph of decodes takes them.
  struct Run {
    std::int64_t rows = 0, sampled = 0, sequences = 0;
    std::int64_t guessed_for = 0;  // sequences that later passes of the drafter have a row of
    bool padded = false, in_graph = false;
    bool uneven = false;  // ranks of its group have rows of their own number
  };
  Run run_of(const StepShape& shape) const {
    CHECK_THAT(shape.decodes == 0 || shape.drafts == drafts, "drafts that no drafter makes");
    // Sizes of graphs count sequences, each with its own row and its drafts.
    Run run{.rows = shape.rows(),
            .sampled = shape.sampled + shape.decodes * drafts,
            .guessed_for = shape.sampled};
    run.sequences = shape.decodes + static_cast<std::int64_t>(shape.chunks.size());
    if (shape.beside_prompts()) {
      // All ranks of a group run in graphs, padded to the largest of them, or none does.
      const std::int64_t largest = std::max(run.rows, shape.group.largest);
      run.in_graph = largest <= serving.mixed_graph_rows;
      if (run.in_graph) run.rows = largest;
      run.uneven = !run.in_graph && shape.group.all > 0;
      return run;
    }
    const std::int64_t graph = graph_size(serving, shape.decodes);
    run.padded = run.in_graph = graph > 0;
    if (run.padded) run.guessed_for = graph;
    run.sampled = run.rows = run.guessed_for * (1 + drafts);
    return run;
  }

  const Batch& batch(std::int64_t decodes);
  void fill(Batch& batch, std::int64_t decodes);
  Segments segments;
  const StackServing& serving;
  const StepLaunching launching;
  const bool several_ranks;
  const Drafter* drafter;
  std::int64_t drafts;
  std::optional<Segments> guesser;
  std::recursive_mutex mutex;
  UnevenRanks uneven;
  std::optional<UnevenRanks> uneven_guesser;
  SecondsByRows graph_rows, eager_rows, graph_heads, eager_heads, graph_first, eager_first,
      graph_later, eager_later, graph_guesses, eager_guesses;
  std::vector<std::once_flag> once;
  std::vector<Batch> batches;
};

const Batch& EnginePrices::Tables::batch(std::int64_t decodes) {
  const auto slot = static_cast<std::size_t>(decodes);
  std::call_once(once.at(slot), [&] { fill(batches[slot], decodes); });
  return batches[slot];
}

// Slopes are whole picoseconds a token: a step's time is then a sum of whole numbers however many
// steps are taken at once. What that rounds is below a picosecond a token of context.
void EnginePrices::Tables::fill(Batch& batch, std::int64_t decodes) {
  const std::vector<std::int64_t>& nodes = contexts_priced();
  const std::int64_t graph = graph_size(serving, decodes);
  const std::int64_t sequences = graph > 0 ? graph : decodes, rows = sequences * (1 + drafts);
  const double fixed = row_seconds(rows, graph > 0, true) + head_seconds(rows, graph > 0, true) +
                       drafting_seconds(rows, sequences, graph > 0, true);
  const std::scoped_lock lock(mutex);
  for (const std::int64_t node : nodes) batch.attention.push_back(attention_seconds(decodes, node));
  for (std::size_t i = 0; i + 1 < nodes.size(); ++i) {
    const auto at = [&](std::size_t node) {
      return to_ticks(Seconds(
          with_host(fixed + batch.attention[node], decodes, 0, graph == 0 ? launching.of({}) : 0)));
    };
    const std::int64_t first = decodes * nodes[i], next = decodes * nodes[i + 1];
    const std::int64_t rise = std::max<std::int64_t>(0, (at(i + 1) - at(i)).ps);
    batch.pieces.push_back({.at_first = at(i),
                            .per_token = Ticks{rise / (next - first)},
                            .first = first,
                            .last = next - 1});
  }
  batch.pieces.back().last = std::int64_t{1} << 62;
}

EnginePrices::EnginePrices(const Cluster& cluster, const Model& model, const EngineLayout& layout,
                           const Stack& stack, std::int64_t most_sequences, const Drafter* drafter)
    : tables_(std::make_unique<Tables>(cluster, model, layout, stack, most_sequences, drafter)) {}
EnginePrices::~EnginePrices() = default;

DecodePiece EnginePrices::decode(std::int64_t decodes, std::int64_t contexts) const {
  const std::vector<DecodePiece>& pieces = tables_->batch(decodes).pieces;
  const auto after = std::upper_bound(
      pieces.begin(), pieces.end(), contexts,
      [](std::int64_t value, const DecodePiece& piece) { return value < piece.first; });
  return after == pieces.begin() ? pieces.front() : *(after - 1);
}

Ticks EnginePrices::step(const StepShape& shape) const {
  if (!shape.beside_prompts() && shape.decodes > 0) {
    CHECK_THAT(shape.drafts == tables_->drafts, "drafts that no drafter makes");
    const DecodePiece piece = decode(shape.decodes, shape.contexts);
    return piece.at_first + piece.per_token * (shape.contexts - piece.first);
  }
  Tables& t = *tables_;
  const Tables::Run run = t.run_of(shape);
  double device = t.row_seconds(run.rows, run.in_graph, run.padded);
  device += t.head_seconds(run.sampled, run.in_graph, false);
  device += t.drafting_seconds(run.rows, run.guessed_for, run.in_graph, run.padded);
  if (run.uneven) device += t.uneven_seconds(shape);
  if (shape.decodes > 0) {
    const double mean = static_cast<double>(shape.contexts) / static_cast<double>(shape.decodes);
    const Batch& batch = t.batch(shape.decodes);
    device +=
        interpolated(contexts_priced(), mean, [&](std::size_t i) { return batch.attention[i]; });
  }
  if (!shape.chunks.empty()) {
    const std::scoped_lock lock(t.mutex);
    for (const PrefillChunk& chunk : shape.chunks) {
      device += seconds_of(t.segments.prefill(chunk));
      if (t.guesser) device += seconds_of(t.guesser->prefill(chunk));
    }
  }
  return to_ticks(Seconds(t.with_host(device, run.sequences, shape.chunks.size(),
                                      t.launching.of(shape, run.in_graph))));
}

StepParts EnginePrices::parts(const StepShape& shape) const {
  Tables& t = *tables_;
  const Tables::Run run = t.run_of(shape);
  StepParts parts;
  const auto add = [&](const PhaseTime& phase) {
    for (std::size_t i = 0; i < parts.time.size(); ++i) parts.time[i] += phase.time[i];
    parts.energy += phase.energy;
  };
  const std::scoped_lock lock(t.mutex);
  add(run.uneven ? t.segments.rows(run.rows, shape.group)
                 : t.segments.rows(run.rows, run.in_graph));
  add(t.segments.ended(run.sampled, run.in_graph));
  if (shape.decodes > 0)
    add(t.segments.decode(shape.decodes, 1 + t.drafts,
                          std::max<std::int64_t>(1, shape.contexts / shape.decodes)));
  for (const PrefillChunk& chunk : shape.chunks) add(t.segments.prefill(chunk));
  if (t.guesser) {
    double drafting = t.drafting_seconds(run.rows, run.guessed_for, run.in_graph, true);
    if (run.uneven) drafting += t.uneven_drafting_seconds(shape);
    if (shape.decodes > 0)
      drafting += t.drafting_attention(shape.decodes,
                                       std::max<std::int64_t>(1, shape.contexts / shape.decodes));
    for (const PrefillChunk& chunk : shape.chunks)
      drafting += seconds_of(t.guesser->prefill(chunk));
    parts.drafting = Seconds(drafting);
  }
  const double device = parts.total().si();
  parts.time[static_cast<std::size_t>(Label::host)] += Seconds(
      t.with_host(device, run.sequences, shape.chunks.size(), t.launching.of(shape, run.in_graph)) -
      device);
  return parts;
}

Ticks EnginePrices::launching(const StepShape& shape, Ticks step) const {
  if (!shape.beside_prompts()) return {};
  const bool in_graph = tables_->run_of(shape).in_graph;
  const Ticks launched = to_ticks(Seconds(tables_->launching.of(shape, in_graph)));
  // Then it is never ahead of the device.
  const bool waits = !in_graph && !shape.chunks.empty() && tables_->segments.waits_for_counts();
  return waits ? max(launched, step) : launched;
}

Ticks EnginePrices::launching() const { return to_ticks(Seconds(tables_->launching.of({}))); }

Seconds StepParts::total() const {
  Seconds sum = drafting;
  for (const Seconds& part : time) sum += part;
  return sum;
}

}  // namespace orrery
