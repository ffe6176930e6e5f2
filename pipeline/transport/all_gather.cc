#include "pipeline/transport/all_gather.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/status.h"

namespace siphon {
namespace {

using Pieces = std::vector<std::vector<std::byte>>;

Channel ToRoot(int worker) { return {WorkerId(worker), WorkerId(0), Lane::kControl}; }
Channel FromRoot(int worker) { return {WorkerId(0), WorkerId(worker), Lane::kControl}; }

absl::Status WaitForAll(Transport& transport, const std::vector<TransferId>& transfers) {
  for (const TransferId transfer : transfers) {
    SIPHON_RETURN_IF_ERROR(transport.Wait(transfer));
  }
  return absl::OkStatus();
}

absl::Status CollectAndHandBack(Transport& transport, Pieces& pieces) {
  const int workers = static_cast<int>(pieces.size());
  std::vector<TransferId> transfers;
  for (int worker = 1; worker < workers; ++worker) {
    SIPHON_ASSIGN_OR_RETURN(const TransferId transfer,
                            transport.StartReceive(ToRoot(worker), {MutablePart(pieces[worker])}));
    transfers.push_back(transfer);
  }
  SIPHON_RETURN_IF_ERROR(WaitForAll(transport, transfers));
  transfers.clear();
  const std::vector<ConstPart> everything(pieces.begin(), pieces.end());
  for (int worker = 1; worker < workers; ++worker) {
    SIPHON_ASSIGN_OR_RETURN(const TransferId transfer,
                            transport.StartSend(FromRoot(worker), everything));
    transfers.push_back(transfer);
  }
  return WaitForAll(transport, transfers);
}

absl::Status Contribute(Transport& transport, int me, ConstPart mine, Pieces& pieces) {
  SIPHON_ASSIGN_OR_RETURN(const TransferId sent, transport.StartSend(ToRoot(me), {mine}));
  const std::vector<MutablePart> everything(pieces.begin(), pieces.end());
  SIPHON_ASSIGN_OR_RETURN(const TransferId received,
                          transport.StartReceive(FromRoot(me), everything));
  return WaitForAll(transport, {sent, received});
}

}  // namespace

absl::StatusOr<Pieces> AllGather(Transport& transport, WorkerId me,
                                 const std::vector<int64_t>& sizes, ConstPart mine) {
  if (me.value < 0 || me.value >= static_cast<int>(sizes.size()) ||
      sizes[me.value] != static_cast<int64_t>(mine.size())) {
    return absl::InvalidArgumentError(
        absl::StrCat("all-gather among ", sizes.size(), " workers: worker ", me.value, " brings ",
                     mine.size(), " bytes, which is not what the list of sizes says"));
  }
  Pieces pieces;
  for (const int64_t size : sizes) pieces.emplace_back(static_cast<size_t>(size));
  std::copy(mine.begin(), mine.end(), pieces[me.value].begin());
  SIPHON_RETURN_IF_ERROR(Annotate(me.value == 0 ? CollectAndHandBack(transport, pieces)
                                                : Contribute(transport, me.value, mine, pieces),
                                  "all-gather"));
  return pieces;
}

std::vector<Channel> AllGatherChannels(int workers) {
  std::vector<Channel> channels;
  for (int worker = 1; worker < workers; ++worker) {
    channels.push_back(ToRoot(worker));
    channels.push_back(FromRoot(worker));
  }
  return channels;
}

}  // namespace siphon
