// SPDX-License-Identifier: Apache-2.0
// Knows how the shared names are written in catalogue files.
#include "sim/base/names.h"

#include "sim/base/work.h"

namespace orrery {
namespace {

constexpr std::array<std::string_view, format_count> format_text = {
    "fp64", "fp32", "tf32", "bf16", "fp16", "fp8", "fp6", "fp4", "int8"};
constexpr std::array<std::string_view, library_count> library_text = {"cublas",
                                                                      "deepgemm",
                                                                      "grouped-gemm",
                                                                      "sequential-gemm",
                                                                      "flash2",
                                                                      "flash3",
                                                                      "flash4",
                                                                      "cudnn-attention",
                                                                      "cudnn-split-keys",
                                                                      "triton-attention",
                                                                      "unfused-attention",
                                                                      "flashinfer",
                                                                      "trtllm-attention",
                                                                      "trtllm-xqa",
                                                                      "trtllm-masked",
                                                                      "sglang-attention",
                                                                      "flashmla",
                                                                      "sglang-latent",
                                                                      "fused",
                                                                      "inductor",
                                                                      "eager",
                                                                      "own"};
constexpr std::array<std::string_view, 6> kind_text = {"all-reduce", "all-gather", "reduce-scatter",
                                                       "all-to-all", "broadcast",  "send-receive"};
constexpr std::array<std::string_view, 10> algorithm_text = {
    "ring", "tree",   "nvls",         "nvls-tree",         "collnet",
    "pat",  "direct", "hierarchical", "custom-all-reduce", "deepep"};
constexpr std::array<std::string_view, 3> protocol_text = {"ll", "ll128", "simple"};
constexpr std::array<std::string_view, collective_library_count> collective_library_text = {
    "nccl", "rccl", "custom", "deepep", "xla", "vllm", "nvlink-two-sided", "nvlink-one-sided"};
constexpr std::array<std::string_view, work_kind_count> work_kind_text = {"gemm",
                                                                          "grouped-gemm",
                                                                          "attention-forward",
                                                                          "attention-backward",
                                                                          "attention-decode",
                                                                          "norm",
                                                                          "softmax",
                                                                          "elementwise",
                                                                          "rotary",
                                                                          "cross-entropy",
                                                                          "embedding",
                                                                          "router",
                                                                          "permute",
                                                                          "quantise",
                                                                          "optimizer",
                                                                          "copy",
                                                                          "host-copy"};

// The last entry must stand there: an array that is too short would be padded with empty text.
static_assert(library_text.back() == "own" && static_cast<int>(Library::own) == library_count - 1);
static_assert(format_text.back() == "int8" && static_cast<int>(Format::int8) == format_count - 1);
static_assert(work_kind_text.back() == "host-copy" &&
              static_cast<int>(WorkKind::host_copy) == work_kind_count - 1);
static_assert(static_cast<int>(CollectiveKind::send_receive) == 5 &&
              static_cast<int>(CollectiveAlgorithm::deepep) == 9 &&
              static_cast<int>(CollectiveProtocol::simple) == 2 &&
              static_cast<int>(CollectiveLibrary::nvlink_one_sided) ==
                  collective_library_count - 1);

template <class Enum, std::size_t n>
std::optional<Enum> find(const std::array<std::string_view, n>& texts, std::string_view text) {
  for (std::size_t i = 0; i < n; ++i)
    if (texts[i] == text) return static_cast<Enum>(i);
  return std::nullopt;
}

template <std::size_t n>
std::vector<std::string> list(const std::array<std::string_view, n>& texts) {
  return {texts.begin(), texts.end()};
}

}  // namespace

std::string_view to_text(Format f) { return format_text[static_cast<std::size_t>(f)]; }
std::string_view to_text(Library l) { return library_text[static_cast<std::size_t>(l)]; }
std::string_view to_text(CollectiveKind k) { return kind_text[static_cast<std::size_t>(k)]; }
std::string_view to_text(CollectiveAlgorithm a) {
  return algorithm_text[static_cast<std::size_t>(a)];
}
std::string_view to_text(CollectiveProtocol p) {
  return protocol_text[static_cast<std::size_t>(p)];
}
std::string_view to_text(CollectiveLibrary l) {
  return collective_library_text[static_cast<std::size_t>(l)];
}
std::string_view to_text(WorkKind k) { return work_kind_text[static_cast<std::size_t>(k)]; }

std::optional<Format> format_from(std::string_view text) { return find<Format>(format_text, text); }
std::optional<Library> library_from(std::string_view text) {
  return find<Library>(library_text, text);
}
std::optional<CollectiveKind> collective_kind_from(std::string_view text) {
  return find<CollectiveKind>(kind_text, text);
}
std::optional<CollectiveAlgorithm> collective_algorithm_from(std::string_view text) {
  return find<CollectiveAlgorithm>(algorithm_text, text);
}
std::optional<CollectiveProtocol> collective_protocol_from(std::string_view text) {
  return find<CollectiveProtocol>(protocol_text, text);
}
std::optional<CollectiveLibrary> collective_library_from(std::string_view text) {
  return find<CollectiveLibrary>(collective_library_text, text);
}
std::optional<WorkKind> work_kind_from(std::string_view text) {
  return find<WorkKind>(work_kind_text, text);
}

std::vector<std::string> format_names() { return list(format_text); }
std::vector<std::string> library_names() { return list(library_text); }
std::vector<std::string> work_kind_names() { return list(work_kind_text); }
std::vector<std::string> collective_kind_names() { return list(kind_text); }
std::vector<std::string> collective_algorithm_names() { return list(algorithm_text); }
std::vector<std::string> collective_protocol_names() { return list(protocol_text); }
std::vector<std::string> collective_library_names() { return list(collective_library_text); }

}  // namespace orrery
