// SPDX-License-Identifier: Apache-2.0
// Knows how fast copies run between host and device, and between peers, one way and both.
#include <memory>

#include "chain.cuh"
#include "random.cuh"

using namespace bench;

namespace {

// A stream, of the same device or of another, whose work lies between two points of a first one.
class Beside {
 public:
  Beside(int first, int other) {
    CUDA_OK(cudaSetDevice(other));
    CUDA_OK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    CUDA_OK(cudaEventCreateWithFlags(&end_, cudaEventDisableTiming));
    CUDA_OK(cudaSetDevice(first));
    CUDA_OK(cudaEventCreateWithFlags(&begin_, cudaEventDisableTiming));
  }
  ~Beside() {
    cudaEventDestroy(begin_);
    cudaEventDestroy(end_);
    cudaStreamDestroy(stream_);
  }
  Beside(const Beside&) = delete;
  Beside& operator=(const Beside&) = delete;
  cudaStream_t after(cudaStream_t first) const {
    CUDA_OK(cudaEventRecord(begin_, first));
    CUDA_OK(cudaStreamWaitEvent(stream_, begin_));
    return stream_;
  }
  void join(cudaStream_t first) const {
    CUDA_OK(cudaEventRecord(end_, stream_));
    CUDA_OK(cudaStreamWaitEvent(first, end_));
  }

 private:
  cudaStream_t stream_ = nullptr;
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
};

struct HostMemory {
  explicit HostMemory(std::uint64_t bytes, bool pinned) : pinned(pinned) {
    if (pinned)
      CUDA_OK(cudaMallocHost(&data, bytes));
    else
      data = std::aligned_alloc(4096, bytes);
    std::memset(data, 1, bytes);  // pages exist
  }
  ~HostMemory() {
    if (pinned)
      cudaFreeHost(data);
    else
      std::free(data);
  }
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;
  bool pinned;
  void* data = nullptr;
};

int calls_of(std::uint64_t bytes, double bytes_per_us) {
  // Some 5 ms, at most 60 copies: the queue must hold them all, with what orders two streams.
  return static_cast<int>(
      std::clamp(5e3 / (static_cast<double>(bytes) / bytes_per_us + 2), 1.0, 60.0));
}

void print_host(const std::string& variant, std::uint64_t bytes, const Timing& t) {
  Line line("sample");
  line.text("part", "link").text("kind", "host-copy").text("library", "own");
  line.text("variant", variant).text("mode", "stream").text("input", "int8");
  // What crosses the link towards the device counts as read, towards the host as written.
  const bool both = variant == "both", up = variant == "to-device";
  line.text("shape", std::to_string(bytes) + (both ? " B each way" : " B"));
  line.number("bytes", bytes);  // of one direction
  line.number("bytes_read", both || up ? bytes : 0);
  line.number("bytes_written", both || !up ? bytes : 0);
  line.number("vector_flop", 0);
  add(line, t).print();
}

// A copy there and back must bring what was sent.
void expect_round_trip(const Gpu& gpu, std::uint8_t* device) {
  const HostMemory out(4096, true), back(4096, true);
  for (int i = 0; i < 4096; ++i)
    static_cast<std::uint8_t*>(out.data)[i] = static_cast<std::uint8_t>(mix(unsigned(i)));
  CUDA_OK(cudaMemcpyAsync(device, out.data, 4096, cudaMemcpyHostToDevice, gpu.stream));
  CUDA_OK(cudaMemcpyAsync(back.data, device, 4096, cudaMemcpyDeviceToHost, gpu.stream));
  CUDA_OK(cudaStreamSynchronize(gpu.stream));
  expect_error_below(std::memcmp(out.data, back.data, 4096) == 0 ? 0 : 1, 0, "host round trip");
}

void host_copies(const Gpu& gpu, bool quick) {
  const std::uint64_t largest = quick ? 16ull << 20 : 1ull << 30;
  const Buffer<std::uint8_t> there(largest), back(largest);
  const HostMemory out(largest, true), in(largest, true);
  const HostMemory pageable(std::min<std::uint64_t>(largest, 256ull << 20), false);
  random_bytes(there.get(), largest, 1);
  random_bytes(back.get(), largest, 2);
  CUDA_OK(cudaDeviceSynchronize());
  expect_round_trip(gpu, there.get());
  CUDA_OK(cudaMemcpy(out.data, back.get(), largest, cudaMemcpyDeviceToHost));
  const Beside beside(gpu.index, gpu.index);
  for (std::uint64_t bytes = 4096; bytes <= largest; bytes *= quick ? 64 : 4) {
    const int calls = calls_of(bytes, 5e4);
    const auto up = [&](cudaStream_t s, int) {
      CUDA_OK(cudaMemcpyAsync(there.get(), out.data, bytes, cudaMemcpyHostToDevice, s));
    };
    const auto down = [&](cudaStream_t s, int) {
      CUDA_OK(cudaMemcpyAsync(in.data, back.get(), bytes, cudaMemcpyDeviceToHost, s));
    };
    // The two directions meet once for all copies: each is a queue of its own.
    const auto both = [&](cudaStream_t s, int) {
      const cudaStream_t other = beside.after(s);
      for (int i = 0; i < calls; ++i) up(s, i), down(other, i);
      beside.join(s);
    };
    print_host("to-device", bytes, chain(gpu, up, calls, 5));
    print_host("to-host", bytes, chain(gpu, down, calls, 5));
    Timing t = chain(gpu, both, 1, 5);
    for (double* us : {&t.median_us, &t.low_us, &t.high_us}) *us /= calls;
    t.calls = calls;
    print_host("both", bytes, t);
  }
  // Pageable copies block the host, which copies through a buffer of the driver.
  for (std::uint64_t bytes = 1ull << 20; bytes <= (quick ? 1ull << 20 : 256ull << 20); bytes *= 16)
    for (const bool up : {true, false}) {
      std::vector<double> times;
      for (int i = 0; i < 6; ++i) {
        const auto start = std::chrono::steady_clock::now();
        CUDA_OK(up ? cudaMemcpyAsync(there.get(), pageable.data, bytes, cudaMemcpyHostToDevice,
                                     gpu.stream)
                   : cudaMemcpyAsync(pageable.data, back.get(), bytes, cudaMemcpyDeviceToHost,
                                     gpu.stream));
        CUDA_OK(cudaStreamSynchronize(gpu.stream));
        const std::chrono::duration<double, std::micro> us =
            std::chrono::steady_clock::now() - start;
        if (i > 0) times.push_back(us.count());
      }
      std::sort(times.begin(), times.end());
      Line line("sample");
      line.text("part", "link").text("kind", "software").text("library", "own");
      line.text("variant", up ? "pageable-to-device" : "pageable-to-host");
      line.number("bytes", bytes).text("unit", "GB/s");
      line.number("value", 1e-3 * static_cast<double>(bytes) / times[times.size() / 2]).print();
    }
}

// Each thread has four loads from the peer in flight.
__global__ void read_peer(const uint4* from, uint4* to, std::uint64_t count) {
  const std::uint64_t stride = static_cast<std::uint64_t>(gridDim.x) * blockDim.x;
  for (std::uint64_t i = blockIdx.x * static_cast<std::uint64_t>(blockDim.x) + threadIdx.x;
       i < count; i += 4 * stride) {
    uint4 held[4];
#pragma unroll
    for (int j = 0; j < 4; ++j)
      if (i + j * stride < count) held[j] = from[i + j * stride];
#pragma unroll
    for (int j = 0; j < 4; ++j)
      if (i + j * stride < count) to[i + j * stride] = held[j];
  }
}

struct Peer {
  std::unique_ptr<Gpu> gpu;
  std::unique_ptr<Buffer<std::uint8_t>> out, in;
};

void print_peer(const std::string& variant, std::uint64_t bytes, int from, int to,
                const Timing& t) {
  Line line("sample");
  line.text("part", "link").text("kind", "peer-copy").text("library", "own");
  line.text("variant", variant).text("mode", "stream").text("input", "int8");
  line.text("shape",
            std::to_string(bytes) + " B " + std::to_string(from) + " to " + std::to_string(to));
  line.number("bytes", bytes).number("from", from).number("to", to);
  add(line, t).print();
}

void pair_copies(const Peer& a, const Peer& b, std::uint64_t bytes, bool both_ways) {
  const int from = a.gpu->index, to = b.gpu->index;
  const int calls = calls_of(bytes, 1.5e5);
  CUDA_OK(cudaSetDevice(from));
  const auto push = [&](cudaStream_t s, int) {
    CUDA_OK(cudaMemcpyPeerAsync(b.in->get(), to, a.out->get(), from, bytes, s));
  };
  print_peer("one-way", bytes, from, to, chain(*a.gpu, push, calls, 5));
  std::vector<std::uint8_t> sent = a.out->to_host(bytes - 4096, 4096);
  CUDA_OK(cudaSetDevice(to));
  const std::vector<std::uint8_t> found = b.in->to_host(bytes - 4096, 4096);
  expect_error_below(sent == found ? 0 : 1, 0, "copy to a peer");
  if (!both_ways) return;
  // Each device pushes, from a stream of its own.
  const Beside beside(from, to);
  const auto both = [&](cudaStream_t s, int) {
    const cudaStream_t other = beside.after(s);
    for (int i = 0; i < calls; ++i) {
      push(s, i);
      CUDA_OK(cudaMemcpyPeerAsync(a.in->get(), from, b.out->get(), to, bytes, other));
    }
    beside.join(s);
  };
  Timing t = chain(*a.gpu, both, 1, 5);
  for (double* us : {&t.median_us, &t.low_us, &t.high_us}) *us /= calls;
  t.calls = calls;
  print_peer("both", bytes, from, to, t);
  const unsigned blocks = static_cast<unsigned>(2 * a.gpu->properties.multiProcessorCount);
  const auto read = [&](cudaStream_t s, int) {
    read_peer<<<blocks, 512, 0, s>>>(reinterpret_cast<const uint4*>(b.out->get()),
                                     reinterpret_cast<uint4*>(a.in->get()), bytes / 16);
  };
  print_peer("kernel-read", bytes, to, from, chain(*a.gpu, read, calls, 5));
}

void peer_copies(int gpus, bool quick) {
  const std::uint64_t largest = quick ? 16ull << 20 : 256ull << 20;
  std::vector<Peer> peers(static_cast<std::size_t>(gpus));
  for (int i = 0; i < gpus; ++i) {
    Peer& peer = peers[static_cast<std::size_t>(i)];
    peer.gpu = std::make_unique<Gpu>(i);  // makes it the current device
    peer.out = std::make_unique<Buffer<std::uint8_t>>(largest);
    peer.in = std::make_unique<Buffer<std::uint8_t>>(largest);
    random_bytes(peer.out->get(), largest, static_cast<unsigned>(i));
    CUDA_OK(cudaDeviceSynchronize());
    for (int j = 0; j < gpus; ++j) {
      int possible = 0;
      if (j == i) continue;
      CUDA_OK(cudaDeviceCanAccessPeer(&possible, i, j));
      if (possible) CUDA_OK(cudaDeviceEnablePeerAccess(j, 0));
    }
  }
  for (int i = 0; i < gpus; ++i)
    for (int j = 0; j < gpus; ++j) {
      const auto &a = peers[static_cast<std::size_t>(i)], &b = peers[static_cast<std::size_t>(j)];
      int possible = 0;
      if (i == j) continue;
      CUDA_OK(cudaDeviceCanAccessPeer(&possible, i, j));
      if (!possible) continue;
      // All sizes for the first pair; for the others enough to see that they are alike.
      const bool first = i == 0 && j == 1;
      for (std::uint64_t bytes = first && !quick ? 4096 : largest; bytes <= largest; bytes *= 4)
        pair_copies(a, b, bytes, i < j);
    }
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = read_options(argc, argv);
  int gpus = 0;
  CUDA_OK(cudaGetDeviceCount(&gpus));
  if (options.gpus > 0) gpus = std::min(gpus, options.gpus);
  const Gpu gpu(options.gpu);
  print_conditions("link", gpu, {}, gpus);
  host_copies(gpu, options.quick);
  if (gpus > 1) peer_copies(gpus, options.quick);
}
