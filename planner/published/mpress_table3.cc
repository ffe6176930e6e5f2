#include "planner/published/mpress_table3.h"

#include <cstdint>

#include "absl/strings/str_format.h"

namespace siphon {
namespace {

constexpr int64_t kNanosPerMillisecond = 1'000'000;

MpressTensor Row(const char* model, const char* name, double megabytes, int64_t live_interval,
                 int64_t recompute, int64_t host_swap, int64_t peer_swap, Placement choice) {
  const auto milliseconds = [](int64_t count) { return Nanos(count * kNanosPerMillisecond); };
  return {.model = model,
          .name = name,
          .megabytes = megabytes,
          .times = {.live_interval = milliseconds(live_interval),
                    .recompute = milliseconds(recompute),
                    .host_swap = milliseconds(host_swap),
                    .peer_swap = milliseconds(peer_swap)},
          .choice = choice};
}

int64_t Milliseconds(Nanos time) { return time.value / kNanosPerMillisecond; }

}  // namespace

const std::vector<MpressTensor>& MpressTable3() {
  static const auto* const rows =
      new std::vector<MpressTensor>{Row("Bert", "t1", 216, 78, 4, 42, 6, Placement::kHostSwap),
                                    Row("Bert", "t2", 115, 16, 3, 22, 3, Placement::kPeerSwap),
                                    Row("Bert", "t3", 216, 2, 4, 42, 6, Placement::kRecompute),
                                    Row("GPT", "t4", 384, 214, 8, 74, 9, Placement::kHostSwap),
                                    Row("GPT", "t5", 384, 50, 8, 74, 9, Placement::kPeerSwap),
                                    Row("GPT", "t6", 1152, 12, 14, 222, 27, Placement::kRecompute)};
  return *rows;
}

std::string MpressTable3Text() {
  std::string text =
      "MPress, Table III: what each way of saving a tensor adds to the step (ms), and the choice\n"
      "tensor         MB  live  recompute  host swap  D2D swap  ours       published\n";
  for (const MpressTensor& row : MpressTable3()) {
    absl::StrAppendFormat(&text, "%-4s %-2s %9.0f %5d %10d %10d %9d  %-10s %s\n", row.model,
                          row.name, row.megabytes, Milliseconds(row.times.live_interval),
                          Milliseconds(MpressOverhead(row.times, Placement::kRecompute)),
                          Milliseconds(MpressOverhead(row.times, Placement::kHostSwap)),
                          Milliseconds(MpressOverhead(row.times, Placement::kPeerSwap)),
                          PlacementName(MpressChoice(row.times)), PlacementName(row.choice));
  }
  return text;
}

}  // namespace siphon
