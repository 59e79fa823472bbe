// SPDX-License-Identifier: Apache-2.0
// Writes tables and JSON of served models.
#include "sim/app/schedule/served_report.h"

#include <fmt/format.h>

#include "sim/app/answer/answer.h"
#include "sim/app/schedule/point_names.h"
#include "sim/base/text/words.h"

namespace orrery {
namespace {

std::string rate_text(double rate) { return fmt::format("{:.3g}/s", rate); }

double mean_service(const SchedulePoint& p, std::size_t service, double ServiceMeasures::*member) {
  return mean_of(p, [&](const FleetMeasures& m) { return m.services[service].*member; });
}

// What a replica can do, and how many a peak needs.
void add_replicas(Document& document, const std::vector<FleetServedModel>& served) {
  Table table({"model", "GPUs", "promises", "kept by", "bears", "peak", "replicas for it",
               "serves after", "W a GPU"},
              {Align::left, Align::right, Align::left, Align::right, Align::right, Align::right,
               Align::right, Align::right, Align::right});
  for (const FleetServedModel& model : served) {
    const FleetService& service = model.service;
    table.add({service.id, grouped(service.gpus), model.promises,
               percent_figure(model.target) + "%", rate_text(service.rule.bears),
               rate_text(service.load.peak()), grouped(model.for_the_peak),
               to_text(service.rule.start),
               fmt::format("{:.0f}", 1e-3 * static_cast<double>(model.work.milliwatts))});
  }
  document.heading("Served models");
  for (const FleetServedModel& model : served)
    document.paragraph(fmt::format("{}: {}.", model.service.id, model.deployment));
  document.table(table);
  document.note(
      "bears: the load of a replica, in requests, with which that share of them keeps all "
      "promises; more is refused. W a GPU: in the mean, hosts with it, and as much while it "
      "starts.");
}

void add_kept(Document& document, const Scheduled& s) {
  std::vector<std::string> head;
  std::vector<Align> align;
  name_columns(s, head, align);
  head.emplace_back("model");
  align.push_back(Align::left);
  for (const char* name : {"kept %", "refused %", "worst hour %", "at", "tokens, 10^9", "replicas",
                           "most", "GPU-hours"})
    head.emplace_back(name);
  align.resize(head.size(), Align::right);
  Table table(head, align);
  for (const SchedulePoint* p : run_points(s)) {
    const std::vector<FleetServedModel>& served = p->asked.jobs->served;
    for (std::size_t i = 0; i < served.size(); ++i) {
      const auto mean = [&](double ServiceMeasures::*member) {
        return mean_service(*p, i, member);
      };
      const ServiceMeasures& first = p->measures.front().services[i];
      std::vector<std::string> row = name_cells(*p);
      row.push_back(served[i].service.id);
      row.push_back(percent_figure(mean(&ServiceMeasures::kept), 2));
      row.push_back(percent_figure(mean(&ServiceMeasures::refused), 2));
      row.push_back(percent_figure(mean(&ServiceMeasures::worst_hour), 2));
      row.push_back(to_text(first.worst_at));
      row.push_back(fmt::format("{:.3f}", 1e-9 * mean(&ServiceMeasures::tokens)));
      row.push_back(fmt::format("{:.1f}", mean(&ServiceMeasures::replicas)));
      row.push_back(fmt::format("{:.0f}", first.most_replicas));
      row.push_back(fmt::format("{:.0f}", mean(&ServiceMeasures::gpu_hours)));
      table.add(row);
    }
  }
  document.table(table);
  document.note("kept %: of all requests, those that keep all promises; refused ones keep none.");
}

}  // namespace

void add_served(Document& document, const Scheduled& s) {
  const std::vector<FleetServedModel>& served = s.points.front().asked.jobs->served;
  if (served.empty()) return;
  add_replicas(document, served);
  add_kept(document, s);
}

void add_batches(Document& document, const Scheduled& s) {
  const std::vector<BatchInference>& batches = s.points.front().asked.jobs->batches;
  if (batches.empty()) return;
  Table table({"requests that wait", "engines", "GPUs", "requests", "a second", "tokens a second",
               "alone", "begun again"},
              {Align::left, Align::left, Align::right, Align::right, Align::right, Align::right,
               Align::right, Align::right});
  for (const BatchInference& batch : batches)
    table.add({batch.id, fmt::format("{} x {}", batch.replicas, batch.deployment),
               grouped(batch.job.gpus), fmt::format("{:.4g}", batch.requests),
               fmt::format("{:.4g}", batch.rate), fmt::format("{:.4g}", batch.tokens),
               to_text(batch.job.length), grouped(batch.chunk)});
  document.heading("Batch inference");
  document.table(table);
  document.note("begun again: requests of a chunk, the one that a stop interrupts.");
}

Json served_json(const FleetJobs& jobs) {
  Json out = Json::array();
  for (const FleetServedModel& model : jobs.served) {
    const FleetService& service = model.service;
    Json loads = Json::array();
    for (const ServedLoad& load : service.table->loads())
      loads.push_back({{"requests_per_s", load.rate},
                       {"kept", load.kept},
                       {"kept_error", load.error},
                       {"output_tokens_per_s", load.tokens},
                       {"gpu_w", load.power.si()}});
    out.push_back({{"id", service.id},
                   {"deployment", model.deployment},
                   {"gpus", service.gpus},
                   {"promises", model.promises},
                   {"target", model.target},
                   {"bears_requests_per_s", service.rule.bears},
                   {"saturated_requests_per_s", service.table->saturated().rate},
                   {"peak_requests_per_s", service.load.peak()},
                   {"replicas_for_peak", model.for_the_peak},
                   {"start_s", to_seconds(service.rule.start).si()},
                   {"gpu_w", 1e-3 * static_cast<double>(model.work.milliwatts)},
                   {"loads", loads}});
  }
  return out;
}

Json batches_json(const FleetJobs& jobs) {
  Json out = Json::array();
  for (const BatchInference& batch : jobs.batches)
    out.push_back({{"id", batch.id},
                   {"deployment", batch.deployment},
                   {"replicas", batch.replicas},
                   {"gpus", batch.job.gpus},
                   {"requests", batch.requests},
                   {"requests_per_s", batch.rate},
                   {"output_tokens_per_s", batch.tokens},
                   {"chunk_requests", batch.chunk},
                   {"length_s", to_seconds(batch.job.length).si()}});
  return out;
}

Json slo_json(const SchedulePoint& p) {
  const std::vector<ServiceMeasures>& services = p.measures.front().services;
  if (services.empty()) return nullptr;
  Json each = Json::array();
  bool any = false;
  for (std::size_t i = 0; i < services.size(); ++i) {
    any = any || services[i].requests > 0;
    const ServiceMeasures& m = services[i];
    each.push_back({{"id", p.asked.jobs->served[i].service.id},
                    {"requests", m.requests},
                    {"kept", figure_of(m.requests > 0, m.kept)},
                    {"refused", figure_of(m.requests > 0, m.refused)},
                    {"worst_hour",
                     {{"kept", figure_of(m.requests > 0, m.worst_hour)},
                      {"from_s", figure_of(m.requests > 0, to_seconds(m.worst_at).si())}}},
                    {"output_tokens", m.tokens},
                    {"replicas", {{"mean", m.replicas}, {"most", m.most_replicas}}},
                    {"gpu_hours", m.gpu_hours},
                    {"standby_gpu_hours", m.standby_gpu_hours},
                    {"gpu_w", m.power.si()}});
  }
  return {{"kept", figure_of(any, kept_share(services))}, {"services", each}};
}

}  // namespace orrery
