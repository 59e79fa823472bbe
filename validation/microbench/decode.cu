// SPDX-License-Identifier: Apache-2.0
// Knows how fast one query a sequence attends to a paged cache: an own split-key kernel.
#include <numeric>

#include "latent.cuh"

using namespace bench;

namespace {

struct Case {
  bool fp8 = false;
  int heads = 32, kv_heads = 8, dim = 128, page = 16, batch = 1, length = 128;
  // Absorbed latents: one row a key for all heads, whose first 512 numbers are the value.
  bool latent() const { return dim == latent_dim; }
  int value_dim() const { return latent() ? latent_value_dim : dim; }
  double scale() const { return 1 / std::sqrt(latent() ? 192.0 : dim); }
};

// Least number of splits that comes within a tenth of the best use of the device's waves.
int splits_of(const Case& c, unsigned blocks_each, int slots) {
  const double blocks = static_cast<double>(c.batch) * blocks_each;
  const int most = std::clamp((c.length + 127) / 128, 1, most_splits);  // two tiles a warp
  const auto use = [&](int splits) {
    const double waves = blocks * splits / slots;
    return waves / std::ceil(waves);
  };
  double best = 0;
  for (int s = 1; s <= most; ++s) best = std::max(best, use(s));
  int splits = 1;
  while (splits < most && use(splits) < 0.9 * best) ++splits;
  return splits;
}

class Decode {
 public:
  Decode(const Gpu& gpu, std::uint64_t cache_bytes)
      : gpu_(gpu), k_(cache_bytes), v_(cache_bytes), queries_(64ull << 20), out_(64ull << 20) {
    randomise(queries_.get(), queries_.count(), 3);
    CUDA_OK(cudaDeviceSynchronize());
  }

  void fill(bool as_fp8) {
    for (const Buffer<std::uint8_t>* cache : {&k_, &v_}) {
      const std::uint64_t seed = cache == &k_ ? 1 : 2;
      if (as_fp8)
        randomise(reinterpret_cast<fp8*>(cache->get()), cache->count(), seed);
      else
        randomise(reinterpret_cast<bf16*>(cache->get()), cache->count() / 2, seed);
    }
    CUDA_OK(cudaDeviceSynchronize());
  }

  bool fits(const Case& c) const { return key_bytes(c) * 1.01 < static_cast<double>(k_.count()); }

  void run(const Case& c, bool ragged = false) {
    if (c.latent()) return measure<bf16, latent_value_dim>(c, ragged, latent_call());
    if (c.fp8) {
      if (c.dim == 64) return with_kernel<fp8, 64, 6>(c, ragged);
      if (c.dim == 128) return with_kernel<fp8, 128, 5>(c, ragged);
      return with_kernel<fp8, 256, 3>(c, ragged);
    }
    if (c.dim == 64) return with_kernel<bf16, 64, 4>(c, ragged);
    if (c.dim == 128) return with_kernel<bf16, 128, 3>(c, ragged);
    with_kernel<bf16, 256, 2>(c, ragged);
  }

 private:
  static double key_bytes(const Case& c) {
    return static_cast<double>(c.batch) * c.kv_heads * ((c.length + c.page - 1) / c.page) * c.page *
           c.dim * (c.fp8 ? 1 : 2);
  }

  // Pages in random order, all of them different.
  std::vector<int> random_pages(const Case& c, std::size_t count) const {
    const std::uint64_t page_bytes = static_cast<std::uint64_t>(c.page) * unsigned(c.kv_heads) *
                                     unsigned(c.dim) * (c.fp8 ? 1 : 2);
    std::vector<int> pages(k_.count() / page_bytes);
    std::iota(pages.begin(), pages.end(), 0);
    if (count > pages.size()) std::exit((std::fprintf(stderr, "too few pages\n"), 1));
    for (std::size_t i = 0; i < count; ++i)
      std::swap(pages[i], pages[i + mix(i) % (pages.size() - i)]);
    pages.resize(count);
    return pages;
  }

  // A kernel and how it is launched: blocks of a sequence, threads, shared memory.
  struct Call {
    void (*kernel)(Paged);
    unsigned blocks;
    int threads, shared;
  };
  static Call latent_call() {
    return {latent_kernel, 128 / latent_heads, latent_threads, latent_shared};
  }
  template <class T, int D, int Stages>
  void with_kernel(const Case& c, bool ragged) {
    measure<T, D>(c, ragged,
                  {decode_kernel<T, D, Stages>, static_cast<unsigned>(c.kv_heads),
                   decode_warps * 32, DecodeShape<T, D, Stages>::shared});
  }

  template <class T, int D>
  void measure(const Case& c, bool ragged, const Call& how) {
    const std::size_t shared = static_cast<std::size_t>(how.shared);
    if (shared > gpu_.properties.sharedMemPerBlockOptin) return;
    CUDA_OK(
        cudaFuncSetAttribute(how.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, how.shared));
    int resident = 0;
    CUDA_OK(
        cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, how.kernel, how.threads, shared));
    const int splits =
        splits_of(c, how.blocks, std::max(1, resident) * gpu_.properties.multiProcessorCount);
    const int width = (c.length + c.page - 1) / c.page;
    const double bytes = (c.latent() ? 1 : 2) * key_bytes(c);
    const int sets =
        static_cast<int>(std::clamp(std::min(static_cast<double>(gpu_.cold_bytes()) / bytes + 1,
                                             0.99 * static_cast<double>(k_.count()) / key_bytes(c)),
                                    1.0, 64.0));
    const std::vector<int> pages =
        random_pages(c, static_cast<std::size_t>(sets * c.batch * width));
    const Buffer<int> table(pages.size()), lengths(static_cast<unsigned>(c.batch));
    CUDA_OK(cudaMemcpy(table.get(), pages.data(), table.bytes(), cudaMemcpyHostToDevice));
    std::vector<int> length(static_cast<std::size_t>(c.batch), c.length);
    if (ragged)
      for (std::size_t i = 0; i < length.size(); ++i)
        length[i] = 1 + static_cast<int>(mix(i + 9) % static_cast<unsigned>(c.length));
    CUDA_OK(cudaMemcpy(lengths.get(), length.data(), lengths.bytes(), cudaMemcpyHostToDevice));
    const std::uint64_t rows = static_cast<std::uint64_t>(c.batch) * unsigned(c.heads);
    const Buffer<float> partial(rows * unsigned(splits) * D), scale(rows * unsigned(splits));
    Paged p{.q = queries_.get(),
            .k = k_.get(),
            .v = v_.get(),
            .lengths = lengths.get(),
            .out = out_.get(),
            .partial = partial.get(),
            .scale = scale.get(),
            .batch = c.batch,
            .heads = c.heads,
            .kv_heads = c.kv_heads,
            .page_size = c.page,
            .table_width = width,
            .splits = splits,
            .softmax_scale = static_cast<float>(1.4426950408889634 * c.scale())};
    const Enqueue enqueue = [&](cudaStream_t s, int i) {
      Paged call = p;
      call.table = table.get() + static_cast<std::int64_t>(i % sets) * c.batch * width;
      how.kernel<<<dim3(unsigned(splits), how.blocks, unsigned(c.batch)), unsigned(how.threads),
                   shared, s>>>(call);
      if (splits > 1)
        merge_splits<D><<<dim3(unsigned(c.heads), unsigned(c.batch)), D, 0, s>>>(call);
      CUDA_OK(cudaGetLastError());
    };
    const Timing timing = ragged ? Timing{} : burst(gpu_, enqueue);
    enqueue(gpu_.stream, 0);
    CUDA_OK(cudaStreamSynchronize(gpu_.stream));
    double error = std::nan("");
    if (c.length <= 4096) {
      error = check<T>(c, pages, length);
      expect_error_below(error, 0.02,
                         "decode of " + std::to_string(c.batch) + " sequences of " +
                             std::to_string(c.length) + ", head " + std::to_string(c.dim));
    }
    if (!ragged) print(c, splits, timing, error);
  }

  // The first and last sequence's first and last head against sums in double precision.
  template <class T>
  double check(const Case& c, const std::vector<int>& pages, const std::vector<int>& length) const {
    RelativeError error;
    const auto dim = static_cast<std::size_t>(c.dim);
    const auto value_dim = static_cast<std::size_t>(c.value_dim());
    const int width = (c.length + c.page - 1) / c.page;
    for (const int sequence : {0, c.batch - 1})
      for (const int head : {0, c.heads - 1}) {
        const int kv_head = head / (c.heads / c.kv_heads), n = length[std::size_t(sequence)];
        const auto rows_of = [&](const Buffer<std::uint8_t>& cache) {
          std::vector<T> rows;
          for (int page = 0; page * c.page < n; ++page) {
            const std::uint64_t at =
                (static_cast<std::uint64_t>(pages[std::size_t(sequence * width + page)]) *
                     unsigned(c.kv_heads) +
                 unsigned(kv_head)) *
                unsigned(c.page) * dim;
            std::vector<T> more(static_cast<std::size_t>(c.page) * dim);
            CUDA_OK(cudaMemcpy(more.data(), reinterpret_cast<T*>(cache.get()) + at,
                               more.size() * sizeof(T), cudaMemcpyDeviceToHost));
            rows.insert(rows.end(), more.begin(), more.end());
          }
          return rows;
        };
        const std::vector<T> keys = rows_of(k_), values = c.latent() ? keys : rows_of(v_);
        const std::uint64_t row =
            static_cast<std::uint64_t>(sequence) * unsigned(c.heads) + unsigned(head);
        const auto q = queries_.to_host(row * dim, dim),
                   found = out_.to_host(row * value_dim, value_dim);
        std::vector<double> weight(static_cast<std::size_t>(n)), out(value_dim);
        double high = -INFINITY, sum = 0;
        for (std::size_t i = 0; i < weight.size(); ++i) {
          for (std::size_t d = 0; d < dim; ++d)
            weight[i] += value_of(q[d]) * value_of(keys[i * dim + d]) * c.scale();
          high = std::max(high, weight[i]);
        }
        for (double& w : weight) w = std::exp(w - high), sum += w;
        for (std::size_t i = 0; i < weight.size(); ++i)
          for (std::size_t d = 0; d < value_dim; ++d)
            out[d] += weight[i] / sum * value_of(values[i * dim + d]);
        for (std::size_t d = 0; d < value_dim; ++d) error.add(value_of(found[d]), out[d]);
      }
    return error.value();
  }

  static void print(const Case& c, int splits, const Timing& timing, double error) {
    const double cache = static_cast<double>(c.batch) * c.kv_heads * c.length *
                         (c.latent() ? c.dim : 2 * c.dim) * (c.fp8 ? 1 : 2);
    const double rows = 2.0 * c.batch * c.heads;  // of queries, times their dims
    Line line("sample");
    line.text("part", "decode").text("kind", "attention-decode").text("library", "own");
    line.text("variant", "page-" + std::to_string(c.page)).text("mode", "burst");
    line.text("input", c.fp8 ? "fp8" : "bf16").number("batch", c.batch).number("heads", c.heads);
    line.number("kv_heads", c.kv_heads).number("q_length", 1).number("kv_length", c.length);
    line.number("qk_dim", c.dim)
        .number("v_dim", c.value_dim())
        .number("causal", 1)
        .number("window", 0);
    line.number("splits", splits);  // above 1 a second kernel adds them
    line.number("bytes_read", static_cast<std::uint64_t>(cache + rows * c.dim));
    line.number("bytes_written", static_cast<std::uint64_t>(rows * c.value_dim()));
    add(line, timing);
    if (!std::isnan(error)) line.number("error", error);
    line.print();
  }

  const Gpu& gpu_;
  Buffer<std::uint8_t> k_, v_;
  Buffer<bf16> queries_, out_;
};

std::vector<Case> cases(bool quick) {
  std::vector<Case> out;
  const std::pair<int, int> sizes[] = {{1, 128},    {1, 2048},   {1, 16384}, {1, 131072},
                                       {4, 512},    {4, 8192},   {16, 1024}, {16, 4096},
                                       {16, 32768}, {64, 512},   {64, 2048}, {64, 8192},
                                       {256, 1024}, {256, 4096}, {512, 128}, {512, 1024}};
  const Case shapes[] = {{.heads = 32, .kv_heads = 8},
                         {.heads = 64, .kv_heads = 8, .page = 64},
                         {.heads = 8, .kv_heads = 1},
                         {.heads = 32, .kv_heads = 32, .page = 64},
                         {.heads = 32, .kv_heads = 8, .dim = 64, .page = 64},
                         {.heads = 16, .kv_heads = 4, .dim = 256},
                         {.heads = 128, .kv_heads = 1, .dim = latent_dim, .page = 64}};
  for (const bool as_fp8 : {false, true})
    for (Case c : shapes) {
      c.fp8 = as_fp8;
      if (c.latent() && as_fp8) continue;  // the kernel of latents knows bf16 alone
      int which = 0;
      for (const auto& [batch, length] : sizes) {
        // Half of the sizes for the rarer head sizes.
        const bool skipped = c.dim != 128 && !c.latent() && which % 2 == 1;
        ++which;
        if (skipped || (quick && which != 8)) continue;
        c.batch = batch, c.length = length;
        out.push_back(c);
      }
    }
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = read_options(argc, argv);
  const Gpu gpu(options.gpu);
  print_conditions("decode", gpu);
  Decode decode(gpu, options.quick ? 2ull << 30 : 9ull << 30);
  const std::vector<Case> list = cases(options.quick);
  for (const bool as_fp8 : {false, true}) {
    decode.fill(as_fp8);
    for (const int dim : {64, 128, 256})  // sequences of any lengths, few groups and many
      for (const int kv_heads : {1, 8})
        decode.run({.fp8 = as_fp8,
                    .heads = 8,
                    .kv_heads = kv_heads,
                    .dim = dim,
                    .batch = 5,
                    .length = 700},
                   true);
    if (!as_fp8)
      decode.run(
          {.heads = 128, .kv_heads = 1, .dim = latent_dim, .page = 64, .batch = 5, .length = 700},
          true);
    for (const Case& c : list)
      if (c.fp8 == as_fp8 && decode.fits(c)) decode.run(c);
  }
}
