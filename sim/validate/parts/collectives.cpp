// SPDX-License-Identifier: Apache-2.0
// Reads measured collectives and predicts each with the engine's cost of one call alone.
#include "sim/validate/parts/collectives.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "sim/base/errors/check.h"

namespace orrery {
namespace {

// What tables call a library, and whose cost it is.
struct LibraryName {
  const char* text;
  CollectiveLibrary library;
};
constexpr LibraryName library_texts[] = {{"nccl", CollectiveLibrary::nccl},
                                         {"rccl", CollectiveLibrary::rccl},
                                         {"copy", CollectiveLibrary::nccl},
                                         {"trtllm", CollectiveLibrary::custom},
                                         {"custom", CollectiveLibrary::custom},
                                         {"vllm", CollectiveLibrary::vllm},
                                         {"deepep", CollectiveLibrary::deepep},
                                         {"trtllm-alltoall", CollectiveLibrary::nvlink_two_sided}};

struct PhaseName {
  const char* text;
  ExchangePhase phase;
};
constexpr PhaseName phase_texts[] = {{"dispatch", ExchangePhase::dispatch},
                                     {"combine", ExchangePhase::combine},
                                     {"prepare", ExchangePhase::prepare}};

[[noreturn]] void fail_name(const CsvRow& cells, const char* column,
                            const std::vector<std::string>& known) {
  const std::string nearest = nearest_name(cells.text(column), known);
  std::string expected;
  for (const std::string& name : known) expected += (expected.empty() ? "" : ", ") + name;
  cells.fail(column, nearest.empty() ? expected : expected + " (near: " + nearest + ")");
}

CollectiveLibrary read_library(const CsvRow& cells) {
  std::vector<std::string> known;
  for (const LibraryName& name : library_texts) {
    if (cells.text("library") == name.text) return name.library;
    known.emplace_back(name.text);
  }
  fail_name(cells, "library", known);
}

void read_kind(MeasuredCollective& row, const CsvRow& cells) {
  row.collective = cells.text("collective");
  std::vector<std::string> known;
  for (const PhaseName& name : phase_texts) {
    known.emplace_back(name.text);
    if (row.collective != name.text) continue;
    row.call.kind = CollectiveKind::all_to_all;
    row.call.exchange.phase = name.phase;
    return;
  }
  std::string text = row.collective;
  std::replace(text.begin(), text.end(), '_', '-');
  if (const auto kind = collective_kind_text.find(text)) {
    row.call.kind = *kind;
    return;
  }
  for (std::string name : collective_kind_text.names()) {
    std::replace(name.begin(), name.end(), '-', '_');
    known.push_back(name);
  }
  fail_name(cells, "collective", known);
}

void read_mode(MeasuredCollective& row, const CsvRow& cells) {
  row.mode = cells.text("mode");
  if (row.mode == "low-latency" || row.mode == "normal") {
    row.algorithm = CollectiveAlgorithm::deepep;
    row.protocol = row.mode == "normal" ? CollectiveProtocol::simple : CollectiveProtocol::ll;
    return;
  }
  if (row.mode == "one-sided") row.call.library = CollectiveLibrary::nvlink_one_sided;
  const std::vector<std::string> choices = {"", "eager", "graph", "one-sided", "two-sided"};
  if (std::find(choices.begin(), choices.end(), row.mode) != choices.end()) return;
  row.algorithm = collective_algorithm_text.find(row.mode);
  if (row.algorithm) return;
  auto known = collective_algorithm_text.names();
  known.insert(known.end(), {"eager", "graph", "low-latency", "normal", "one-sided", "two-sided"});
  fail_name(cells, "mode", known);
}

std::optional<double> positive(const CsvRow& cells, const char* column) {
  const auto value = cells.number(column);
  if (value && *value <= 0) cells.fail(column, "a number above 0");
  return value;
}

// Bytes of one token with its scales: one fp32 for 128 elements of fp8, one byte for 16 of fp4.
double token_bytes(const CsvRow& cells, double hidden) {
  const std::string& format = cells.text("format");
  if (format == "fp8") return hidden * (1 + 4.0 / 128);
  if (format == "nvfp4") return hidden * (0.5 + 1.0 / 16);
  if (format == "bf16" || format == "fp16" || format.empty()) return 2 * hidden;
  fail_name(cells, "format", {"bf16", "fp16", "fp8", "nvfp4"});
}

// Bytes as NCCL counts them. Exchanges tell tokens: a row for each of a token's experts, of which
// the library sends fewer where several live in one place.
double read_bytes(const CsvRow& cells, MeasuredCollective& row) {
  if (const auto bytes = cells.number("bytes")) {
    if (*bytes < 0) cells.fail("bytes", "0 or more");
    return *bytes;
  }
  const auto hidden = positive(cells, "hidden");
  const auto whole = [&](const char* column) {
    positive(cells, column);
    return cells.integer(column).value_or(0);
  };
  TokenExchange& exchange = row.call.exchange;
  exchange.tokens = whole("tokens");
  exchange.experts = whole("topk");
  // The tables of exchanges inside a rack route evenly: a token reaches as many ranks as it can.
  if (row.call.library == CollectiveLibrary::nvlink_two_sided ||
      row.call.library == CollectiveLibrary::nvlink_one_sided)
    exchange.reaches = static_cast<double>(std::min(row.call.group.size, exchange.experts));
  exchange.pool = whole("experts");
  exchange.most_domains = whole("domains_per_token");
  exchange.sms = whole("sms");
  if (exchange.tokens == 0 || exchange.experts == 0 || !hidden) {
    if (row.skipped.empty()) row.skipped = "the source does not tell the size";
    return 0;
  }
  return static_cast<double>(exchange.tokens * exchange.experts) * token_bytes(cells, *hidden);
}

// Why a row's time is not that of the call on its fabric; empty: it is.
std::string unfit_reason(const MeasuredCollective& row, const CsvRow& cells) {
  if (!row.measured) return "the source tells no time";
  // Launches outlast small calls, and vLLM then copies into a buffer that its peers know.
  const bool custom =
      row.call.library == CollectiveLibrary::custom || row.call.library == CollectiveLibrary::vllm;
  if (row.mode == "eager" && custom)
    return "launched eagerly: a copy and the host's time are in it";
  if (row.mode == "eager" && !row.large())
    return "launched eagerly, below 1 MiB: the host's time is in it";
  if (row.crosses() && cells.blank("interconnect") && !row.assumed.empty())
    return "the source does not tell the network";
  return "";
}

std::int64_t read_ranks(const CsvRow& cells) {
  const auto ranks = cells.integer("ranks");
  if (!ranks || *ranks < 1) cells.fail("ranks", "a whole number above 0");
  return *ranks;
}

}  // namespace

const std::vector<std::string>& collective_columns() {
  static const std::vector<std::string> columns = {"id",         "gpu",   "library",
                                                   "collective", "ranks", "time_us"};
  return columns;
}

CollectiveReader::CollectiveReader(Aliases aliases) : aliases_(std::move(aliases)) {}

std::vector<MeasuredCollective> CollectiveReader::read(const CsvTable& table) {
  require_columns(table, collective_columns(), "validation/README.md");
  if (!table.has("tokens")) require_columns(table, {"bytes"}, "validation/README.md");
  std::vector<MeasuredCollective> rows(table.rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const CsvRow cells(table, i);
    MeasuredCollective& row = rows[i];
    row.id = cells.text("id");
    row.source = cells.text("source");
    row.gpu = cells.text("gpu");
    row.library = cells.text("library");
    read_kind(row, cells);
    row.call.library = read_library(cells);
    read_mode(row, cells);
    const std::string& split = cells.text("split");
    if (split != "" && split != "fit" && split != "held-out")
      cells.fail("split", "fit or held-out");
    row.held_out = split != "fit";
    if (const auto time = positive(cells, "time_us")) row.measured = *time * 1e-6;
    place(row, cells, read_ranks(cells));
    row.call.bytes = Bytes(read_bytes(cells, row));
    if (row.skipped.empty()) row.skipped = unfit_reason(row, cells);
  }
  return rows;
}

// nccl-tests run one group: its ranks fill domains one after the other, with no other group beside.
void CollectiveReader::place(MeasuredCollective& row, const CsvRow& cells, std::int64_t ranks) {
  const auto stated = cells.integer("ranks_per_domain");
  if (stated && (*stated < 1 || ranks % *stated != 0))
    cells.fail("ranks_per_domain", fmt::format("a divisor of {} ranks", ranks));
  GroupShape& group = row.call.group;
  group.size = group.per_domain = group.span = ranks;
  try {
    // More accelerators than any domain has, so that the row's network is looked for.
    constexpr std::int64_t beyond_domains = 1 << 20;
    const std::int64_t reach = stated && *stated < ranks ? beyond_domains : ranks;
    const auto choice = choose_cluster(aliases_, wirings_, row.gpu, cells.text("interconnect"),
                                       cells.text("system"), reach);
    if (!choice) {
      row.skipped = fmt::format("accelerator {} is not in aliases.json", in_quotes(row.gpu));
      return;
    }
    row.assumed = choice->assumed;
    row.cluster = cluster(*choice, ranks);
  } catch (const Error& error) {
    row.skipped = error.message();
    return;
  }
  const std::int64_t domain = row.cluster->fabric.scale_up.domain;
  if (!stated && ranks > domain && ranks % domain != 0)
    cells.fail("ranks", fmt::format("whole domains of {}, or ranks_per_domain", domain));
  group.per_domain = stated.value_or(std::min(ranks, domain));
  if (group.per_domain > domain)
    cells.fail("ranks_per_domain", fmt::format("at most {}, the domain of {}", domain, row.gpu));
  group.domains = ranks / group.per_domain;
  group.span = group.domains > 1 ? (group.domains - 1) * domain + group.per_domain : ranks;
}

const Cluster* CollectiveReader::cluster(const ClusterChoice& choice, std::int64_t gpus) {
  const std::string key = fmt::format("{} {} {} {:.4g}", choice.cluster, choice.accelerator, gpus,
                                      choice.network_factor);
  const auto found = clusters_.find(key);
  if (found != clusters_.end()) return found->second.get();
  auto loaded = std::make_unique<Cluster>(load_cluster(choice, gpus));
  return clusters_.emplace(key, std::move(loaded)).first->second.get();
}

namespace {

// The least over the protocols that the row leaves open.
std::optional<CollectiveTime> time_as_told(const MeasuredCollective& row) {
  const Cluster& c = *row.cluster;
  std::optional<CollectiveTime> best;
  for (int p = 0; p < collective_protocol_count; ++p) {
    const auto protocol = static_cast<CollectiveProtocol>(p);
    if (row.protocol && *row.protocol != protocol) continue;
    const auto time =
        collective_time_with(row.call, c.fabric, c.collective_costs, *row.algorithm, protocol);
    if (time && (!best || time->time.si() < best->time.si())) best = time;
  }
  return best;
}

}  // namespace

ScoredCollective score_collective(const MeasuredCollective& row, const ModelError& error) {
  ScoredCollective scored{.row = &row, .skipped = row.skipped};
  if (!row.skipped.empty()) return scored;
  const Cluster& c = *row.cluster;
  scored.prediction = row.algorithm
                          ? time_as_told(row)
                          : std::optional(collective_time(row.call, c.fabric, c.collective_costs));
  if (!scored.prediction) {
    scored.skipped = fmt::format("{} is not possible on {}", in_quotes(row.mode), c.fabric.name);
    return scored;
  }
  const double seconds = scored.prediction->time.si();
  const ModelError::Range range = error.collective(row.library, row.crosses(), row.large());
  const double variance = error.blank * error.blank * static_cast<double>(row.assumed.size());
  const auto joined = [variance](double share) { return std::sqrt(share * share + variance); };
  scored.low = seconds * std::max(0.05, 1 - joined(range.below));
  scored.high = seconds * (1 + joined(range.above));
  if (row.measured) scored.error = seconds / *row.measured - 1;
  return scored;
}

}  // namespace orrery
