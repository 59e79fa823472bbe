// SPDX-License-Identifier: Apache-2.0
// Reads the operator tables of NVIDIA's aiconfigurator: which kernels one measured row ran.
#include "sim/calibrate/log/measurement.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "hw_models/kernel/l2.h"
#include "sim/base/errors/check.h"
#include "sim/base/kernel_shapes.h"
#include "sim/calibrate/log/operator_csv.h"
#include "sim/calibrate/log/skewed_experts.h"

namespace orrery {

namespace {

using table::Csv;
using table::hash;

constexpr std::int64_t default_head_dim = 128;  // column dropped where it is constant

// The tables replay a CUDA graph three times to warm up and six times to measure; a graph holds
// five products, or one of any other kernel.
constexpr int kernel_replays = 9;
constexpr int gemm_replays = 45;

struct FileName {
  std::string gpu, operation, framework, format;
};

FileName parse_name(const std::filesystem::path& path) {
  std::string stem = path.stem().string();
  if (stem.ends_with("_subset")) stem.resize(stem.size() - 7);
  if (const auto at = stem.find("_training_kernels"); at != std::string::npos)
    return {
        .gpu = stem.substr(0, at), .operation = "training_kernels", .framework = "", .format = ""};
  for (const char* operation :
       {"gemm", "attn_prefill", "attn_decode", "moe", "mla_prefill", "mla_decode", "mla_bmm"}) {
    const std::string middle = std::string("_") + operation + "_";
    const auto at = stem.find(middle);
    if (at == std::string::npos) continue;
    const std::string rest = stem.substr(at + middle.size());
    const auto cut = rest.find('_');
    return {.gpu = stem.substr(0, at),
            .operation = operation,
            .framework = rest.substr(0, cut),
            .format = cut == std::string::npos ? "" : rest.substr(cut + 1)};
  }
  throw Error({.file = path.filename().string(),
               .path = "",
               .found = "file name \"" + stem + "\"",
               .expected = "<gpu>_<gemm|attn_prefill|attn_decode|moe|mla_prefill|mla_decode|"
                           "mla_bmm>_<framework>[_<format>].csv or <gpu>_training_kernels.csv",
               .nearest = ""});
}

std::string device_of_stem(const std::string& gpu) {
  if (gpu == "h100" || gpu == "h200" || gpu == "b200" || gpu == "b300") return gpu + "-sxm";
  return gpu;
}

// Weights that kernels of experts unpack: 4-bit integers with a 16-bit scale for each 32, MXFP4
// with a scale byte for each 32.
struct PackedWeights {
  std::string_view name;
  Format operands;
  double bits;
  Library library;
};
constexpr PackedWeights packed[] = {
    {"int4_wo", Format::bf16, 4.5, Library::marlin},
    {"w4a16_mxfp4", Format::bf16, 4.25, Library::packed_mxfp4},
    {"w4a8_mxfp4_mxfp8", Format::fp8, 4.25, Library::packed_mxfp4},
};

Format parse_format(const FileName& name) {
  for (const PackedWeights& p : packed)
    if (name.format == p.name && name.operation == "moe") return p.operands;
  if (name.format == "bfloat16" || name.format.empty()) return Format::bf16;
  if (name.format == "fp8" || name.format == "fp8_block") return Format::fp8;
  if (name.format == "nvfp4") return Format::fp4;
  throw Error({.file = name.gpu + "_" + name.operation,
               .path = "",
               .found = name.format,
               .expected = "bfloat16, fp8, fp8_block or nvfp4; of experts also int4_wo, "
                           "w4a16_mxfp4 or w4a8_mxfp4_mxfp8",
               .nearest = ""});
}

void add(OperatorRow& row, const Kernel& kernel) {
  row.kernels[static_cast<std::size_t>(row.count)] = kernel;
  ++row.count;
}

// Formats of 8 bits and fewer also time the conversion of the activations.
Kernel quantise(double elements, Format to, Library library, std::int64_t rows = 0) {
  return {.work = {.kind = WorkKind::quantise,
                   .input = to,
                   .output = to,
                   .m = rows,
                   .bytes_read = 2 * elements,
                   .bytes_written = bytes_per_element(to) * elements},
          .library = library};
}

// Serving frameworks' prefill also copies the new keys and values into the paged cache.
Kernel cache_write(std::int64_t elements, const OperatorTable& table) {
  const auto n = static_cast<double>(elements);
  return {.work = {.kind = WorkKind::quantise,
                   .input = table.format,
                   .output = table.format,
                   .bytes_read = 4 * n,
                   .bytes_written = 2 * bytes_per_element(table.format) * n},
          .library = table.library};
}

void read_gemm(const Csv& csv, OperatorTable& table) {
  for (std::size_t r = 0; r < csv.rows.size(); ++r) {
    const auto m = csv.count(r, "m"), n = csv.count(r, "n"), k = csv.count(r, "k");
    OperatorRow row{.kernels = {},
                    .count = 0,
                    .measured = milliseconds(csv.number(r, "latency_ms")),
                    .replays = gemm_replays,
                    .family = hash({n, k}),
                    .shape = fmt::format("{}x{}x{}", m, n, k)};
    if (table.converts)
      add(row, quantise(converted_elements(m, k), table.format, table.library, m));
    add(row, {.work = {.kind = WorkKind::gemm,
                       .input = table.format,
                       .output = Format::bf16,
                       .m = m,
                       .n = n,
                       .k = k},
              .library = table.library});
    table.rows.push_back(row);
  }
}

void read_attention(const Csv& csv, OperatorTable& table) {
  const bool decode = table.kind == WorkKind::attention_decode;
  for (std::size_t r = 0; r < csv.rows.size(); ++r) {
    const auto batch = csv.count(r, "batch_size"), heads = csv.count(r, "num_heads");
    const auto kv_heads = csv.count(r, "num_key_value_heads");
    const auto dim = csv.integer_or(r, "head_dim", default_head_dim);
    const auto length = decode ? csv.integer(r, "step") + 1 : csv.count(r, "isl");
    OperatorRow row{
        .kernels = {},
        .count = 0,
        .measured = milliseconds(csv.number(r, "latency_ms")),
        .replays = kernel_replays,
        .family = hash({heads, kv_heads, dim}),
        .shape = fmt::format("b{} s{} h{}/{} d{}", batch, length, heads, kv_heads, dim)};
    if (table.converts) add(row, cache_write(batch * length * kv_heads * dim, table));
    add(row, {.work = {.kind = table.kind,
                       .input = table.format,
                       .output = Format::bf16,
                       .batch = batch,
                       .heads = heads,
                       .kv_heads = kv_heads,
                       .q_length = decode ? 1 : length,
                       .kv_length = length,
                       .qk_dim = dim,
                       .v_dim = dim,
                       .window = csv.integer_or(r, "window_size", 0),
                       .causal = true},
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
    const auto batch = csv.count(r, "batch_size"), heads = csv.count(r, "num_heads");
    const auto length = decode ? csv.integer(r, "step") + 1 : csv.count(r, "isl");
    OperatorRow row{.kernels = {},
                    .count = 0,
                    .measured = milliseconds(csv.number(r, "latency_ms")),
                    .replays = kernel_replays,
                    .family = hash({batch, heads}),
                    .shape = fmt::format("mla b{} s{} h{}", batch, length, heads)};
    Work work{.kind = table.kind,
              .input = table.format,
              .output = Format::bf16,
              .batch = batch,
              .heads = heads,
              .kv_heads = decode ? 1 : heads,
              .q_length = decode ? 1 : length,
              .kv_length = length,
              .qk_dim = decode ? 576 : 192,
              .v_dim = decode ? 512 : 128,
              .causal = true};
    add(row, {.work = work, .library = table.library});
    table.rows.push_back(row);
  }
}

// Of ranks that share the experts, a balanced load gives each as many. What a skewed one gives to
// the rank that was timed is not said.
void read_moe(const Csv& csv, OperatorTable& table) {
  for (std::size_t r = 0; r < csv.rows.size(); ++r) {
    const bool skewed = csv.text_or(r, "distribution", "power_law_1.01") != "balanced";
    const auto ep = csv.count(r, "moe_ep_size");
    if (ep > 1 && skewed) continue;
    const auto tokens = csv.count(r, "num_tokens"), hidden = csv.count(r, "hidden_size");
    const auto tp = csv.count(r, "moe_tp_size"), topk = csv.count(r, "topk");
    const auto inter = csv.count(r, "inter_size") / tp;
    const auto all = csv.count(r, "num_experts"), experts = std::max<std::int64_t>(1, all / ep);
    const auto active = std::max<std::int64_t>(1, active_experts(all, tokens, topk, skewed) / ep);
    const std::int64_t routed_rows = std::max<std::int64_t>(1, tokens * topk / ep);
    const auto rows = std::max<std::int64_t>(1, routed_rows / active);
    OperatorRow row{.kernels = {},
                    .count = 0,
                    .measured = milliseconds(csv.number(r, "latency_ms")),
                    .replays = kernel_replays,
                    .family = hash({hidden, inter, experts}),
                    .shape = fmt::format("t{} h{} f{} top{}/{}", tokens, hidden, inter, topk, all) +
                             (ep > 1 ? fmt::format(" ep{}", ep) : "")};
    const Work up{.kind = WorkKind::grouped_gemm,
                  .input = table.format,
                  .output = Format::bf16,
                  .m = rows,
                  .n = 2 * inter,
                  .k = hidden,
                  .groups = active,
                  .pool = experts,
                  .stored_bits = table.stored_bits};
    Work down = up;
    down.n = hidden;
    down.k = inter;
    if (table.library == Library::trtllm_rows)
      add(row, {.work = listed_tokens(tokens, all, hidden), .library = table.library});
    add(row, {.work = up, .library = table.library});
    add(row, {.work = down, .library = table.library});
    const auto routed = static_cast<double>(routed_rows);
    add(row, {.work = {.kind = WorkKind::elementwise,
                       .bytes_read = routed * static_cast<double>(4 * inter),
                       .bytes_written = routed * static_cast<double>(2 * inter)},
              .library = Library::fused});
    add(row, {.work = {.kind = WorkKind::permute,
                       .bytes_read = routed * static_cast<double>(2 * hidden),
                       .bytes_written =
                           routed / static_cast<double>(topk) * static_cast<double>(2 * hidden)},
              .library = Library::fused});
    table.rows.push_back(row);
  }
}

// Products of DeepSeek's absorbed latents (heads of 128, a latent of 512): queries to the latent's
// width ("pre"), results back from it ("post"). Operands are quantised for each head and row.
void read_absorbed(const Csv& csv, OperatorTable& table) {
  constexpr std::int64_t head = 128, latent = 512;
  for (std::size_t r = 0; r < csv.rows.size(); ++r) {
    const auto heads = csv.count(r, "num_heads"), rows = csv.count(r, "num_tokens");
    const std::string name = csv.text_or(r, "op_name", "");
    const bool pre = name == "mla_gen_pre";
    if (!pre && name != "mla_gen_post") csv.fail(r, "op_name", "mla_gen_pre or mla_gen_post");
    OperatorRow row{.kernels = {},
                    .count = 0,
                    .measured = milliseconds(csv.number(r, "latency_ms")),
                    .replays = kernel_replays,
                    .family = hash({heads, pre ? 1 : 0}),
                    .shape = fmt::format("{} t{} h{}", pre ? "pre" : "post", rows, heads)};
    const double elements = static_cast<double>(rows) * static_cast<double>(heads) *
                            static_cast<double>(pre ? head : latent);
    add(row, quantise(elements, table.format, table.library));
    add(row, {.work = {.kind = WorkKind::gemm,
                       .input = table.format,
                       .output = Format::bf16,
                       .m = rows,
                       .n = pre ? latent : head,
                       .k = pre ? head : latent,
                       .groups = heads},
              .library = table.library});
    table.rows.push_back(row);
  }
}

void add_note(OperatorTable& table, const std::string& note) {
  table.note += (table.note.empty() ? "" : "; ") + note;
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
  add_note(table, fmt::format("{} rows under {:.0f} us time the host and are left out", dropped,
                              2.5e6 * floor));
}

// TensorRT-LLM's products of FP8 blocks on Hopper take 1.2 to 2 times as long for numbers of rows
// between 64, 128, 256 and so on to 2,048 as for the next of these (192 rows longer than 256),
// which no tile explains: its table was made with kernels chosen for powers of two.
void drop_between_powers(OperatorTable& table) {
  constexpr std::int64_t all_alike = 64;
  const auto between = [](const OperatorRow& row) {
    const auto m = static_cast<std::uint64_t>(row.kernels[row.count - 1].work.m);
    return m > all_alike && !std::has_single_bit(m);
  };
  const auto dropped = std::erase_if(table.rows, between);
  if (dropped > 0)
    add_note(table, fmt::format("{} rows between powers of two are left out", dropped));
}

// FP8 blocks on Blackwell in TensorRT-LLM before 1.3, "trtllm1" there.
bool rows_first(const FileName& name) {
  return name.framework == "trtllm1" && name.format == "fp8_block" && !name.gpu.starts_with("h");
}

// Vidur timed PyTorch's products for vLLM on A100. Block-scaled products are DeepGEMM's but for
// TensorRT-LLM's own and those that FlashInfer generates; other narrow ones are the serving
// framework's own (CUTLASS, FlashInfer) and slower than cuBLASLt, which training uses.
Library product_library(const FileName& name, Format format) {
  if (name.framework == "vidur") return Library::vllm_linear;
  if (format == Format::bf16) return Library::cublas;
  if (name.framework == "flashinfer") return Library::flashinfer_blocks;
  const bool own = name.framework.starts_with("trtllm") && format == Format::fp8;
  if (own && rows_first(name)) return Library::trtllm_rows;
  if (name.format == "fp8_block") return own ? Library::trtllm_blocks : Library::deepgemm;
  return own ? Library::trtllm_linear : Library::flashinfer;
}

// vLLM runs FlashAttention 3 on Hopper and FlashInfer on Blackwell; TensorRT-LLM and SGLang decode
// with kernels and numbers of splits of their own (TensorRT-LLM on Hopper with two; over latents in
// earlier releases, "trtllm1", with kernels of its own).
Library attention_library(const FileName& name, bool latent_decode) {
  const bool decode = name.operation.ends_with("decode");
  if (latent_decode && name.framework == "trtllm1") return Library::trtllm_latent;
  if (latent_decode) return name.framework == "sglang" ? Library::sglang_latent : Library::flashmla;
  if (decode && name.framework == "trtllm")
    return name.gpu.starts_with("h") ? Library::trtllm_xqa : Library::trtllm_attention;
  if (decode && name.framework == "sglang") return Library::sglang_attention;
  const bool latent = name.operation.starts_with("mla");
  return name.gpu.starts_with("h") && !latent ? Library::flash3 : Library::flashinfer;
}

// TensorRT-LLM's experts of FP8 blocks and of NVFP4 are products of its own: CUTLASS, in FP8 on
// Blackwell DeepGEMM; "trtllm1" is a release before 1.2 on Hopper, before 1.3 on Blackwell.
// SGLang's on Blackwell are those that DeepEP sends rows to, by DeepGEMM.
Library expert_library(const FileName& name) {
  if (name.framework == "sglang")
    return name.gpu.starts_with("h") ? Library::sglang_experts : Library::deepgemm;
  if (rows_first(name)) return Library::trtllm_rows;
  if (name.framework == "trtllm1") return Library::trtllm_experts;
  const bool blocks = name.format == "fp8_block" || name.format == "nvfp4";
  return name.framework == "trtllm" && blocks ? Library::trtllm_blocks : Library::flashinfer;
}

// TensorRT-LLM on Hopper leaves plain heads to its masked kernel, and with a 16-bit cache work of
// fewer blocks of 128 keys than a quarter of the processors (supportConfigCommon and
// mayHavePerfGain of its XQA; the tables show no such step in 8 bits).
bool runs_masked(const Work& work) {
  constexpr std::int64_t processors = 132;  // H100 SXM, H200
  if (work.heads == work.kv_heads || work.input == Format::fp8) return work.heads == work.kv_heads;
  const std::int64_t parts = std::max<std::int64_t>(1, (work.kv_length - 1) / 128);
  return 4 * work.kv_heads * work.batch * parts < processors;
}

// Rows of the two kernels apart.
std::vector<OperatorTable> hopper_kernels(const OperatorTable& both) {
  std::vector<OperatorTable> out;
  for (const Library library : {Library::trtllm_xqa, Library::trtllm_masked}) {
    OperatorTable& table = out.emplace_back(both);
    table.library = library;
    std::erase_if(table.rows, [&](const OperatorRow& row) {
      return runs_masked(row.kernels[0].work) != (library == Library::trtllm_masked);
    });
    for (OperatorRow& row : table.rows) row.kernels[0].library = library;
  }
  std::erase_if(out, [](const OperatorTable& table) { return table.rows.empty(); });
  return out;
}

}  // namespace

std::vector<OperatorTable> read_operator_tables(const std::filesystem::path& file) {
  const FileName name = parse_name(file);
  const Csv csv = table::read_csv(file);
  OperatorTable t;
  t.device = device_of_stem(name.gpu);
  if (name.operation == "training_kernels") return table::read_training_kernels(csv, t);
  t.format = parse_format(name);
  if (name.operation == "gemm") {
    t.kind = WorkKind::gemm;
    t.library = product_library(name, t.format);
    t.converts = t.format != Format::bf16 && t.library != Library::flashinfer_blocks;
    read_gemm(csv, t);
    if (t.library != Library::vllm_linear) drop_host_bound(t);  // those are times of kernels
    if (t.library == Library::trtllm_blocks && name.gpu.starts_with("h")) drop_between_powers(t);
    return {t};
  }
  if (name.operation == "moe") {
    t.kind = WorkKind::grouped_gemm;
    t.library = expert_library(name);
    for (const PackedWeights& p : packed)
      if (name.format == p.name) {
        t.library = p.library;
        t.stored_bits = p.bits;
      }
    read_moe(csv, t);
    return {t};
  }
  if (name.operation == "mla_bmm") {
    t.kind = WorkKind::gemm;
    t.library = Library::trtllm_absorbed;
    t.converts = true;
    read_absorbed(csv, t);
    return {t};
  }
  const bool prefill = name.operation.ends_with("prefill");
  const bool mla = name.operation.starts_with("mla");
  t.kind = prefill ? WorkKind::attention_forward : WorkKind::attention_decode;
  t.library = attention_library(name, mla && !prefill);
  if (!mla) {
    t.converts = prefill;
    read_attention(csv, t);
    if (t.library == Library::trtllm_xqa) return hopper_kernels(t);
    return {t};
  }
  OperatorTable narrow = t;
  narrow.format = Format::fp8;
  read_mla(csv, t);
  read_mla(csv, narrow);
  return {t, narrow};
}

void drop_cached(OperatorTable& table, Bytes capacity, BytesPerSecond bandwidth) {
  if (table.kind != WorkKind::attention_decode) return;
  constexpr Seconds noticed = microseconds(0.6);
  const auto cached = [&](const OperatorRow& row) {
    const Bytes bytes(minimum_bytes(row.kernels[0].work));
    return !row.cold && bytes > bandwidth * noticed && bytes < l2_for_replays * capacity;
  };
  const auto dropped = std::erase_if(table.rows, cached);
  if (dropped > 0)
    add_note(table, fmt::format("{} rows whose keys stay in L2 are left out", dropped));
}

bool goes_through_lists(Library library) {
  return library == Library::trtllm_blocks || library == Library::trtllm_rows ||
         library == Library::trtllm_experts;
}

bool is_held_out(const OperatorRow& row) { return row.family % 10 >= 7; }

}  // namespace orrery
