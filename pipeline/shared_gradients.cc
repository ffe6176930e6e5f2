#include "pipeline/shared_gradients.h"

#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "planner/status.h"

namespace siphon {
namespace {

// A use of a parameter; `repeat` counts its uses within one layer.
using UseKey = std::tuple<std::string, int /*layer*/, int /*repeat*/>;
using UseSpans = std::map<UseKey, absl::Span<std::byte>>;

struct Copy {
  absl::Span<const std::byte> from;
  absl::Span<std::byte> to;
};

class Exchange {
 public:
  Exchange(WorkerId me, const WorkerLayout& layout, const std::map<StageId, StageCompute*>& stages,
           Transport* transport)
      : me_(me), layout_(layout), stages_(stages), transport_(transport) {}

  absl::Status Collect() {
    for (const StageId stage : SharingStages(layout_)) {
      const auto found = stages_.find(stage);
      if (found == stages_.end()) continue;
      SIPHON_ASSIGN_OR_RETURN(const std::vector<SharedGradient> gradients,
                              found->second->SharedGradients());
      UseSpans& spans = spans_[stage];
      for (const SharedGradient& gradient : gradients) {
        int repeat = 0;
        while (spans.contains({gradient.parameter, gradient.layer, repeat})) ++repeat;
        spans[{gradient.parameter, gradient.layer, repeat}] = gradient.bytes;
      }
    }
    return absl::OkStatus();
  }

  absl::Status StartAll() {
    for (const SharedParameter& parameter : layout_.shared_parameters) {
      std::map<int, int> repeats;
      for (size_t use = 0; use < parameter.uses.size(); ++use) {
        const int layer = parameter.uses[use].layer;
        const UseKey key{parameter.name, layer, repeats[layer]++};
        SIPHON_RETURN_IF_ERROR(Annotate(StartUse(parameter, parameter.stages[use], key),
                                        absl::StrCat(parameter.name, " used by layer ", layer)));
      }
    }
    return absl::OkStatus();
  }

  absl::Status Finish(const AwaitTransfer& await) {
    for (const TransferId transfer : transfers_) SIPHON_RETURN_IF_ERROR(await(transfer));
    for (const Copy& copy : copies_) {
      if (copy.from.size() != copy.to.size()) {
        return absl::InternalError(absl::StrCat("a shared gradient has ", copy.from.size(),
                                                " bytes in one stage and ", copy.to.size(),
                                                " in another"));
      }
      SIPHON_RETURN_IF_ERROR(stages_.begin()->second->CopyWithin(copy.from, copy.to));
    }
    for (const auto& [stage, spans] : spans_) {
      SIPHON_RETURN_IF_ERROR(stages_.at(stage)->AddSharedGradients());
    }
    return absl::OkStatus();
  }

 private:
  // Where `stage`, which is here, keeps the gradient of that use.
  absl::StatusOr<absl::Span<std::byte>> Find(StageId stage, const UseKey& key) const {
    const auto spans = spans_.find(stage);
    if (spans != spans_.end()) {
      if (const auto found = spans->second.find(key); found != spans->second.end()) {
        return found->second;
      }
    }
    return absl::InternalError(
        absl::StrCat("stage ", stage.value, " does not list this use among its shared gradients"));
  }

  absl::Status StartUse(const SharedParameter& parameter, StageId home, const UseKey& key) {
    std::vector<absl::Span<std::byte>> needed;  // by stages here, other than the use's own
    for (const StageId stage : std::set(parameter.stages.begin(), parameter.stages.end())) {
      if (WorkerOf(layout_, stage) != me_ || stage == home) continue;
      SIPHON_ASSIGN_OR_RETURN(const absl::Span<std::byte> span, Find(stage, key));
      needed.push_back(span);
    }
    if (WorkerOf(layout_, home) == me_) {
      SIPHON_ASSIGN_OR_RETURN(const absl::Span<std::byte> own, Find(home, key));
      for (const absl::Span<std::byte> span : needed) copies_.push_back({own, span});
      return SendToOthers(parameter, own);
    }
    if (needed.empty()) return absl::OkStatus();
    const Channel channel{WorkerOf(layout_, home), me_, Lane::kControl};
    SIPHON_ASSIGN_OR_RETURN(const TransferId transfer,
                            transport_->StartReceive(channel, {needed.front()}));
    transfers_.push_back(transfer);
    for (size_t more = 1; more < needed.size(); ++more) {
      copies_.push_back({needed.front(), needed[more]});
    }
    return absl::OkStatus();
  }

  absl::Status SendToOthers(const SharedParameter& parameter, absl::Span<const std::byte> own) {
    for (const WorkerId worker : WorkersSharing(layout_, parameter)) {
      if (worker == me_) continue;
      SIPHON_ASSIGN_OR_RETURN(const TransferId transfer,
                              transport_->StartSend({me_, worker, Lane::kControl}, {own}));
      transfers_.push_back(transfer);
    }
    return absl::OkStatus();
  }

  const WorkerId me_;
  const WorkerLayout& layout_;
  const std::map<StageId, StageCompute*>& stages_;
  Transport* transport_;
  std::map<StageId, UseSpans> spans_;
  std::vector<TransferId> transfers_;
  std::vector<Copy> copies_;
};

}  // namespace

absl::Status ExchangeSharedGradients(WorkerId me, const WorkerLayout& layout,
                                     const std::map<StageId, StageCompute*>& stages,
                                     Transport* transport, const AwaitTransfer& await) {
  Exchange exchange(me, layout, stages, transport);
  SIPHON_RETURN_IF_ERROR(exchange.Collect());
  SIPHON_RETURN_IF_ERROR(exchange.StartAll());
  return exchange.Finish(await);
}

}  // namespace siphon
