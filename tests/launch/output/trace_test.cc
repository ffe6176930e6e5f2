#include "launch/output/trace.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siphon {
namespace {

Interval At(StageId stage, ActionKind kind, int microbatch, IntervalKind what, int64_t begin,
            int64_t end) {
  return {{stage, kind, MicrobatchId(microbatch)}, what, Nanos(begin), Nanos(end)};
}

std::vector<WorkerTimeline> TwoWorkers() {
  return {{At(StageId(0), ActionKind::kForward, 0, IntervalKind::kBusy, 0, 1500)},
          {At(StageId(1), ActionKind::kForward, 0, IntervalKind::kWait, 0, 1600),
           At(StageId(1), ActionKind::kForward, 0, IntervalKind::kBusy, 1600, 3000),
           At(StageId(1), ActionKind::kStep, 0, IntervalKind::kBusy, 3000, 3250)}};
}

TEST(Trace, HasAThreadAWorkerAndAnEventAnInterval) {
  EXPECT_EQ(TraceJson("measured step 3", TwoWorkers()),
            R"({"displayTimeUnit":"ms","traceEvents":[
{"name":"process_name","ph":"M","pid":0,"tid":0,"args":{"name":"measured step 3"}},
{"name":"thread_name","ph":"M","pid":0,"tid":0,"args":{"name":"worker 0"}},
{"name":"0F0","cat":"F","ph":"X","ts":0.0,"dur":1.5,"pid":0,"tid":0,"cname":"rail_response","args":{"stage":0,"microbatch":0}},
{"name":"thread_name","ph":"M","pid":0,"tid":1,"args":{"name":"worker 1"}},
{"name":"wait for 1F0","cat":"wait","ph":"X","ts":0.0,"dur":1.6,"pid":0,"tid":1,"cname":"grey","args":{"stage":1,"microbatch":0}},
{"name":"1F0","cat":"F","ph":"X","ts":1.6,"dur":1.4,"pid":0,"tid":1,"cname":"rail_response","args":{"stage":1,"microbatch":0}},
{"name":"1STEP","cat":"STEP","ph":"X","ts":3.0,"dur":0.25,"pid":0,"tid":1,"cname":"generic_work","args":{"stage":1}}
]}
)");
}

TEST(Trace, HasLanesAndMemoryOfASimulatedStep) {
  SimulatedStep step;
  step.workers = {TwoWorkers()[0]};
  step.lanes = {
      {.name = "worker 0 to worker 1, forward",
       .intervals = {At(StageId(0), ActionKind::kSendForward, 0, IntervalKind::kBusy, 1500, 1600)}},
      {.name = "uplink", .bytes = Bytes(8)}};
  MemoryByKind held;
  held[MemoryKind::kActivations] = Bytes(640);
  step.memory = {{{Nanos(0), held}}};
  EXPECT_EQ(TraceJson("predicted", step), R"({"displayTimeUnit":"ms","traceEvents":[
{"name":"process_name","ph":"M","pid":0,"tid":0,"args":{"name":"predicted"}},
{"name":"thread_name","ph":"M","pid":0,"tid":0,"args":{"name":"worker 0"}},
{"name":"0F0","cat":"F","ph":"X","ts":0.0,"dur":1.5,"pid":0,"tid":0,"cname":"rail_response","args":{"stage":0,"microbatch":0}},
{"name":"thread_name","ph":"M","pid":0,"tid":1,"args":{"name":"worker 0 to worker 1, forward"}},
{"name":"0SEND_F0","cat":"SEND_F","ph":"X","ts":1.5,"dur":0.1,"pid":0,"tid":1,"cname":"thread_state_runnable","args":{"stage":0,"microbatch":0}},
{"name":"bytes of worker 0","ph":"C","ts":0.0,"pid":0,"args":{"parameters":0,"gradients":0,"optimizer":0,"weight_versions":0,"activations":640,"boundary":0,"lent":0,"workspace":0,"communication":0,"slack":0}}
]}
)");
}

TEST(Trace, IsJsonWhateverTheTitle) {
  EXPECT_TRUE(nlohmann::json::accept(TraceJson("a \"name\"\n\xff", TwoWorkers())));
  EXPECT_TRUE(nlohmann::json::accept(TraceJson("empty", std::vector<WorkerTimeline>())));
}

TEST(Trace, ReplacesItsFileWhole) {
  std::string pattern =
      (std::filesystem::temp_directory_path() / "siphon-trace-test-XXXXXX").string();
  const std::string directory = mkdtemp(pattern.data());
  const std::string path = directory + "/measured.trace.json";
  ASSERT_TRUE(WriteTrace(path, "first", TwoWorkers()).ok());
  ASSERT_TRUE(WriteTrace(path, "second", {}).ok());
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  EXPECT_EQ(text.str(), TraceJson("second", std::vector<WorkerTimeline>()));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory), {}), 1);
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace siphon
