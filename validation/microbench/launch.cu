// SPDX-License-Identifier: Apache-2.0
// Knows what a launch costs the device and the host, in streams and in graphs.
#include <utility>

#include "chain.cuh"

using namespace bench;

namespace {

// Runs for a number of clocks, 0: not at all. Its parameters are there to be passed.
template <class... Parameters>
__global__ void tiny_kernel(long long clocks, Parameters...) {
  const long long start = clock64();
  while (clock64() - start < clocks) {
  }
}

template <std::size_t... Index>
void launch_with(cudaStream_t stream, unsigned blocks, long long clocks,
                 std::index_sequence<Index...>) {
  tiny_kernel<<<blocks, 128, 0, stream>>>(clocks, static_cast<unsigned long long>(Index)...);
}
__global__ void empty_kernel() {}

struct Case {
  int parameters = 8, kernels = 200;
  unsigned blocks = 1;
  long long clocks = 0;
};

void launch_one(const Case& c, cudaStream_t stream) {
  if (c.parameters == 0)
    empty_kernel<<<c.blocks, 128, 0, stream>>>();
  else if (c.parameters == 8)
    launch_with(stream, c.blocks, c.clocks, std::make_index_sequence<7>());
  else
    launch_with(stream, c.blocks, c.clocks, std::make_index_sequence<31>());
}

void print(const std::string& variant, const Case& c, const Timing& t, double clock_mhz) {
  Line line("sample");
  line.text("part", "launch").text("kind", "launch").text("library", "own");
  line.text("variant", variant).text("mode", variant.rfind("graph", 0) == 0 ? "graph" : "stream");
  line.number("parameters", c.parameters).number("nodes", c.kernels).number("blocks", c.blocks);
  // What the kernel itself runs for: the rest of time_us is the launch.
  line.number("body_us", clock_mhz > 0 ? static_cast<double>(c.clocks) / clock_mhz : 0.0);
  add(line, t).print();
}

// Kernels of one chain depend on each other as all of a stream do.
void device_side(const Gpu& gpu, const Case& c) {
  const auto enqueue = [&](cudaStream_t stream, int) { launch_one(c, stream); };
  const Timing stream = chain(gpu, enqueue, c.kernels);
  // The plain variants are of one empty block: grids and bodies take time of their own.
  const char* what = c.clocks > 0 ? "-busy" : c.blocks > 1 ? "-grid" : "";
  print(std::string("stream") + what, c, stream, stream.clock_after_mhz);
  const Graph graph(gpu.stream, c.kernels, enqueue);
  Timing t = chain(
      gpu, [&](cudaStream_t s, int) { graph.launch(s); }, 1);
  for (double* us : {&t.median_us, &t.low_us, &t.high_us}) *us /= c.kernels;
  t.calls = c.kernels;
  print(std::string("graph") + what, c, t, t.clock_after_mhz);
}

// Median time that the host spends in `work`, whose queue `drain` empties beforehand.
Timing host_side(const Gpu& gpu, int calls, int repeats, const std::function<void()>& work) {
  using Clock = std::chrono::steady_clock;
  Timing t;
  t.calls = calls;
  t.clock_before_mhz = gpu.nvml.sm_clock_mhz();
  std::vector<double> times;
  for (int i = 0; i < repeats + 3; ++i) {
    CUDA_OK(cudaStreamSynchronize(gpu.stream));
    const auto start = Clock::now();
    for (int call = 0; call < calls; ++call) work();
    const double us = std::chrono::duration<double, std::micro>(Clock::now() - start).count();
    if (i >= 3) times.push_back(us / calls);
  }
  CUDA_OK(cudaStreamSynchronize(gpu.stream));
  t.clock_after_mhz = gpu.nvml.sm_clock_mhz();
  t.power_w = gpu.nvml.power_w();
  t.temperature_c = gpu.nvml.temperature_c();
  summarise(times, t);
  return t;
}

void host_costs(const Gpu& gpu, bool quick) {
  const int repeats = quick ? 5 : 25;
  for (const int parameters : {0, 8, 32}) {
    const Case c{.parameters = parameters, .kernels = 1};
    print("host", c, host_side(gpu, 100, repeats, [&] { launch_one(c, gpu.stream); }), 0);
  }
  for (const int nodes : {1, 10, 100, 1000}) {
    const Case c{.parameters = 8, .kernels = nodes};
    const Graph graph(gpu.stream, nodes, [&](cudaStream_t s, int) { launch_one(c, s); });
    // One launch at a time: a second would wait until the first has left the queue.
    print("graph-host", c, host_side(gpu, 1, repeats, [&] { graph.launch(gpu.stream); }), 0);
  }
  cudaEvent_t event = nullptr;
  CUDA_OK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  const Case none{.parameters = 0, .kernels = 0}, one{.parameters = 0, .kernels = 1};
  print("event-record", none,
        host_side(gpu, 100, repeats, [&] { CUDA_OK(cudaEventRecord(event, gpu.stream)); }), 0);
  // From a launch to the host's knowledge that the kernel is done.
  print("stream-sync", one,
        host_side(gpu, 20, repeats,
                  [&] {
                    launch_one(one, gpu.stream);
                    CUDA_OK(cudaStreamSynchronize(gpu.stream));
                  }),
        0);
  print("event-wait", one,
        host_side(gpu, 20, repeats,
                  [&] {
                    launch_one(one, gpu.stream);
                    CUDA_OK(cudaEventRecord(event, gpu.stream));
                    CUDA_OK(cudaEventSynchronize(event));
                  }),
        0);
  CUDA_OK(cudaEventDestroy(event));
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = read_options(argc, argv);
  const Gpu gpu(options.gpu);
  print_conditions("launch", gpu);
  const auto all = static_cast<unsigned>(gpu.properties.multiProcessorCount);
  // Chain lengths, parameters, grids, and kernels that run for some 5 us.
  std::vector<Case> cases{{}, {.parameters = 0}, {.parameters = 32}, {.blocks = all}};
  if (!options.quick) {
    for (const int kernels : {20, 50, 100, 400}) cases.push_back({.kernels = kernels});
    for (const int kernels : {20, 100}) {
      cases.push_back({.parameters = 0, .kernels = kernels});
      cases.push_back({.parameters = 32, .kernels = kernels});
      cases.push_back({.kernels = kernels, .blocks = all});
    }
    for (const long long clocks : {4000, 10000, 30000})
      for (const int kernels : {40, 160}) cases.push_back({.kernels = kernels, .clocks = clocks});
    for (const unsigned blocks : {all, 8 * all})
      cases.push_back({.blocks = blocks, .clocks = 10000});
    cases.push_back({.blocks = 8 * all});
  }
  for (const Case& c : cases) device_side(gpu, c);
  host_costs(gpu, options.quick);
}
