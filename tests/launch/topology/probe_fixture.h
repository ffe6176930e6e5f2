#ifndef SIPHON_TESTS_LAUNCH_TOPOLOGY_PROBE_FIXTURE_H_
#define SIPHON_TESTS_LAUNCH_TOPOLOGY_PROBE_FIXTURE_H_

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "launch/topology/probe/probe_server.h"
#include "tests/launch/topology/made_up_server.h"

namespace siphon {

// A made-up server on a made-up /sys, with an NVML that says what a test wants.
class ProbeTest : public testing::Test {
 protected:
  ProbeTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "siphon-probe-XXXXXX").string();
    directory_ = mkdtemp(pattern.data());
    sources_.sysfs = (directory_ / "sys").string();
    sources_.nvml = [this]() -> absl::StatusOr<NvmlServer> { return nvml_; };
  }
  ~ProbeTest() override { std::filesystem::remove_all(directory_); }

  // 0000:10:00.0 and so on, wires[from][to].
  void Wire(const std::vector<std::vector<int>>& wires) {
    nvml_ = {.driver = "580.65"};
    for (size_t from = 0; from < wires.size(); ++from) {
      NvmlDevice device{.bus_id = BusId(from), .uuid = ""};
      for (size_t to = 0; to < wires[from].size(); ++to) {
        device.links.insert(device.links.end(), static_cast<size_t>(wires[from][to]),
                            {NvlinkEnd::At::kDevice, BusId(to)});
      }
      nvml_.devices.push_back(device);
    }
  }
  void WireToSwitches(const std::vector<int>& wires) {
    nvml_ = {.driver = "580.65"};
    for (size_t device = 0; device < wires.size(); ++device) {
      nvml_.devices.push_back(
          {.bus_id = BusId(device),
           .links = std::vector<NvlinkEnd>(static_cast<size_t>(wires[device]))});
    }
  }
  // Puts devices below bridges of the made-up /sys.
  void Place(size_t device, const std::string& bridges, int node, const std::string& speed,
             const std::string& host_bridge = "pci0000:00") {
    namespace fs = std::filesystem;
    const fs::path path =
        fs::path(sources_.sysfs) / "devices" / host_bridge / bridges / BusId(device);
    fs::create_directories(path);
    fs::create_directories(fs::path(sources_.sysfs) / "bus/pci/devices");
    const fs::path shown = fs::path(sources_.sysfs) / "bus/pci/devices" / BusId(device);
    if (!fs::exists(shown)) fs::create_symlink(path, shown);
    std::ofstream(path / "numa_node") << node << "\n";
    std::ofstream(path / "max_link_speed") << speed << "\n";
    std::ofstream(path / "max_link_width") << "16\n";
  }
  ProbedServer Run(const MadeUpServer& server) {
    sources_.module = &server;
    absl::StatusOr<ProbedServer> probed = ProbeServer(sources_);
    EXPECT_TRUE(probed.ok()) << probed.status();
    return probed.ok() ? *std::move(probed) : ProbedServer();
  }
  static std::string BusId(size_t device) { return absl::StrCat("0000:", 10 + device, ":00.0"); }
  static double RateOfLink(const Topology& topology, int from, int to) {
    const auto link = FindLink(topology, DeviceId(from), DeviceId(to));
    return link.has_value() ? static_cast<double>(link->rate.value) * 1e-9 : 0;
  }

  std::filesystem::path directory_;
  NvmlServer nvml_;
  ProbeSources sources_;
};

}  // namespace siphon

#endif  // SIPHON_TESTS_LAUNCH_TOPOLOGY_PROBE_FIXTURE_H_
