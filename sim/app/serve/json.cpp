// SPDX-License-Identifier: Apache-2.0
// Writes what serve found for machines.
#include <fmt/format.h>

#include "sim/app/answer/answer.h"
#include "sim/app/serve/report.h"
#include "sim/outcome/serving/service_notes.h"
#include "sim/question/serve/engine_text.h"

namespace orrery {
namespace {

Json latency_json(const LatencySummary& l) {
  return {{"count", l.count},    {"mean_s", l.mean.si()}, {"p50_s", l.p50.si()},
          {"p90_s", l.p90.si()}, {"p95_s", l.p95.si()},   {"p99_s", l.p99.si()}};
}

// Between which nine of ten measured means are meant to lie.
Json ranges_json(const ServedPoint& point) {
  const ServicePrediction& p = point.prediction;
  const auto seconds = [](const LatencySummary& l, const ServedRange& r) {
    return Json{{"mean_low_s", l.mean.si() * r.low}, {"mean_high_s", l.mean.si() * r.high}};
  };
  const ServedRanges& r = point.ranges;
  return {{"ttft", seconds(p.summary.ttft, r.ttft)},
          {"tpot", seconds(p.summary.tpot, r.tpot)},
          {"output_tokens_per_s_per_gpu",
           {{"low", p.tokens_per_gpu * r.tokens_s_gpu.low},
            {"high", p.tokens_per_gpu * r.tokens_s_gpu.high}}},
          {"widened", r.widened}};
}

Json memory_json(const EngineMemory& m) {
  return {{"weights_bytes", m.weights.si()}, {"workspace_bytes", m.workspace.si()},
          {"cache_bytes", m.cache.si()},     {"token_bytes", m.token.si()},
          {"sequence_bytes", m.state.si()},  {"blocks", m.blocks},
          {"most_sequences", m.sequences},   {"capacity_bytes", m.capacity.si()}};
}

Json group_json(const EngineGroup& group, const EngineMemory& memory) {
  const EngineLayout& l = group.layout;
  Json json = {{"replicas", group.replicas},
               {"tp", l.tp},
               {"pp", l.pp},
               {"attention_dp", l.attention_dp},
               {"ep", l.ep},
               {"etp", l.etp},
               {"gpus", group.gpus()},
               {"memory", memory_json(memory)}};
  if (l.expert_copies) json["expert_copies"] = *l.expert_copies;
  return json;
}

Json step_json(const ServicePrediction& p) {
  Json parts = Json::object();
  for (std::size_t i = 0; i < p.step.time.size(); ++i)
    parts[json_key(to_text(static_cast<Label>(i))) + "_s"] = p.step.time[i].si();
  if (p.step.drafting > Seconds(0)) parts["drafting_s"] = p.step.drafting.si();
  const ServiceTotals& t = p.timeline.totals;
  return {{"count", t.steps},
          {"decode", t.decode_steps},
          {"mixed", t.mixed_steps},
          {"mean_batch", p.batch},
          {"mean_context", p.shape.decodes > 0 ? static_cast<double>(p.shape.contexts) /
                                                     static_cast<double>(p.shape.decodes)
                                               : 0.0},
          {"parts", parts}};
}

Json guessing_json(const Guessing& guessing, const ServicePrediction& p) {
  const Drafter& d = guessing.drafter;
  const ServiceTotals& t = p.timeline.totals;
  return {{"kind", to_text(d.kind)},
          {"drafter", d.kind == DraftKind::draft ? d.network->name : ""},
          {"drafts", d.drafts},
          {"survival", guessing.acceptance.survival},
          {"tokens_per_step", guessing.acceptance.tokens()},
          {"from", guessing.acceptance.from},
          {"weights_bytes", p.memory.drafter.si()},
          {"drafted", t.drafted},
          {"accepted", t.accepted}};
}

Json targets_json(const ServiceCase& c, const TargetResult& target) {
  Json list = Json::array();
  for (std::size_t i = 0; i < c.target.bounds.size(); ++i) {
    ServiceTarget one;
    one.bounds.push_back(c.target.bounds[i]);
    list.push_back({{"target", to_text(one)},
                    {"kept", static_cast<bool>(target.kept[i])},
                    {"reached_s", target.reached[i].si()},
                    {"share", target.shares[i]}});
  }
  return list;
}

Json rejections_json(const Rejections& r) {
  return {{"context", r.context}, {"cache", r.cache}, {"step", r.step}, {"queue", r.queue}};
}

// Dollars a million tokens; null where no price is known, or none are of the kind.
Json cost_json(const ServicePrediction& p, std::int64_t gpus) {
  const auto or_null = [](const std::optional<double>& value) {
    return value ? Json(*value) : Json(nullptr);
  };
  const bool priced = p.rental.si() > 0 && p.summary.output_rate > 0;
  return {{"gpu_hour_usd", p.rental.si() * seconds_per_hour},
          {"per_million_usd",
           priced ? Json(1e6 * p.rental.si() * static_cast<double>(gpus) / p.summary.output_rate)
                  : Json(nullptr)},
          {"per_million_input_usd", or_null(p.cost.input)},
          {"per_million_cached_usd", or_null(p.cost.cached)},
          {"per_million_output_usd", or_null(p.cost.output)},
          {"per_million_promised_usd", or_null(p.cost.promised)}};
}

Json classes_json(const ServicePrediction& p) {
  Json list = Json::array();
  for (std::size_t i = 0; i < p.classes.size(); ++i) {
    const ServiceSummary& s = p.classes[i];
    list.push_back({{"name", p.requests.classes[i]},
                    {"counted", s.requests},
                    {"ttft", latency_json(s.ttft)},
                    {"tpot", latency_json(s.tpot)},
                    {"e2e", latency_json(s.e2e)}});
  }
  return list;
}

}  // namespace

Json service_json(const ServedPoint& point) {
  const ServicePrediction& p = point.prediction;
  const ServiceCase& c = point.asked;
  Json deployment = {{"stack", c.stack.name + "@" + c.stack.release},
                     {"gpus", c.gpus()},
                     {"engines", group_json(c.engines, p.memory)}};
  if (c.decode && p.decode_memory) deployment["decode"] = group_json(*c.decode, *p.decode_memory);
  Json out = {{"varied", point.varied},
              {"deployment", deployment},
              {"notes", service_notes(c, p)},
              {"refusal", p.refusal}};
  if (!p.refusal.empty()) return out;
  const ServiceSummary& s = p.summary;
  const ServiceTotals& t = p.timeline.totals;
  out["traffic"] = {{"arrived", p.counts.arrived},
                    {"finished", p.counts.finished},
                    {"rejected", p.counts.rejected},
                    {"rejected_by", rejections_json(p.rejections)},
                    {"counted", s.requests},
                    {"prompt_tokens", s.prompt_tokens},
                    {"output_tokens", s.output_tokens},
                    {"span_s", s.span.si()}};
  out["latency"] = {{"ttft", latency_json(s.ttft)},
                    {"tpot", latency_json(s.tpot)},
                    {"itl", latency_json(s.itl)},
                    {"e2e", latency_json(s.e2e)},
                    {"wait", latency_json(s.wait)}};
  out["throughput"] = {{"output_tokens_per_s", s.output_rate},
                       {"requests_per_s", s.request_rate},
                       {"output_tokens_per_s_per_gpu", p.tokens_per_gpu},
                       {"goodput_requests_per_s", p.target.goodput}};
  out["ranges"] = ranges_json(point);
  out["request"] = {{"server_s", p.request.server.si()},
                    {"waiting_s", p.request.waiting.si()},
                    {"prefill_s", p.request.prefill.si()},
                    {"on_the_way_s", p.request.on_the_way.si()},
                    {"waiting_there_s", p.request.waiting_there.si()},
                    {"decoding_s", p.request.decoding.si()}};
  out["steps"] = step_json(p);
  if (c.guessing) out["speculation"] = guessing_json(*c.guessing, p);
  out["cache"] = {{"cached_tokens", t.cached},
                  {"from_tiers_tokens", t.from_tiers},
                  {"found_again_tokens", t.found_again},
                  {"recomputed_tokens", t.recomputed},
                  {"preemptions", t.preemptions}};
  out["cost"] = cost_json(p, c.gpus());
  out["energy"] = {{"mean_w", p.cost.mean.si()},
                   {"prompts_w", p.cost.prompts.si()},
                   {"decodes_w", p.cost.decodes.si()},
                   {"per_output_token_j", p.cost.per_output.si()}};
  if (!p.classes.empty()) out["classes"] = classes_json(p);
  out["slo"] = targets_json(c, p.target);
  out["slo_share"] = p.target.share;
  out["bottleneck"] = p.bottleneck;
  out["best"] = point.best;
  if (point.load)
    out["load"] = {{"offered_requests_per_s", point.load->offered},
                   {"served_requests_per_s", point.load->served},
                   {"keeps_up", point.load->keeps_up},
                   {"meets", point.load->meets}};
  return out;
}

Json load_json(const Served& served) {
  if (!served.load) return nullptr;
  return {{"requests_per_s", served.load->si()},
          {"point", served.chosen ? Json(*served.chosen) : Json(nullptr)},
          {"says", load_sentence(served)}};
}

std::string requests_csv(const ServedPoint& point) {
  const ServicePrediction& p = point.prediction;
  std::string text =
      "request,state,replica,prompt,output,cached,preemptions,arrival_s,scheduled_s,first_s,last_"
      "s\n";
  constexpr const char* states[] = {"expected", "queued",   "running",
                                    "finished", "rejected", "lost"};
  for (std::size_t i = 0; i < p.timeline.requests.size(); ++i) {
    const RequestRecord& r = p.timeline.requests[i];
    const Request& asked = p.requests.requests[i];
    text += fmt::format("{},{},{},{},{},{},{},{:.9g},{:.9g},{:.9g},{:.9g}\n", i,
                        states[static_cast<std::size_t>(r.state)], r.replica, asked.prompt,
                        asked.output, r.cached, r.preemptions, to_seconds(r.arrival).si(),
                        to_seconds(r.scheduled).si(), to_seconds(r.first).si(),
                        to_seconds(r.last).si());
  }
  return text;
}

}  // namespace orrery
