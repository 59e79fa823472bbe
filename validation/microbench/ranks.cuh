// Knows how one process per GPU of this host runs the same program beside the others, with NCCL.
#pragma once

#include <cuda.h>
#include <nccl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.cuh"

namespace bench {

#define NCCL_OK(call) ::bench::nccl_ok((call), #call, __FILE__, __LINE__)
inline void nccl_ok(ncclResult_t result, const char* call, const char* file, int line) {
  if (result == ncclSuccess) return;
  std::fprintf(stderr, "%s:%d: %s: %s (%s)\n", file, line, call, ncclGetErrorString(result),
               ncclGetLastError(nullptr));
  std::exit(1);
}

inline constexpr int most_ranks = 64, most_values = 32;

// Memory that all ranks' processes see.
struct Shared {
  pthread_barrier_t barrier;
  ncclUniqueId id;
  double values[most_ranks][most_values];
  int gpus;
};

// Processes and not threads, as frameworks run: ranks of one process would reach into each other's
// buffers and wait for each other's allocations.
class Rank {
 public:
  Rank(Shared* shared, int index, int count) : index(index), count(count), shared_(shared) {}
  void wait() const { pthread_barrier_wait(&shared_->barrier); }
  // Every rank passes as many values; all get the greatest of each over ranks 0 .. among - 1.
  std::vector<double> greatest(const std::vector<double>& mine, int among) const {
    for (std::size_t i = 0; i < mine.size() && i < most_values; ++i)
      shared_->values[index][i] = mine[i];
    wait();
    std::vector<double> all = mine;
    for (std::size_t i = 0; i < mine.size() && i < most_values; ++i) {
      all[i] = shared_->values[0][i];
      for (int r = 1; r < among; ++r) all[i] = std::max(all[i], shared_->values[r][i]);
    }
    wait();
    return all;
  }
  double greatest(double mine, int among) const {
    return greatest(std::vector<double>{mine}, among)[0];
  }
  // A communicator of the first `members` ranks, null for the others. All ranks call it.
  ncclComm_t communicator(int members, int most_ctas = 0) const {
    if (index == 0) NCCL_OK(ncclGetUniqueId(&shared_->id));
    wait();
    ncclComm_t comm = nullptr;
    if (index < members) {
      ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
      if (most_ctas > 0) config.maxCTAs = most_ctas;
      NCCL_OK(ncclCommInitRankConfig(&comm, members, shared_->id, index, &config));
    }
    wait();
    return comm;
  }

  const int index, count;

 private:
  Shared* shared_;
};

inline Shared* shared_memory() {
  void* memory =
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory != MAP_FAILED) return static_cast<Shared*>(memory);
  std::perror("mmap");
  std::exit(1);
}

// Runs body(rank) in `count` processes. A rank that fails, or all that hang for `limit_s`, end the
// program: what was printed before stays valid. The caller must not have touched CUDA, which does
// not survive a fork.
inline void run_ranks(Shared* shared, int count, const std::function<void(const Rank&)>& body,
                      double limit_s = 150) {
  pthread_barrierattr_t attributes;
  pthread_barrierattr_init(&attributes);
  pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_barrier_init(&shared->barrier, &attributes, static_cast<unsigned>(count));
  std::fflush(stdout);
  std::vector<pid_t> running;
  const auto end_all = [&](const char* why) {
    std::fprintf(stderr, "%s\n", why);
    for (const pid_t pid : running) kill(pid, SIGKILL);
    std::exit(1);
  };
  for (int i = 0; i < count; ++i) {
    const pid_t pid = fork();
    if (pid < 0) end_all("fork failed");
    if (pid == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      body(Rank(shared, i, count));
      std::fflush(stdout);
      _exit(0);
    }
    running.push_back(pid);
  }
  const auto start = std::chrono::steady_clock::now();
  while (!running.empty()) {
    int status = 0;
    const pid_t ended = waitpid(-1, &status, WNOHANG);
    if (ended > 0) {
      running.erase(std::remove(running.begin(), running.end(), ended), running.end());
      if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) end_all("a rank failed");
      continue;
    }
    pause_ms(5);
    if (std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() > limit_s)
      end_all("the ranks hang");
  }
  pthread_barrier_destroy(&shared->barrier);
}

// GPUs of this host, at most `wanted` (0: all), counted in a process of its own.
inline int count_gpus(Shared* shared, int wanted) {
  run_ranks(shared, 1, [&](const Rank&) {
    if (cudaGetDeviceCount(&shared->gpus) != cudaSuccess) shared->gpus = 0;
  });
  return std::min(wanted > 0 ? wanted : shared->gpus, std::min(shared->gpus, most_ranks));
}

// The same for a program that asks about several GPUs: says so and ends where there is one.
inline int count_peers(Shared* shared, int wanted, const char* program) {
  const int gpus = count_gpus(shared, wanted);
  if (gpus >= 2) return gpus;
  std::fprintf(stderr, "%s: %d GPU, expected two or more\n", program, gpus);
  std::exit(2);
}

// NCCL's name and version, and whether its in-switch reductions were switched off: for conditions.
inline std::vector<std::pair<std::string, std::string>> nccl_libraries() {
  int version = 0;
  NCCL_OK(ncclGetVersion(&version));
  const char* nvls = std::getenv("NCCL_NVLS_ENABLE");
  return {{"nccl", library_version(static_cast<std::size_t>(version))},
          {"nvls", nvls != nullptr && std::string(nvls) == "0" ? "off" : "default"}};
}

// A graph of `calls` calls, and the thread blocks of its widest kernel: a collective's channels.
class WatchedGraph {
 public:
  WatchedGraph(cudaStream_t stream, int calls, const Enqueue& enqueue) {
    cudaGraph_t graph = nullptr;
    CUDA_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < calls; ++i) enqueue(stream, i);
    CUDA_OK(cudaStreamEndCapture(stream, &graph));
    blocks_ = widest(graph);
    CUDA_OK(cudaGraphInstantiate(&graph_, graph, 0));
    CUDA_OK(cudaGraphDestroy(graph));
    CUDA_OK(cudaGraphUpload(graph_, stream));
    CUDA_OK(cudaStreamSynchronize(stream));
  }
  ~WatchedGraph() { cudaGraphExecDestroy(graph_); }
  WatchedGraph(const WatchedGraph&) = delete;
  WatchedGraph& operator=(const WatchedGraph&) = delete;
  void launch(cudaStream_t stream) const { CUDA_OK(cudaGraphLaunch(graph_, stream)); }
  int blocks() const { return blocks_; }  // 0: the driver does not say

 private:
  // By the driver's own call: the runtime does not know kernels that a library loaded.
  static int widest(cudaGraph_t graph) {
    using Read = CUresult (*)(CUgraphNode, CUDA_KERNEL_NODE_PARAMS*);
    void* driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (driver == nullptr) return 0;
    const auto read = reinterpret_cast<Read>(dlsym(driver, "cuGraphKernelNodeGetParams_v2"));
    std::size_t count = 0;
    if (read == nullptr || cudaGraphGetNodes(graph, nullptr, &count) != cudaSuccess) return 0;
    std::vector<cudaGraphNode_t> nodes(count);
    if (cudaGraphGetNodes(graph, nodes.data(), &count) != cudaSuccess) return 0;
    unsigned most = 0;
    for (const cudaGraphNode_t node : nodes) {
      cudaGraphNodeType type{};
      if (cudaGraphNodeGetType(node, &type) != cudaSuccess || type != cudaGraphNodeTypeKernel)
        continue;
      CUDA_KERNEL_NODE_PARAMS kernel{};
      if (read(node, &kernel) == CUDA_SUCCESS) most = std::max(most, kernel.gridDimX);
    }
    return static_cast<int>(most);
  }

  cudaGraphExec_t graph_ = nullptr;
  int blocks_ = 0;
};

}  // namespace bench
