// SPDX-License-Identifier: Apache-2.0
// Reads tables of the serving engine, of five kinds.
#include "sim/validate/replayed/engine_cases.h"

#include <algorithm>
#include <charconv>

#include "sim/base/errors/check.h"

namespace orrery {
namespace {

constexpr const char* listed_in = "validation/measurements/serving_engine";

const std::vector<std::string>& columns_of(EngineCaseKind kind) {
  static const std::vector<std::string> columns[] = {
      {"id", "gpu", "cluster", "stack", "model", "tp", "held", "blocks", "max_sequences",
       "token_budget", "clients", "unfinished", "ttft_mean_s", "ttft_p99_s", "tpot_mean_s",
       "arrivals_us", "prompts", "outputs"},
      {"id", "gpu", "cluster", "stack", "model", "held", "blocks", "max_sequences", "token_budget",
       "unfinished", "ttft_mean_s", "tpot_mean_s", "transfer_mean_s", "arrivals_us", "prompts",
       "outputs"},
      {"id", "gpu", "cluster", "stack", "model", "held", "decodes", "chunk", "context", "graph",
       "device_us"},
      {"id", "gpu", "cluster", "stack", "model", "tp", "held", "max_sequences", "token_budget",
       "pool_blocks"},
      {"id", "gpu", "cluster", "stack", "model", "held", "max_sequences", "token_budget", "blocks",
       "beside_bytes", "out_of_memory"}};
  return columns[static_cast<std::size_t>(kind)];
}

std::int64_t whole(const CsvRow& row, const char* column, std::int64_t least) {
  const auto value = row.integer(column);
  const std::int64_t most = std::int64_t{1} << 40;
  if (!value || *value < least || *value > most)
    row.fail(column, least > 0 ? "a whole number of at least 1" : "a whole number, not negative");
  return *value;
}

double seconds(const CsvRow& row, const char* column, double unit) {
  const auto value = row.number(column);
  if (!value || *value <= 0) row.fail(column, "a time above 0");
  return *value * unit;
}

// Whole numbers with blanks between.
std::vector<std::int64_t> list(const CsvRow& row, const char* column, std::int64_t least) {
  std::vector<std::int64_t> values;
  const std::string& text = row.text(column);
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at < end) {
    std::int64_t value = 0;
    const auto [next, error] = std::from_chars(at, end, value);
    const bool known = error == std::errc() && (next == end || *next == ' ');
    if (!known || value < least || value > 1'000'000'000)
      row.fail(column, "whole numbers with one blank between, none too small or above 10^9");
    values.push_back(value);
    at = next == end ? end : next + 1;
  }
  return values;
}

void read_run(const CsvRow& row, EngineCase& c) {
  c.blocks = whole(row, "blocks", 1);
  EngineLoad& load = c.load;
  if (c.kind == EngineCaseKind::run) load.clients = whole(row, "clients", 0);
  load.unfinished = whole(row, "unfinished", 0);
  load.arrivals_us = list(row, "arrivals_us", 0);
  load.prompts = list(row, "prompts", 1);
  load.outputs = list(row, "outputs", 1);
  if (load.prompts.empty()) row.fail("prompts", "a request at least");
  if (load.outputs.size() != load.prompts.size()) row.fail("outputs", "as many numbers as prompts");
  if (load.arrivals_us.size() != (load.clients > 0 ? 0 : load.prompts.size()))
    row.fail("arrivals_us", "as many numbers as prompts, none in a closed loop");
  if (!std::is_sorted(load.arrivals_us.begin(), load.arrivals_us.end()))
    row.fail("arrivals_us", "arrivals in their order");
  c.latencies.ttft_mean = seconds(row, "ttft_mean_s", 1);
  c.latencies.tpot_mean = seconds(row, "tpot_mean_s", 1);
  if (c.kind == EngineCaseKind::pair)
    c.latencies.transfer_mean = seconds(row, "transfer_mean_s", 1);
  else if (!row.blank("ttft_p99_s"))
    c.latencies.ttft_p99 = seconds(row, "ttft_p99_s", 1);
}

void read_step(const CsvRow& row, EngineCase& c) {
  c.step = {.decodes = whole(row, "decodes", 0),
            .chunk = whole(row, "chunk", 0),
            .context = whole(row, "context", 1),
            .graph = whole(row, "graph", 0),
            .device_seconds = seconds(row, "device_us", 1e-6)};
  if (c.step.decodes + c.step.chunk == 0) row.fail("chunk", "a decode or a chunk at least");
}

void read_memory(const CsvRow& row, EngineCase& c) {
  c.blocks = whole(row, "blocks", 0);
  c.beside_bytes = static_cast<double>(whole(row, "beside_bytes", 0));
  const auto out = row.flag("out_of_memory");
  if (!out) row.fail("out_of_memory", "0 or 1");
  c.out_of_memory = *out;
}

}  // namespace

std::optional<EngineCaseKind> engine_case_kind(const CsvTable& table) {
  if (table.has("arrivals_us") && table.has("transfer_mean_s")) return EngineCaseKind::pair;
  if (table.has("arrivals_us") && table.has("prompts")) return EngineCaseKind::run;
  if (table.has("decodes") && table.has("device_us")) return EngineCaseKind::step;
  if (table.has("pool_blocks")) return EngineCaseKind::pool;
  if (table.has("beside_bytes")) return EngineCaseKind::memory;
  return std::nullopt;
}

std::vector<EngineCase> read_engine_cases(const CsvTable& table) {
  const auto kind = engine_case_kind(table);
  CHECK_THAT(kind, "a table of another kind is read as the serving engine's");
  require_columns(table, columns_of(*kind), listed_in);
  std::vector<EngineCase> cases;
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const CsvRow row(table, i);
    EngineCase c{.kind = *kind,
                 .id = row.text("id"),
                 .gpu = row.text("gpu"),
                 .cluster = row.text("cluster"),
                 .stack = row.text("stack"),
                 .model = row.text("model")};
    const auto held = row.flag("held");
    if (!held) row.fail("held", "0 or 1");
    c.held = *held;
    if (*kind != EngineCaseKind::step) {
      c.max_sequences = whole(row, "max_sequences", 1);
      c.token_budget = whole(row, "token_budget", 1);
    }
    const bool loaded = *kind == EngineCaseKind::run || *kind == EngineCaseKind::pair;
    if (*kind == EngineCaseKind::run || *kind == EngineCaseKind::pool) c.tp = whole(row, "tp", 1);
    if (loaded) read_run(row, c);
    if (*kind == EngineCaseKind::step) read_step(row, c);
    if (*kind == EngineCaseKind::pool) c.blocks = whole(row, "pool_blocks", 1);
    if (*kind == EngineCaseKind::memory) read_memory(row, c);
    cases.push_back(std::move(c));
  }
  return cases;
}

}  // namespace orrery
