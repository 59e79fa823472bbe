// SPDX-License-Identifier: Apache-2.0
// Knows how fast kernels without a row to reduce run: add, SwiGLU, rotary, quantise, optimizer.
#include "elementwise_kernels.cuh"

using namespace bench;

namespace {

struct Case {
  std::string what;
  std::uint64_t count;  // of results, or of parameters; a multiple of 1024
};

template <class T>
std::vector<double> sample_of(const T* device, std::uint64_t count) {
  std::vector<T> raw(std::min<std::uint64_t>(count, 4096));
  CUDA_OK(cudaMemcpy(raw.data(), device, raw.size() * sizeof(T), cudaMemcpyDeviceToHost));
  std::vector<double> out;
  for (const T value : raw) out.push_back(value_of(value));
  return out;
}

class Elementwise {
 public:
  Elementwise(const Gpu& gpu, std::uint64_t largest)
      : gpu_(gpu), in_(gpu, arena_bytes(gpu, largest)), out_(gpu, arena_bytes(gpu, largest)) {}

  void run(const Case& c) {
    if (c.what == "rotary") return rotary(c);
    if (c.what.rfind("quantise", 0) == 0) return quantise(c);
    if (c.what.rfind("adam", 0) == 0) return adam(c);
    if (c.what == "gradient-norm") return gradient_norm(c);
    if (c.what.rfind("cast", 0) == 0) return cast(c);
    pointwise(c);
  }

 private:
  void print(const Case& c, const std::string& kind, const std::string& variant,
             const std::string& input, Traffic traffic, const Timing& timing,
             const RelativeError& error, double limit) {
    expect_error_below(error.value(), limit, c.what + " " + std::to_string(c.count));
    Line line("sample");
    line.text("part", "elementwise").text("kind", kind).text("library", "own");
    line.text("variant", variant).text("mode", "burst").text("input", input);
    line.text("shape", std::to_string(c.count)).number("count", c.count);
    line.number("bytes_read", static_cast<std::uint64_t>(traffic.read));
    line.number("bytes_written", static_cast<std::uint64_t>(traffic.written));
    line.number("vector_flop", static_cast<std::uint64_t>(traffic.flop));
    // How many nodes a call is, where it is not one kernel: sums are cleared or added first.
    const bool dynamic = variant == "per-tensor-dynamic";
    if (dynamic || variant == "gradient-norm") line.number("kernels", dynamic ? 3 : 2);
    add(line, timing).number("error", error.value()).print();
  }
  void start(Traffic traffic) {
    in_.start(static_cast<std::uint64_t>(traffic.bytes()));
    out_.start(static_cast<std::uint64_t>(traffic.bytes()));
  }
  template <class T>
  static uint4* vec(T* p) {
    return reinterpret_cast<uint4*>(p);
  }
  void once(const Enqueue& enqueue) const {
    enqueue(gpu_.stream, 0);
    CUDA_OK(cudaStreamSynchronize(gpu_.stream));
  }

  void pointwise(const Case& c) {
    const bool backward = c.what == "swiglu-backward", sum = c.what == "add";
    const auto n = static_cast<double>(c.count);
    const Traffic traffic{.read = (backward ? 6 : 4) * n,
                          .written = (backward ? 4 : 2) * n,
                          .flop = (backward ? 12
                                   : sum    ? 1
                                            : 6) *
                                  n};
    start(traffic);
    const auto a = in_.take<bf16>(c.count), b = in_.take<bf16>(c.count);
    const auto d = in_.take<bf16>(backward ? c.count : 0);
    const auto y = out_.take<bf16>(c.count), z = out_.take<bf16>(backward ? c.count : 0);
    const std::uint64_t vectors = c.count / 8;
    const unsigned grid = blocks_for(vectors, per_block);
    const Enqueue enqueue = [=](cudaStream_t s, int i) {
      if (backward)
        swiglu_backward<<<grid, threads, 0, s>>>(vec(a(i)), vec(b(i)), vec(d(i)), vec(y(i)),
                                                 vec(z(i)), vectors);
      else if (sum)
        add_kernel<<<grid, threads, 0, s>>>(vec(a(i)), vec(b(i)), vec(y(i)), vectors);
      else
        swiglu_forward<<<grid, threads, 0, s>>>(vec(a(i)), vec(b(i)), vec(y(i)), vectors);
    };
    const Timing timing = burst(gpu_, enqueue);
    once(enqueue);
    RelativeError error;
    const auto g = sample_of(a(0), c.count), u = sample_of(b(0), c.count);
    const auto found = sample_of(y(0), c.count);
    const auto slope = backward ? sample_of(d(0), c.count) : g;
    const auto second = backward ? sample_of(z(0), c.count) : g;
    for (std::size_t i = 0; i < g.size(); ++i) {
      const double s = 1 / (1 + std::exp(-g[i]));
      if (backward) {
        error.add(found[i], slope[i] * u[i] * s * (1 + g[i] * (1 - s)));
        error.add(second[i], slope[i] * g[i] * s);
      } else {
        error.add(found[i], sum ? g[i] + u[i] : g[i] * s * u[i]);
      }
    }
    print(c, "elementwise", c.what, "bf16", traffic, timing, error, 5e-3);
  }

  // `count`: of q and k together, 32 heads to 8; a token has 5120.
  void rotary(const Case& c) {
    const std::uint64_t tokens = std::max<std::uint64_t>(1, c.count / (40 * head_dim));
    const double n = static_cast<double>(tokens) * 40 * head_dim;
    const Traffic traffic{.read = 2 * n + 4.0 * head_dim * static_cast<double>(tokens),
                          .written = 2 * n,
                          .flop = 3 * n};
    start(traffic);
    const auto table = in_.take<float>(tokens * head_dim);
    const auto q = out_.take<bf16>(tokens * 32 * head_dim);
    const auto k = out_.take<bf16>(tokens * 8 * head_dim);
    // In place: other cases have left any bits here. A turn by such "cosines" grows the numbers
    // without end, so the table holds true ones.
    for (int i = 0; i < q.sets; ++i) {
      randomise(q(i), tokens * 32 * head_dim, 11);
      randomise(k(i), tokens * 8 * head_dim, 12);
    }
    const Buffer<float> turns(tokens * head_dim);
    std::vector<float> host(tokens * head_dim);
    for (std::size_t i = 0; i < host.size(); ++i) {
      const double angle =
          static_cast<double>(i / head_dim) * std::pow(1e4, -static_cast<double>(i % 64) / 64);
      host[i] = static_cast<float>(i % head_dim < 64 ? std::cos(angle) : std::sin(angle));
    }
    CUDA_OK(cudaMemcpy(turns.get(), host.data(), turns.bytes(), cudaMemcpyHostToDevice));
    CUDA_OK(cudaDeviceSynchronize());
    const Enqueue enqueue = [&](cudaStream_t s, int i) {
      rotary_kernel<<<static_cast<unsigned>(tokens), threads, 0, s>>>(vec(q(i)), vec(k(i)),
                                                                      turns.get(), 32, 8);
    };
    const Timing timing = burst(gpu_, enqueue);
    const bf16* last = q(0) + (tokens - 1) * 32 * head_dim;
    const auto before = sample_of(last, 32 * head_dim);
    once(enqueue);
    const auto after = sample_of(last, 32 * head_dim);
    const float* turn = host.data() + (tokens - 1) * head_dim;
    RelativeError error;
    for (std::size_t i = 0; i < before.size(); ++i) {
      const std::size_t in_head = i % head_dim, at = in_head % 64;
      const double other = in_head < 64 ? -before[i + 64] : before[i - 64];
      error.add(after[i], before[i] * turn[at] + other * turn[64 + at]);
    }
    print({c.what, tokens * 40 * head_dim}, "rotary", "in-place", "bf16", traffic, timing, error,
          5e-3);
  }

  void quantise(const Case& c) {
    const bool dynamic = c.what == "quantise-dynamic";
    const auto n = static_cast<double>(c.count);
    // The scale is known only after a whole pass: the second one reads again.
    const Traffic traffic{
        .read = (dynamic ? 4 : 2) * n, .written = n, .flop = (dynamic ? 3 : 1) * n};
    start(traffic);
    const auto x = in_.take<bf16>(c.count);
    const auto y = out_.take<__nv_fp8_e4m3>(c.count);
    const Buffer<float> high(1);
    const float four = 4.0f;  // the random numbers lie within 3.5
    CUDA_OK(cudaMemcpy(high.get(), &four, sizeof four, cudaMemcpyHostToDevice));
    const std::uint64_t vectors = c.count / 8;
    const unsigned grid = blocks_for(vectors, per_block);
    const Enqueue enqueue = [&](cudaStream_t s, int i) {
      if (dynamic) {
        CUDA_OK(cudaMemsetAsync(high.get(), 0, sizeof(float), s));
        magnitude_kernel<<<grid, threads, 0, s>>>(vec(x(i)), high.get(), vectors);
      }
      quantise_kernel<<<grid, threads, 0, s>>>(vec(x(i)), high.get(),
                                               reinterpret_cast<uint2*>(y(i)), vectors);
    };
    const Timing timing = burst(gpu_, enqueue);
    once(enqueue);
    const auto want = sample_of(x(0), c.count), found = sample_of(y(0), c.count);
    const double scale = high.to_host(0, 1)[0] / 448.0;
    RelativeError error;
    for (std::size_t i = 0; i < want.size(); ++i) error.add(found[i] * scale, want[i]);
    print(c, "quantise", dynamic ? "per-tensor-dynamic" : "per-tensor", "bf16", traffic, timing,
          error, 0.04);
  }

  void gradient_norm(const Case& c) {
    const auto n = static_cast<double>(c.count);
    const Traffic traffic{.read = 2 * n, .written = 4, .flop = 2 * n};
    start(traffic);
    const auto x = in_.take<bf16>(c.count);
    const Buffer<float> total(1);
    const std::uint64_t vectors = c.count / 8;
    const Enqueue enqueue = [&](cudaStream_t s, int i) {
      CUDA_OK(cudaMemsetAsync(total.get(), 0, sizeof(float), s));
      squares_kernel<<<blocks_for(vectors, per_block), threads, 0, s>>>(vec(x(i)), total.get(),
                                                                        vectors);
    };
    const Timing timing = burst(gpu_, enqueue);
    once(enqueue);
    RelativeError error;
    double sum = n;  // what normal numbers give, where there are too many to add here
    if (c.count <= 4096) {
      sum = 0;
      for (const double value : sample_of(x(0), c.count)) sum += value * value;
    }
    error.add(total.to_host(0, 1)[0], sum);
    print(c, "elementwise", c.what, "bf16", traffic, timing, error, c.count <= 4096 ? 1e-4 : 0.05);
  }

  void cast(const Case& c) {
    const bool up = c.what == "cast-up";
    const auto n = static_cast<double>(c.count);
    const Traffic traffic{.read = (up ? 2 : 4) * n, .written = (up ? 4 : 2) * n};
    start(traffic);
    const auto narrow = up ? in_.take<bf16>(c.count) : out_.take<bf16>(c.count);
    const auto wide = up ? out_.take<float>(c.count) : in_.take<float>(c.count);
    const std::uint64_t vectors = c.count / 4;
    const unsigned grid = blocks_for(vectors, per_block);
    const Enqueue enqueue = [=](cudaStream_t s, int i) {
      if (up)
        widen_kernel<<<grid, threads, 0, s>>>(reinterpret_cast<uint2*>(narrow(i)),
                                              reinterpret_cast<float4*>(wide(i)), vectors);
      else
        narrow_kernel<<<grid, threads, 0, s>>>(reinterpret_cast<float4*>(wide(i)),
                                               reinterpret_cast<uint2*>(narrow(i)), vectors);
    };
    const Timing timing = burst(gpu_, enqueue);
    once(enqueue);
    const auto a = sample_of(narrow(0), c.count), b = sample_of(wide(0), c.count);
    RelativeError error;
    for (std::size_t i = 0; i < a.size(); ++i) error.add(a[i], b[i]);
    print(c, "elementwise", c.what, up ? "bf16" : "fp32", traffic, timing, error, 5e-3);
  }

  void adam(const Case& c) {
    const std::string variant = c.what.substr(5);
    if (variant == "fp32-copy") return adam_of<float, bf16, true>(c, "fp32");
    if (variant == "fp32") return adam_of<float, float, false>(c, "fp32");
    adam_of<bf16, bf16, false>(c, "bf16");
  }

  template <class State, class Slope, bool Copy>
  void adam_of(const Case& c, const std::string& input) {
    const auto n = static_cast<double>(c.count);
    const Traffic traffic{.read = (3 * sizeof(State) + sizeof(Slope)) * n,
                          .written = (3 * sizeof(State) + (Copy ? 2 : 0)) * n,
                          .flop = 14 * n};
    start(traffic);
    const auto g = in_.take<Slope>(c.count);
    const auto p = out_.take<State>(c.count), m = out_.take<State>(c.count);
    const auto v = out_.take<State>(c.count);
    const auto copy = out_.take<bf16>(Copy ? c.count : 0);
    for (int i = 0; i < p.sets; ++i) {
      randomise(p(i), c.count, 21);
      randomise(m(i), c.count, 22, 0.1f);
      CUDA_OK(cudaMemset(v(i), 0, c.count * sizeof(State)));
    }
    CUDA_OK(cudaDeviceSynchronize());
    const std::uint64_t vectors = c.count / 4;
    const Enqueue enqueue = [=](cudaStream_t s, int i) {
      adam_kernel<State, Slope, Copy><<<blocks_for(vectors, threads * 2), threads, 0, s>>>(
          p(i), m(i), v(i), g(i), copy(i), Adam{}, vectors);
    };
    const Timing timing = burst(gpu_, enqueue);
    const auto x = sample_of(p(0), c.count), mean = sample_of(m(0), c.count);
    const auto square = sample_of(v(0), c.count), slope = sample_of(g(0), c.count);
    once(enqueue);
    const auto found = sample_of(p(0), c.count), found_mean = sample_of(m(0), c.count);
    const Adam a;
    RelativeError error;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double m1 = a.beta1 * mean[i] + (1 - a.beta1) * slope[i];
      const double v1 = a.beta2 * square[i] + (1 - a.beta2) * slope[i] * slope[i];
      const double step = m1 * a.correction1 / (std::sqrt(v1 * a.correction2) + a.epsilon);
      error.add(found[i], x[i] - a.rate * (step + a.decay * x[i]));
      error.add(found_mean[i], m1);
    }
    const double bytes = traffic.bytes() / n;
    print(c, "optimizer", "adamw-" + std::to_string(static_cast<int>(bytes)), input, traffic,
          timing, error, 5e-3);
  }

  const Gpu& gpu_;
  Arena in_, out_;
};

std::vector<Case> cases(bool quick) {
  std::vector<Case> out;
  // 1024 numbers to what makes some 4 GiB of traffic, times 8 each: from launch-bound on.
  const std::vector<std::uint64_t> counts =
      quick ? std::vector<std::uint64_t>{1 << 12, 1 << 24}
            : std::vector<std::uint64_t>{1 << 10, 1 << 14, 1 << 18, 1 << 20, 3 << 20, 1 << 22,
                                         6 << 20, 1 << 23, 3 << 22, 1 << 24, 3 << 23, 1 << 25,
                                         5 << 23, 1 << 26, 3 << 25, 1 << 27};
  for (const char* what : {"add", "swiglu", "swiglu-backward", "rotary", "quantise",
                           "quantise-dynamic", "gradient-norm", "cast-up", "cast-down"})
    for (const std::uint64_t count : counts) out.push_back({what, count});
  if (!quick) {
    out.push_back({"add", 1ull << 29});
    out.push_back({"swiglu", 1ull << 29});
    out.push_back({"gradient-norm", 1ull << 30});
  }
  for (const char* what : {"adam-fp32-copy", "adam-fp32", "adam-bf16"})
    for (const std::uint64_t count :
         quick ? std::vector<std::uint64_t>{1 << 20}
               : std::vector<std::uint64_t>{1 << 14, 1 << 20, 1 << 22, 3 << 21, 1 << 23, 3 << 22,
                                            1 << 24, 5 << 22, 1 << 25, 1 << 26, 1 << 27})
      out.push_back({what, count});
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = read_options(argc, argv);
  const Gpu gpu(options.gpu);
  print_conditions("elementwise", gpu);
  // The largest operands of one side: 2^29 numbers to add, 2^27 parameters of 14 bytes.
  Elementwise elementwise(gpu, 2ull << 30);
  for (const Case& c : cases(options.quick)) elementwise.run(c);
}
