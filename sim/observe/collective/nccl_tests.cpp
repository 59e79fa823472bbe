// SPDX-License-Identifier: Apache-2.0
// Reads tables of nccl-tests in the columns that their heads name, old and new.
#include "sim/observe/collective/nccl_tests.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "sim/base/errors/check.h"
#include "sim/base/text/words.h"
#include "sim/observe/input/lines.h"
#include "sim/observe/input/words.h"

namespace orrery::observe {
namespace {

// Columns of a head: "size count type [redop] [root] time algbw busbw #wrong time algbw ...".
struct Columns {
  std::vector<std::string> names;
  std::size_t place(std::string_view name, std::size_t nth = 0) const {
    for (std::size_t i = 0; i < names.size(); ++i)
      if (names[i] == name && nth-- == 0) return i;
    return names.size();
  }
  bool has(std::string_view name) const { return place(name) < names.size(); }
};

// Launchers put "[1,0]<stdout>:" and the like before a line.
std::string_view from_hash(std::string_view line) {
  const std::size_t hash = line.find('#');
  return hash == std::string_view::npos ? line : line.substr(hash);
}

std::string_view without_prefix(std::string_view line) {
  constexpr std::string_view marks[] = {"<stdout>:", "<stdout>: "};
  for (const std::string_view mark : marks)
    if (const std::size_t at = line.find(mark); at != std::string_view::npos)
      return line.substr(at + mark.size());
  return line;
}

std::optional<Columns> head_in(std::string_view line) {
  line = trimmed(from_hash(line));
  if (!line.starts_with('#')) return std::nullopt;
  Columns columns;
  for (const std::string_view word : words_of(line.substr(1))) columns.names.emplace_back(word);
  if (!columns.has("size") || !columns.has("time") || !columns.has("busbw")) return std::nullopt;
  return columns;
}

std::optional<CollectiveKind> kind_of(std::string_view program) {
  constexpr std::array<std::pair<std::string_view, CollectiveKind>, 9> programs = {
      {{"all_reduce", CollectiveKind::all_reduce},
       {"all_gather", CollectiveKind::all_gather},
       {"reduce_scatter", CollectiveKind::reduce_scatter},
       {"alltoall", CollectiveKind::all_to_all},
       {"all_to_all", CollectiveKind::all_to_all},
       {"broadcast", CollectiveKind::broadcast},
       {"sendrecv", CollectiveKind::send_receive},
       {"hypercube", CollectiveKind::send_receive},
       {"send_recv", CollectiveKind::send_receive}}};
  for (const auto& [name, kind] : programs)
    if (program.starts_with(name)) return kind;
  return std::nullopt;
}

// "all_reduce_perf" among the words of a line, with a path before it or not.
std::optional<std::string> program_in(std::string_view line) {
  for (std::string_view word : words_of(line)) {
    word = word.substr(word.rfind('/') == std::string_view::npos ? 0 : word.rfind('/') + 1);
    if (word.find("_perf") != std::string_view::npos && word.size() < 60 && kind_of(word))
      return std::string(word.substr(0, word.find("_perf") + 5));
  }
  return std::nullopt;
}

class Reader {
 public:
  explicit Reader(std::string file) { tests_.file = std::move(file); }
  void take(std::string_view line, std::size_t number);
  CollectiveTests finish(bool cut);

 private:
  void begin_table(const Columns& head);
  void take_comment(std::string_view line);
  void take_rank(std::string_view line);
  [[noreturn]] void refuse(std::string found, std::string expected) const;
  double value(const std::vector<std::string_view>& cells, std::string_view column,
               std::size_t nth) const;
  std::optional<TimedCollective> side(const std::vector<std::string_view>& cells,
                                      std::size_t nth) const;
  void take_row(std::string_view line);

  CollectiveTests tests_;
  std::optional<Columns> columns_;
  bool table_open_ = false;
  std::optional<std::string> program_;
  std::vector<TestedRank> ranks_;
  std::optional<int> threads_, gpus_, iterations_, warm_up_;
  std::size_t line_ = 0, foreign_ = 0;
};

void Reader::take(std::string_view line, std::size_t number) {
  line_ = number;
  line = without_prefix(line);
  if (const auto program = program_in(line)) program_ = program;
  if (const std::size_t at = line.find("NCCL version "); at != std::string_view::npos)
    if (!tests_.library) tests_.library = std::string(trimmed(line.substr(at + 13)).substr(0, 80));
  if (const auto head = head_in(line)) {
    begin_table(*head);
    return;
  }
  const std::string_view hashed = trimmed(from_hash(line));
  if (hashed.starts_with('#')) {
    take_comment(hashed);
    return;
  }
  if (columns_ && table_open_ && !trimmed(line).empty()) take_row(trimmed(line));
}

CollectiveTests Reader::finish(bool cut) {
  std::erase_if(tests_.tables, [](const CollectiveTable& table) { return table.rows.empty(); });
  if (tests_.tables.empty())
    throw Error({.file = tests_.file,
                 .found = "no row of a table of nccl-tests",
                 .expected = "columns size, count, type, time, algbw and busbw, and rows"});
  if (cut) tests_.notes.push_back("The packed file ends early: its last rows are missing.");
  if (foreign_ > 0)
    tests_.notes.push_back(
        fmt::format("{} between rows are no rows and were left out.", plural(foreign_, "line")));
  for (const CollectiveTable& table : tests_.tables)
    if (!table.kind)
      tests_.notes.push_back(fmt::format(
          "The table in line {} does not name its collective, as older releases do not.",
          table.line));
  return std::move(tests_);
}

void Reader::begin_table(const Columns& head) {
  columns_ = head;
  table_open_ = true;
  CollectiveTable table;
  table.line = line_;
  table.program = program_;
  if (program_) table.kind = kind_of(*program_);
  table.ranks = std::move(ranks_);
  ranks_.clear();
  table.threads = threads_;
  table.gpus_per_thread = gpus_;
  table.iterations = iterations_;
  table.warm_up = warm_up_;
  tests_.tables.push_back(std::move(table));
}

// Lines with "#": what the run is, its ranks, its end.
void Reader::take_comment(std::string_view line) {
  const auto small = [line](std::string_view key) -> std::optional<int> {
    const auto value = whole_number_after(line, key);
    if (!value || *value < 0 || *value > 1 << 30) return std::nullopt;
    return static_cast<int>(*value);
  };
  if (line.find("nThread ") != std::string_view::npos) {
    threads_ = small("nThread ");
    gpus_ = small("nGpus ");
    iterations_ = small(" iters: ");
    if (const std::size_t at = line.find("warmup iters:"); at != std::string_view::npos) {
      warm_up_ = small("warmup iters:");
      const auto rest = line.substr(at + 13);
      if (const auto value = whole_number_after(rest, " iters:"); value && *value < 1 << 30)
        iterations_ = static_cast<int>(*value);
    }
  }
  take_rank(line);
  if (tests_.tables.empty()) return;
  CollectiveTable& table = tests_.tables.back();
  if (const std::size_t at = line.find("Avg bus bandwidth"); at != std::string_view::npos) {
    const auto mean = number_after(line.substr(at), ":");
    if (mean && *mean >= 0) table.mean_bus = bytes_per_second(*mean * 1e9);
    table_open_ = false;
    program_.reset();
  }
  if (line.find("Out of bounds values") != std::string_view::npos)
    table.right = line.find(" OK") != std::string_view::npos;
}

// "#  Rank  0 Group  0 Pid 43 on host device  0 [0x0f] NVIDIA A100-SXM4-40GB"; "Rank" may have
// neither a group nor spaces before it.
void Reader::take_rank(std::string_view line) {
  const std::size_t at = line.find("Rank ");
  const std::size_t device = line.find(" device ");
  const std::size_t on = line.find(" on ");
  if (at == std::string_view::npos || device == std::string_view::npos || on > device) return;
  const auto rank = whole_number_after(line, "Rank "), index = whole_number_after(line, " device ");
  if (!rank || !index || *rank < 0 || *rank > 1 << 24 || *index < 0 || *index > 1 << 16) return;
  TestedRank found{.rank = static_cast<int>(*rank), .device = static_cast<int>(*index)};
  found.host = std::string(trimmed(line.substr(on + 4, device - on - 4)));
  const std::size_t open = line.find('[', device), close = line.find(']', device);
  if (open != std::string_view::npos && close != std::string_view::npos && open < close) {
    found.bus = std::string(line.substr(open + 1, close - open - 1));
    found.name = std::string(trimmed(line.substr(close + 1)));
  }
  ranks_.push_back(std::move(found));
}

void Reader::refuse(std::string found, std::string expected) const {
  throw Error({.file = tests_.file,
               .path = fmt::format("line {}", line_),
               .found = std::move(found),
               .expected = std::move(expected)});
}

double Reader::value(const std::vector<std::string_view>& cells, std::string_view column,
                     std::size_t nth) const {
  const std::size_t place = columns_->place(column, nth);
  if (place >= cells.size())
    refuse(fmt::format("a head with too few columns {}", column), "one for each column time");
  const std::string_view cell = cells[place];
  const auto number = number_in(cell);
  if (!number || *number < 0)
    refuse(fmt::format("{} in column {}", in_quotes(cell), column), "a number from 0 on");
  return *number;
}

std::optional<TimedCollective> Reader::side(const std::vector<std::string_view>& cells,
                                            std::size_t nth) const {
  const std::size_t time = columns_->place("time", nth);
  // A collective that does not run in place has "N/A" there.
  if (time >= cells.size() || cells[time] == "N/A") return std::nullopt;
  TimedCollective timed{.time = microseconds(value(cells, "time", nth))};
  timed.algorithm = bytes_per_second(value(cells, "algbw", nth) * 1e9);
  timed.bus = bytes_per_second(value(cells, "busbw", nth) * 1e9);
  if (const std::size_t at = columns_->place("#wrong", nth); at < cells.size())
    timed.wrong = whole_number_in(cells[at]);
  if (const std::size_t at = columns_->place("error", nth); at < cells.size())
    timed.largest_error = number_in(cells[at]);
  return timed;
}

void Reader::take_row(std::string_view line) {
  const std::vector<std::string_view> cells = words_of(line);
  if (!number_in(cells[0])) {
    ++foreign_;  // what NCCL or a launcher prints meanwhile
    return;
  }
  if (cells.size() != columns_->names.size())
    refuse(plural(static_cast<double>(cells.size()), "cell"),
           fmt::format("{}, as in the head", columns_->names.size()));
  CollectiveRow row{.line = line_};
  row.size = bytes(value(cells, "size", 0));
  if (columns_->has("count")) {
    const auto count = whole_number_in(cells[columns_->place("count")]);
    if (!count || *count < 0) refuse(in_quotes(cells[columns_->place("count")]), "a count");
    row.count = *count;
  }
  const auto text = [&](std::string_view column) {
    return columns_->has(column) ? std::string(cells[columns_->place(column)]) : std::string();
  };
  row.type = text("type");
  row.reduction = text("redop");
  row.out_of_place = side(cells, 0);
  row.in_place = side(cells, 1);
  tests_.tables.back().rows.push_back(std::move(row));
}

}  // namespace

CollectiveTests read_collective_tests(const std::filesystem::path& file) {
  LineReader lines(file);
  Reader reader(lines.file());
  std::string_view line;
  while (lines.next(line)) reader.take(line, lines.number());
  return reader.finish(lines.is_cut());
}

bool is_collective_tests(std::string_view first_bytes) {
  while (!first_bytes.empty()) {
    const std::size_t end = std::min(first_bytes.find('\n'), first_bytes.size());
    const std::string_view line = without_prefix(first_bytes.substr(0, end));
    if (head_in(line) || (line.find("# nThread ") != std::string_view::npos &&
                          line.find("minBytes") != std::string_view::npos))
      return true;
    first_bytes.remove_prefix(std::min(end + 1, first_bytes.size()));
  }
  return false;
}

}  // namespace orrery::observe
