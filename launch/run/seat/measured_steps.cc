#include "launch/run/seat/measured_steps.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>
#include <type_traits>

#include "launch/run/seat/step_record.h"
#include "planner/status.h"

namespace siphon {
namespace {

// As workers tell each other; without padding.
struct SentUse {
  int64_t place = 0;  // PlaceNumber
  int64_t copies = 0;
  int64_t bytes = 0;
  int64_t time_ns = 0;
};

// Every worker's values on every worker. [worker].
template <typename Value>
absl::StatusOr<std::vector<std::vector<Value>>> GatherLists(Coordinator& coordinator,
                                                            const std::vector<Value>& mine) {
  static_assert(std::is_trivially_copyable_v<Value>);
  const std::string packed(reinterpret_cast<const char*>(mine.data()), mine.size() * sizeof(Value));
  SIPHON_ASSIGN_OR_RETURN(const std::vector<std::string> all, coordinator.GatherText(packed));
  std::vector<std::vector<Value>> lists;
  for (const std::string& bytes : all) {
    std::vector<Value>& list = lists.emplace_back(bytes.size() / sizeof(Value));
    std::memcpy(list.data(), bytes.data(), list.size() * sizeof(Value));
  }
  return lists;
}

ActionTimes MedianOf(const std::vector<ActionTimes>& steps) {
  ActionTimes median{};
  for (size_t kind = 0; kind < median.size(); ++kind) {
    std::vector<Nanos> times;
    for (const ActionTimes& step : steps) times.push_back(step[kind]);
    median[kind] = MedianOf(std::move(times));
  }
  return median;
}

}  // namespace

Nanos MedianOf(std::vector<Nanos> times) {
  if (times.empty()) return Nanos(0);
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

void MeasuredSteps::Note(const WorkerTimeline& timeline, Nanos step,
                         const std::vector<LinkState>& links) {
  ++noted_;
  if (noted_ < kFirstStep || noted_ > kLastStep) return;
  steps_.push_back(step);
  const auto busy = BusyByStage({timeline}, static_cast<int>(stages_.size()));
  for (size_t stage = 0; stage < busy.size(); ++stage) stages_[stage].push_back(busy[stage]);
  for (const LinkState& link : links) {
    CopyLinkUse& use = links_[link.place];
    use.copies += link.use.copies;
    use.bytes += link.use.bytes;
    use.time += link.use.time;
  }
}

absl::StatusOr<MeasuredRun> MeasuredSteps::Gather(Coordinator& coordinator) const {
  MeasuredRun run;
  std::vector<ActionTimes> mine;
  for (const auto& steps : stages_) mine.push_back(MedianOf(steps));
  std::vector<SentUse> uses;
  for (const auto& [place, use] : links_) {
    uses.push_back({PlaceNumber(place), use.copies, use.bytes.value, use.time.value});
  }
  SIPHON_ASSIGN_OR_RETURN(const auto steps, coordinator.Gather(siphon::MedianOf(steps_)));
  SIPHON_ASSIGN_OR_RETURN(const auto stages, GatherLists(coordinator, mine));
  SIPHON_ASSIGN_OR_RETURN(const auto links, GatherLists(coordinator, uses));
  run.step = steps[0];
  run.stages.resize(stages_.size());
  for (const auto& worker : stages) {
    for (size_t stage = 0; stage < worker.size(); ++stage) {
      for (size_t kind = 0; kind < run.stages[stage].size(); ++kind) {
        run.stages[stage][kind] += worker[stage][kind];  // of one worker alone
      }
    }
  }
  for (const auto& worker : links) {
    std::vector<PlaceUse>& places = run.links.emplace_back();
    for (const SentUse& sent : worker) {
      places.push_back({PlaceOfNumber(static_cast<int32_t>(sent.place)),
                        {sent.copies, Bytes(sent.bytes), Nanos(sent.time_ns)}});
    }
  }
  return run;
}

}  // namespace siphon
