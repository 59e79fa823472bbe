// SPDX-License-Identifier: Apache-2.0
// Runs the command `serve`.
#include "sim/app/serve/command.h"

#include <unistd.h>

#include <cstdio>

#include "sim/app/answer/failure.h"
#include "sim/app/line/result.h"
#include "sim/app/line/setting_flags.h"
#include "sim/app/page/outputs.h"
#include "sim/app/serve/engine_files.h"
#include "sim/app/serve/report.h"
#include "sim/app/serve/trace.h"
#include "sim/app/shards/sharing.h"
#include "sim/base/errors/interrupt.h"
#include "sim/base/output_file.h"
#include "sim/question/serve/points.h"
#include "sim/question/serve/traffic.h"
#include "sim/question/settings/inline_files.h"

namespace orrery {
namespace {

constexpr const char* requests_flag = "--requests-out";
constexpr const char* trace_flag = "--trace-out";
constexpr std::size_t most_records = 250'000;  // of a trace: some 90 MB

Json to_json(const Served& served, std::uint64_t seed) {
  Json points = Json::array();
  std::string why;
  for (const ServedPoint& point : served.points) {
    points.push_back(service_json(point));
    if (why.empty()) why = point.prediction.refusal;
  }
  if (served.load) why = load_sentence(served);
  return answer_json(
      {.command = "serve",
       .question = served.settings.raw(),
       .seed = seed,
       .catalogue = served.catalogue},
      {.fits = served.exists(), .runs = served.exists(), .why = served.exists() ? "" : why},
      {{"points", points}, {"load", load_json(served)}, {"stopped", served.stopped}});
}

void check_one_point(const JsonValue& settings, const char* flag) {
  if (points_of(settings).size() != 1)
    throw Error({.file = flag,
                 .path = "",
                 .found = "several points",
                 .expected = "one point: what is written is of one deployment"});
}

ExitCode serve_and_print(const JsonValue& settings, const Given& given, const CommonFlags& common,
                         SharedWork* shared = nullptr) {
  const std::string rows = given.place(requests_flag), trace = given.place(trace_flag);
  check_looks(given);
  check_engine_files(settings, given);
  for (const std::string& file : {rows, trace})
    if (!file.empty()) check_writable_file(file);
  if (!rows.empty() || !trace.empty())
    check_one_point(settings, rows.empty() ? trace_flag : requests_flag);
  StepLog log;
  Catalogues catalogues;
  std::atomic<bool> stop{false};
  const bool shows = !common.quiet && isatty(STDERR_FILENO) != 0;
  const ServeWith with{.catalogues = catalogues,
                       .seed = common.seed.value_or(default_serve_seed),
                       .threads = common.threads,
                       .stop = &stop,
                       .progress =
                           [&](std::size_t served, std::size_t points, std::int64_t done) {
                             if (interrupted()) stop = true;
                             if (shows)
                               std::fprintf(stderr, "\rserving: point %zu of %zu, %lld requests ",
                                            std::min(served + 1, points), points,
                                            static_cast<long long>(done));
                           },
                       .log = trace.empty() ? nullptr : &log,
                       .most_records = most_records,
                       .tasks = shared};
  const Served served = serve_settings(settings, with);
  if (!goes_on(shared)) return end_part(*shared, common);
  if (shows) std::fprintf(stderr, "\r\033[K");
  write_looks(given, [&] { return whole_answer(served, with.seed); });
  write_engine_files(served, given, common.quiet);
  const bool some = !served.points.empty();  // none where Ctrl-C came first
  if (some && !rows.empty()) write_file(rows, requests_csv(served.points.front()));
  if (some && !trace.empty()) {
    write_file(trace, service_trace(served.points.front().asked, log));
    if (log.cut && !common.quiet)
      std::fprintf(stderr,
                   "orrery: %s: the trace ends before the run does: it holds the first %zu records "
                   "of each engine\n",
                   trace.c_str(), log.most);
  }
  write_result(common.json ? indented_text(to_json(served, with.seed))
                           : page(service_document(served, terminal_width()), common));
  return unless_stopped(served.exists() ? ExitCode::answer : ExitCode::cannot_exist);
}

ExitCode share(const SharedRun& run, SharedWork& work, const Given& given) {
  CommonFlags common = common_of(given);
  common.seed = run.seed;
  return serve_and_print(run.settings(), given, common, &work);
}

ExitCode answer(const JsonValue& asked, const Given& given, const CommonFlags& common) {
  if (!is_shared(given)) return serve_and_print(asked, given, common);
  const SharedRun run{
      .command = "serve",
      .name = asked.file(),
      .seed = common.seed,
      .question = with_traces_inline(with_files_inline(asked).value_or(asked)).raw()};
  return begin_shared(given, run, "", [&](SharedWork& work) { return share(run, work, given); });
}

ExitCode run(const Given& given) {
  install_interrupt_handler();  // what is served by then is printed
  const CommonFlags common = common_of(given);
  const GivenSettings settings = listed_settings_of(given, serve_settings(), is_one_value);
  return naming_flags(
      [&] { return answer(merge_serve_settings(settings.file, settings.flags), given, common); },
      [&](const Error& error) {
        return named_by_flag(error, settings.file, settings.flags, serve_settings());
      });
}

}  // namespace

MachineAnswer serve_again(const JsonValue& question, std::optional<std::uint64_t> seed,
                          int threads) {
  Catalogues catalogues;
  const ServeWith with{
      .catalogues = catalogues, .seed = seed.value_or(default_serve_seed), .threads = threads};
  return machine_answer(serve_settings(question, with), with.seed);
}

MachineAnswer machine_answer(const Served& served, std::uint64_t seed) {
  return {.json = to_json(served, seed),
          .code = served.exists() ? ExitCode::answer : ExitCode::cannot_exist};
}

WholeAnswer whole_answer(const Served& served, std::uint64_t seed) {
  return {machine_answer(served, seed), service_document(served, page_width)};
}

Command serve_command() {
  std::vector<Flag> flags = flags_of(serve_settings());
  flags.push_back({requests_flag, "FILE", output_group, "write a row for each request", "file"});
  flags.push_back({trace_flag, "FILE", output_group,
                   "write a trace for Perfetto: steps of each engine, who runs and waits", "file"});
  for (Flag& flag : engine_file_flags()) flags.push_back(std::move(flag));
  flags.push_back(markdown_flag());
  for (Flag& flag : look_flags()) flags.push_back(std::move(flag));
  for (Flag& flag : shard_flags()) flags.push_back(std::move(flag));
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
      .run = run,
      .share = share};
}

}  // namespace orrery
