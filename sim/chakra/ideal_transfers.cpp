// SPDX-License-Identifier: Apache-2.0
// Ends transfers of traces after what each takes alone.
#include "sim/chakra/transfers.h"

namespace orrery {
namespace {

class IdealTransfers final : public Transfers {
 public:
  IdealTransfers(TraceGround& ground, const TraceProgram& program) : ground_(ground) {
    for (const auto& group : program.groups) shapes_.push_back(ground.shape(group));
  }

  void collective(const Event& tag, std::size_t group, const TraceNode& node, Ticks now) override {
    begin(tag, ground_.collective(node.collective, node.bytes, shapes_[group]), now);
  }
  void message(const Event& tag, std::int64_t from, std::int64_t to, double bytes,
               Ticks now) override {
    begin(tag, ground_.message(from, to, bytes), now);
  }
  std::optional<End> next(std::optional<Ticks> until) override {
    End end;
    if (!queue_.peek(end.time) || (until && *until < end.time)) return std::nullopt;
    queue_.pop(end.time, end.tag);
    return end;
  }

 private:
  void begin(const Event& tag, const Collective& collective, Ticks now) {
    queue_.push(now + to_ticks(ground_.price(collective)), tag);
  }

  TraceGround& ground_;
  std::vector<GroupShape> shapes_;
  EventQueue queue_;
};

}  // namespace

std::unique_ptr<Transfers> ideal_transfers(TraceGround& ground, const TraceProgram& program) {
  return std::make_unique<IdealTransfers>(ground, program);
}

}  // namespace orrery
