// SPDX-License-Identifier: Apache-2.0
// Knows how fast kernels that reduce along rows run: norms, softmax, cross-entropy, quantise.
#include "row_kernels.cuh"

using namespace bench;

namespace {

// Calls visit.operator()<Warps>() with the least block that holds a row.
template <class Visit>
void with_warps(int width, Visit visit) {
  if (width <= 1024) return visit.template operator()<1>();
  if (width <= 2048) return visit.template operator()<2>();
  if (width <= 4096) return visit.template operator()<4>();
  if (width <= 8192) return visit.template operator()<8>();
  visit.template operator()<16>();
}

struct Case {
  std::string kind, variant;
  int rows, width;
};

std::vector<double> host_row(const bf16* x, std::uint64_t row, int width) {
  std::vector<bf16> raw(static_cast<std::size_t>(width));
  CUDA_OK(cudaMemcpy(raw.data(), x + row * static_cast<unsigned>(width), raw.size() * sizeof(bf16),
                     cudaMemcpyDeviceToHost));
  std::vector<double> out;
  for (const bf16 value : raw) out.push_back(value_of(value));
  return out;
}

class Rows {
 public:
  Rows(const Gpu& gpu, std::uint64_t largest)
      : gpu_(gpu), in_(gpu, arena_bytes(gpu, largest)), out_(gpu, arena_bytes(gpu, largest)) {}

  void run(const Case& c) {
    if (c.variant == "rms-backward") return backward(c);
    if (c.kind == "norm") return norm(c);
    if (c.kind == "quantise") return quantise(c);
    exponents(c);
  }

 private:
  double numbers(const Case& c) const { return static_cast<double>(c.rows) * c.width; }
  std::uint64_t count(const Case& c) const {
    return static_cast<std::uint64_t>(c.rows) * static_cast<unsigned>(c.width);
  }

  // Times a case and checks its first, second and last row: `expected` gives the row that the
  // inputs of call 0 should give, `found` the one that they gave.
  template <class Expected, class Found>
  void time(const Case& c, Traffic traffic, const Enqueue& enqueue, double limit, Expected expected,
            Found found) {
    const Timing timing = burst(gpu_, enqueue);
    enqueue(gpu_.stream, 0);
    CUDA_OK(cudaStreamSynchronize(gpu_.stream));
    RelativeError error;
    for (const int r : {0, 1 % c.rows, c.rows - 1}) {
      const std::vector<double> want = expected(r), have = found(r);
      for (std::size_t i = 0; i < want.size(); ++i) error.add(have[i], want[i]);
    }
    const std::string shape = std::to_string(c.rows) + "x" + std::to_string(c.width);
    expect_error_below(error.value(), limit, c.kind + " " + c.variant + " " + shape);
    Line line = memory_line("rows", c.kind, c.variant, shape, traffic);
    line.number("rows", c.rows).number("width", c.width);
    if (c.variant == "rms-backward") line.number("kernels", 2);  // one more adds the shares
    add(line, timing).number("error", error.value()).print();
  }

  void norm(const Case& c) {
    const bool residual = c.variant == "rms-residual", layer = c.variant == "layer";
    const double n = numbers(c);
    Traffic traffic{.read = (residual ? 4 : 2) * n + (layer ? 4.0 : 2.0) * c.width,
                    .written = (residual ? 4 : 2) * n,
                    .flop = (layer      ? 7
                             : residual ? 5
                                        : 4) *
                            n};
    in_.start(static_cast<std::uint64_t>(traffic.bytes()));
    out_.start(static_cast<std::uint64_t>(traffic.bytes()));
    const auto x = in_.take<bf16>(count(c)), r = in_.take<bf16>(residual ? count(c) : 0);
    const auto w = in_.take<bf16>(static_cast<unsigned>(c.width)),
               b = in_.take<bf16>(static_cast<unsigned>(c.width));
    const auto y = out_.take<bf16>(count(c)), sum = out_.take<bf16>(residual ? count(c) : 0);
    const auto grid = static_cast<unsigned>(c.rows);
    const auto enqueue = [=](cudaStream_t s, int i) {
      with_warps(c.width, [&]<int Warps>() {
        if (layer)
          layer_forward<Warps><<<grid, Warps * 32, 0, s>>>(x(i), w(i), b(i), y(i), c.width);
        else if (residual)
          rms_forward<Warps, true>
              <<<grid, Warps * 32, 0, s>>>(x(i), r(i), w(i), sum(i), y(i), c.width);
        else
          rms_forward<Warps, false>
              <<<grid, Warps * 32, 0, s>>>(x(i), nullptr, w(i), nullptr, y(i), c.width);
      });
    };
    const auto expected = [&](int row) {
      const auto at = static_cast<unsigned>(row);
      std::vector<double> v = host_row(x(0), at, c.width);
      const std::vector<double> weight = host_row(w(0), 0, c.width);
      const std::vector<double> bias = host_row(b(0), 0, c.width);
      if (residual) {
        const std::vector<double> more = host_row(r(0), at, c.width);
        for (std::size_t i = 0; i < v.size(); ++i) v[i] += more[i];
      }
      double mean = 0, squares = 0;
      if (layer)
        for (const double value : v) mean += value / c.width;
      for (const double value : v) squares += (value - mean) * (value - mean) / c.width;
      for (std::size_t i = 0; i < v.size(); ++i)
        v[i] = (v[i] - mean) / std::sqrt(squares + 1e-6) * weight[i] + (layer ? bias[i] : 0);
      return v;
    };
    time(c, traffic, enqueue, 5e-3, expected,
         [&](int row) { return host_row(y(0), static_cast<unsigned>(row), c.width); });
  }

  void backward(const Case& c) {
    const double n = numbers(c);
    const Traffic traffic{
        .read = 4 * n + 2.0 * c.width, .written = 2 * n + 2.0 * c.width, .flop = 11 * n};
    in_.start(static_cast<std::uint64_t>(traffic.bytes()));
    out_.start(static_cast<std::uint64_t>(traffic.bytes()));
    const auto x = in_.take<bf16>(count(c)), dy = in_.take<bf16>(count(c));
    const auto w = in_.take<bf16>(static_cast<unsigned>(c.width));
    const auto dx = out_.take<bf16>(count(c));
    const auto dw = out_.take<bf16>(static_cast<unsigned>(c.width));
    // As many blocks as are resident at once, so that few shares are left to add.
    int resident = 0;
    with_warps(c.width, [&]<int Warps>() {
      CUDA_OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, rms_backward<Warps>,
                                                            Warps * 32, 0));
    });
    const int grid = std::min(c.rows, gpu_.properties.multiProcessorCount * std::max(1, resident));
    const Buffer<float> shares(static_cast<std::uint64_t>(grid) * static_cast<unsigned>(c.width));
    const Enqueue enqueue = [&](cudaStream_t s, int i) {
      with_warps(c.width, [&]<int Warps>() {
        rms_backward<Warps><<<static_cast<unsigned>(grid), Warps * 32, 0, s>>>(
            x(i), dy(i), w(i), dx(i), shares.get(), c.rows, c.width);
      });
      sum_columns<<<static_cast<unsigned>(c.width / 32), dim3(32, 32), 0, s>>>(shares.get(), dw(i),
                                                                               grid, c.width);
    };
    const auto expected = [&](int row) {
      const auto at = static_cast<unsigned>(row);
      const std::vector<double> v = host_row(x(0), at, c.width), d = host_row(dy(0), at, c.width);
      const std::vector<double> weight = host_row(w(0), 0, c.width);
      double squares = 0, product = 0;
      for (std::size_t i = 0; i < v.size(); ++i) {
        squares += v[i] * v[i] / c.width;
        product += v[i] * d[i] * weight[i] / c.width;
      }
      const double inverse = 1 / std::sqrt(squares + 1e-6);
      std::vector<double> out(v.size());
      for (std::size_t i = 0; i < v.size(); ++i)
        out[i] = inverse * (d[i] * weight[i] - v[i] * product * inverse * inverse);
      if (row == 0 && c.rows <= 16) expect_weight_gradient(c, x(0), dy(0), dw(0));
      return out;
    };
    time(c, traffic, enqueue, 5e-3, expected,
         [&](int row) { return host_row(dx(0), static_cast<unsigned>(row), c.width); });
  }
  static void expect_weight_gradient(const Case& c, const bf16* x, const bf16* dy, const bf16* dw) {
    std::vector<double> sum(static_cast<std::size_t>(c.width));
    for (unsigned row = 0; row < static_cast<unsigned>(c.rows); ++row) {
      const std::vector<double> v = host_row(x, row, c.width), d = host_row(dy, row, c.width);
      double squares = 0;
      for (const double value : v) squares += value * value / c.width;
      for (std::size_t i = 0; i < v.size(); ++i) sum[i] += d[i] * v[i] / std::sqrt(squares + 1e-6);
    }
    RelativeError error;
    const std::vector<double> found = host_row(dw, 0, c.width);
    for (std::size_t i = 0; i < sum.size(); ++i) error.add(found[i], sum[i]);
    expect_error_below(error.value(), 5e-3, "gradient of the weight");
  }

  void exponents(const Case& c) {
    const bool loss = c.kind == "cross-entropy", held = c.variant == "one-pass";
    const double n = numbers(c);
    const Traffic traffic{.read = 2 * n + (loss ? 8.0 * c.rows : 0),
                          .written = 2 * n + (loss ? 4.0 * c.rows : 0),
                          .flop = (loss ? 6 : 5) * n};
    in_.start(static_cast<std::uint64_t>(traffic.bytes()));
    out_.start(static_cast<std::uint64_t>(traffic.bytes()));
    const auto x = in_.take<bf16>(count(c));
    const auto y = out_.take<bf16>(count(c));
    const auto losses = out_.take<float>(static_cast<unsigned>(c.rows));
    const auto grid = static_cast<unsigned>(c.rows);
    const auto enqueue = [=](cudaStream_t s, int i) {
      if (loss && held) {
        cross_entropy_held<<<grid, 1024, 0, s>>>(x(i), losses(i), y(i), c.width);
      } else if (loss) {
        cross_entropy_twice<<<grid, 1024, 0, s>>>(x(i), losses(i), y(i), c.width);
      } else {
        with_warps(c.width, [&]<int Warps>() {
          softmax_forward<Warps><<<grid, Warps * 32, 0, s>>>(x(i), y(i), c.width);
        });
      }
    };
    const auto expected = [&](int row) {
      std::vector<double> v = host_row(x(0), static_cast<unsigned>(row), c.width);
      double high = -INFINITY, sum = 0;
      for (const double value : v) high = std::max(high, value);
      for (const double value : v) sum += std::exp(value - high);
      const std::size_t target = mix(static_cast<unsigned>(row)) % static_cast<unsigned>(c.width);
      const double lost = std::log(sum) + high - v[target];
      for (double& value : v) value = std::exp(value - high) / sum;
      if (loss) v[target] -= 1, v.push_back(lost);
      return v;
    };
    const auto found = [&](int row) {
      std::vector<double> v = host_row(y(0), static_cast<unsigned>(row), c.width);
      float lost = 0;
      CUDA_OK(cudaMemcpy(&lost, losses(0) + row, sizeof lost, cudaMemcpyDeviceToHost));
      if (loss) v.push_back(lost);
      return v;
    };
    time(c, traffic, enqueue, 5e-3, expected, found);
  }

  void quantise(const Case& c) {
    const bool blocks = c.variant == "per-block";
    const double n = numbers(c);
    const Traffic traffic{
        .read = 2 * n, .written = n + 4 * (blocks ? n / 128 : c.rows), .flop = 3 * n};
    in_.start(static_cast<std::uint64_t>(traffic.bytes()));
    out_.start(static_cast<std::uint64_t>(traffic.bytes()));
    const auto x = in_.take<bf16>(count(c));
    const auto y = out_.take<std::uint8_t>(count(c));
    const auto scales = out_.take<float>(blocks ? count(c) / 128 : static_cast<unsigned>(c.rows));
    const auto enqueue = [=](cudaStream_t s, int i) {
      const std::uint64_t total = static_cast<std::uint64_t>(c.rows) * unsigned(c.width) / 8;
      if (blocks) {
        quantise_blocks<<<blocks_for(total, 1024), 256, 0, s>>>(
            reinterpret_cast<const uint4*>(x(i)), reinterpret_cast<uint2*>(y(i)), scales(i), total);
        return;
      }
      with_warps(c.width, [&]<int Warps>() {
        quantise_rows<Warps>
            <<<static_cast<unsigned>(c.rows), Warps * 32, 0, s>>>(x(i), y(i), scales(i), c.width);
      });
    };
    const auto found = [&](int row) {
      const std::uint64_t first = static_cast<std::uint64_t>(row) * static_cast<unsigned>(c.width);
      const auto width = static_cast<std::size_t>(c.width);
      std::vector<__nv_fp8_e4m3> raw(width);
      CUDA_OK(cudaMemcpy(raw.data(), y(0) + first, width, cudaMemcpyDeviceToHost));
      std::vector<float> scale(blocks ? width / 128 : 1);
      const std::uint64_t at = blocks ? first / 128 : static_cast<unsigned>(row);
      CUDA_OK(cudaMemcpy(scale.data(), scales(0) + at, scale.size() * 4, cudaMemcpyDeviceToHost));
      std::vector<double> out(width);
      for (std::size_t i = 0; i < width; ++i)
        out[i] = value_of(raw[i]) * scale[blocks ? i / 128 : 0];
      return out;
    };
    // Three bits of mantissa round by 2.6% in the mean.
    time(
        c, traffic, enqueue, 0.04,
        [&](int row) { return host_row(x(0), static_cast<unsigned>(row), c.width); }, found);
  }

  const Gpu& gpu_;
  Arena in_, out_;
};

std::vector<Case> cases(bool quick) {
  if (quick)
    return {{"norm", "rms", 4096, 4096},
            {"norm", "rms-residual", 33, 8192},
            {"norm", "rms-backward", 7, 2048},
            {"norm", "rms-backward", 4096, 5120},
            {"norm", "layer", 1024, 16384},
            {"softmax", "", 4096, 1024},
            {"cross-entropy", "one-pass", 512, 32000},
            {"cross-entropy", "two-pass", 512, 128256},
            {"quantise", "per-row", 1024, 7168},
            {"quantise", "per-block", 1024, 7168}};
  std::vector<Case> out;
  const std::pair<int, int> shapes[] = {
      {1, 4096},     {16, 8192},    {128, 5120},   {512, 8192},   {2048, 4096},   {4096, 7168},
      {8192, 8192},  {16384, 2048}, {32768, 1024}, {65536, 4096}, {16384, 16384}, {1024, 4096},
      {1024, 8192},  {2048, 8192},  {4096, 4096},  {4096, 12288}, {8192, 2048},   {8192, 4096},
      {16384, 4096}, {16384, 8192}, {32768, 4096}, {2048, 16384}, {24576, 5120}};
  for (const char* variant : {"rms", "rms-residual", "rms-backward", "layer"})
    for (const auto& [rows, width] : shapes) out.push_back({"norm", variant, rows, width});
  for (const auto& [rows, width] : {std::pair{32, 1024},
                                    {512, 2048},
                                    {4096, 2048},
                                    {8192, 2048},
                                    {8192, 4096},
                                    {16384, 4096},
                                    {24576, 4096},
                                    {65536, 1024},
                                    {65536, 2048},
                                    {65536, 4096},
                                    {16384, 8192},
                                    {16384, 16384},
                                    {32768, 16384}})
    out.push_back({"softmax", "", rows, width});
  for (const int rows : {8, 128, 512, 1024, 1536, 2048, 3072, 4096, 8192, 16384}) {
    out.push_back({"cross-entropy", "one-pass", rows, 32000});
    out.push_back({"cross-entropy", "two-pass", rows, 32000});
    if (rows <= 4096) out.push_back({"cross-entropy", "two-pass", rows, 128256});
  }
  for (const char* variant : {"per-row", "per-block"})
    for (const auto& [rows, width] : {std::pair{1, 7168},
                                      {64, 8192},
                                      {512, 4096},
                                      {1024, 8192},
                                      {2048, 7168},
                                      {4096, 7168},
                                      {8192, 5120},
                                      {8192, 8192},
                                      {16384, 4096},
                                      {16384, 8192},
                                      {32768, 5120},
                                      {65536, 2048},
                                      {65536, 8192}})
      out.push_back({"quantise", variant, rows, width});
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = read_options(argc, argv);
  const Gpu gpu(options.gpu);
  print_conditions("rows", gpu);
  const std::vector<Case> list = cases(options.quick);
  std::uint64_t largest = 0;  // operand of a case, with its result
  for (const Case& c : list)
    largest = std::max<std::uint64_t>(largest, 4ull * unsigned(c.rows) * unsigned(c.width));
  Rows rows(gpu, largest);
  for (const Case& c : list) rows.run(c);
}
