// SPDX-License-Identifier: Apache-2.0
// Knows how to time compute and NCCL collectives alone and while the other runs all along.
#include <cublasLt.h>

#include <memory>
#include <string>

#include "bench.cuh"
#include "random.cuh"
#include "ranks.cuh"

namespace {

using bench::Rank;
using Element = __nv_bfloat16;

#define LT_OK(call) lt_ok((call), #call, __LINE__)
void lt_ok(cublasStatus_t status, const char* call, int line) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  std::fprintf(stderr, "overlap.cu:%d: %s: %s\n", line, call, cublasLtGetStatusString(status));
  std::exit(1);
}

// bf16, n x n x n: what a layer of a large model multiplies for 8,192 tokens.
class Gemm {
 public:
  explicit Gemm(std::uint64_t n) : a_(n * n), b_(n * n), c_(n * n), workspace_(32 << 20) {
    LT_OK(cublasLtCreate(&lt_));
    LT_OK(cublasLtMatmulDescCreate(&operation_, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    const cublasOperation_t transposed = CUBLAS_OP_T;
    LT_OK(cublasLtMatmulDescSetAttribute(operation_, CUBLASLT_MATMUL_DESC_TRANSA, &transposed,
                                         sizeof transposed));
    LT_OK(cublasLtMatrixLayoutCreate(&layout_, CUDA_R_16BF, n, n, static_cast<std::int64_t>(n)));
    cublasLtMatmulPreference_t preference = nullptr;
    LT_OK(cublasLtMatmulPreferenceCreate(&preference));
    const std::size_t bytes = workspace_.bytes();
    LT_OK(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                               &bytes, sizeof bytes));
    cublasLtMatmulHeuristicResult_t found{};
    int count = 0;
    LT_OK(cublasLtMatmulAlgoGetHeuristic(lt_, operation_, layout_, layout_, layout_, layout_,
                                         preference, 1, &found, &count));
    if (count == 0) lt_ok(CUBLAS_STATUS_NOT_SUPPORTED, "heuristic", __LINE__);
    algorithm_ = found.algo;
    LT_OK(cublasLtMatmulPreferenceDestroy(preference));
    bench::randomise(a_.get(), a_.count(), 1);
    bench::randomise(b_.get(), b_.count(), 2);
    CUDA_OK(cudaDeviceSynchronize());
  }
  void enqueue(cudaStream_t stream) const {
    const float one = 1, zero = 0;
    LT_OK(cublasLtMatmul(lt_, operation_, &one, a_.get(), layout_, b_.get(), layout_, &zero,
                         c_.get(), layout_, c_.get(), layout_, &algorithm_, workspace_.get(),
                         workspace_.bytes(), stream));
  }

 private:
  cublasLtHandle_t lt_ = nullptr;
  cublasLtMatmulDesc_t operation_ = nullptr;
  cublasLtMatrixLayout_t layout_ = nullptr;
  cublasLtMatmulAlgo_t algorithm_{};
  bench::Buffer<Element> a_, b_, c_;
  bench::Buffer<std::uint8_t> workspace_;
};

__global__ void copy_kernel(const uint4* in, uint4* out, std::uint64_t count) {
  const std::uint64_t i = blockIdx.x * static_cast<std::uint64_t>(blockDim.x) + threadIdx.x;
  if (i < count) out[i] = in[i];
}

struct Member {
  const Rank& rank;
  const bench::Gpu& gpu;
  ncclComm_t comm = nullptr;
  Element *in = nullptr, *out = nullptr;
};

void collective(const Member& m, const std::string& kind, std::uint64_t bytes,
                cudaStream_t stream) {
  const std::size_t count = bytes / sizeof(Element);
  const std::size_t part = count / static_cast<std::size_t>(m.rank.count);
  if (kind == "all-reduce")
    NCCL_OK(ncclAllReduce(m.in, m.out, count, ncclBfloat16, ncclSum, m.comm, stream));
  else if (kind == "all-gather")
    NCCL_OK(ncclAllGather(m.in, m.out, part, ncclBfloat16, m.comm, stream));
  else
    NCCL_OK(ncclReduceScatter(m.in, m.out, part, ncclBfloat16, ncclSum, m.comm, stream));
}

// A chain of calls on a stream of its own: what is timed, or what runs beside it.
struct Chain {
  cudaStream_t stream;
  bench::Enqueue call;
  double once_us = 0;  // alone, of the slowest rank
  int calls = 0;
  std::unique_ptr<bench::WatchedGraph> graph;
};

void prepare(const Rank& rank, Chain& chain, double chain_us) {
  rank.wait();
  chain.call(chain.stream, 0);
  CUDA_OK(cudaStreamSynchronize(chain.stream));
  bench::Events events;
  rank.wait();
  events.begin(chain.stream);
  for (int i = 0; i < 3; ++i) chain.call(chain.stream, i);
  events.end(chain.stream);
  chain.once_us = std::max(1.0, rank.greatest(events.microseconds() / 3, rank.count));
  chain.calls = static_cast<int>(std::clamp(chain_us / chain.once_us, 4.0, 400.0));
  chain.graph = std::make_unique<bench::WatchedGraph>(chain.stream, chain.calls, chain.call);
  rank.wait();
}

constexpr int repeats = 5;

// Microseconds of one call of `timed`, of the slowest rank in each repeat. `beside`, if any, begins
// before it and is launched often enough to outlast it: doubled until it does on every rank. Empty
// if it never did.
std::vector<double> times(const Member& m, const Chain& timed, const Chain* beside) {
  const double timed_us = timed.once_us * timed.calls;
  int launches = 0;
  if (beside != nullptr)
    launches = 2 + static_cast<int>(1.5 * timed_us / (beside->once_us * beside->calls));
  bench::Events span;
  std::vector<double> found;
  for (int tries = 0; found.size() < repeats + 1;) {  // the first is not counted
    bench::pause_ms(std::min(25.0, 2e-3 * timed_us));
    m.rank.wait();
    for (int i = 0; i < launches; ++i) beside->graph->launch(beside->stream);
    if (beside != nullptr) bench::pause_ms(0.3);
    span.begin(timed.stream);
    timed.graph->launch(timed.stream);
    span.end(timed.stream);
    const double us = span.microseconds() / timed.calls;
    double uncovered = 0;
    if (beside != nullptr) {
      uncovered = cudaStreamQuery(beside->stream) == cudaErrorNotReady ? 0 : 1;
      CUDA_OK(cudaStreamSynchronize(beside->stream));
    }
    if (m.rank.greatest(uncovered, m.rank.count) > 0) {
      if (++tries == 6) return {};
      launches *= 2;
      continue;
    }
    found.push_back(us);
  }
  found.erase(found.begin());
  return m.rank.greatest(found, m.rank.count);
}

bench::Timing summary(const std::vector<double>& values, int calls) {
  bench::Timing t;
  bench::summarise(values, t);
  t.calls = calls;
  return t;
}

struct Work {  // compute, and its times alone
  std::string name;
  Chain chain;
  std::vector<double> alone;
};

void overlap(const Member& m, const Work& work, const Chain& chain, const std::string& kind,
             std::uint64_t bytes, int most_ctas, bool urgent, const std::vector<double>& alone) {
  const double before = m.gpu.nvml.sm_clock_mhz();
  const std::vector<double> compute = times(m, work.chain, &chain);
  const double after = m.gpu.nvml.sm_clock_mhz();
  const std::vector<double> other = times(m, chain, &work.chain);
  if (m.rank.index != 0) return;
  if (compute.empty() || other.empty()) {
    std::fprintf(stderr, "%s beside %s of %llu bytes: one always ended before the other\n",
                 work.name.c_str(), kind.c_str(), static_cast<unsigned long long>(bytes));
    return;
  }
  bench::Timing t = summary(compute, work.chain.calls);
  t.clock_before_mhz = before;
  t.clock_after_mhz = after;
  t.power_w = m.gpu.nvml.power_w();
  t.temperature_c = m.gpu.nvml.temperature_c();
  const bench::Timing beside = summary(other, chain.calls);
  bench::Line line("sample");
  line.text("part", "overlap")
      .text("kind", "overlap")
      .text("library", "nccl")
      .text("variant", work.name + " beside " + kind)
      .text("mode", "graph")
      .text("compute", work.name)
      .text("collective", kind)
      .text("priority", urgent ? "high" : "same")
      .number("ranks", m.rank.count)
      .number("bytes", bytes)
      .number("most_ctas", most_ctas)
      .number("compute_alone_us", summary(work.alone, 0).median_us)
      .number("compute_beside_us", t.median_us)
      .number("collective_alone_us", summary(alone, 0).median_us)
      .number("collective_beside_us", beside.median_us)
      .number("collective_beside_low_us", beside.low_us)
      .number("collective_beside_high_us", beside.high_us);
  if (chain.graph->blocks() > 0) line.number("sms", chain.graph->blocks());
  bench::add(line, t);
  line.print();
}

constexpr double chain_us = 10000;

// All cases of one communicator; `urgent`: its stream goes before the compute's.
void run_communicator(const Rank& rank, const bench::Gpu& gpu, const std::vector<Work>& works,
                      Element* in, Element* out, int most_ctas, bool urgent, bool quick) {
  cudaStream_t side = nullptr;
  int least = 0, greatest = 0;
  CUDA_OK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  CUDA_OK(cudaStreamCreateWithPriority(&side, cudaStreamNonBlocking, urgent ? greatest : least));
  const Member m{.rank = rank,
                 .gpu = gpu,
                 .comm = rank.communicator(rank.count, most_ctas),
                 .in = in,
                 .out = out};
  for (const std::uint64_t bytes : {25ull << 20, 200ull << 20}) {
    if ((urgent || quick) && bytes > (100ull << 20)) continue;
    for (const std::string kind : {"all-reduce", "all-gather", "reduce-scatter"}) {
      if (quick && kind != "all-gather") continue;
      Chain chain{.stream = side,
                  .call = [&](cudaStream_t s, int) { collective(m, kind, bytes, s); }};
      prepare(rank, chain, quick ? 1000 : chain_us);
      const std::vector<double> alone = times(m, chain, nullptr);
      for (const Work& work : works) overlap(m, work, chain, kind, bytes, most_ctas, urgent, alone);
      rank.wait();
    }
  }
  CUDA_OK(cudaStreamDestroy(side));
  NCCL_OK(ncclCommDestroy(m.comm));
  rank.wait();
}

void run_rank(const Rank& rank, bool quick) {
  const bench::Gpu gpu(rank.index);
  if (rank.index == 0) {
    auto libraries = bench::nccl_libraries();
    libraries.emplace_back("cublasLt", bench::library_version(cublasLtGetVersion()));
    bench::print_conditions("overlap", gpu, libraries, rank.count);
  }
  constexpr std::uint64_t most = (200ull << 20) / sizeof(Element);
  constexpr std::uint64_t copied = (256ull << 20) / sizeof(uint4);
  const bench::Buffer<Element> in(most), out(most), from(copied * 8), to(copied * 8);
  bench::randomise(in.get(), most, static_cast<std::uint64_t>(rank.index + 1));
  bench::randomise(from.get(), from.count(), 7);
  const Gemm gemm(quick ? 2048 : 8192);
  const Member alone{.rank = rank, .gpu = gpu};
  std::vector<Work> works(2);
  works[0].name = "gemm";
  works[0].chain.call = [&](cudaStream_t s, int) { gemm.enqueue(s); };
  works[1].name = "copy";
  works[1].chain.call = [&](cudaStream_t s, int) {
    copy_kernel<<<static_cast<unsigned>(copied / 256), 256, 0, s>>>(
        reinterpret_cast<const uint4*>(from.get()), reinterpret_cast<uint4*>(to.get()), copied);
    CUDA_OK(cudaGetLastError());
  };
  for (Work& work : works) {
    work.chain.stream = gpu.stream;
    prepare(rank, work.chain, quick ? 1000 : chain_us);
    work.alone = times(alone, work.chain, nullptr);
  }
  for (const int ctas : {0, 4, 8, 16}) {
    if (quick && ctas > 0) break;
    run_communicator(rank, gpu, works, in.get(), out.get(), ctas, false, quick);
  }
  if (!quick) run_communicator(rank, gpu, works, in.get(), out.get(), 0, true, quick);
}

}  // namespace

int main(int argc, char** argv) {
  const bench::Options options = bench::read_options(argc, argv);
  bench::Shared* shared = bench::shared_memory();
  const int gpus = bench::count_peers(shared, options.gpus, argv[0]);
  bench::run_ranks(shared, gpus, [&](const Rank& rank) { run_rank(rank, options.quick); });
  return 0;
}
