#include "launch/topology/pcie_place.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace siphon {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;

// A /sys with devices at the paths that a test gives.
class PcieTree : public testing::Test {
 protected:
  PcieTree() {
    std::string pattern = (fs::temp_directory_path() / "siphon-sysfs-XXXXXX").string();
    root_ = mkdtemp(pattern.data());
    fs::create_directories(root_ / "bus/pci/devices");
  }
  ~PcieTree() override { fs::remove_all(root_); }

  PciePlace Add(const std::string& path) {
    const fs::path device = root_ / "devices" / path;
    fs::create_directories(device);
    const std::string bus_id = device.filename().string();
    fs::create_symlink(device, root_ / "bus/pci/devices" / bus_id);
    return ReadPciePlace(root_.string(), bus_id);
  }
  void Write(const std::string& path, const std::string& text) {
    std::ofstream(root_ / "devices" / path) << text << "\n";
  }

  fs::path root_;
};

TEST_F(PcieTree, HasTheWayNodeAndSlotOfADevice) {
  Add("pci0000:3a/0000:3a:00.0/0000:3b:00.0/0000:3c:08.0/0000:3e:00.0");
  const std::string device = "pci0000:3a/0000:3a:00.0/0000:3b:00.0/0000:3c:08.0/0000:3e:00.0/";
  Write(device + "numa_node", "1");
  Write(device + "max_link_speed", "16.0 GT/s PCIe");
  Write(device + "max_link_width", "16");
  const PciePlace place = ReadPciePlace(root_.string(), "0000:3e:00.0");
  EXPECT_EQ(place.host_bridge, "pci0000:3a");
  EXPECT_THAT(place.bridges, ElementsAre("0000:3a:00.0", "0000:3b:00.0", "0000:3c:08.0"));
  EXPECT_EQ(place.numa, 1);
  EXPECT_EQ(place.generation, 4);
  EXPECT_EQ(place.lanes, 16);
}

// A virtual machine says -1 for the node, and a device that is not there says nothing.
TEST_F(PcieTree, DoesNotKnowWhatIsNotShown) {
  Add("pci0000:00/0000:00:05.0");
  Write("pci0000:00/0000:00:05.0/numa_node", "-1");
  const PciePlace hidden = ReadPciePlace(root_.string(), "0000:00:05.0");
  EXPECT_FALSE(hidden.numa.has_value());
  EXPECT_EQ(hidden.generation, 0);
  EXPECT_THAT(hidden.bridges, IsEmpty());
  EXPECT_THAT(ReadPciePlace(root_.string(), "0000:99:00.0").bridges, IsEmpty());
}

TEST_F(PcieTree, GroupsDevicesByTheInnermostBridgeThatTheyShare) {
  const std::string port = "pci0000:3a/0000:3a:00.0/0000:3b:00.0/";
  const std::string second = port + "0000:3c:10.0/0000:40:00.0/";
  const std::vector<PciePlace> places = {
      Add(port + "0000:3c:08.0/0000:3e:00.0"),     Add(second + "0000:41:00.0/0000:42:00.0"),
      Add("pci0000:80/0000:80:01.0/0000:81:00.0"), Add(second + "0000:41:04.0/0000:43:00.0"),
      Add(port + "0000:3c:0c.0/0000:3f:00.0"),     PciePlace()};
  EXPECT_THAT(SharedBridges(places), ElementsAre(0, 1, 2, 1, 0, 3));
}

TEST(NominalPcieRate, IsWhatIsLeftOfTransfers) {
  EXPECT_EQ(NominalPcieRate(2, 16).value, 8'000'000'000);
  EXPECT_NEAR(static_cast<double>(NominalPcieRate(3, 16).value), 15.75e9, 1e7);
  EXPECT_NEAR(static_cast<double>(NominalPcieRate(5, 8).value), 31.5e9, 1e7);
  EXPECT_EQ(NominalPcieRate(0, 16).value, 0);
  EXPECT_EQ(NominalPcieRate(9, 16).value, 0);
}

}  // namespace
}  // namespace siphon
