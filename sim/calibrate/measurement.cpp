// Knows the operator tables of NVIDIA's aiconfigurator: which kernels one measured row ran.
#include "sim/calibrate/measurement.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <initializer_list>
#include <map>
#include <sstream>

#include "sim/base/check.h"

namespace orrery {

namespace {

constexpr std::int64_t default_head_dim = 128;  // column dropped where it is constant

struct Csv {
  std::string file;
  std::map<std::string, std::size_t> columns;
  std::vector<std::vector<std::string>> rows;

  double number(std::size_t row, const std::string& column) const {
    const auto found = columns.find(column);
    if (found == columns.end())
      throw Error({.file = file, .path = "", .found = "no column \"" + column + "\"",
                   .expected = "a table with that column", .nearest = ""});
    const std::string& text = rows[row][found->second];
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value))
      throw Error({.file = file, .path = fmt::format("row {}, {}", row + 1, column),
                   .found = "\"" + text + "\"", .expected = "a number", .nearest = ""});
    return value;
  }
  std::int64_t integer(std::size_t row, const std::string& column) const {
    return static_cast<std::int64_t>(std::llround(number(row, column)));
  }
  std::int64_t integer_or(std::size_t row, const std::string& column, std::int64_t other) const {
    return columns.contains(column) ? integer(row, column) : other;
  }
  std::string text_or(std::size_t row, const std::string& column, const std::string& other) const {
    const auto found = columns.find(column);
    return found == columns.end() ? other : rows[row][found->second];
  }
};

std::vector<std::string> split(const std::string& line, char separator) {
  std::vector<std::string> parts;
  std::stringstream stream(line);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

Csv read_csv(const std::filesystem::path& path) {
  std::ifstream stream(path);
  Csv csv{.file = path.filename().string(), .columns = {}, .rows = {}};
  if (!stream || std::filesystem::is_directory(path))
    throw Error({.file = path.string(), .path = "", .found = "nothing readable",
                 .expected = "a CSV file", .nearest = ""});
  for (std::string line; std::getline(stream, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.empty() || line.front() == '#') continue;
    auto cells = split(line, ',');
    if (csv.columns.empty()) {
      for (std::size_t c = 0; c < cells.size(); ++c) csv.columns[cells[c]] = c;
      continue;
    }
    if (cells.size() != csv.columns.size())
      throw Error({.file = csv.file, .path = fmt::format("row {}", csv.rows.size() + 1),
                   .found = fmt::format("{} cells", cells.size()),
                   .expected = fmt::format("{}", csv.columns.size()), .nearest = ""});
    csv.rows.push_back(std::move(cells));
  }
  return csv;
}

std::uint64_t hash(std::initializer_list<std::int64_t> values) {
  std::uint64_t h = 1469598103934665603ull;  // FNV-1a, then a finaliser so that low bits mix
  for (const std::int64_t v : values) {
    for (int byte = 0; byte < 8; ++byte) {
      h ^= (static_cast<std::uint64_t>(v) >> (8 * byte)) & 0xff;
      h *= 1099511628211ull;
    }
  }
  h ^= h >> 33;
  h *= 0xff51afd7ed558ccdull;
  return h ^ (h >> 33);
}

struct FileName {
  std::string gpu, operation, framework, format;
};

FileName parse_name(const std::filesystem::path& path) {
  std::string stem = path.stem().string();
  if (stem.ends_with("_subset")) stem.resize(stem.size() - 7);
  for (const char* operation :
       {"gemm", "attn_prefill", "attn_decode", "moe", "mla_prefill", "mla_decode"}) {
    const std::string middle = std::string("_") + operation + "_";
    const auto at = stem.find(middle);
    if (at == std::string::npos) continue;
    const std::string rest = stem.substr(at + middle.size());
    const auto cut = rest.find('_');
    return {.gpu = stem.substr(0, at), .operation = operation, .framework = rest.substr(0, cut),
            .format = cut == std::string::npos ? "" : rest.substr(cut + 1)};
  }
  throw Error({.file = path.filename().string(), .path = "", .found = "file name \"" + stem + "\"",
               .expected = "<gpu>_<gemm|attn_prefill|attn_decode|moe|mla_prefill|mla_decode>_"
                           "<framework>[_<format>].csv", .nearest = ""});
}

std::string catalogue_device(const std::string& gpu) {
  if (gpu == "h100" || gpu == "h200" || gpu == "b200" || gpu == "b300") return gpu + "-sxm";
  return gpu;
}

Format parse_format(const FileName& name) {
  if (name.format == "bfloat16" || name.format.empty()) return Format::bf16;
  if (name.format == "fp8" || name.format == "fp8_block") return Format::fp8;
  if (name.format == "nvfp4") return Format::fp4;
  throw Error({.file = name.gpu + "_" + name.operation, .path = "", .found = name.format,
               .expected = "bfloat16, fp8, fp8_block or nvfp4", .nearest = ""});
}

void add(OperatorRow& row, const Kernel& kernel) {
  row.kernels[static_cast<std::size_t>(row.count)] = kernel;
  ++row.count;
}

// Formats of 8 bits and fewer also time the conversion of the activations, one block of threads a
// row: a short row takes as long as one of 3,072 elements (H200: 123 us for 16,384 rows of 32 and
// of 1,024 elements alike, then 2 ps an element).
Kernel quantise(std::int64_t rows, std::int64_t row, Format to) {
  const double elements =
      static_cast<double>(rows) * static_cast<double>(std::max<std::int64_t>(row, 3072));
  return {.work = {.kind = WorkKind::quantise, .input = to, .output = to,
                   .bytes_read = 2 * elements, .bytes_written = bytes_per_element(to) * elements},
          .library = Library::eager};
}

void read_gemm(const Csv& csv, OperatorTable& table) {
  for (std::size_t r = 0; r < csv.rows.size(); ++r) {
    const auto m = csv.integer(r, "m"), n = csv.integer(r, "n"), k = csv.integer(r, "k");
    OperatorRow row{.kernels = {}, .count = 0,
                    .measured = milliseconds(csv.number(r, "latency_ms")),
                    .family = hash({n, k}), .shape = fmt::format("{}x{}x{}", m, n, k)};
    if (table.format != Format::bf16)
      add(row, quantise(m, k, table.format));
    add(row, {.work = {.kind = WorkKind::gemm, .input = table.format, .output = Format::bf16,
                       .m = m, .n = n, .k = k},
              .library = table.library});
    table.rows.push_back(row);
  }
}

void read_attention(const Csv& csv, OperatorTable& table) {
  const bool decode = table.kind == WorkKind::attention_decode;
  for (std::size_t r = 0; r < csv.rows.size(); ++r) {
    const auto batch = csv.integer(r, "batch_size"), heads = csv.integer(r, "num_heads");
    const auto kv_heads = csv.integer(r, "num_key_value_heads");
    const auto dim = csv.integer_or(r, "head_dim", default_head_dim);
    const auto length = decode ? csv.integer(r, "step") + 1 : csv.integer(r, "isl");
    OperatorRow row{.kernels = {}, .count = 0,
                    .measured = milliseconds(csv.number(r, "latency_ms")),
                    .family = hash({heads, kv_heads, dim}),
                    .shape = fmt::format("b{} s{} h{}/{} d{}", batch, length, heads, kv_heads, dim)};
    add(row, {.work = {.kind = table.kind, .input = table.format, .output = Format::bf16,
                       .batch = batch, .heads = heads, .kv_heads = kv_heads,
                       .q_length = decode ? 1 : length, .kv_length = length, .qk_dim = dim,
                       .v_dim = dim, .causal = true},
              .library = table.library});
    table.rows.push_back(row);
  }
}

// Multi-head latent attention: heads of 192 and 128 in prefill, one latent row of 576 (512 of them
// the values) in decode.
void read_mla(const Csv& csv, OperatorTable& table) {
  const bool decode = table.kind == WorkKind::attention_decode;
  const std::string wanted = table.format == Format::fp8 ? "fp8" : "bfloat16";
  for (std::size_t r = 0; r < csv.rows.size(); ++r) {
    if (csv.text_or(r, "kv_cache_dtype", wanted) != wanted) continue;
    const auto batch = csv.integer(r, "batch_size"), heads = csv.integer(r, "num_heads");
    const auto length = decode ? csv.integer(r, "step") + 1 : csv.integer(r, "isl");
    OperatorRow row{.kernels = {}, .count = 0,
                    .measured = milliseconds(csv.number(r, "latency_ms")),
                    .family = hash({batch, heads}),
                    .shape = fmt::format("mla b{} s{} h{}", batch, length, heads)};
    Work work{.kind = table.kind, .input = table.format, .output = Format::bf16, .batch = batch,
              .heads = heads, .kv_heads = decode ? 1 : heads, .q_length = decode ? 1 : length,
              .kv_length = length, .qk_dim = decode ? 576 : 192, .v_dim = decode ? 512 : 128,
              .causal = true};
    add(row, {.work = work, .library = table.library});
    table.rows.push_back(row);
  }
}

// Experts that get at least one of `routed` tokens, and tokens of each. aiconfigurator's skewed
// loads (power law with exponent 1.01) are close to log-uniform between 1 and 0.8 tokens.
std::int64_t active_experts(std::int64_t experts, std::int64_t tokens, std::int64_t topk,
                            bool skewed) {
  const double routed = static_cast<double>(tokens * topk), e = static_cast<double>(experts);
  if (!skewed) return std::min(experts, tokens * topk);
  const double top = std::max(2.0, 0.8 * static_cast<double>(tokens));
  const double mean = (top - 1) / std::log(top);
  double active = 0;
  for (std::int64_t i = 0; i < experts; ++i) {
    const double load = std::pow(top, (static_cast<double>(i) + 0.5) / e) / mean;
    active += std::min(1.0, load * routed / e);
  }
  return std::max<std::int64_t>(topk, std::llround(active));
}

void read_moe(const Csv& csv, OperatorTable& table) {
  for (std::size_t r = 0; r < csv.rows.size(); ++r) {
    if (csv.integer(r, "moe_ep_size") != 1) continue;
    const auto tokens = csv.integer(r, "num_tokens"), hidden = csv.integer(r, "hidden_size");
    const auto tp = csv.integer(r, "moe_tp_size"), topk = csv.integer(r, "topk");
    const auto inter = csv.integer(r, "inter_size") / tp;
    const auto experts = csv.integer(r, "num_experts");
    const bool skewed = csv.text_or(r, "distribution", "power_law_1.01") != "balanced";
    const auto active = active_experts(experts, tokens, topk, skewed);
    const auto rows = std::max<std::int64_t>(1, tokens * topk / active);
    OperatorRow row{.kernels = {}, .count = 0,
                    .measured = milliseconds(csv.number(r, "latency_ms")),
                    .family = hash({hidden, inter, experts}),
                    .shape = fmt::format("t{} h{} f{} top{}/{}", tokens, hidden, inter, topk,
                                         experts)};
    const Work up{.kind = WorkKind::grouped_gemm, .input = table.format, .output = Format::bf16,
                  .m = rows, .n = 2 * inter, .k = hidden, .groups = active};
    Work down = up;
    down.n = hidden;
    down.k = inter;
    add(row, {.work = up, .library = table.library});
    add(row, {.work = down, .library = table.library});
    const double routed = static_cast<double>(tokens * topk);
    add(row, {.work = {.kind = WorkKind::elementwise,
                       .bytes_read = routed * static_cast<double>(4 * inter),
                       .bytes_written = routed * static_cast<double>(2 * inter)},
              .library = Library::fused});
    add(row, {.work = {.kind = WorkKind::permute,
                       .bytes_read = routed * static_cast<double>(2 * hidden),
                       .bytes_written = static_cast<double>(tokens * 2 * hidden)},
              .library = Library::fused});
    table.rows.push_back(row);
  }
}

// Rows that time the host and not the device: one framework's block-scaled products take the same
// 55 to 280 us for every small shape, where the kernel's own floor is 3 to 5 us.
void drop_host_bound(OperatorTable& table) {
  std::vector<double> times;
  for (const OperatorRow& row : table.rows) times.push_back(row.measured.si());
  if (times.empty()) return;
  std::sort(times.begin(), times.end());
  const double floor = times[times.size() / 20];
  constexpr double device_floor = 30e-6;  // no device kernel starts and ends slower than this
  if (floor < device_floor) return;
  const auto bound = [floor](const OperatorRow& row) { return row.measured.si() < 2.5 * floor; };
  const auto dropped = std::erase_if(table.rows, bound);
  table.host_bound = true;
  table.note = fmt::format("{} rows under {:.0f} us time the host and are left out", dropped,
                           2.5e6 * floor);
}

}  // namespace

OperatorTable read_operator_table(const std::filesystem::path& file, Format mla_format) {
  const FileName name = parse_name(file);
  const bool hopper = name.gpu.starts_with("h");
  const Csv csv = read_csv(file);
  OperatorTable table;
  table.device = catalogue_device(name.gpu);
  table.format = parse_format(name);
  if (name.operation == "gemm") {
    table.kind = WorkKind::gemm;
    table.library = name.format == "fp8_block" ? Library::deepgemm : Library::cublas;
    read_gemm(csv, table);
    drop_host_bound(table);
  } else if (name.operation == "moe") {
    table.kind = WorkKind::grouped_gemm;
    // Narrow formats run in the serving frameworks' own kernels (Triton, TensorRT-LLM).
    table.library = table.format == Format::bf16 ? Library::grouped_gemm : Library::flashinfer;
    read_moe(csv, table);
  } else {
    const bool prefill = name.operation.ends_with("prefill");
    const bool mla = name.operation.starts_with("mla");
    table.kind = prefill ? WorkKind::attention_forward : WorkKind::attention_decode;
    table.library = hopper && !mla ? Library::flash3 : Library::flashinfer;
    if (mla) table.format = mla_format;
    mla ? read_mla(csv, table) : read_attention(csv, table);
  }
  return table;
}

bool is_held_out(const OperatorRow& row) { return row.family % 10 >= 7; }

}  // namespace orrery
