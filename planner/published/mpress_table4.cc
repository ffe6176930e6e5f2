#include "planner/published/mpress_table4.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace siphon {
namespace {

constexpr double kGigabyte = 1e9;

std::string ShareText(const MpressShare& share) {
  if (share.last_stage < share.first_stage) return "0";
  return absl::StrFormat("%.0f (%d-%d)", share.gigabytes, share.first_stage, share.last_stage);
}

// Runs of consecutive stages as "0-3", others one by one.
std::string StagesText(const std::vector<StageId>& stages) {
  std::vector<std::string> runs;
  for (size_t begin = 0; begin < stages.size();) {
    size_t end = begin + 1;
    while (end < stages.size() && stages[end].value == stages[end - 1].value + 1) ++end;
    runs.push_back(end == begin + 1
                       ? absl::StrCat(stages[begin].value)
                       : absl::StrCat(stages[begin].value, "-", stages[end - 1].value));
    begin = end;
  }
  return absl::StrJoin(runs, ",");
}

std::string SavedText(const MemorySaved& saved) {
  if (saved.stages.empty()) return "0";
  return absl::StrFormat("%.0f (%s)", static_cast<double>(saved.bytes.value) / kGigabyte,
                         StagesText(saved.stages));
}

void AddLine(std::string& text, absl::string_view model, absl::string_view who,
             const std::string& recomputed, const std::string& host, const std::string& peers,
             const std::string& all, const std::string& must) {
  absl::StrAppendFormat(&text, "%-11s %-10s %-14s %-14s %-12s %5s %5s\n", model, who, recomputed,
                        host, peers, all, must);
}

std::string GigabytesText(double gigabytes) { return absl::StrFormat("%.0f", gigabytes); }

std::string GigabytesText(Bytes bytes) {
  return GigabytesText(static_cast<double>(bytes.value) / kGigabyte);
}

}  // namespace

const std::vector<MpressSavings>& MpressTable4() {
  static const auto* const rows =
      new std::vector<MpressSavings>{{"Bert-1.67B", {121, 0, 6}, {}, {37, 0, 3}},
                                     {"Bert-6.2B", {972, 0, 7}, {59, 0, 5}, {42, 0, 4}},
                                     {"GPT-10.3B", {156, 0, 7}, {6, 0, 7}, {27, 0, 3}},
                                     {"GPT-20.4B", {294, 0, 7}, {242, 0, 7}, {38, 0, 3}}};
  return *rows;
}

Bytes PublishedOverflow(const MpressSavings& row) {
  constexpr double kServer = kMpressStages * 32;  // gigabytes
  for (const MpressRow& known : MpressTable2()) {
    if (known.name != row.model) continue;
    return Bytes(static_cast<int64_t>(std::max(0.0, known.total - kServer) * kGigabyte));
  }
  return Bytes(0);
}

std::string MpressTable4Text(const std::vector<MpressRun>& runs) {
  std::string text =
      "MPress, Table IV: device memory saved by each way in GB (1e9 bytes), and on which stages; "
      "all ways together, and what must be\nsaved: the demand of all stages beyond what all "
      "devices have (published: Table II less 8 x 32 GB)\n";
  AddLine(text, "model", "plan", "recompute", "host swap", "D2D swap", "all", "must");
  for (const MpressSavings& row : MpressTable4()) {
    AddLine(text, row.model, "published", ShareText(row.recomputed), ShareText(row.host),
            ShareText(row.peers),
            GigabytesText(row.recomputed.gigabytes + row.host.gigabytes + row.peers.gigabytes),
            GigabytesText(PublishedOverflow(row)));
    for (const MpressRun& run : runs) {
      if (run.model != row.model || !run.status.ok()) continue;
      AddLine(text, "", run.strategy, SavedText(run.recomputed), SavedText(run.host),
              SavedText(run.peers),
              GigabytesText(run.recomputed.bytes + run.host.bytes + run.peers.bytes),
              GigabytesText(run.overflow));
    }
  }
  text +=
      "MPress saves more than it must, most so of GPT: 189 GB where 69 are too much, and 574 where "
      "391 are. Ours has other shares for that reason.\n";
  return text;
}

}  // namespace siphon
