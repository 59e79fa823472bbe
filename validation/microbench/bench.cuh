// Knows how a microbenchmark times device work and writes what it measured as JSON lines.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "nvml.cuh"

namespace bench {

// A failed call ends the program: what was printed before stays valid, every line being whole.
#define CUDA_OK(call) ::bench::cuda_ok((call), #call, __FILE__, __LINE__)
inline void cuda_ok(cudaError_t error, const char* call, const char* file, int line) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s:%d: %s: %s\n", file, line, call, cudaGetErrorString(error));
  std::exit(1);
}

struct Options {
  bool quick = false;  // a small sample of the cases
  int gpu = 0;         // of this host, for programs of one GPU
  int gpus = 0;        // for programs of several; 0: all
};

inline Options read_options(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--quick") {
      options.quick = true;
    } else if (word == "--gpu" && i + 1 < argc) {
      options.gpu = std::atoi(argv[++i]);
    } else if (word == "--gpus" && i + 1 < argc) {
      options.gpus = std::atoi(argv[++i]);
    } else {
      std::fprintf(stderr, "%s: found \"%s\", expected --quick, --gpu N or --gpus N\n", argv[0],
                   word.c_str());
      std::exit(2);
    }
  }
  return options;
}

// One JSON object, written on one line. Keys keep their order.
class Line {
 public:
  explicit Line(const std::string& record) { text("record", record); }
  Line& text(const std::string& key, const std::string& value) {
    std::string safe;
    for (const char c : value) {
      if (c == '"' || c == '\\') safe += '\\';
      if (static_cast<unsigned char>(c) >= ' ') safe += c;
    }
    return raw(key, '"' + safe + '"');
  }
  template <class Number>
  Line& number(const std::string& key, Number value) {
    if constexpr (std::is_same_v<Number, bool>) {
      return raw(key, value ? "true" : "false");
    } else if constexpr (std::is_integral_v<Number>) {
      return raw(key, std::to_string(value));
    } else {
      char digits[32];
      std::snprintf(digits, sizeof digits, "%.6g", static_cast<double>(value));
      return raw(key, std::isfinite(value) ? digits : "null");
    }
  }
  Line& raw(const std::string& key, const std::string& json) {
    body_ += (body_.empty() ? "\"" : ",\"") + key + "\":" + json;
    return *this;
  }
  void print() const {
    std::printf("{%s}\n", body_.c_str());
    std::fflush(stdout);
  }

 private:
  std::string body_;
};

// The device that a program measures: its figures, its sensors, and a stream of its own.
struct Gpu {
  explicit Gpu(int index) : index(index), nvml(bus_id(index)) {
    CUDA_OK(cudaSetDevice(index));
    CUDA_OK(cudaGetDeviceProperties(&properties, index));
    CUDA_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  }
  static std::string bus_id(int index) {
    char text[64] = "";
    CUDA_OK(cudaDeviceGetPCIBusId(text, sizeof text, index));
    return text;
  }
  // Bytes over which operands rotate so that none is still in the cache when its turn comes.
  std::uint64_t cold_bytes() const {
    return 3ull * static_cast<std::uint64_t>(properties.l2CacheSize);
  }

  int index;
  cudaDeviceProp properties{};
  cudaStream_t stream = nullptr;
  Nvml nvml;
};

inline std::string version_text(int packed) {  // CUDA's own packing: 13000 is 13.0
  return std::to_string(packed / 1000) + "." + std::to_string(packed % 1000 / 10);
}

// The packing of CUDA's libraries and NCCL: 130002 is 13.0.2.
inline std::string library_version(std::size_t packed) {
  return std::to_string(packed / 10000) + "." + std::to_string(packed / 100 % 100) + "." +
         std::to_string(packed % 100);
}

inline std::string host_cpu() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
  return "";
}

// Prints the line that all samples after it belong to. `libraries`: name and version.
inline void print_conditions(const std::string& program, const Gpu& gpu,
                             const std::vector<std::pair<std::string, std::string>>& libraries = {},
                             int gpus = 1) {
  int runtime = 0;
  CUDA_OK(cudaRuntimeGetVersion(&runtime));
  std::string list;
  for (const auto& [name, version] : libraries)
    list += (list.empty() ? "\"" : ",\"") + name + "\":\"" + version + '"';
  char date[16] = "";
  const std::time_t now = std::time(nullptr);
  std::strftime(date, sizeof date, "%Y-%m-%d", std::gmtime(&now));
  Line("conditions")
      .text("program", program)
      .text("device", gpu.properties.name)
      .number("gpu", gpu.index)
      .number("gpus", gpus)
      .text("driver", gpu.nvml.driver())
      .text("cuda", version_text(runtime))
      .raw("libraries", "{" + list + "}")
      .number("power_limit_w", gpu.nvml.power_limit_w())
      .number("max_clock_mhz", gpu.nvml.max_clock_mhz())
      .number("memory_clock_mhz", gpu.nvml.memory_clock_mhz())
      .text("host", host_cpu())
      .text("date", date)
      .print();
}

struct Timing {
  double median_us = 0, low_us = 0, high_us = 0;  // of one call
  int repeats = 0, calls = 0;
  double clock_before_mhz = 0, clock_after_mhz = 0, power_w = 0, temperature_c = 0;
  double seconds = 0;  // a sustained timing: how long it ran
};

// Enqueues call number `i` on the stream; must be capturable. Numbers rise without end: take the
// operands of buffer i modulo the number of buffers.
using Enqueue = std::function<void(cudaStream_t stream, int i)>;

inline Line& add(Line& line, const Timing& t) {
  return line.number("time_us", t.median_us)
      .number("low_us", t.low_us)
      .number("high_us", t.high_us)
      .number("repeats", t.repeats)
      .number("calls", t.calls)
      .number("clock_before_mhz", t.clock_before_mhz)
      .number("clock_after_mhz", t.clock_after_mhz)
      .number("power_w", t.power_w)
      .number("temperature_c", t.temperature_c);
}

inline void summarise(std::vector<double> times, Timing& t) {
  std::sort(times.begin(), times.end());
  t.low_us = times.front();
  t.high_us = times.back();
  t.median_us = times[times.size() / 2];
  t.repeats = static_cast<int>(times.size());
}

// A CUDA graph of `calls` calls, ready to be launched.
class Graph {
 public:
  Graph(cudaStream_t stream, int calls, const Enqueue& enqueue) : calls_(calls) {
    cudaGraph_t graph = nullptr;
    CUDA_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < calls; ++i) enqueue(stream, i);
    CUDA_OK(cudaStreamEndCapture(stream, &graph));
    CUDA_OK(cudaGraphInstantiate(&graph_, graph, 0));
    CUDA_OK(cudaGraphDestroy(graph));
  }
  ~Graph() { cudaGraphExecDestroy(graph_); }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  void launch(cudaStream_t stream) const { CUDA_OK(cudaGraphLaunch(graph_, stream)); }
  int calls() const { return calls_; }

 private:
  cudaGraphExec_t graph_ = nullptr;
  int calls_;
};

class Events {
 public:
  Events() {
    CUDA_OK(cudaEventCreate(&begin_));
    CUDA_OK(cudaEventCreate(&end_));
  }
  ~Events() {
    cudaEventDestroy(begin_);
    cudaEventDestroy(end_);
  }
  Events(const Events&) = delete;
  Events& operator=(const Events&) = delete;
  void begin(cudaStream_t stream) { CUDA_OK(cudaEventRecord(begin_, stream)); }
  void end(cudaStream_t stream) { CUDA_OK(cudaEventRecord(end_, stream)); }
  double microseconds() {  // waits for the end
    float ms = 0;
    CUDA_OK(cudaEventSynchronize(end_));
    CUDA_OK(cudaEventElapsedTime(&ms, begin_, end_));
    return 1e3 * ms;
  }

 private:
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
};

inline void pause_ms(double ms) {
  std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(ms));
}

// Keeps one processor waiting, so that the host is ahead of the device when it ends.
static __global__ void spin(long long cycles) {
  const long long end = clock64() + cycles;
  while (clock64() < end) {
  }
}

// Microseconds of one call, by two calls after a warm one: to choose how many a burst holds.
inline double rough_us(const Gpu& gpu, const Enqueue& enqueue) {
  Events events;
  enqueue(gpu.stream, 0);
  CUDA_OK(cudaStreamSynchronize(gpu.stream));
  events.begin(gpu.stream);
  enqueue(gpu.stream, 1);
  enqueue(gpu.stream, 2);
  events.end(gpu.stream);
  return events.microseconds() / 2;
}

// Median of `repeats` replays of one graph of about `burst_ms` of calls. Pauses twice as long as a
// burst lie between: the power limit acts on means over some 50 ms and must not be reached. Small
// calls need `least_calls` of them, else the operands of all calls together stay in the cache.
inline Timing burst(const Gpu& gpu, const Enqueue& enqueue, int repeats = 5, double burst_ms = 5,
                    int least_calls = 2) {
  const double once = std::max(0.5, rough_us(gpu, enqueue));
  const int calls =
      std::max(least_calls, static_cast<int>(std::clamp(1e3 * burst_ms / once, 2.0, 400.0)));
  const Graph graph(gpu.stream, calls, enqueue);
  Timing t;
  t.calls = calls;
  Events events;
  graph.launch(gpu.stream);
  CUDA_OK(cudaStreamSynchronize(gpu.stream));
  t.clock_before_mhz = gpu.nvml.sm_clock_mhz();
  std::vector<double> times;
  for (int i = 0; i < repeats; ++i) {
    pause_ms(std::min(40.0, 2e-3 * once * calls));
    // The host launches the graph while the device waits: no launch time between the events. The
    // first calls after a pause find a cold instruction cache: one call runs untimed.
    spin<<<1, 1, 0, gpu.stream>>>(40'000 + 400ll * calls);
    enqueue(gpu.stream, calls + i);
    events.begin(gpu.stream);
    graph.launch(gpu.stream);
    events.end(gpu.stream);
    times.push_back(events.microseconds() / calls);
  }
  t.clock_after_mhz = gpu.nvml.sm_clock_mhz();
  t.power_w = gpu.nvml.power_w();
  t.temperature_c = gpu.nvml.temperature_c();
  summarise(times, t);
  return t;
}

// Runs without pause for `seconds`; time, power and clock are those of the second half, when the
// power limit and the cooling have settled.
inline Timing sustained(const Gpu& gpu, const Enqueue& enqueue, double seconds) {
  using Clock = std::chrono::steady_clock;
  const double once = std::max(0.5, rough_us(gpu, enqueue));
  const int calls = static_cast<int>(std::clamp(2e4 / once, 1.0, 2000.0));  // 20 ms a launch
  const Graph graph(gpu.stream, calls, enqueue);
  Timing t;
  t.calls = calls;
  t.clock_before_mhz = gpu.nvml.sm_clock_mhz();
  std::vector<double> times;
  double watts = 0, clock = 0, heat = 0;
  int readings = 0;
  Events events[2];
  const auto start = Clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
  // Two launches are always in the queue: the device never waits for the host.
  int launched = 0;
  const auto launch = [&] {
    Events& e = events[launched++ % 2];
    e.begin(gpu.stream);
    graph.launch(gpu.stream);
    e.end(gpu.stream);
  };
  launch();
  while (elapsed() < seconds) {
    launch();
    const double us = events[launched % 2].microseconds() / calls;
    if (elapsed() < seconds / 2) continue;
    times.push_back(us);
    watts += gpu.nvml.power_w();
    clock += gpu.nvml.sm_clock_mhz();
    heat += gpu.nvml.temperature_c();
    ++readings;
  }
  CUDA_OK(cudaStreamSynchronize(gpu.stream));
  t.seconds = elapsed();
  if (times.empty()) times.push_back(events[0].microseconds() / calls);
  summarise(times, t);
  const double n = std::max(1, readings);
  t.power_w = watts / n;
  t.clock_after_mhz = clock / n;
  t.temperature_c = heat / n;
  return t;
}

// Device memory that frees itself.
template <class T>
class Buffer {
 public:
  explicit Buffer(std::uint64_t count) : count_(count) {
    CUDA_OK(cudaMalloc(&data_, std::max<std::uint64_t>(1, count) * sizeof(T)));
  }
  ~Buffer() { cudaFree(data_); }
  Buffer(Buffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), count_(other.count_) {}
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  Buffer& operator=(Buffer&&) = delete;
  T* get() const { return static_cast<T*>(data_); }
  std::uint64_t count() const { return count_; }
  std::uint64_t bytes() const { return count_ * sizeof(T); }
  std::vector<T> to_host(std::uint64_t first, std::uint64_t count) const {
    std::vector<T> out(count);
    CUDA_OK(cudaMemcpy(out.data(), get() + first, count * sizeof(T), cudaMemcpyDeviceToHost));
    return out;
  }

 private:
  void* data_ = nullptr;
  std::uint64_t count_ = 0;
};

// |a - b| / |b| over a set of pairs; NaN anywhere gives NaN, which no check passes.
class RelativeError {
 public:
  void add(double found, double expected) {
    difference_ += (found - expected) * (found - expected);
    norm_ += expected * expected;
  }
  double value() const {
    return norm_ > 0 ? std::sqrt(difference_ / norm_) : std::sqrt(difference_);
  }

 private:
  double difference_ = 0, norm_ = 0;
};

// A wrong result is no measurement: says so and ends the program.
inline void expect_error_below(double error, double limit, const std::string& what) {
  if (error <= limit) return;
  std::fprintf(stderr, "%s: relative error %g, expected at most %g\n", what.c_str(), error, limit);
  std::exit(1);
}

}  // namespace bench
