// SPDX-License-Identifier: Apache-2.0
// Writes what serve found as a page.
#include "sim/app/serve/report.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/app/report/parts.h"
#include "sim/base/text/words.h"
#include "sim/question/serve/engine_text.h"

namespace orrery {
namespace {

std::string headline(const ServiceCase& c) {
  return fmt::format("{} on {} x {} ({})", c.model.title, grouped(c.gpus()), c.cluster.device.title,
                     c.cluster.name);
}

std::string engines_text(const ServiceCase& c) {
  std::string text = fmt::format("{} {}: ", c.stack.title, c.stack.release);
  if (!c.decode) return text + to_text(c.engines);
  return text +
         fmt::format("{} for prompts, {} for decodes", to_text(c.engines), to_text(*c.decode));
}

void add_memory(Table& table, const char* name, const EngineMemory& m, std::int64_t block) {
  table.add(
      {name, fmt::format("weights {}, {} for keys and values: {} blocks of {} ({} tokens)",
                         to_text(m.weights), to_text(std::max(Bytes(0), m.cache)),
                         grouped(m.blocks), plural(block, "token"), grouped(m.blocks * block))});
}

void add_latencies(Document& document, const ServiceSummary& s) {
  Table table({"", "mean", "p50", "p90", "p95", "p99"},
              {Align::left, Align::right, Align::right, Align::right, Align::right, Align::right});
  const auto add = [&](const char* name, const LatencySummary& l) {
    table.add({name, to_text(l.mean), to_text(l.p50), to_text(l.p90), to_text(l.p95),
               l.count < 1000 ? "(" + to_text(l.p99) + ")" : to_text(l.p99)});
  };
  add("time to first token (TTFT)", s.ttft);
  add("time per output token (TPOT)", s.tpot);
  add("between tokens (ITL)", s.itl);
  add("whole request (E2E)", s.e2e);
  document.table(std::move(table));
  if (s.ttft.count < 1000)
    document.note(
        fmt::format("p99 in brackets: it rests on {} alone", plural(s.ttft.count, "request")));
  document.gap();
}

void add_request(Document& document, const RequestTime& r) {
  const Seconds total = r.waiting + r.prefill + r.decoding;
  if (total <= Seconds(0)) return;
  document.label("Where a request's time goes:");
  Table table({"", "", "%", ""}, {Align::left, Align::right, Align::right, Align::left});
  const auto add = [&](const char* name, Seconds part) {
    table.add({name, to_text(part), percent_figure(part / total), bar(part / total, 30)});
  };
  add("waits for its first step", r.waiting);
  add("prompt, to its first token", r.prefill);
  add("decoding, with the prompts of others between", r.decoding);
  document.table(std::move(table));
  document.gap();
}

void add_step(Document& document, const ServicePrediction& p) {
  const Seconds total = p.step.total();
  if (total <= Seconds(0)) return;
  document.label(fmt::format(
      "Where a decode step of {} goes ({}, mean context {}):", plural(p.shape.decodes, "sequence"),
      to_text(total), grouped(p.shape.contexts / p.shape.decodes)));
  std::vector<std::size_t> order(p.step.time.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return p.step.time[a] > p.step.time[b]; });
  Table table({"", "", "%", ""}, {Align::left, Align::right, Align::right, Align::left});
  bool drafting = p.step.drafting > Seconds(0);
  const auto add = [&](const std::string& name, Seconds time) {
    const double share = time / total;
    table.add({name, to_text(time), percent_figure(share), bar(share, 30)});
  };
  for (const std::size_t i : order) {
    if (drafting && p.step.drafting > p.step.time[i]) {
      add("guessing tokens", p.step.drafting);
      drafting = false;
    }
    if (p.step.time[i] / total < 0.001) break;
    const bool head = static_cast<Label>(i) == Label::loss;
    add(head ? "head and sampling" : std::string(label_table[i].words), p.step.time[i]);
  }
  document.table(std::move(table));
}

void add_targets(Document& document, const ServiceCase& c, const ServicePrediction& p) {
  if (c.target.bounds.empty()) return;
  document.label("Promises:");
  for (std::size_t i = 0; i < c.target.bounds.size(); ++i) {
    ServiceTarget one;
    one.bounds.push_back(c.target.bounds[i]);
    document.item(fmt::format("{}: {} ({})", to_text(one), p.target.kept[i] ? "kept" : "NOT kept",
                              to_text(p.target.reached[i])));
  }
  document.paragraph(
      fmt::format("{} of the requests keep all of them: a goodput of {:.3g} requests/s.",
                  percent(p.target.share), p.target.goodput));
  document.gap();
}

std::string money(const ServicePrediction& p, std::int64_t gpus) {
  if (p.rental.si() <= 0 || p.summary.output_rate <= 0) return "no price known";
  const double per_token = p.rental.si() * static_cast<double>(gpus) / p.summary.output_rate;
  return fmt::format("${:.3g} per million output tokens at ${:.2f} a GPU-hour", 1e6 * per_token,
                     p.rental.si() * 3600);
}

// What guesses tokens, how many come of a step, and how that is known.
std::string guessed_text(const Guessing& guessing, const ServicePrediction& p) {
  const Drafter& d = guessing.drafter;
  std::string text = fmt::format("{} a step by {}", plural(d.drafts, "token"), to_text(d.kind));
  if (d.kind == DraftKind::draft) text += fmt::format(" ({})", d.network->title);
  text += fmt::format(": {:.2f} tokens come of a step for a sequence ({})",
                      guessing.acceptance.tokens(), guessing.acceptance.from);
  if (p.memory.drafter > Bytes(0))
    text += fmt::format("; its weights are {}", to_text(p.memory.drafter));
  return text;
}

// Requests that an engine can never take: longer than its cache, or than a step where prompts are
// not cut.
std::string rejected_text(const ServiceCase& c, const ServicePrediction& p) {
  const EnginePolicy& policy = c.stack.serving.policy;
  std::string text = plural(p.counts.rejected, "request");
  if (!policy.chunked_prefill)
    text += fmt::format(": prompts beyond the {} rows of a step are not cut (--token-budget)",
                        grouped(policy.token_budget));
  return text;
}

void add_point(Document& document, const ServedPoint& point) {
  const ServicePrediction& p = point.prediction;
  const ServiceCase& c = point.asked;
  document.title(headline(c));
  document.line(engines_text(c));
  document.gap();
  if (!p.refusal.empty()) {
    document.paragraph("Nothing can be served: " + p.refusal + ".");
    return;
  }
  const std::int64_t block = c.stack.serving.policy.block_tokens;
  Table table({"", ""}, {Align::left, Align::left});
  table.add(
      {"served", fmt::format("{} of {} requests, {} prompt and {} output tokens",
                             grouped(p.counts.finished), grouped(p.counts.arrived),
                             grouped(p.summary.prompt_tokens), grouped(p.summary.output_tokens))});
  table.add({"throughput", fmt::format("{} output tokens/s, {} a GPU; {:.3g} requests/s",
                                       significant(p.summary.output_rate),
                                       significant(p.tokens_per_gpu), p.summary.request_rate)});
  if (p.counts.rejected > 0) table.add({"rejected", rejected_text(c, p)});
  if (c.guessing) table.add({"guessed", guessed_text(*c.guessing, p)});
  table.add({"batch", fmt::format("{:.1f} sequences a step in the mean", p.batch)});
  add_memory(table, c.decode ? "prompts" : "memory", p.memory, block);
  if (p.decode_memory) add_memory(table, "decodes", *p.decode_memory, block);
  if (p.timeline.totals.preemptions > 0)
    table.add({"preempted", plural(p.timeline.totals.preemptions, "time")});
  table.add({"money", money(p, c.gpus())});
  document.table(std::move(table));
  document.gap();
  add_latencies(document, p.summary);
  add_targets(document, c, p);
  document.paragraph(p.bottleneck);
  document.gap();
  add_request(document, p.request);
  add_step(document, p);
  if (p.timeline.stopped)
    document.gap().paragraph("Stopped early: what was served so far is counted, the rest is not.");
}

void add_points(Document& document, const Served& served) {
  const ServiceCase& c = served.points.front().asked;
  document.title(
      fmt::format("{} on {} ({})", c.model.title, c.cluster.device.title, c.cluster.name));
  document.line(c.stack.title + " " + c.stack.release);
  document.gap();
  Table table(
      {"", "point", "GPUs", "TTFT p50", "p95", "TPOT p50", "p95", "tok/s/GPU", "tok/s/user"},
      {Align::left, Align::left, Align::right, Align::right, Align::right, Align::right,
       Align::right, Align::right, Align::right});
  for (const ServedPoint& point : served.points) {
    const ServicePrediction& p = point.prediction;
    if (!p.refusal.empty()) {
      table.add({"", point.varied, grouped(point.asked.gpus()), "does not fit"});
      continue;
    }
    const ServiceSummary& s = p.summary;
    table.add({point.best ? "*" : "", point.varied, grouped(point.asked.gpus()),
               to_text(s.ttft.p50), to_text(s.ttft.p95), to_text(s.tpot.p50), to_text(s.tpot.p95),
               significant(p.tokens_per_gpu),
               s.tpot.p50 > Seconds(0) ? significant(1 / s.tpot.p50.si()) : ""});
  }
  document.table(std::move(table));
  document.note("* no other point has both more tokens a GPU and less time a token");
}

}  // namespace

Document service_document(const Served& served, std::size_t width) {
  Document document(false, width);
  if (served.points.size() == 1)
    add_point(document, served.points.front());
  else if (!served.points.empty())
    add_points(document, served);
  if (served.stopped && served.points.size() != 1)
    document.paragraph("Stopped early: not all points were served.");
  return document;
}

}  // namespace orrery
