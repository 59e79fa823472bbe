// SPDX-License-Identifier: Apache-2.0
// Knows what products in FP8 blocks of 128 take and draw with DeepGEMM as TensorRT-LLM carries it:
// of experts by rows and by the tile that takes them, and of all rows. Hopper alone has them.
// Build, with F the folder flashinfer/data of FlashInfer's wheel (it has the same headers):
//   nvcc -O3 -std=c++20 -arch=sm_90a --expt-relaxed-constexpr -DFLASHINFER_VERSION='"0.7.4"'
//     -I$F/include -I$F/csrc/nv_internal
//     -I$F/csrc/nv_internal/include -I$F/csrc/nv_internal/tensorrt_llm -I$F/cutlass/include
//     -I$F/spdlog/include block_products.cu $F/csrc/nv_internal/cpp/common/{logger,stringUtils,
//     tllmException,envUtils}.cpp -lcuda -lnvrtc -ldl
// It compiles each kernel with nvcc when it runs: JIT_INCLUDE names
// $F/csrc/nv_internal/tensorrt_llm.
#include "../bench.cuh"
#include "../random.cuh"
#include "deep_gemm/fp8_gemm.cuh"

namespace {

using namespace bench;
namespace jit = deep_gemm::jit;

constexpr int block = 128;  // columns of one scale
constexpr int groups = 32;  // experts of one rank: DeepSeek-V3's 256 on 8
// Rows that descriptors of operands span: of the longest step that the program met, with all
// choices of its tokens. Tiles read past an expert's rows into others', and never past the buffer.
constexpr int most_rows = 8192 * 8;

struct Weight {
  int n, k;
};
constexpr Weight gate_up{4096, 7168}, down{7168, 2048};

// Operands of the largest case, filled once.
struct Operands {
  Buffer<__nv_fp8_e4m3> left, right;
  Buffer<float> left_scales, right_scales;
  Buffer<__nv_bfloat16> out;
  Operands(std::uint64_t rows, std::uint64_t widest, std::uint64_t weights)
      : left(rows * widest),
        right(weights),
        left_scales(rows * widest / block),
        right_scales(weights / block),
        out(rows * widest) {
    randomise(left.get(), left.count(), 1);
    randomise(right.get(), right.count(), 2);
    randomise(left_scales.get(), left_scales.count(), 3, 1e-3f);
    randomise(right_scales.get(), right_scales.count(), 4, 1e-3f);
    CUDA_OK(cudaDeviceSynchronize());
  }
};

// How a product was cut: rows of one expert in a tile, and whether the weight is the left operand.
struct Cut {
  const char* name;
  int expected_rows;  // what the choice of the tile goes by; 0: the rows of the step
  bool swapped = false;
};

class Product {
 public:
  Product(const Weight& w, int rows, const Cut& cut, deep_gemm::GemmType type, int processors)
      : w_(w), rows_(rows), type_(type), processors_(processors), swapped_(cut.swapped) {
    const int expected = cut.expected_rows > 0 ? cut.expected_rows : rows;
    const int count = type == deep_gemm::GemmType::Normal ? 1 : groups;
    config_ = cut.swapped
                  ? jit::get_best_gemm_config(w.n, expected, w.k, count, processors, false, true)
                  : jit::get_best_gemm_config(expected, w.n, w.k, count, processors);
    const auto [m, n, stages, multicast, bytes] = config_;
    kernel_ = reinterpret_cast<cudaKernel_t>(
        jit::getGlobalCompiler()
            .build(w.n, w.k, m, n, block, count, stages, multicast, type, cut.swapped)
            ->getKernel());
  }
  int tile() const { return swapped_ ? std::get<1>(config_) : std::get<0>(config_); }
  double flop() const { return 2.0 * rows_ * w_.n * w_.k; }

  void run(const Operands& o, std::int64_t* starts, std::uint64_t first_weight,
           cudaStream_t stream) const {
    const auto [m, n, stages, multicast, bytes] = config_;
    const auto size = static_cast<std::uint32_t>(bytes);
    auto* right = o.right.get() + first_weight;
    if (type_ == deep_gemm::GemmType::Normal) {
      deep_gemm::runGemm<int>(kernel_, o.left.get(), w_.k, right, w_.k, o.out.get(), w_.n,
                              o.left_scales.get(), o.right_scales.get(), rows_, w_.n, w_.k, m, n,
                              block, 1, multicast, type_, nullptr, stream, processors_, size);
      return;
    }
    const auto padded = static_cast<std::uint32_t>(
        deep_gemm::compute_padded_offset<std::int64_t, int>(most_rows, groups));
    if (swapped_)
      deep_gemm::runGemmSwapAB(kernel_, right, 0, o.left.get(), 0, o.out.get(), 0,
                               o.right_scales.get(), o.left_scales.get(), w_.n, most_rows, w_.k, m,
                               n, block, groups, multicast, type_, starts, stream, processors_,
                               size, padded);
    else
      deep_gemm::runGemm(kernel_, o.left.get(), 0, right, 0, o.out.get(), 0, o.left_scales.get(),
                         o.right_scales.get(), most_rows, w_.n, w_.k, m, n, block, groups,
                         multicast, type_, starts, stream, processors_, size, padded);
  }

 private:
  Weight w_;
  int rows_;
  deep_gemm::GemmType type_;
  int processors_;
  bool swapped_;
  jit::GemmConfig config_;
  cudaKernel_t kernel_ = nullptr;
};

// Where each expert's rows start when every one of `rows` goes to a random one.
std::vector<std::int64_t> random_starts(int rows) {
  std::vector<std::int64_t> counts(groups), starts(groups + 1);
  for (int i = 0; i < rows; ++i) ++counts[mix(static_cast<std::uint64_t>(i) + 7) % groups];
  for (int g = 0; g < groups; ++g) starts[g + 1] = starts[g] + counts[g];
  return starts;
}

void print(const Gpu& gpu, Line line, const Enqueue& enqueue, double seconds) {
  for (const bool burst_mode : {true, false}) {
    const Timing t = burst_mode ? burst(gpu, enqueue, 7) : sustained(gpu, enqueue, seconds);
    Line whole = line;
    whole.text("mode", burst_mode ? "burst" : "sustained");
    add(whole, t).print();
  }
}

// Both products of the experts of one rank, one after the other, in a step of `rows` tokens of
// eight ranks: each holds an eighth of the experts and a token has eight choices, so that as many
// come.
void ask_experts(const Gpu& gpu, const Operands& o, int rows, const Cut& cut, double seconds) {
  const auto starts = random_starts(rows);
  const Buffer<std::int64_t> device_starts(starts.size());
  CUDA_OK(cudaMemcpy(device_starts.get(), starts.data(), starts.size() * sizeof(std::int64_t),
                     cudaMemcpyHostToDevice));
  const auto type = deep_gemm::GemmType::GroupedWithOffset;
  const int processors = gpu.properties.multiProcessorCount;
  const Product first(gate_up, rows, cut, type, processors),
      second(down, rows, cut, type, processors);
  const std::uint64_t behind = static_cast<std::uint64_t>(groups) * gate_up.n * gate_up.k;
  Line line("sample");
  line.text("part", "block-products").text("kind", "grouped_gemm").text("library", "deepgemm");
  line.text("variant", cut.name).text("input", "fp8").number("rows", rows);
  line.number("groups", groups).number("tile", first.tile());
  line.number("flop", first.flop() + second.flop());
  print(
      gpu, line,
      [&](cudaStream_t stream, int) {
        first.run(o, device_starts.get(), 0, stream);
        second.run(o, device_starts.get(), behind, stream);
      },
      seconds);
}

void ask_all_rows(const Gpu& gpu, const Operands& o, int rows, const Weight& w, double seconds) {
  const Product p(w, rows, {.name = "", .expected_rows = 0}, deep_gemm::GemmType::Normal,
                  gpu.properties.multiProcessorCount);
  Line line("sample");
  line.text("part", "block-products").text("kind", "gemm").text("library", "deepgemm");
  line.text("variant", "").text("input", "fp8").number("m", rows).number("n", w.n);
  line.number("k", w.k).number("tile", p.tile()).number("flop", p.flop());
  print(
      gpu, line, [&](cudaStream_t stream, int) { p.run(o, nullptr, 0, stream); }, seconds);
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = read_options(argc, argv);
  const char* include = std::getenv("JIT_INCLUDE");
  if (include == nullptr) {
    std::fprintf(stderr,
                 "block_products: JIT_INCLUDE is not set, expected the folder of deep_gemm/\n");
    return 2;
  }
  jit::Compiler::setIncludeDirs({include});
  const Gpu gpu(options.gpu);
  print_conditions("block_products", gpu, {{"flashinfer", FLASHINFER_VERSION}});
  const double seconds = options.quick ? 0.4 : 2.5;
  const Operands o(most_rows + 2048, 7168,
                   static_cast<std::uint64_t>(groups) * (gate_up.n * gate_up.k + down.n * down.k));
  const Cut as_chosen{"", 0}, small{"tile 64", 64}, swapped{"swapped", 16, true};
  for (const int rows : {16, 32, 64, 128, 256, 512}) {
    ask_experts(gpu, o, rows, swapped, seconds);
    if (rows > 16) ask_experts(gpu, o, rows, small, seconds);
    if (rows > 64) ask_experts(gpu, o, rows, as_chosen, seconds);
  }
  for (const int rows : {1024, 2048, 4096, 8192, 16384, 32768})
    ask_experts(gpu, o, rows, as_chosen, seconds);
  for (const Weight w : {Weight{24576, 1536}, {7168, 16384}, {4096, 7168}, {7168, 2048}})
    ask_all_rows(gpu, o, 8192, w, seconds);
}
