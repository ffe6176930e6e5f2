#include "launch/output/trace.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
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
                {"args", {{"stage", interval.action.stage.value}}}};
  if (HasMicrobatch(interval.action.kind)) {
    event["args"]["microbatch"] = interval.action.microbatch.value;
  }
  return event;
}

}  // namespace

std::string TraceJson(const std::string& title, const std::vector<WorkerTimeline>& workers) {
  Json events = Json::array();
  events.push_back(NameEvent("process_name", 0, title));
  for (size_t worker = 0; worker < workers.size(); ++worker) {
    const int thread = static_cast<int>(worker);
    events.push_back(NameEvent("thread_name", thread, absl::StrCat("worker ", worker)));
    for (const Interval& interval : workers[worker]) {
      events.push_back(IntervalEvent(interval, thread));
    }
  }
  // An event a line: large, but a person can read it.
  std::string text = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
  for (size_t i = 0; i < events.size(); ++i) {
    absl::StrAppend(&text, i == 0 ? "" : ",\n",
                    events[i].dump(-1, ' ', false, Json::error_handler_t::replace));
  }
  return text + "\n]}\n";
}

absl::Status WriteTrace(const std::string& path, const std::string& title,
                        const std::vector<WorkerTimeline>& workers) {
  return WriteTextFile(path, TraceJson(title, workers));
}

}  // namespace siphon
