// SPDX-License-Identifier: Apache-2.0
// Reads training and inference rows into scenarios; blanks come from the stack's release.
#include "sim/validate/rows/rows.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "sim/base/errors/check.h"
#include "sim/validate/rows/row_words.h"
#include "sim/validate/rows/training_columns.h"
#include "workloads/model/model_catalog.h"

namespace orrery {
namespace {

[[noreturn]] void skip(const std::string& reason) { throw Error({.file = reason}); }

std::int64_t stated(const std::optional<std::int64_t>& value, const char* column) {
  if (!value) skip(fmt::format("the source does not tell {}", column));
  return *value;
}

Schedule schedule_for(const RunColumns& c, const Stack& stack, std::int64_t vpp,
                      const std::optional<Schedule>& rule) {
  if (const auto named = schedule_from_words(c.schedule)) return *named;
  if (vpp > 1) return Schedule::interleaved;
  if (!c.schedule.empty()) return Schedule::one_f_one_b;
  return rule.value_or(stack.defaults.schedule);
}

// The accelerators: as told, or as the sizes multiply to.
std::optional<std::int64_t> accelerators(const CsvRow& row) {
  for (const char* column : {"n_gpus", "gpus"})
    if (const auto told = row.integer(column)) return told;
  const auto dp = row.integer("dp");
  if (!dp) return std::nullopt;
  std::int64_t product = *dp;
  for (const char* column : {"tp", "pp", "cp"}) product *= row.integer(column).value_or(1);
  return product;
}

void read_measured(const CsvRow& row, MeasuredRun& measured) {
  measured.tokens_per_second_per_gpu = row.number("tokens_s_gpu");
  measured.peak_gibibytes = row.number("peak_memory_gib");
  measured.reserved_gibibytes = row.number("reserved_memory_gib");
  measured.static_gibibytes = row.number("static_memory_gib");
  measured.out_of_memory = row.flag("oom");
  const auto step = row.number("step_time_s");
  const auto gpus = accelerators(row);
  const auto sequence = row.number("seq"), batch = row.number("global_batch");
  if (!measured.tokens_per_second_per_gpu && step && *step > 0 && gpus && *gpus > 0 && sequence &&
      batch)
    measured.tokens_per_second_per_gpu = *batch * *sequence / *step / static_cast<double>(*gpus);
}

// A parallel size that the row leaves blank. A source that tells the whole layout means 1 by it,
// and so do programs that shard everything over all devices.
std::int64_t size_or_one(PreparedRow& p, const std::optional<std::int64_t>& value,
                         const char* column) {
  if (value) return *value;
  constexpr int fully_sharded = 3;
  if (!p.full_config && p.stack.defaults.zero_stage != fully_sharded)
    skip(fmt::format("the source does not tell {}", column));
  p.assumed.push_back(fmt::format("{} not stated: 1", column));
  return 1;
}

void build_sizes(PreparedRow& p, const RunColumns& c) {
  Layout& layout = p.layout;
  layout.tp = size_or_one(p, c.tp, "tp");
  layout.pp = size_or_one(p, c.pp, "pp");
  layout.cp = c.cp.value_or(1);
  layout.vpp = layout.pp > 1 ? c.vpp.value_or(1) : 1;
  const std::int64_t gpus = stated(c.gpus, "n_gpus");
  const std::int64_t group = layout.tp * layout.pp * layout.cp;
  if (group <= 0) skip("INCONSISTENT: a parallel size of 0");
  layout.dp = c.dp.value_or(gpus / group);
  if (layout.gpus() != gpus) skip("INCONSISTENT: tp * pp * cp * dp is not n_gpus");
  layout.ep = p.model.has_experts() ? size_or_one(p, c.ep, "ep") : 1;
  // DeepEP moves rows between ranks that hold different experts: with it an ep of 1 is a blank that
  // was filled in. AutoModel's recipes spread experts over a stage's ranks, up to 64.
  if (p.model.has_experts() && layout.ep == 1 && mentions(c.notes, "DeepEP") && layout.tp == 1) {
    constexpr std::int64_t most = 64;
    layout.ep = std::min(most, layout.dp);
    p.assumed.push_back(fmt::format("ep {} where the source names DeepEP and 1", layout.ep));
  }
  layout.etp = c.etp.value_or(1);
}

// Batches that the row leaves blank: one sequence at a time, and no accumulation.
void build_batches(PreparedRow& p, const RunColumns& c) {
  if (!c.micro_batch) p.assumed.push_back("micro_batch not stated: 1");
  p.layout.micro_batch = c.micro_batch.value_or(1);
  if (c.global_batch) {
    p.job.global_batch = *c.global_batch;
    // Sources round, and programs drop what does not fill a microbatch on every rank.
    const std::int64_t together = p.layout.micro_batch * p.layout.dp;
    const std::int64_t left = together > 0 ? p.job.global_batch % together : 0;
    if (left == 0 || p.job.global_batch < together) return;
    p.job.global_batch += 2 * left < together ? -left : together - left;
    p.assumed.push_back(fmt::format("global_batch {} as {}, which {} ranks divide", *c.global_batch,
                                    p.job.global_batch, p.layout.dp));
    return;
  }
  if (p.layout.pp > 1 || !c.micro_batch) skip("the source does not tell global_batch");
  p.job.global_batch = p.layout.micro_batch * p.layout.dp;
  p.assumed.push_back("global_batch not stated: no accumulation");
}

// Chunks of a stage that the row leaves blank: one layer each where the stack's recipes interleave
// and the schedule can.
void build_chunks(PreparedRow& p, const RunColumns& c) {
  Layout& layout = p.layout;
  if (c.vpp || layout.pp == 1) return;
  const std::int64_t each = p.model.layer_count() / layout.pp;
  const bool can =
      each * layout.pp == p.model.layer_count() && layout.microbatches(p.job) % layout.pp == 0;
  if (p.stack.defaults.interleaved && can) layout.vpp = each;
  p.assumed.push_back(fmt::format("vpp not stated: {}", layout.vpp));
}

void build_layout(PreparedRow& p, const RunColumns& c, const StackChoice& software) {
  Layout& layout = p.layout;
  build_sizes(p, c);
  build_batches(p, c);
  build_chunks(p, c);
  layout.zero_stage = static_cast<int>(c.zero.value_or(p.stack.defaults.zero_stage));
  layout.sequence_parallel = c.sequence_parallel.value_or(p.stack.defaults.sequence_parallel);
  layout.schedule = schedule_for(c, p.stack, layout.vpp, software.schedule);
  if (is_v_shaped(layout.schedule) && !c.vpp) layout.vpp = 2;  // a V has two chunks
  layout.optimizer = software.optimizer.value_or(p.stack.defaults.optimizer);
  if (mentions(c.notes, "Muon")) layout.optimizer = Optimizer::muon;
  if (const auto stated_recompute = recompute_from_words(c.recompute)) {
    layout.set(*stated_recompute);
  } else {
    layout.set(p.stack.defaults.recompute);
    if (!p.stack.defaults.recompute_known)
      p.recompute_choices = memory_savers(p.model, p.stack, layout.optimizer);
  }
  if (layout.cp > 1) layout.context = p.stack.defaults.context;
  if (layout.zero_stage == 3 && mentions(c.notes, "FSDP")) {
    const std::int64_t shard = number_after(c.notes, "FSDP(?: size)?");
    if (shard > 1 && shard < layout.dp * layout.cp) layout.shard_group = shard;
  }
}

// A board works between its idle power and about its own limit: other watts are a slip of the pen.
void limit_power(Device& device, Watts limit) {
  const double idle = device.idle_power.value.value_or(Watts()).si();
  const double most = 2 * device.power_limit.value.value_or(limit).si();
  if (limit.si() <= idle || limit.si() > most)
    skip(fmt::format("a power limit of {:.0f} W: {} runs between {:.0f} W idle and {:.0f} W",
                     limit.si(), device.name, idle, most / 2));
  device.power_limit.value = limit;
}

// Sources round batches and fill cells in: a schedule that its own batch rules out was not the one
// that ran, nor a split of rows that the stack only usually makes.
bool made_valid(PreparedRow& p, const RunColumns& c, std::int64_t gpus) {
  Layout plain = p.layout;
  plain.vpp = 1;
  plain.schedule = Schedule::one_f_one_b;
  if (!c.sequence_parallel && plain.tp > 1 && p.job.sequence % plain.tp != 0)
    plain.sequence_parallel = false;
  if (invalid_reason(plain, p.model, p.job, gpus, p.stack.sharding.partition)) return false;
  p.layout = plain;
  p.assumed.push_back("plain 1F1B: what the source tells of schedule and batch does not divide");
  return true;
}

}  // namespace

const std::vector<std::string>& inference_columns() {
  static const std::vector<std::string> columns = {
      "id", "mode", "h", "L", "nh", "nkv", "hd", "f", "V", "batch", "ctx", "tp", "step_s"};
  return columns;
}

RowReader::RowReader(Aliases aliases, Unknown unknown)
    : aliases_(std::move(aliases)),
      unknown_(unknown),
      catalog_models_(model_names(data_root() / "workloads/catalog/models")) {}

std::vector<PreparedRow> RowReader::read_training(const CsvTable& table) {
  require_training_columns(table);
  collect_dimensions(table);
  std::vector<PreparedRow> rows(table.rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const RunColumns columns = read_columns(CsvRow(table, i), rows[i]);
    const std::string name = std::filesystem::path(table.file).filename();
    if (rows[i].id.empty()) rows[i].id = fmt::format("{}:{}", name, table.lines[i]);
    if (rows[i].source.empty()) rows[i].source = name;
    try {
      build(rows[i], columns);
    } catch (const Error& error) {
      rows[i].skipped = error.message();
    }
  }
  return rows;
}

RunColumns RowReader::read_columns(const CsvRow& row, PreparedRow& p) const {
  RunColumns c;
  p.id = row.text("id");
  p.source = row.text("source");
  p.gpu = accelerator_name(aliases_, row.text("gpu"));
  c.machine.watts = watts_told(row.text("gpu"));
  p.catalogued = aliases_.accelerators.contains(p.gpu);
  p.full_config = row.flag("full_config").value_or(true);
  p.sweep =
      std::find(aliases_.sweeps.begin(), aliases_.sweeps.end(), p.source) != aliases_.sweeps.end();
  read_measured(row, p.measured);
  c.model = row.text("model");
  RowDimensions& d = c.dimensions;
  d = {.layers = row.integer("layers").value_or(0),
       .hidden = dimension(row, "hidden", p.assumed),
       .ffn = dimension(row, "ffn", p.assumed),
       .heads = row.integer("heads").value_or(0),
       .kv_heads = row.integer("kv_heads").value_or(0),
       .head_dim = row.integer("head_dim").value_or(0),
       .vocab = dimension(row, "vocab", p.assumed),
       .experts = row.integer("experts").value_or(0),
       .topk = row.integer("topk").value_or(0),
       .sequence = row.integer("seq").value_or(0),
       .mlp = row.text("mlp"),
       .attention = row.text("attention"),
       .parameters = row.number("params_b").value_or(0) * 1e9};
  c.task = row.text("task");
  c.machine.interconnect = row.text("interconnect");
  c.machine.system = row.text("system");
  c.machine.cluster = row.text("cluster");
  c.recompute = row.text("recompute");
  c.schedule = row.text("schedule");
  c.precision = row.text("precision");
  c.framework = row.text("framework");
  c.version = row.text("version");
  c.notes = row.text("notes");
  c.year = row.text("year");
  c.gpus = accelerators(row);
  c.global_batch = row.integer("global_batch");
  c.micro_batch = row.integer("micro_batch");
  c.tp = row.integer("tp");
  c.pp = row.integer("pp");
  c.vpp = row.integer("vpp");
  c.dp = row.integer("dp");
  c.ep = row.integer("ep");
  c.etp = row.integer("etp");
  c.cp = row.integer("cp");
  c.zero = row.integer("zero_stage");
  c.sequence_parallel = row.flag("seqpar");
  const MeasuredRun& m = p.measured;
  if (!m.tokens_per_second_per_gpu && !m.peak_gibibytes && !m.reserved_gibibytes &&
      !m.static_gibibytes && !m.out_of_memory)
    p.unscored =
        unscored_reason(!row.blank("tflops_gpu") || !row.blank("mfu_pct"), row.text("metric"));
  for (const auto& rule : aliases_.unfit_for_time)
    if (mentions(c.version, rule.version)) p.unfit_for_time = rule.reason;
  for (const auto& rule : aliases_.corrections) {
    if (rule.source != p.source) continue;
    c.dimensions.vocab = rule.vocab.value_or(c.dimensions.vocab);
    c.recompute = rule.recompute.value_or(c.recompute);
    p.assumed.push_back(rule.reason);
  }
  return c;
}

void RowReader::build(PreparedRow& p, const RunColumns& c) {
  if (mentions(c.notes, "INCONSISTENT")) skip("INCONSISTENT: the source contradicts itself");
  const std::int64_t gpus = stated(c.gpus, "n_gpus");
  if (gpus <= 0) skip(fmt::format("INCONSISTENT: {} accelerators", gpus));
  choose_machine(p, c, gpus);
  build_model(p, c);
  build_job(p, c);
  build_stack(p, c);
  if (const auto reason =
          invalid_reason(p.layout, p.model, p.job, gpus, p.stack.sharding.partition);
      reason && !made_valid(p, c, gpus))
    skip("layout not valid: " + *reason);
}

// A cluster's own name tells machine and network; else they follow from what the source says.
void RowReader::choose_machine(PreparedRow& p, const RunColumns& c, std::int64_t gpus) {
  if (!c.machine.cluster.empty()) {
    p.cluster = shared_cluster(
        {.cluster = c.machine.cluster, .accelerator = "", .network_factor = 1, .assumed = {}}, gpus,
        c.machine.watts);
    const std::string device = accelerator_name(aliases_, p.cluster->cluster.device.name);
    if (!p.gpu.empty() && p.gpu != device)
      skip(fmt::format("INCONSISTENT: {} in a cluster of {}", p.gpu, device));
    p.gpu = device;
    p.catalogued = true;
    return;
  }
  const auto machine =
      choose_cluster(aliases_, wirings_, p.gpu, c.machine.interconnect, c.machine.system, gpus);
  if (!machine) skip(fmt::format("accelerator {} is not in aliases.json", in_quotes(p.gpu)));
  for (const std::string& sentence : machine->assumed) p.assumed.push_back(sentence);
  p.cluster = shared_cluster(*machine, gpus, c.machine.watts);
}

void RowReader::build_model(PreparedRow& p, const RunColumns& c) {
  const ModelChoice choice = choose_model(aliases_, c.model, catalog_models_);
  const RowDimensions& d = c.dimensions;
  if (choice.name.empty() && d.layers <= 0 && d.hidden <= 0)
    throw Error({.file = "model",
                 .found = in_quotes(c.model),
                 .expected = "a catalogued model, or its columns layers, hidden, heads, ffn, vocab",
                 .nearest = nearest_name(c.model, catalog_models_)});
  if (choice.name.empty())
    p.model = model_from_dimensions(c.model, c.dimensions, p.assumed);
  else if (choice.is_template)
    p.model = fill_template(catalog_model(choice.name), c.model, c.dimensions, p.assumed);
  else
    p.model = adapt_model(catalog_model(choice.name), c.dimensions, p.assumed);
  p.family = p.model.family == "row" ? c.model.substr(0, c.model.find('-')) : p.model.family;
  check_model(p.model, JsonValue::from(SortedJson::object(), c.model));
}

void RowReader::build_job(PreparedRow& p, const RunColumns& c) const {
  const auto task = task_from_words(c.task);
  if (!task) skip("task " + in_quotes(c.task) + " is not a training task");
  p.job.task = *task;
  if (c.dimensions.sequence < 0)
    skip(fmt::format("INCONSISTENT: sequences of {} tokens", c.dimensions.sequence));
  if (c.dimensions.sequence == 0) skip("the source does not tell seq");
  p.job.sequence = c.dimensions.sequence;
  // NeMo's and Megatron-Bridge's fine-tuning recipes pack, whether the source says so or not.
  // MLPerf's reports (GovReport) fill their sequences.
  const bool recipes_pack =
      (mentions(c.framework, "NeMo") || mentions(c.framework, "Megatron-Bridge")) &&
      !mentions(c.framework, "AutoModel") && !aliases_.rounds.contains(c.version);
  if (*task != Task::pretrain && (mentions(c.notes, "packed") || recipes_pack)) {
    p.job.mean_document = static_cast<std::int64_t>(aliases_.packed_document.get());
    p.assumed.push_back(fmt::format("packed documents of {} tokens", p.job.mean_document));
  }
  if (*task == Task::lora) {
    const std::int64_t rank = number_after(c.notes, "rank");
    if (rank > 0)
      p.job.lora_rank = rank;
    else
      p.assumed.push_back(fmt::format("LoRA rank {}", p.job.lora_rank));
  }
  p.job.mtp = mentions(c.notes, "w/ MTP");
}

StackChoice RowReader::choose_software(const PreparedRow& p, const RunColumns& c) const {
  StackChoice software = choose_stack(aliases_, {c.framework, c.version, c.notes, p.gpu, c.year});
  if (unknown_ != Unknown::program || !software.program.empty()) return software;
  const auto other = stand_in_for(aliases_, software);
  if (!other) skip("no stack would stand in for " + software.name);
  return *other;
}

void RowReader::build_stack(PreparedRow& p, const RunColumns& c) {
  const StackChoice software = choose_software(p, c);
  p.program = software.program;
  for (const std::string& sentence : software.assumed) p.assumed.push_back(sentence);
  auto precision = precision_from_words(c.precision);
  if (!precision && !c.precision.empty()) skip("no recipe for precision " + in_quotes(c.precision));
  if (!precision) {
    precision.emplace();
    p.assumed.push_back("precision not stated: BF16");
  }
  p.layout.precision = precision->recipe;
  if (precision->plain_fp8) p.layout.precision = stack(software.name, context_of(p)).defaults.fp8;
  p.stack = stack(software.name, context_of(p));
  p.release = p.stack.name + "@" + p.stack.release;
  p.job.attention_dropout = p.stack.defaults.attention_dropout;
  p.job.hidden_dropout = p.stack.defaults.hidden_dropout;
  if (p.model.mtp_layers > 0 && !mentions(c.notes, "MTP")) {
    p.job.mtp = p.stack.defaults.mtp;
    if (!p.job.mtp) p.assumed.push_back("no multi-token prediction module trained");
  }
  build_layout(p, c, software);
}

std::vector<PreparedRow> RowReader::read_inference(const CsvTable& table) {
  require_columns(table, inference_columns(), "validation/README.md");
  std::vector<PreparedRow> rows(table.rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const CsvRow row(table, i);
    PreparedRow& p = rows[i];
    p.id = row.text("id");
    p.source = "inference steps";
    p.measured.step_seconds = row.number("step_s");
    const auto count = [&](const char* column) { return row.integer(column).value_or(0); };
    const RowDimensions d{.layers = count("L"),
                          .hidden = count("h"),
                          .ffn = count("f"),
                          .heads = count("nh"),
                          .kv_heads = count("nkv"),
                          .head_dim = count("hd"),
                          .vocab = count("V"),
                          .mlp = "swiglu"};
    const std::string mode = row.text("mode");
    if (mode != "prefill" && mode != "decode") row.fail("mode", "prefill or decode");
    p.job.task = mode == "prefill" ? Task::prefill : Task::decode;
    p.job.batch = count("batch");
    (mode == "prefill" ? p.job.sequence : p.job.context) = count("ctx");
    p.layout.tp = std::max<std::int64_t>(1, count("tp"));
    p.layout.sequence_parallel = false;
    try {
      p.cluster = shared_cluster({.cluster = aliases_.inference_cluster,
                                  .accelerator = "",
                                  .network_factor = 1,
                                  .assumed = {}},
                                 p.layout.tp);
      p.gpu = p.cluster->cluster.device.name;
      p.model = model_from_dimensions(row.text("model"), d, p.assumed);
      p.family = p.model.name;
      p.stack = stack(aliases_.inference_stack, context_of(p));
      p.stack.host.launch = aliases_.inference_launch;
      p.release = p.stack.name + "@" + p.stack.release;
      if (const auto reason = invalid_reason(p.layout, p.model, p.job, p.layout.tp))
        skip("layout not valid: " + *reason);
    } catch (const Error& error) {
      p.skipped = error.message();
    }
  }
  return rows;
}

const SharedCluster* RowReader::shared_cluster(const ClusterChoice& choice, std::int64_t gpus,
                                               std::int64_t watts) {
  const std::string key = fmt::format("{} {} {} {:.4g} {}", choice.cluster, choice.accelerator,
                                      gpus, choice.network_factor, watts);
  if (const auto found = clusters_.find(key); found != clusters_.end()) return found->second.get();
  auto shared = std::make_unique<SharedCluster>();
  shared->cluster = load_cluster(choice, gpus);
  Cluster& cluster = shared->cluster;
  const bool other = !choice.accelerator.empty() && cluster.device.name != choice.accelerator;
  if (other) cluster.device = load_device(choice.accelerator);
  const std::string entry = cluster.device.name;
  if (watts > 0) limit_power(cluster.device, Watts(static_cast<double>(watts)));
  if (other || watts > 0) cluster.calibration = load_calibration(entry, cluster.device);
  shared->context = std::make_unique<StepContext>(step_context(cluster));
  return clusters_.emplace(key, std::move(shared)).first->second.get();
}

const Model& RowReader::catalog_model(const std::string& name) {
  const auto found = models_.find(name);
  if (found != models_.end()) return found->second;
  return models_.emplace(name, load_model(name, data_root() / "workloads/catalog/models"))
      .first->second;
}

StackContext RowReader::context_of(const PreparedRow& p) const {
  StackContext context = stack_context(p.cluster->cluster, p.model, p.job, p.layout.precision);
  context.named = unknown_ == Unknown::nothing;
  context.scripted = unknown_ < Unknown::script;
  return context;
}

const Stack& RowReader::stack(const std::string& name, const StackContext& context) {
  const std::string key =
      fmt::format("{} {} {} {} {} {} {}", name, context.device, context.model, context.family,
                  to_text(context.precision), context.moe, to_text(context.task));
  const auto found = stacks_.find(key);
  if (found != stacks_.end()) return found->second;
  return stacks_.emplace(key, load_stack(name, context, data_root() / "workloads/catalog/stacks"))
      .first->second;
}

void RowReader::collect_dimensions(const CsvTable& table) {
  dimensions_.clear();
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const CsvRow row(table, i);
    for (const char* column : {"hidden", "ffn", "vocab"}) {
      const auto value = row.integer(column);
      if (!value) continue;
      const auto [at, added] = dimensions_.emplace(std::pair{row.text("model"), column}, *value);
      if (!added && at->second != *value) at->second = 0;
    }
  }
}

std::int64_t RowReader::dimension(const CsvRow& row, const std::string& column,
                                  std::vector<std::string>& assumed) const {
  if (const auto value = row.integer(column)) return *value;
  const auto other = dimensions_.find({row.text("model"), column});
  if (other == dimensions_.end() || other->second == 0) return 0;
  assumed.push_back(
      fmt::format("{} {} as in other rows of {}", column, other->second, row.text("model")));
  return other->second;
}

}  // namespace orrery
