#include "tests/architecture_table.h"

#include <utility>

namespace siphon {
namespace {

// What plans are made with, from the ground up.
const std::set<std::string>& Planner() {
  static const auto* const planner = new std::set<std::string>{
      "planner/",
      "planner/simulator/",
      "planner/simulator/engine/",
      "planner/lowering/",
      "planner/drafts/",
      "planner/drafts/maps/",
      "planner/bounds/",
      "planner/bounds/linear/",
      "planner/weight_offload/",
      "planner/second_choices/",
      "planner/search/",
      "planner/strategies/",
      "planner/published/",
  };
  return *planner;
}

std::set<std::string> PlannerAnd(std::set<std::string> others) {
  others.insert(Planner().begin(), Planner().end());
  return others;
}

std::set<std::string> BelowLaunchAnd(std::set<std::string> others) {
  others.insert({"partitioner/", "swap/", "pipeline/", "pipeline/schedules/", "pipeline/synthetic/",
                 "pipeline/torch/", "pipeline/torch/memory/", "pipeline/torch/graphs/",
                 "pipeline/torch/kinds/", "pipeline/torch/parameters/", "pipeline/torch/device/"});
  return PlannerAnd(std::move(others));
}

// What any file with LibTorch may include, besides the folders under pipeline/torch.
std::set<std::string> TorchAnd(std::set<std::string> others) {
  others.insert({"planner/", "swap/", "pipeline/", "pipeline/torch/"});
  return others;
}

}  // namespace

const std::vector<Area>& Areas() {
  static const std::set<std::string> drafts = {"planner/", "planner/simulator/",
                                               "planner/simulator/engine/", "planner/lowering/",
                                               "planner/drafts/"};
  const auto drafts_and = [](std::set<std::string> others) {
    others.insert(drafts.begin(), drafts.end());
    return others;
  };
  static const std::set<std::string> run_memory = {"launch/", "launch/run/job/", "launch/run/seat/",
                                                   "launch/run/parking/"};
  static const auto* const areas = new std::vector<Area>{
      {"planner/", {"planner/simulator/", "planner/simulator/engine/"}, true},
      {"planner/simulator/", {"planner/", "planner/simulator/engine/"}, true},
      {"planner/simulator/engine/", {"planner/"}, true},
      {"planner/lowering/", {"planner/"}, true},
      {"planner/drafts/", drafts, true},
      {"planner/drafts/maps/", drafts, true},
      {"planner/bounds/facts/", drafts, true},
      {"planner/bounds/counting/", drafts_and({"planner/bounds/facts/"}), true},
      {"planner/bounds/linear/", {"planner/"}, true},
      {"planner/bounds/windows/", drafts_and({"planner/bounds/facts/", "planner/bounds/linear/"}),
       true},
      {"planner/bounds/moments/",
       drafts_and({"planner/bounds/facts/", "planner/bounds/linear/", "planner/bounds/windows/"}),
       true},
      {"planner/bounds/",
       drafts_and({"planner/bounds/facts/", "planner/bounds/counting/", "planner/bounds/linear/",
                   "planner/bounds/windows/", "planner/bounds/moments/"}),
       true},
      {"planner/weight_offload/", {"planner/", "planner/bounds/linear/"}, true},
      {"planner/second_choices/", drafts, true},
      {"planner/search/", drafts_and({"planner/drafts/maps/", "planner/weight_offload/"}), true},
      {"planner/strategies/",
       drafts_and({"planner/drafts/maps/", "planner/weight_offload/", "planner/second_choices/",
                   "planner/search/"}),
       true},
      {"planner/published/", Planner(), true},
      {"partitioner/", {"planner/"}, true},
      {"swap/", {"planner/"}, false},
      {"pipeline/schedules/", {"planner/"}, true},
      {"pipeline/torch/memory/", TorchAnd({}), false},
      {"pipeline/torch/graphs/", TorchAnd({"pipeline/torch/memory/"}), false},
      {"pipeline/torch/kinds/", TorchAnd({}), false},
      {"pipeline/torch/parameters/", TorchAnd({"pipeline/torch/memory/"}), false},
      {"pipeline/torch/device/", TorchAnd({}), false},
      {"pipeline/torch/",
       TorchAnd({"pipeline/torch/memory/", "pipeline/torch/graphs/", "pipeline/torch/kinds/",
                 "pipeline/torch/parameters/"}),
       false},
      {"pipeline/", {"planner/", "swap/"}, false},
      {"pipeline/synthetic/", drafts_and({"swap/", "pipeline/"}), false},
      {"launch/", BelowLaunchAnd({"launch/run/", "launch/run/layer_profile/"}), false},
      {"launch/run/job/", BelowLaunchAnd({"launch/"}), false},
      {"launch/run/seat/", BelowLaunchAnd({"launch/", "launch/run/job/"}), false},
      {"launch/run/parking/", BelowLaunchAnd({"launch/", "launch/run/job/", "launch/run/seat/"}),
       false},
      {"launch/run/follow/", BelowLaunchAnd(run_memory), false},
      {"launch/run/record/", BelowLaunchAnd(run_memory), false},
      {"launch/run/layer_profile/", BelowLaunchAnd({"launch/", "launch/run/", "launch/run/job/"}),
       false},
      {"launch/run/",
       BelowLaunchAnd({"launch/", "launch/run/job/", "launch/run/seat/", "launch/run/parking/",
                       "launch/run/follow/", "launch/run/record/"}),
       false},
      {"tests/", {}, false},  // checked for length only
  };
  return *areas;
}

const std::vector<Door>& HeaderDoors() {
  static const auto* const doors = new std::vector<Door>{
      {std::regex("(c10|ATen)/cuda/.*|torch/csrc/.*cuda.*"), {"pipeline/torch/device/cuda_"}},
      {std::regex("(ATen|torch|c10)/.*"), {"pipeline/torch/"}},
      {std::regex("cuda(_.*)?\\.h|nvml\\.h|nvtx3/.*"),
       {"swap/device/cuda_", "pipeline/torch/device/cuda_", "pipeline/transport/nccl_"}},
      {std::regex("nccl\\.h"), {"pipeline/transport/nccl_"}},
      {std::regex("liburing(/.*|\\.h)"), {"swap/device/nvme_"}},
      {std::regex("hwloc(/.*|\\.h)"), {"swap/device/numa_"}},
      {std::regex("[a-z]mmintrin\\.h|immintrin\\.h"),
       {"swap/device/stream_copy"}},  // of the processor
      {std::regex("coin/.*|(Cbc|Clp|Coin|Osi).*\\.hp?p?"), {"planner/bounds/linear/"}},
      {std::regex("mpi(_.*|-ext)?\\.h"), {"launch/mpi_"}},
      {std::regex("(yaml-cpp|nlohmann|CLI|spdlog|fmt)/.*|xxhash\\.h"), {"launch/"}},
      {std::regex("pugixml\\.hpp"), {"launch/"}},
      {std::regex("(gtest|gmock|benchmark)/.*"), {"tests/"}},
  };
  return *doors;
}

const std::vector<Door>& LinkDoors() {
  static const auto* const doors = new std::vector<Door>{
      {std::regex("Siphon::(torch_cpu|c10|c10_cuda)|torch.*|c10.*"), {"pipeline/torch/"}},
      {std::regex("Siphon::cbc"), {"planner/bounds/linear/"}},
      {std::regex("Siphon::(uring|hwloc)"), {"swap/"}},
      {std::regex("CUDA::.*|nvml.*"), {"swap/", "pipeline/torch/", "pipeline/transport/"}},
      {std::regex("MPI::.*"), {"launch/"}},
      {std::regex("(yaml-cpp|nlohmann_json|CLI11|spdlog|fmt|pugixml)::.*"), {"launch/"}},
      {std::regex("GTest::.*|benchmark::.*"), {"tests/"}},
      {std::regex("absl::.*"), {""}},
      {std::regex("Threads::Threads|rt|dl|\\$\\{CMAKE_DL_LIBS\\}"),
       {"swap/", "pipeline/", "launch/", "tests/"}},
  };
  return *doors;
}

}  // namespace siphon
