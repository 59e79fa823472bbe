// SPDX-License-Identifier: Apache-2.0
// Draws what was measured and what the curves say of it.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "sim/app/calibrate/show.h"
#include "sim/base/names.h"
#include "sim/base/sorting.h"
#include "sim/base/statistics.h"

namespace orrery {
namespace {

using Figure = std::function<double(const Sample&, Seconds)>;

// Samples that share a label, with how each becomes a point.
struct Question {
  std::string title;
  PlotAxis x, y;
  std::function<bool(const Sample&)> asked;
  std::function<std::string(const Sample&)> label;  // of its series
  std::function<double(const Sample&)> position;    // on x
  Figure figure;                                    // on y, of a measured or a predicted time
  // Makes the question that stands at another place on x, so that the line says what is predicted
  // between the points; absent: the line joins predictions of the points.
  std::function<void(Sample&, double)> move;
  std::size_t most_series = 6, fewest_positions = 3;
};

PlotAxis axis(const char* label) { return {.label = label}; }
PlotAxis log_axis(const char* label) { return {.label = label, .logarithmic = true}; }
PlotAxis byte_axis(const char* label) {
  return {.label = label, .logarithmic = true, .bytes = true};
}

constexpr const char* legend_note =
    "Points: measured, hollow where held out of the fit. Lines: predicted.";

double tera(const Sample& s, Seconds t) { return tensor_flop(s.kernel.work) / t.si() * 1e-12; }
double giga(const Sample& s, Seconds t) { return bytes_moved(s) / t.si() * 1e-9; }
double bus(const Sample& s, Seconds t) { return bus_bytes(s) / t.si() * 1e-9; }

// Several samples at one position (repeated runs, other layouts) are joined to one for the line.
std::vector<Point> joined(const std::vector<Point>& points) {
  std::map<double, std::vector<double>> at;
  for (const Point& p : points) at[p.x].push_back(p.y);
  std::vector<Point> out;
  for (const auto& [x, ys] : at) out.push_back({x, median(ys)});
  return out;
}

struct Bunch {
  std::string label;
  std::vector<const Sample*> samples;
  std::size_t positions = 0;
};

// The series with most different positions, in the order of their labels.
std::vector<Bunch> bunches(const MeasuredLog& log, const Question& q) {
  std::map<std::string, Bunch> all;
  for (const Sample& s : log.samples)
    if (s.time.si() > 0 && q.asked(s)) all[q.label(s)].samples.push_back(&s);
  std::vector<Bunch> out;
  for (auto& [label, bunch] : all) {
    bunch.label = label;
    std::map<double, int> positions;
    for (const Sample* s : bunch.samples) ++positions[q.position(*s)];
    bunch.positions = positions.size();
    out.push_back(std::move(bunch));
  }
  const auto is_short = [&](const Bunch& b) { return b.positions < q.fewest_positions; };
  if (!std::all_of(out.begin(), out.end(), is_short)) std::erase_if(out, is_short);
  sort_stably(out, [](const Bunch& a, const Bunch& b) { return a.positions > b.positions; });
  if (out.size() > q.most_series) out.resize(q.most_series);
  sort_stably(out, [](const Bunch& a, const Bunch& b) { return a.label < b.label; });
  return out;
}

// What is predicted over the whole range of a bunch.
std::vector<Point> line_of(const Bunch& bunch, const Machine& machine, const Question& q) {
  std::vector<Point> points;
  const auto add = [&](const Sample& s) {
    if (const auto time = expected_time(s, machine))
      points.push_back({q.position(s), q.figure(s, *time)});
  };
  for (const Sample* s : bunch.samples)
    if (!q.move) add(*s);
  if (!q.move) return joined(points);
  constexpr int steps = 60;
  std::map<double, const Sample*> at;  // by position
  for (const Sample* s : bunch.samples) at.emplace(q.position(*s), s);
  const double low = at.begin()->first, high = at.rbegin()->first;
  for (int i = 0; i <= steps; ++i) {
    const double x = low * std::pow(high / low, static_cast<double>(i) / steps);
    const auto next = at.lower_bound(x);
    Sample moved = next == at.end() ? *at.rbegin()->second : *next->second;
    q.move(moved, x);
    add(moved);
  }
  return joined(points);
}

Plot plot_of(const MeasuredLog& log, const Machine& machine, const Question& q) {
  Plot plot{.title = q.title, .note = legend_note, .x = q.x, .y = q.y};
  int colour = 0;
  for (const Bunch& bunch : bunches(log, q)) {
    PlotSeries fitted{.colour = colour}, held{.colour = colour, .mark = Mark::hollow},
        line{.colour = colour, .mark = Mark::line};
    for (const Sample* s : bunch.samples) {
      const double x = q.position(*s);
      (is_held_out(*s) ? held : fitted).points.push_back({x, q.figure(*s, s->time)});
    }
    line.points = line_of(bunch, machine, q);
    (fitted.points.empty() ? held : fitted).label = bunch.label;
    for (PlotSeries* series : {&line, &fitted, &held})
      if (!series->points.empty()) plot.series.push_back(std::move(*series));
    ++colour;
  }
  return plot;
}

constexpr const char *tera_label = "TFLOP/s", *giga_label = "GB/s";

bool is_burst(const Sample& s, WorkKind kind) {
  return s.is_work && s.kernel.work.kind == kind && s.mode != "sustained";
}

std::int64_t whole(double value) { return std::max<std::int64_t>(1, std::llround(value)); }

PlotPage products_page(const MeasuredLog& log, const Machine& machine) {
  PlotPage page{.name = "products", .heading = "Matrix products: " + machine.device.name};
  for (int f = 0; f < format_count; ++f) {
    const auto format = static_cast<Format>(f);
    page.plots.push_back(
        plot_of(log, machine,
                {.title = fmt::format("{} products by m", to_text(format)),
                 .x = log_axis("rows m"),
                 .y = log_axis(tera_label),
                 .asked =
                     [format](const Sample& s) {
                       const Work& w = s.kernel.work;
                       return is_burst(s, WorkKind::gemm) && w.input == format && w.groups == 1 &&
                              w.role == GemmRole::forward;
                     },
                 .label =
                     [](const Sample& s) {
                       return fmt::format("n {}, k {}", s.kernel.work.n, s.kernel.work.k);
                     },
                 .position = [](const Sample& s) { return static_cast<double>(s.kernel.work.m); },
                 .figure = tera,
                 .move = [](Sample& s, double m) { s.kernel.work.m = whole(m); }}));
  }
  return page;
}

// Bytes at the shares of reading and writing that the sample has.
void move_bytes(Sample& s, double bytes) {
  Work& work = s.kernel.work;
  const double times = bytes / bytes_moved(s);
  work.bytes_read *= times;
  work.bytes_written *= times;
  work.vector_flop *= times;
}

std::string stream_label(const Sample& s) {
  const std::string what = s.variant.empty() ? s.kind : s.variant;
  return s.kernel.library == Library::own ? what : what + ", " + s.library;
}

Question bytes_question(const std::string& title, std::function<bool(const Sample&)> asked) {
  return {.title = title,
          .x = byte_axis("bytes read and written"),
          .y = log_axis(giga_label),
          .asked = std::move(asked),
          .label = stream_label,
          .position = bytes_moved,
          .figure = giga};
}

PlotPage memory_page(const MeasuredLog& log, const Machine& machine) {
  PlotPage page{.name = "memory", .heading = "Memory and cache: " + machine.device.name};
  for (const bool cached : {false, true}) {
    Question q = bytes_question(cached ? "streams that stay in L2" : "streams from memory",
                                [cached](const Sample& s) {
                                  return is_burst(s, WorkKind::copy) && is_cached(s) == cached;
                                });
    q.move = move_bytes;
    page.plots.push_back(plot_of(log, machine, q));
  }
  Question host = bytes_question("to and from the host",
                                 [](const Sample& s) { return is_burst(s, WorkKind::host_copy); });
  host.move = move_bytes;
  page.plots.push_back(plot_of(log, machine, host));
  return page;
}

PlotPage streams_page(const MeasuredLog& log, const Machine& machine) {
  PlotPage page{.name = "memory-bound", .heading = "Memory-bound kernels: " + machine.device.name};
  // A kernel's own bytes are those of its rows and columns: no bytes between them.
  for (const WorkKind kind :
       {WorkKind::norm, WorkKind::softmax, WorkKind::cross_entropy, WorkKind::elementwise,
        WorkKind::rotary, WorkKind::quantise, WorkKind::optimizer, WorkKind::embedding,
        WorkKind::permute, WorkKind::router}) {
    Question q = bytes_question(std::string(to_text(kind)) + " by bytes", [kind](const Sample& s) {
      return is_burst(s, kind) && s.kernel.library == Library::own;
    });
    q.most_series = 5;
    page.plots.push_back(plot_of(log, machine, q));
  }
  return page;
}

// "cudnn" for "cudnn-attention": legends are narrow.
std::string short_library(const Sample& s) { return s.library.substr(0, s.library.find('-')); }

std::string heads_of(const Work& w) {
  std::string text = fmt::format("{}/{} heads of {}", w.heads, w.kv_heads, w.qk_dim);
  if (w.window > 0) text += fmt::format(", window {}", w.window);
  return text;
}

void move_length(Sample& s, double length) {
  Work& work = s.kernel.work;
  if (work.q_length > 1) work.q_length = whole(length);
  work.kv_length = whole(length);
}

double length_of(const Sample& s) { return static_cast<double>(s.kernel.work.kv_length); }

PlotPage attention_page(const MeasuredLog& log, const Machine& machine) {
  PlotPage page{.name = "attention", .heading = "Attention: " + machine.device.name};
  for (const WorkKind kind : {WorkKind::attention_forward, WorkKind::attention_backward})
    for (const bool causal : {true, false})
      page.plots.push_back(plot_of(
          log, machine,
          {.title = fmt::format("{}{} by length", to_text(kind), causal ? ", causal" : ", full"),
           .x = log_axis("keys"),
           .y = axis(tera_label),
           .asked =
               [kind, causal](const Sample& s) {
                 return is_burst(s, kind) && s.kernel.work.causal == causal;
               },
           .label =
               [](const Sample& s) {
                 return fmt::format("{}, {}, b{}", short_library(s), heads_of(s.kernel.work),
                                    s.kernel.work.batch);
               },
           .position = length_of,
           .figure = tera,
           .move = move_length}));
  for (const bool narrow : {false, true})
    page.plots.push_back(plot_of(
        log, machine,
        {.title = fmt::format("decode attention by length, {}", narrow ? "fp8 cache" : "bf16"),
         .x = log_axis("keys"),
         .y = log_axis(giga_label),
         .asked =
             [narrow](const Sample& s) {
               return is_burst(s, WorkKind::attention_decode) &&
                      (s.kernel.work.input == Format::fp8) == narrow;
             },
         .label =
             [](const Sample& s) {
               const std::string who =
                   s.kernel.library == Library::own ? s.variant : short_library(s);
               return fmt::format("{}, {}, b{}", who, heads_of(s.kernel.work), s.kernel.work.batch);
             },
         .position = length_of,
         .figure = giga,
         .move = move_length,
         .most_series = 8}));
  return page;
}

std::string protocol_of(const Sample& s) { return s.text_or("protocol", "default"); }

// Calls of one collective, of NCCL's own choice or of protocols that were forced.
Plot collective_plot(const MeasuredLog& log, const Machine& machine, const std::string& kind,
                     bool forced) {
  return plot_of(log, machine,
                 {.title = kind + (forced ? ", forced protocols" : "") + ", bus bandwidth by size",
                  .x = byte_axis("bytes, as NCCL counts"),
                  .y = log_axis(giga_label),
                  .asked =
                      [kind, forced](const Sample& s) {
                        return s.kind == kind && s.mode != "stream" &&
                               (protocol_of(s) != "default") == forced;
                      },
                  .label =
                      [forced](const Sample& s) {
                        return fmt::format("{} GPUs{}{}", s.number("ranks"),
                                           forced ? ", " + protocol_of(s) : "",
                                           s.variant.empty() ? "" : ", " + s.variant);
                      },
                  .position = [](const Sample& s) { return s.number("bytes"); },
                  .figure = bus,
                  .move = [](Sample& s, double bytes) { s.numbers["bytes"] = bytes; }});
}

PlotPage collectives_page(const MeasuredLog& log, const Machine& machine) {
  PlotPage page{.name = "collectives", .heading = "NCCL in one host: " + machine.device.name};
  for (const std::string& kind : collective_kind_text.names())
    for (const bool forced : {false, true})
      page.plots.push_back(collective_plot(log, machine, kind, forced));
  page.plots.push_back(plot_of(log, machine,
                               {.title = "copies between two GPUs",
                                .x = byte_axis("bytes"),
                                .y = log_axis(giga_label),
                                .asked = [](const Sample& s) { return s.kind == "peer-copy"; },
                                .label = [](const Sample& s) { return s.variant; },
                                .position = [](const Sample& s) { return s.number("bytes"); },
                                .figure = bus}));
  return page;
}

// Ratios beyond the plot stand at its edge, where they are seen.
double within_plot(double ratio) { return std::clamp(ratio, 0.5, 1.5); }

// Lines at 1 and 10% either way, from `low` to `high` on x.
void add_levels(Plot& plot, double low, double high) {
  for (const double level : {0.9, 1.0, 1.1})
    plot.series.push_back({.colour = 7,
                           .mark = level == 1.0 ? Mark::line : Mark::dashed,
                           .points = {{low, level}, {high, level}}});
}

// What a board was busy with, in a few words.
std::string kind_of_load(const Sample& s) {
  if (s.variant == "idle") return "at rest";
  if (s.variant.starts_with("gemm"))
    return s.text_or("input", "") == "bf16" ? "products in bf16" : "other products";
  if (s.variant.starts_with("attention")) return "attention";
  if (s.part == "framework") return "kernels of PyTorch";
  const auto bytes = s.numbers.find("bytes");
  return bytes != s.numbers.end() && bytes->second > 0 ? "streams" : "arithmetic, cache";
}

// One mark a line of `power`, and what sustained products draw at the clocks that they hold.
PlotPage power_page(const MeasuredLog& log, const Machine& machine) {
  PlotPage page{.name = "power", .heading = "Power: " + machine.device.name};
  Plot work{.title = "board power and SM clock by kind of work",
            .note = "Each mark: one kernel for seconds.",
            .x = {.label = "SM clock, MHz", .tight = true},
            .y = {.label = "W"}};
  std::map<std::string, PlotSeries> kinds;
  for (const Sample& s : log.samples) {
    if (s.kind != "power" || s.power_w <= 0) continue;
    const auto clock = s.numbers.find("clock_mhz");
    const double at = clock == s.numbers.end() ? s.clock_after_mhz : clock->second;
    PlotSeries& own = kinds[kind_of_load(s)];
    own.points.push_back({at, s.power_w});
  }
  for (auto& [name, own] : kinds) {
    own.label = name;
    own.colour = static_cast<int>(work.series.size());
    work.series.push_back(own);
  }
  page.plots.push_back(std::move(work));
  Plot sustained{.title = "sustained work, predicted over measured time",
                 .note = "Under the power limit; no fit saw these.",
                 .x = {.label = "measured power, W", .tight = true},
                 .y = {.label = "predicted / measured", .low = 0.5, .high = 1.5}};
  std::map<std::string, PlotSeries> series;
  double least_power = 1e30, most_power = 0;
  for (const Sample& s : log.samples) {
    if (!s.is_work || s.mode != "sustained" || s.time.si() <= 0) continue;
    const auto time = expected_time(s, machine);
    if (!time) continue;
    const std::string name = fmt::format("{} {}", s.kind, to_text(s.kernel.work.input));
    PlotSeries& own = series[name];
    own.label = name;
    own.points.push_back({s.power_w, within_plot(*time / s.time)});
    least_power = std::min(least_power, s.power_w);
    most_power = std::max(most_power, s.power_w);
  }
  for (auto& [name, own] : series) {
    own.colour = static_cast<int>(sustained.series.size());
    sustained.series.push_back(own);
  }
  if (!series.empty()) add_levels(sustained, 0.95 * least_power, 1.05 * most_power);
  page.plots.push_back(std::move(sustained));
  return page;
}

// Predicted over measured of every burst sample of a kind, with lines at 10% either way: of
// kernels, or of launches and calls.
PlotPage ratio_page(const MeasuredLog& log, const Machine& machine, bool kernels) {
  PlotPage page{.name = kernels ? "ratios" : "call-ratios",
                .heading = fmt::format("Predicted over measured, {}: {}",
                                       kernels ? "kernels" : "calls", machine.device.name)};
  std::map<std::string, Plot> plots;
  std::map<std::string, std::map<std::string, std::pair<PlotSeries, PlotSeries>>> series;
  for (const Sample& s : log.samples) {
    if (s.time.si() <= 0 || s.mode == "sustained" || s.is_work != kernels) continue;
    // Calls outside of graphs wait for the host.
    if (collective_kind_text.find(s.kind) && s.mode == "stream") continue;
    const auto time = expected_time(s, machine);
    if (!time) continue;
    const std::string label = s.is_work
                                  ? fmt::format("{} {}", to_text(s.kernel.work.input), s.library)
                                  : s.text_or("protocol", s.variant);
    auto& [fitted, held] = series[s.kind][label];
    (is_held_out(s) ? held : fitted)
        .points.push_back({in_microseconds(s.time), within_plot(*time / s.time)});
  }
  for (auto& [kind, all] : series) {
    Plot plot{.title = kind,
              .note =
                  "Filled: fitted. Hollow: held out of the fit. Dashed: 10% either way; beyond "
                  "50%: at the edge.",
              .x = log_axis("measured, us"),
              .y = {.label = "predicted / measured", .low = 0.5, .high = 1.5}};
    double low = 1e30, high = 0;
    int colour = 0;
    for (auto& [label, marks] : all) {
      auto& [fitted, held] = marks;
      fitted.label = held.points.empty() || !fitted.points.empty() ? label : "";
      held.label = fitted.label.empty() ? label : "";
      fitted.colour = held.colour = colour++;
      held.mark = Mark::hollow;
      for (const PlotSeries* one : {&fitted, &held})
        for (const Point& p : one->points) {
          low = std::min(low, p.x);
          high = std::max(high, p.x);
        }
      plot.series.push_back(std::move(fitted));
      plot.series.push_back(std::move(held));
    }
    add_levels(plot, low, high);
    page.plots.push_back(std::move(plot));
  }
  return page;
}

}  // namespace

std::vector<PlotPage> calibration_plots(const MeasuredLog& log, const Machine& machine) {
  std::vector<PlotPage> pages = {products_page(log, machine),    memory_page(log, machine),
                                 streams_page(log, machine),     attention_page(log, machine),
                                 collectives_page(log, machine), power_page(log, machine),
                                 ratio_page(log, machine, true), ratio_page(log, machine, false)};
  for (PlotPage& page : pages)
    std::erase_if(page.plots, [](const Plot& plot) { return plot.empty(); });
  std::erase_if(pages, [](const PlotPage& page) { return page.plots.empty(); });
  return pages;
}

}  // namespace orrery
