// SPDX-License-Identifier: Apache-2.0
// Judges a candidate: owns inputs, outputs, clock, reference and verdict, and prints what it found
// as lines of JSON. The candidate runs in another process, stopped while this one looks.
//
// Usage: judge FOLDER SECONDS MEMORY_BYTES WORKER... < cases
// A line of `cases`:
//   case OPERATION KIND SIZE...    runs twice, on other data and at other addresses, and checks it
//   time OPERATION SIZE...         times it, and checks every output of every timed run
#include <sys/random.h>

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <memory>
#include <sstream>

#include "clocks.cuh"
#include "process.cuh"
#include "reference.cuh"

namespace {

constexpr std::size_t guard_bytes = 1024, alignment = 256;
// Elements that are checked one by one; of larger outputs as many are drawn.
constexpr long long most_checked = device::is_host ? 60000 : 1 << 20;
constexpr std::size_t most_sets = device::is_host ? 16 : 1024;
constexpr long long sampled = device::is_host ? 256 : 4096;

std::uint64_t secret() {
  std::uint64_t bits = 0;
  if (getrandom(&bits, sizeof bits, 0) != sizeof bits) std::exit(4);
  return bits;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  }
  return out + "\"";
}
template <class List>
std::string listed(const List& list) {
  std::string out = "[";
  for (const auto& value : list) {
    char text[40];
    std::snprintf(text, sizeof text, "%.9g", static_cast<double>(value));
    out += (out.size() > 1 ? "," : "") + std::string(text);
  }
  return out + "]";
}

struct Asked {
  Op op;
  Kind kind = Kind::random;
  std::vector<long long> size;
};

// One set of tensors in the memory that the worker sees.
struct Set {
  std::uint64_t seed = 0;
  std::vector<std::size_t> in, out;
  std::vector<std::pair<std::size_t, std::size_t>> guards;  // from, bytes
};

struct Checked {
  std::string failure;  // empty: right
  double worst = 0;     // error over tolerance
};

class Judge {
 public:
  Judge(Worker::Limits limits, std::vector<std::string> words)
      : limits_(limits), words_(std::move(words)) {
    arena_bytes_ = device::is_host
                       ? std::size_t{48} << 20
                       : std::min<std::size_t>(std::size_t{8} << 30, device::free_bytes() / 10 * 3);
    arena_ = device::make_shared(arena_bytes_);
    ratios_ = device::make<double>(most_checked);
    counter_ = device::make<unsigned long long>(1);
    one_ = device::make<Judged>(1);
    problems_ = device::make<Problem>(most_sets);
    flush_bytes_ = device::is_host ? std::size_t{32} << 20 : 3 * clocks::l2_bytes();
    flushed_ = device::make<unsigned char>(flush_bytes_);
    for (int i = 0; i < 9; ++i) idle_.push_back(probe());
  }

  bool start() {
    for (const bool own_network : {true, false}) {
      std::vector<std::string> words = words_;
      for (const std::string& word :
           {std::string("SOCKET"), arena_.name, std::to_string(arena_bytes_), limits_.folder,
            std::to_string(static_cast<long>(limits_.seconds) * 20 + 60)})
        words.push_back(word);
      if (own_network) words.push_back("own-network");
      worker_.reset();  // its end takes all children with it
      worker_ = std::make_unique<Worker>(words, limits_);
      std::string said = worker_->answer();
      // Drivers may want the network or the user that this process has.
      const bool began = said.rfind("sandbox", 0) == 0;
      if (own_network && !began) continue;
      if (began) {
        std::printf("{\"event\":\"sandbox\",\"said\":%s}\n", quoted(said).c_str());
        said = worker_->answer();
      }
      if (said == "ready") {
        for (int i = 0; i < 21; ++i) empty_.push_back(batch(0));
        return worker_->alive() || report_start(worker_->why());
      }
      return report_start(said.empty() ? worker_->why() : said);
    }
    return false;
  }

  // Prints an event; false: nothing more can be asked.
  bool judge_case(const Asked& asked, const std::string& head, bool& right) {
    Checked all;
    for (int run = 0; run < 2 && all.failure.empty(); ++run) {
      // Another place in memory, so that addresses tell nothing.
      const std::vector<Set> sets = placed(asked, 1, 1, static_cast<std::size_t>(run) * 8448);
      if (sets.empty())
        all.failure = "the tensors are larger than the judge's memory";
      else {
        announce(asked, sets);
        all = run_once(asked, sets, nullptr, all);
      }
    }
    std::printf("{\"event\":\"case\",%s,\"ok\":%s,\"worst\":%.6g,\"failure\":%s}\n", head.c_str(),
                all.failure.empty() ? "true" : "false", all.worst, quoted(all.failure).c_str());
    std::fflush(stdout);
    right = right && all.failure.empty();
    return worker_->alive();
  }

  bool judge_time(const Asked& asked, const std::string& head) {
    Checked all;
    std::vector<double> cold, warm, mhz;
    const std::size_t wanted = enough_sets(asked, all);
    for (const bool is_warm : {false, true}) {
      const std::vector<Set> sets = placed(asked, is_warm ? 1 : wanted, wanted, 4096);
      if (sets.empty()) all.failure = "the tensors are larger than the judge's memory";
      if (all.failure.empty()) announce(asked, sets);
      double seconds = 0;
      // The first run of each plan does not count: drivers and interpreters prepare in it.
      for (int i = 0, runs = device::is_host ? 7 : 11; i <= runs && all.failure.empty(); ++i) {
        all = run_once(asked, sets, &seconds, all);
        if (i == 0 && seconds > too_long) runs = 3;
        if (i == 0 || !all.failure.empty()) continue;
        (is_warm ? warm : cold).push_back(seconds / static_cast<double>(sets.size()));
        if (!is_warm) mhz.push_back(clocks::processor_mhz());
      }
    }
    std::printf(
        "{\"event\":\"timed\",%s,\"ok\":%s,\"worst\":%.6g,\"failure\":%s,\"cold\":%s,"
        "\"warm\":%s,\"launches\":%zu,\"round_trip\":%.6g,\"mhz\":%.6g}\n",
        head.c_str(), all.failure.empty() ? "true" : "false", all.worst,
        quoted(all.failure).c_str(), listed(cold).c_str(), listed(warm).c_str(), wanted,
        median(empty_), median(mhz));
    std::fflush(stdout);
    return worker_->alive();
  }

 private:
  bool report_start(const std::string& why) {
    const std::string mark = "failed ";
    std::printf("{\"event\":\"failed\",\"failure\":%s}\n",
                quoted(why.rfind(mark, 0) == 0 ? why.substr(mark.size()) : why).c_str());
    return false;
  }

  static constexpr double too_long = 2;
  // So many sets that a run is long against what surrounds it. Libraries load and compilers compile
  // in first runs, so that those say nothing; as many again as a short run asks for are tried.
  std::size_t enough_sets(const Asked& asked, Checked& all) {
    constexpr double long_enough = device::is_host ? 0.01 : 0.02;
    std::size_t count = 3;
    for (int tries = 0; tries < 3 && all.failure.empty(); ++tries) {
      const std::vector<Set> sets = placed(asked, count, count, 0);
      if (sets.empty()) return 1;
      announce(asked, sets);
      double seconds = 0;
      for (int i = 0; i < 3 && all.failure.empty(); ++i) all = run_once(asked, sets, &seconds, all);
      const double each = std::max(seconds / static_cast<double>(sets.size()), 1e-6);
      const double wanted = std::min(long_enough / each + 1, static_cast<double>(most_sets));
      if (wanted <= 1.5 * static_cast<double>(count) || sets.size() < count) break;
      count = static_cast<std::size_t>(wanted);
    }
    return count;
  }

  // Time of a fixed piece of work of the judge: longer where somebody else works on the device.
  double probe() {
    const double from = now();
    keep_busy(ratios_, device::is_host ? 1000 : most_checked);
    device::synchronise();
    return now() - from;
  }
  bool somebody_works() {
    if (device::is_host) return false;  // the worker's threads are stopped there
    double least = 1e9;
    for (int i = 0; i < 3; ++i) least = std::min(least, probe());
    return least > 2.5 * median(idle_) + 1e-4;
  }

  // Sets of tensors one after another; inputs of `inputs` sets, which the others share. Fewer where
  // memory is short; none where one does not fit.
  std::vector<Set> placed(const Asked& asked, std::size_t inputs, std::size_t count,
                          std::size_t from) {
    const Tensors tensors = tensors_of(asked.op, asked.size.data());
    std::vector<Set> sets;
    std::size_t at = from;
    const auto guard = [&](Set& set) {
      const std::size_t end = (at + guard_bytes + alignment - 1) / alignment * alignment;
      set.guards.push_back({at, end - at});
      at = end;
    };
    for (std::size_t i = 0; i < count; ++i) {
      Set set;
      set.seed = secret();
      guard(set);
      for (const Tensor& tensor : tensors.in) {
        if (i >= inputs) break;
        set.in.push_back(at);
        at += tensor.bytes();
        guard(set);
      }
      if (i >= inputs) {
        set.in = sets[0].in;
        set.seed = sets[0].seed;
      }
      for (const Tensor& tensor : tensors.out) {
        set.out.push_back(at);
        at += tensor.bytes();
        guard(set);
      }
      if (at > arena_bytes_) break;
      sets.push_back(std::move(set));
    }
    return sets;
  }

  // New data in every tensor, outputs poisoned.
  void prepare(const Asked& asked, std::vector<Set>& sets) {
    const Tensors tensors = tensors_of(asked.op, asked.size.data());
    const bool shared = sets.size() > 1 && sets[0].in == sets[1].in;
    const std::uint64_t seed = secret();
    for (std::size_t i = 0; i < sets.size(); ++i) {
      Set& set = sets[i];
      set.seed = shared ? seed : secret();
      for (std::size_t t = 0; t < tensors.in.size() && (!shared || i == 0); ++t)
        fill(tensors.in[t], asked.kind, set.seed, static_cast<int>(t), arena_.data + set.in[t]);
      for (std::size_t t = 0; t < tensors.out.size(); ++t)
        device::set_bytes(arena_.data + set.out[t], 0xff, tensors.out[t].bytes());
      for (const auto& [from, bytes] : set.guards)
        fill_guard(set.seed ^ from, arena_.data + from, bytes);
    }
    // Nothing of it is left in the cache.
    device::set_bytes(flushed_, static_cast<int>(seed & 127), flush_bytes_);
    device::synchronise();
  }

  unsigned long long counted() {
    device::synchronise();
    unsigned long long count = 0;
    device::fetch(&count, counter_, 1);
    const unsigned long long none = 0;
    device::put(counter_, &none, 1);
    return count;
  }

  std::string touched(const Asked& asked, const Set& set) {
    const Tensors tensors = tensors_of(asked.op, asked.size.data());
    for (std::size_t t = 0; t < tensors.in.size(); ++t)
      count_changed(tensors.in[t], asked.kind, set.seed, static_cast<int>(t),
                    arena_.data + set.in[t], counter_);
    if (const auto count = counted())
      return std::to_string(count) + " elements of the inputs were changed";
    for (const auto& [from, bytes] : set.guards)
      count_broken(set.seed ^ from, arena_.data + from, bytes, counter_);
    if (const auto count = counted())
      return std::to_string(count) + " bytes were written outside of the outputs";
    for (std::size_t t = 0; t < tensors.out.size(); ++t)
      count_poisoned(tensors.out[t], arena_.data + set.out[t], counter_);
    if (const auto count = counted())
      return std::to_string(count) + " elements of the outputs were not written, or are no numbers";
    return "";
  }

  Problem problem_of(const Asked& asked, const Set& set) const {
    Problem problem{};
    problem.op = asked.op;
    problem.correlated = asked.kind == Kind::equal || asked.kind == Kind::cancelling;
    for (std::size_t i = 0; i < asked.size.size(); ++i) problem.size[i] = asked.size[i];
    for (std::size_t t = 0; t < set.in.size(); ++t) problem.in[t] = arena_.data + set.in[t];
    for (std::size_t t = 0; t < set.out.size(); ++t) problem.out[t] = arena_.data + set.out[t];
    return problem;
  }
  // Elements of every set against the reference: all of a single one, else drawn ones, as many as
  // keep the device busy.
  Checked compared(const Asked& asked, const std::vector<Set>& sets, bool whole) {
    std::vector<Problem> problems;
    for (const Set& set : sets) problems.push_back(problem_of(asked, set));
    device::put(problems_, problems.data(), problems.size());
    Looked looked{0, tensors_of(asked.op, asked.size.data()).out[0].count, false, secret()};
    looked.drawing = !whole || looked.all > most_checked;
    const auto number = static_cast<long long>(sets.size());
    const long long each = std::max(16 * sampled / number, 64ll);
    looked.count = looked.drawing ? std::min({looked.all, sampled, each}) : looked.all;
    compare(problems_, number, looked, ratios_);
    device::synchronise();
    std::vector<double> ratios(static_cast<std::size_t>(number * looked.count));
    device::fetch(ratios.data(), ratios_, ratios.size());
    const auto most = std::max_element(ratios.begin(), ratios.end());
    Checked out{"", *most};
    if (*most <= 1) return out;
    const auto wrong =
        std::count_if(ratios.begin(), ratios.end(), [](double r) { return !(r <= 1); });
    const long long at = most - ratios.begin();
    out.failure = described(problems[static_cast<std::size_t>(at / looked.count)],
                            looked.element(at), asked) +
                  "; " + std::to_string(wrong) + " of " + std::to_string(ratios.size()) +
                  " elements looked at are wrong";
    return out;
  }
  std::string described(const Problem& problem, long long element, const Asked& asked) {
    judge_one(problem, element, one_);
    device::synchronise();
    Judged judged;
    device::fetch(&judged, one_, 1);
    const long long last = tensors_of(asked.op, asked.size.data()).out[0].last;
    char text[200];
    if (asked.op == Op::top_k)
      std::snprintf(text, sizeof text, "row %lld, place %lld: %.6g is not what belongs there",
                    element / last, element % last, judged.got);
    else
      std::snprintf(text, sizeof text,
                    "row %lld, column %lld: %.6g where %.6g is right, off by %.3g, tolerance %.3g",
                    element / last, element % last, judged.got, judged.want,
                    std::abs(judged.got - judged.want), judged.tolerance);
    return text;
  }

  std::string nonce() {
    char text[20];
    std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(secret()));
    return text;
  }
  // Lets the worker launch so many sets; the time until it says that they are done.
  double batch(std::size_t count) {
    const std::string word = nonce();
    const double from = now();
    worker_->go_on();
    worker_->send("go " + word + " 0 " + std::to_string(count));
    const std::string said = worker_->answer();
    const double seconds = now() - from;
    if (!worker_->alive()) return seconds;
    worker_->stop();
    if (said == "done " + word + " 0") return seconds;
    worker_->give_up(said.rfind("done " + word, 0) == 0
                         ? "a launch failed, with code " + said.substr(6 + word.size()) +
                               last_error()
                         : "the worker said what was not asked");
    return seconds;
  }
  std::string last_error() const {
    std::ifstream file(limits_.folder + "/worker.txt");
    std::string line, last;
    while (std::getline(file, line))
      if (!line.empty()) last = line;
    return last.empty() ? "" : ": " + last;
  }

  // Tells the worker where the tensors lie, and nothing of what they will hold.
  void announce(const Asked& asked, const std::vector<Set>& sets) {
    const Tensors tensors = tensors_of(asked.op, asked.size.data());
    std::string plan = name_of(asked.op) + " " + std::to_string(sizes_of(asked.op));
    for (int i = 0; i < sizes_of(asked.op); ++i)
      plan += " " + std::to_string(asked.size[static_cast<std::size_t>(i)]);
    plan += " " + std::to_string(tensors.in.size()) + " " + std::to_string(tensors.out.size()) +
            " " + std::to_string(sets.size());
    for (const Set& set : sets) {
      for (const std::size_t at : set.in) plan += " " + std::to_string(at);
      for (const std::size_t at : set.out) plan += " " + std::to_string(at);
    }
    const std::string word = nonce();
    worker_->go_on();
    worker_->send("plan " + word + " " + plan);
    if (const std::string said = worker_->answer(); worker_->alive() && said != "planned " + word)
      worker_->give_up("the worker said what was not asked");
    worker_->stop();
  }

  // The inputs come while the worker stands: there is no time to work ahead.
  Checked run_once(const Asked& asked, std::vector<Set> sets, double* seconds, Checked before) {
    if (worker_->alive()) prepare(asked, sets);
    const double took = batch(sets.size());
    if (seconds != nullptr) *seconds = std::max(took - median(empty_), 1e-9);
    if (!worker_->alive()) return {worker_->why(), before.worst};
    Checked out = before;
    for (const Set& set : sets)
      if (const std::string why = touched(asked, set); !why.empty()) return {why, 1e30};
    const Checked found = compared(asked, sets, seconds == nullptr);
    out.worst = std::max(out.worst, found.worst);
    if (!found.failure.empty()) return found;
    if (somebody_works()) return {"work goes on after the answer", out.worst};
    return out;
  }

  Worker::Limits limits_;
  std::vector<std::string> words_;
  std::size_t arena_bytes_ = 0, flush_bytes_ = 0;
  device::Shared arena_;
  double* ratios_ = nullptr;
  unsigned long long* counter_ = nullptr;
  Judged* one_ = nullptr;
  Problem* problems_ = nullptr;
  unsigned char* flushed_ = nullptr;
  std::unique_ptr<Worker> worker_;
  std::vector<double> empty_, idle_;
};

bool read_line(const std::string& line, Asked& asked, bool& timed, std::string& head) {
  std::istringstream words(line);
  std::string verb, op, kind = "random";
  words >> verb >> op;
  timed = verb == "time";
  if (!timed) words >> kind;
  for (long long size = 0; words >> size;) asked.size.push_back(size);
  if (!op_of(op, asked.op) || !kind_of(kind, asked.kind) ||
      asked.size.size() != static_cast<std::size_t>(sizes_of(asked.op)))
    return false;
  head = "\"shape\":" + listed(asked.size) + ",\"data\":" + quoted(kind);
  asked.size.resize(8);
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  prctl(PR_SET_DUMPABLE, 0);         // its memory is nobody's to read
  prctl(PR_SET_CHILD_SUBREAPER, 1);  // what a worker leaves behind becomes a child of this one
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  signal(SIGPIPE, SIG_IGN);
  std::vector<std::string> lines;
  for (std::string line; std::getline(std::cin, line);) lines.push_back(line);
  if (!device::present()) {
    std::printf("{\"event\":\"no-device\"}\n");
    return 3;
  }
  clocks::print_device();
  const Worker::Limits limits{std::atof(argv[2]), std::strtoull(argv[3], nullptr, 10), argv[1]};
  Judge judge(limits, {argv + 4, argv + argc});
  if (!judge.start()) return 1;
  bool right = true;
  for (const std::string& line : lines) {
    Asked asked{};
    bool timed = false;
    std::string head;
    if (!read_line(line, asked, timed, head)) {
      std::fprintf(stderr, "judge: found %s\n", line.c_str());
      return 2;
    }
    // What is wrong needs no time.
    if (timed && !right) continue;
    if (!(timed ? judge.judge_time(asked, head) : judge.judge_case(asked, head, right))) return 1;
  }
  std::printf("{\"event\":\"end\"}\n");
  return 0;
}
