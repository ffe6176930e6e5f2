#include "launch/output/trace.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "launch/output/action_colors.h"
#include "launch/output/text_file.h"

namespace siphon {
namespace {

using Json = nlohmann::ordered_json;

double Microseconds(Nanos time) { return static_cast<double>(time.value) / 1e3; }

Json NameEvent(const char* what, int thread, const std::string& name) {
  return {{"name", what}, {"ph", "M"}, {"pid", 0}, {"tid", thread}, {"args", {{"name", name}}}};
}

Json IntervalEvent(const Interval& interval, int thread) {
  const bool busy = interval.kind == IntervalKind::kBusy;
  const std::string action = ToString(interval.action);
  Json event = {{"name", busy ? action : absl::StrCat("wait for ", action)},
                {"cat", busy ? std::string(ActionKindName(interval.action.kind)) : "wait"},
                {"ph", "X"},
                {"ts", Microseconds(interval.begin)},
                {"dur", Microseconds(interval.end - interval.begin)},
                {"pid", 0},
                {"tid", thread},
                {"cname", std::string(ColorOf(interval).trace_name)},
                {"args", {{"stage", interval.action.stage.value}}}};
  if (HasMicrobatch(interval.action)) {
    event["args"]["microbatch"] = interval.action.microbatch.value;
  }
  return event;
}

// A value of each kind from this point on.
Json MemoryEvent(const std::string& name, const MemoryPoint& point) {
  Json bytes = Json::object();
  for (size_t kind = 0; kind < kMemoryKinds; ++kind) {
    bytes[std::string(MemoryKindKey(static_cast<MemoryKind>(kind)))] =
        point.bytes.bytes[kind].value;
  }
  return {{"name", name},
          {"ph", "C"},
          {"ts", Microseconds(point.time)},
          {"pid", 0},
          {"args", std::move(bytes)}};
}

// Events one by one, each a line: large, but a person can read it.
class TraceText {
 public:
  explicit TraceText(const std::string& title) { Add(NameEvent("process_name", 0, title)); }

  void AddThread(const std::string& name, const WorkerTimeline& intervals) {
    Add(NameEvent("thread_name", threads_, name));
    for (const Interval& interval : intervals) Add(IntervalEvent(interval, threads_));
    ++threads_;
  }

  void Add(const Json& event) {
    absl::StrAppend(&text_, text_.empty() ? "" : ",\n",
                    event.dump(-1, ' ', false, Json::error_handler_t::replace));
  }

  std::string Finish() const {
    return absl::StrCat("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n", text_, "\n]}\n");
  }

 private:
  std::string text_;
  int threads_ = 0;
};

void AddWorkers(TraceText& trace, const std::vector<WorkerTimeline>& workers) {
  for (size_t worker = 0; worker < workers.size(); ++worker) {
    trace.AddThread(absl::StrCat("worker ", worker), workers[worker]);
  }
}

}  // namespace

std::string TraceJson(const std::string& title, const std::vector<WorkerTimeline>& workers) {
  TraceText trace(title);
  AddWorkers(trace, workers);
  return trace.Finish();
}

std::string TraceJson(const std::string& title, const SimulatedStep& step) {
  TraceText trace(title);
  AddWorkers(trace, step.workers);
  for (const LaneTimeline& lane : step.lanes) {
    if (!lane.intervals.empty()) trace.AddThread(lane.name, lane.intervals);
  }
  for (size_t worker = 0; worker < step.memory.size(); ++worker) {
    const std::string name = absl::StrCat("bytes of worker ", worker);
    for (const MemoryPoint& point : step.memory[worker]) trace.Add(MemoryEvent(name, point));
  }
  return trace.Finish();
}

absl::Status WriteTrace(const std::string& path, const std::string& title,
                        const std::vector<WorkerTimeline>& workers) {
  return WriteTextFile(path, TraceJson(title, workers));
}

}  // namespace siphon
