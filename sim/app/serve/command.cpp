// SPDX-License-Identifier: Apache-2.0
// Runs the command `serve`.
#include "sim/app/serve/command.h"

#include <unistd.h>

#include <cstdio>

#include "sim/app/answer/failure.h"
#include "sim/app/line/result.h"
#include "sim/app/line/setting_flags.h"
#include "sim/app/serve/report.h"
#include "sim/base/errors/interrupt.h"
#include "sim/base/output_file.h"

namespace orrery {
namespace {

constexpr const char* requests_flag = "--requests-out";
constexpr std::uint64_t default_seed = 1;

Json to_json(const Served& served, std::uint64_t seed) {
  Json points = Json::array();
  std::string why;
  for (const ServedPoint& point : served.points) {
    points.push_back(service_json(point));
    if (why.empty()) why = point.prediction.refusal;
  }
  return answer_json(
      {.command = "serve",
       .question = served.settings.raw(),
       .seed = seed,
       .catalogue = served.catalogue},
      {.fits = served.exists(), .runs = served.exists(), .why = served.exists() ? "" : why},
      {{"points", points}, {"stopped", served.stopped}});
}

ExitCode serve_and_print(const JsonValue& settings, const Given& given, const CommonFlags& common) {
  const std::string rows = given.place(requests_flag);
  if (!rows.empty()) check_writable_file(rows);
  Catalogues catalogues;
  std::atomic<bool> stop{false};
  const bool shows = !common.quiet && isatty(STDERR_FILENO) != 0;
  const ServeWith with{.catalogues = catalogues,
                       .seed = common.seed.value_or(default_seed),
                       .threads = common.threads,
                       .stop = &stop,
                       .progress = [&](std::size_t point, std::size_t points, std::int64_t done) {
                         if (interrupted()) stop = true;
                         if (shows)
                           std::fprintf(stderr, "\rserving: point %zu of %zu, %lld requests ",
                                        point + 1, points, static_cast<long long>(done));
                       }};
  const Served served = serve_settings(settings, with);
  if (shows) std::fprintf(stderr, "\r\033[K");
  if (!rows.empty() && served.points.size() != 1)
    throw Error({.file = requests_flag,
                 .path = "",
                 .found = "several points",
                 .expected = "one: a row is a request of one point"});
  if (!rows.empty()) write_file(rows, requests_csv(served.points.front()));
  write_result(common.json ? indented_text(to_json(served, with.seed)) + "\n"
                           : page(service_document(served, terminal_width()), common));
  return unless_stopped(served.exists() ? ExitCode::answer : ExitCode::cannot_exist);
}

// Values with commas are lists, but for promises, which are several themselves.
SortedJson listed_value(const Setting& setting, const std::string& text) {
  const bool one = text.find(',') == text.npos || setting.key == std::string_view("slo");
  if (one) return setting_value(setting, text);
  SortedJson list = SortedJson::array();
  for (std::size_t from = 0; from <= text.size();) {
    const std::size_t end = std::min(text.find(',', from), text.size());
    list.push_back(setting_value(setting, text.substr(from, end - from)));
    from = end + 1;
  }
  return list;
}

GivenSettings settings_of_serve(const Given& given) {
  GivenSettings own{.file = given.word(0)};
  for (const Setting& setting : serve_settings())
    if (given.has(setting.flag()))
      own.flags[setting.key] = listed_value(setting, given.text(setting.flag()));
  return own;
}

ExitCode run(const Given& given) {
  install_interrupt_handler();  // what is served by then is printed
  const CommonFlags common = common_of(given);
  const GivenSettings settings = settings_of_serve(given);
  return naming_flags([&] { return serve_and_print(settings.merged(), given, common); },
                      [&](const Error& error) {
                        return named_by_flag(error, settings.file, settings.flags,
                                             serve_settings());
                      });
}

}  // namespace

MachineAnswer serve_again(const JsonValue& question, std::optional<std::uint64_t> seed,
                          int threads) {
  Catalogues catalogues;
  const ServeWith with{
      .catalogues = catalogues, .seed = seed.value_or(default_seed), .threads = threads};
  const Served served = serve_settings(question, with);
  return {.json = to_json(served, with.seed),
          .code = served.exists() ? ExitCode::answer : ExitCode::cannot_exist};
}

Command serve_command() {
  std::vector<Flag> flags = flags_of(serve_settings());
  flags.push_back({requests_flag, "FILE", output_group, "write a row for each request", "file"});
  flags.push_back(markdown_flag());
  flags.push_back(seed_flag());
  return {
      .name = "serve",
      .summary = "predict a served model under traffic",
      .arguments = {settings_file()},
      .flags = std::move(flags),
      .examples = {{"orrery serve --model llama3.3-70b --cluster dgx-h100 --engines 2xTP4 --stack "
                    "vllm --concurrency 64 --isl 1024 --osl 1024",
                    "latencies and throughput with 64 clients"},
                   {"orrery serve --model deepseek-r1 --cluster dgx-h200 --precision "
                    "fp8-blockwise --prefill 2xTP8 --decode 2xDP8EP8 --stack sglang --arrivals "
                    "poisson:4/s --isl 8192 --osl 1024 --slo ttft.p95=2s",
                    "prompts and decodes on machines of their own"}},
      .run = run};
}

}  // namespace orrery
