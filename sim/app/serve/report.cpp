// SPDX-License-Identifier: Apache-2.0
// Writes what serve found as a page.
#include "sim/app/serve/report.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/app/report/parts.h"
#include "sim/app/report/read_from.h"
#include "sim/app/serve/plots.h"
#include "sim/base/text/words.h"
#include "sim/outcome/serving/service_notes.h"
#include "sim/question/serve/engine_text.h"

namespace orrery {
namespace {

std::string headline(const ServiceCase& c) {
  return fmt::format("{} on {} x {} ({})", c.model.title, grouped(c.gpus()), c.cluster.device.title,
                     c.cluster.name);
}

// With the precision in the words of its flag: weights in bf16 may be asked for by silence alone.
std::string stack_text(const ServiceCase& c) {
  return fmt::format("{} {} in {}", c.stack.title, c.stack.release,
                     to_text(c.engines.layout.precision));
}

std::string engines_text(const ServiceCase& c) {
  std::string text = stack_text(c) + ": ";
  if (!c.decode) return text + to_text(c.engines);
  return text +
         fmt::format("{} for prompts, {} for decodes", to_text(c.engines), to_text(*c.decode));
}

void add_memory(Table& table, const char* name, const EngineMemory& m, std::int64_t block) {
  table.add(
      {name, fmt::format("weights {}, {} for keys and values: {} blocks of {} ({} tokens)",
                         to_text(m.weights), to_text(std::max(Bytes(0), m.cache)),
                         grouped(m.blocks), plural(block, "token"), grouped(m.blocks * block))});
  if (m.state > Bytes(0))
    table.add({"", fmt::format("a sequence takes {} of them for its {}", to_text(m.state),
                               m.beside.window == 0   ? "states"
                               : m.beside.states == 0 ? "windows, when it fills them"
                                                      : "states and windows")});
}

// What the answer takes for granted; of many such sentences the first.
void add_notes(Document& document, const std::vector<std::string>& notes) {
  constexpr std::size_t most = 3;
  for (std::size_t i = 0; i < std::min(notes.size(), most); ++i)
    document.paragraph("Note: " + notes[i], "  ");
  if (notes.size() > most)
    document.paragraph(fmt::format("Note: {} of other points: --json has them.",
                                   plural(notes.size() - most, "note")));
}

// Two ends of a range of latencies.
std::string range_text(const LatencySummary& l, const ServedRange& range) {
  return fmt::format("{} to {}", to_text(range.low * l.mean), to_text(range.high * l.mean));
}

void add_latencies(Document& document, const ServiceSummary& s, const ServedRanges& ranges) {
  Table table({"", "mean", "90% range", "p50", "p90", "p95", "p99"},
              {Align::left, Align::right, Align::right, Align::right, Align::right, Align::right,
               Align::right});
  const auto add = [&](const char* name, const LatencySummary& l, const std::string& range = "") {
    table.add({name, to_text(l.mean), range, to_text(l.p50), to_text(l.p90), to_text(l.p95),
               l.count < 1000 ? "(" + to_text(l.p99) + ")" : to_text(l.p99)});
  };
  add("time to first token (TTFT)", s.ttft, range_text(s.ttft, ranges.ttft));
  add("time per output token (TPOT)", s.tpot, range_text(s.tpot, ranges.tpot));
  add("between tokens (ITL)", s.itl);
  add("whole request (E2E)", s.e2e);
  document.table(std::move(table));
  document.note(
      "90% range: of a measured mean, by errors on runs that no value of the engine was made from; "
      "it is meant to hold nine of ten");
  for (const std::string& sentence : ranges.widened) document.note("wider: " + sentence);
  if (s.ttft.count < 1000)
    document.note(
        fmt::format("p99 in brackets: it rests on {} alone", plural(s.ttft.count, "request")));
  document.gap();
}

void add_request(Document& document, const RequestTime& r, bool apart) {
  const Seconds total = r.total();
  if (total <= Seconds(0)) return;
  document.label("Where a request's time goes:");
  Table table({"", "", "%", ""}, {Align::left, Align::right, Align::right, Align::left});
  const auto add = [&](const char* name, Seconds part) {
    table.add({name, to_text(part), percent_figure(part / total), bar(part / total, 30)});
  };
  if (r.server > Seconds(0)) add("in the server, before the engine has it", r.server);
  add("waits for its first step", r.waiting);
  add(r.first_there ? "prompt" : "prompt, to its first token", r.prefill);
  if (apart) {
    add("keys and values on their way to another engine", r.on_the_way);
    add("waits for its first step there", r.waiting_there);
  }
  add(apart ? "decoding" : "decoding, with the prompts of others between", r.decoding);
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

// Promises that not even a request alone keeps.
void add_impossible(Document& document, const ServiceCase& c, const ServicePrediction& p) {
  bool said = false;
  for (std::size_t i = 0; i < c.target.bounds.size(); ++i) {
    const LatencyBound& bound = c.target.bounds[i];
    const bool first = bound.latency == ServiceLatency::ttft;
    const Seconds least = first ? p.lone.ttft : p.lone.tpot;
    const Seconds usual = first ? p.summary.ttft.p50 : p.summary.tpot.p50;
    const bool typical = bound.percent == 0 || bound.percent >= 90;  // of mean lengths and longer
    if (p.target.kept[i] || bound.latency == ServiceLatency::e2e || !bound.class_name.empty() ||
        !typical || least > usual || least <= bound.at_most)
      continue;
    ServiceTarget one;
    one.bounds.push_back(bound);
    document.paragraph(fmt::format(
        "No load keeps {} on these engines: a request of mean lengths that is alone takes {} {}.",
        to_text(one), to_text(least), first ? "to its first token" : "for a token"));
    said = true;
  }
  if (said) document.gap();
}

void add_targets(Document& document, const ServiceCase& c, const ServicePrediction& p) {
  if (c.target.bounds.empty()) return;
  document.label("Promises:");
  for (std::size_t i = 0; i < c.target.bounds.size(); ++i) {
    ServiceTarget one;
    one.bounds.push_back(c.target.bounds[i]);
    document.item(fmt::format("{}: {} ({}); {} of the requests within it", to_text(one),
                              p.target.kept[i] ? "kept" : "NOT kept", to_text(p.target.reached[i]),
                              percent(p.target.shares[i])));
  }
  if (p.counts.rejected > 0)
    document.paragraph(
        fmt::format("Times are of those that were served; the {} rejected ones keep no promise.",
                    grouped(p.counts.rejected)));
  document.paragraph(
      fmt::format("{} of the requests keep all of them: a goodput of {:.3g} requests/s.",
                  percent(p.target.share), p.target.goodput));
  document.gap();
  add_impossible(document, c, p);
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

// Requests that no engine took, and why.
std::string rejected_text(const ServiceCase& c, const ServicePrediction& p) {
  const Rejections& r = p.rejections;
  std::vector<std::string> reasons;
  const auto add = [&](std::int64_t count, const std::string& why) {
    if (count > 0) reasons.push_back(grouped(count) + " " + why);
  };
  add(r.context,
      fmt::format("longer than the {} tokens of a request (--max-context)", grouped(c.longest)));
  add(r.cache, "longer than all blocks of keys and values of an engine");
  add(r.step, fmt::format("longer than the {} rows of a step, where prompts are not cut "
                          "(--token-budget)",
                          grouped(c.stack.serving.policy.token_budget)));
  add(r.queue,
      fmt::format("when {} waited (--queue-limit)", grouped(c.stack.serving.policy.queue_limit)));
  if (reasons.size() == 1)
    return plural(p.counts.rejected, "request") + reasons.front().substr(reasons.front().find(' '));
  return plural(p.counts.rejected, "request") + ": " + enumeration(reasons);
}

void add_cost(Table& table, const ServiceCase& c, const ServicePrediction& p) {
  table.add({"money", money(p, c.gpus())});
  const ServiceCost& cost = p.cost;
  if (cost.input && cost.output) {
    std::string text = fmt::format(
        "by the time that each takes: ${:.3g} per million prompt tokens, ", *cost.input);
    if (cost.cached) text += fmt::format("${:.3g} cached ones, ", *cost.cached);
    table.add({"", text + fmt::format("${:.3g} output tokens", *cost.output)});
  }
  if (cost.promised && p.target.share < 1)
    table.add(
        {"", fmt::format("${:.3g} per million output tokens of requests that keep all promises",
                         *cost.promised)});
  if (cost.mean > Watts(0))
    table.add({"power", fmt::format("{} a GPU in the mean ({} in prompts, {} in decodes), {} an "
                                    "output token",
                                    to_text(cost.mean), to_text(cost.prompts),
                                    to_text(cost.decodes), to_text(cost.per_output))});
}

// Of each kind of requests, where there are several.
void add_classes(Document& document, const ServicePrediction& p) {
  if (p.classes.empty()) return;
  document.label("By kind of request:");
  Table table({"", "requests", "TTFT p50", "p95", "TPOT p50", "p95", "E2E p95"},
              {Align::left, Align::right, Align::right, Align::right, Align::right, Align::right,
               Align::right});
  for (std::size_t i = 0; i < p.classes.size(); ++i) {
    const ServiceSummary& s = p.classes[i];
    table.add({p.requests.classes[i], grouped(s.requests), to_text(s.ttft.p50), to_text(s.ttft.p95),
               to_text(s.tpot.p50), to_text(s.tpot.p95), to_text(s.e2e.p95)});
  }
  document.table(std::move(table));
  document.gap();
}

std::string cache_text(const ServicePrediction& p) {
  const ServiceTotals& t = p.timeline.totals;
  std::string text =
      fmt::format("{} of the prompt tokens were cached",
                  percent(static_cast<double>(t.cached) / static_cast<double>(t.prompts)));
  if (t.from_tiers > 0)
    text += fmt::format(", {} of these below the GPU's memory",
                        percent(static_cast<double>(t.from_tiers) / static_cast<double>(t.cached)));
  return text;
}

void add_point(Document& document, const ServedPoint& point) {
  const ServicePrediction& p = point.prediction;
  const ServiceCase& c = point.asked;
  document.title(headline(c));
  document.line(engines_text(c));
  add_notes(document, service_notes(c, p));
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
  table.add({"throughput",
             fmt::format("{} output tokens/s, {} a GPU (90% range: {} to {}); {:.3g} requests/s",
                         significant(p.summary.output_rate), significant(p.tokens_per_gpu),
                         significant(p.tokens_per_gpu * point.ranges.tokens_s_gpu.low),
                         significant(p.tokens_per_gpu * point.ranges.tokens_s_gpu.high),
                         p.summary.request_rate)});
  if (p.counts.rejected > 0) table.add({"rejected", rejected_text(c, p)});
  if (c.guessing) table.add({"guessed", guessed_text(*c.guessing, p)});
  table.add({"batch", fmt::format("{:.1f} sequences a step in the mean", p.batch)});
  add_memory(table, c.decode ? "prompts" : "memory", p.memory, block);
  if (p.decode_memory) add_memory(table, "decodes", *p.decode_memory, block);
  if (p.timeline.totals.preemptions > 0)
    table.add({"preempted", plural(p.timeline.totals.preemptions, "time")});
  if (p.timeline.totals.cached > 0) table.add({"prefixes", cache_text(p)});
  add_cost(table, c, p);
  document.table(std::move(table));
  document.gap();
  add_latencies(document, p.summary, point.ranges);
  add_classes(document, p);
  add_targets(document, c, p);
  add_spread(document, p);
  document.paragraph(p.bottleneck);
  document.gap();
  add_request(document, p.request, c.decode.has_value());
  add_step(document, p);
  if (p.timeline.stopped)
    document.gap().paragraph("Stopped early: what was served so far is counted, the rest is not.");
}

std::string load_words(const ServedPoint& point) {
  const ServicePrediction& p = point.prediction;
  if (point.load->meets) return "meets it";
  if (p.counts.rejected > 0) return fmt::format("{} rejected", grouped(p.counts.rejected));
  if (!point.load->keeps_up)
    return point.load->long_enough ? fmt::format("serves {:.3g}/s", point.load->served)
                                   : "falls behind";
  std::string missed;
  for (std::size_t i = 0; i < p.target.kept.size(); ++i) {
    if (p.target.kept[i]) continue;
    ServiceTarget one;
    one.bounds.push_back(point.asked.target.bounds[i]);
    missed += (missed.empty() ? "misses " : ", ") + to_text(one);
  }
  return missed;
}

// What the points are about, each once, in their order.
template <class Words>
std::string all_of(const Served& served, const Words& words) {
  std::vector<std::string> all;
  for (const ServedPoint& point : served.points) {
    std::string one = words(point.asked);
    if (std::find(all.begin(), all.end(), one) == all.end()) all.push_back(std::move(one));
  }
  return enumeration(all);
}

template <class Texts>
void add_new(std::vector<std::string>& all, Texts texts) {
  for (std::string& text : texts)
    if (std::find(all.begin(), all.end(), text) == all.end()) all.push_back(std::move(text));
}

std::vector<std::string> all_notes(const Served& served) {
  std::vector<std::string> all;
  for (const ServedPoint& point : served.points)
    add_new(all, service_notes(point.asked, point.prediction));
  return all;
}

// Why points serve nothing: each reason once, of many the first.
void add_refusals(Document& document, const Served& served) {
  constexpr std::size_t most = 3;
  std::vector<std::string> all;
  for (const ServedPoint& point : served.points) {
    const ServicePrediction& p = point.prediction;
    if (p.refusal.empty()) continue;
    const std::string why = why_all_rejected(p, point.asked);
    add_new(all, std::vector{why.empty() ? p.refusal : "rejected: " + why});
  }
  for (std::size_t i = 0; i < std::min(all.size(), most); ++i) document.note(all[i]);
}

void add_points(Document& document, const Served& served) {
  document.title(all_of(served, [](const ServiceCase& c) { return c.model.title; }) + " on " +
                 all_of(served, [](const ServiceCase& c) {
                   return fmt::format("{} ({})", c.cluster.device.title, c.cluster.name);
                 }));
  document.line(all_of(served, stack_text));
  add_notes(document, all_notes(served));
  document.gap();
  std::vector<std::string> head = {"",         "point",     "GPUs",
                                   "TTFT p50", "p95",       "TPOT p50",
                                   "p95",      "tok/s/GPU", served.load ? "load" : "tok/s/user"};
  std::vector<Align> align(head.size(), Align::right);
  align[0] = align[1] = Align::left;
  if (served.load) align.back() = Align::left;
  Table table(head, align);
  for (const ServedPoint& point : served.points) {
    const ServicePrediction& p = point.prediction;
    if (!p.refusal.empty()) {
      table.add({"", point.varied, grouped(point.asked.gpus()),
                 p.counts.rejected > 0 ? "rejected" : "does not fit"});
      continue;
    }
    const ServiceSummary& s = p.summary;
    table.add({point.best ? "*" : "", point.varied, grouped(point.asked.gpus()),
               to_text(s.ttft.p50), to_text(s.ttft.p95), to_text(s.tpot.p50), to_text(s.tpot.p95),
               significant(p.tokens_per_gpu),
               point.load                ? load_words(point)
               : s.tpot.p50 > Seconds(0) ? significant(1 / s.tpot.p50.si())
                                         : ""});
  }
  document.table(std::move(table));
  document.note("* no other point has both more tokens a GPU and less time a token");
  add_refusals(document, served);
  add_curve(document, served);
}

}  // namespace

std::string load_sentence(const Served& served) {
  if (!served.load) return "";
  const std::string load = fmt::format("{:.4g} requests/s", served.load->si());
  const bool promised =
      !served.points.empty() && !served.points.front().asked.target.bounds.empty();
  const std::string kept = promised ? " and keeps all promises" : "";
  if (served.chosen) {
    const ServedPoint& best = served.points[*served.chosen];
    const std::string name = best.varied.empty() ? engines_text(best.asked) : best.varied;
    return fmt::format("For {} the least of {} is {} ({}): it bears the load{}.", load,
                       plural(served.points.size(), "listed point"), name,
                       plural(best.asked.gpus(), "GPU"), kept);
  }
  const ServedPoint* most = nullptr;
  for (const ServedPoint& point : served.points)
    if (point.load && (!most || point.load->served > most->load->served)) most = &point;
  std::string text =
      fmt::format("None of {} bears {}{}.", plural(served.points.size(), "listed point"), load,
                  promised ? " and keeps all promises" : "");
  if (most && most->load->served > 0)
    text += fmt::format(" The most that one serves while they arrive is {:.3g} a second{}.",
                        most->load->served,
                        most->varied.empty() ? "" : fmt::format(" ({})", most->varied));
  return text;
}

Document service_document(const Served& served, std::size_t width) {
  Document document(false, width);
  if (served.points.size() == 1)
    add_point(document, served.points.front());
  else if (!served.points.empty())
    add_points(document, served);
  if (served.load) document.gap().paragraph(load_sentence(served));
  if (served.stopped && served.points.size() != 1)
    document.paragraph("Stopped early: not all points were served.");
  add_read_from(document, served.settings);
  return document;
}

}  // namespace orrery
