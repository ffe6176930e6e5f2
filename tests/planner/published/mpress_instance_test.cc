#include "planner/published/mpress_instance.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <numeric>

#include "planner/simulator/simulate.h"
#include "tests/planner/published/mpress_machines.h"

namespace siphon {
namespace {

constexpr double kGigabyte = 1e9;

MpressInstance InstanceOf(const char* row, const Topology& topology, const MpressTools& tools) {
  return MakeMpressInstance(FindMpressRow(row).value(), topology, tools).value();
}

// Peaks of a step with everything kept, whatever the capacity, in GB.
std::vector<double> Peaks(const MpressInstance& instance) {
  SimulationInput input =
      SimulationOf(instance.problem, IdentityMapping(kMpressStages), {}, instance.problem.schedule);
  input.capacity.clear();
  std::vector<double> peaks;
  const SimulatedStep step = Simulate(input).value();
  for (const MemoryByKind& peak : step.peak) {
    peaks.push_back(static_cast<double>(Total(peak).value) / kGigabyte);
  }
  return peaks;
}

class MpressInstances : public testing::TestWithParam<const char*> {};

// The simulator counts boundary tensors too, which Table II's reading leaves out.
TEST_P(MpressInstances, NeedTheMemoryOfTable2) {
  const MpressInstance instance = InstanceOf(GetParam(), Dgx1(), ToolsWithFloors());
  const std::vector<double> peaks = Peaks(instance);
  const MpressRow& row = instance.row;
  EXPECT_NEAR(std::accumulate(peaks.begin(), peaks.end(), 0.0), row.total, 0.1 * row.total);
  EXPECT_NEAR(*std::max_element(peaks.begin(), peaks.end()), row.largest, 0.1 * row.largest);
  EXPECT_NEAR(*std::min_element(peaks.begin(), peaks.end()), row.smallest, 0.1 * row.smallest);
}

INSTANTIATE_TEST_SUITE_P(Table2, MpressInstances,
                         testing::Values("GPT-5.3B", "GPT-10.3B", "GPT-15.4B", "GPT-20.4B",
                                         "GPT-25.5B", "Bert-0.35B", "Bert-0.64B"),
                         [](const auto& test) {
                           std::string name;
                           for (const char letter : std::string(test.param)) {
                             if (std::isalnum(static_cast<unsigned char>(letter))) name += letter;
                           }
                           return name;
                         });

// Cut by computing time the head counts like a block, so that the last stage has fewer: only the
// smallest stage moves.
TEST(MpressInstance, NeedsTheMemoryOfTable2WhenCutByTimeToo) {
  for (const MpressRow& row : MpressTable2()) {
    if (row.schedule != "1f1b") continue;
    const std::vector<double> peaks =
        Peaks(InstanceOf(row.name.c_str(), Dgx1(), ToolsWithBalance()));
    EXPECT_NEAR(std::accumulate(peaks.begin(), peaks.end(), 0.0), row.total, 0.1 * row.total);
    EXPECT_NEAR(*std::max_element(peaks.begin(), peaks.end()), row.largest, 0.1 * row.largest);
    EXPECT_NEAR(*std::min_element(peaks.begin(), peaks.end()), row.smallest, 0.17 * row.smallest);
  }
}

// 6 x 2mnk of a block's matrix products on one token, the embedding's copies aside: attention's
// scores 4 b s^2 h, the projections 24 b s h^2, the head 2 b s h v; the backward twice that.
TEST(MpressInstance, CountsOperationsAsByHand) {
  const MpressInstance instance = InstanceOf("GPT-5.3B", Dgx1(), ToolsWithFloors());
  EXPECT_EQ(instance.samples, 64);
  constexpr double kTokens = 64 * 1024;
  constexpr double kHidden = 4096;
  const double block = 24 * kTokens * kHidden * kHidden + 4 * kTokens * 1024 * kHidden;
  const double head = 2 * kTokens * kHidden * 50257;
  EXPECT_NEAR(instance.flops / (3 * (25 * block + head)), 1, 1e-3);
}

TEST(MpressInstance, LeavesTheDriversShareOfEachDevice) {
  const MpressInstance instance = InstanceOf("GPT-5.3B", A100Server(), ToolsWithFloors());
  EXPECT_THAT(instance.problem.capacity,
              testing::AllOf(testing::SizeIs(8),
                             testing::Each(Bytes((int64_t{40} << 30) - 1'000'000'000))));
}

TEST(MpressInstance, RefusesTooFewDevices) {
  Topology topology = NvswitchTopology(4, BytesPerSecond(1), Nanos(0));
  topology.name = "half a box";
  topology.device_kind = "A100";
  const auto instance =
      MakeMpressInstance(FindMpressRow("GPT-5.3B").value(), topology, ToolsWithFloors());
  EXPECT_EQ(instance.status().ToString(),
            "INVALID_ARGUMENT: topology half a box has 4 devices; MPress's pipelines have 8 "
            "stages, one a device");
}

TEST(MpressInstance, RefusesADeviceOfUnknownMemory) {
  Topology topology = Dgx1();
  topology.devices[3].memory = Bytes(0);
  const auto instance =
      MakeMpressInstance(FindMpressRow("GPT-5.3B").value(), topology, ToolsWithFloors());
  EXPECT_EQ(instance.status().ToString(),
            "INVALID_ARGUMENT: topology DGX-1: device 3 has 0 B of memory; more than 954 MiB are "
            "needed for its driver alone");
}

TEST(MpressInstance, NamesTheRowsThatThereAre) {
  EXPECT_EQ(FindMpressRow("GPT-3").status().ToString(),
            "NOT_FOUND: MPress's Table II has no model 'GPT-3'; known: Bert-0.35B, Bert-0.64B, "
            "Bert-1.67B, Bert-4.0B, Bert-6.2B, GPT-5.3B, GPT-10.3B, GPT-15.4B, GPT-20.4B, "
            "GPT-25.5B");
}

}  // namespace
}  // namespace siphon
