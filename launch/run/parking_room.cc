#include "launch/run/parking_room.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "launch/output/start_log.h"
#include "launch/plan_job/parking_region.h"
#include "planner/status.h"
#include "planner/topology.h"

namespace siphon {
namespace {

constexpr ParkingPlace kHost{Placement::kHostSwap, DeviceId(0)};
constexpr ParkingPlace kDrive{Placement::kNvmeSwap, DeviceId(0)};

DeviceId DeviceOf(const PreparedJob& prepared, WorkerId worker) {
  const std::vector<DeviceId>& devices = prepared.plan_text.mapping.device_of_worker;
  return devices.empty() ? DeviceId(worker.value) : devices[worker.value];
}

// The slower direction where one is: a link has one rate here. 0 is no limit.
BytesPerSecond Slower(BytesPerSecond a, BytesPerSecond b) {
  if (a == BytesPerSecond(0) || b == BytesPerSecond(0)) return std::max(a, b);
  return std::min(a, b);
}

CopyLinkRate HostLink(const Topology& topology, DeviceId device) {
  const std::optional<int> uplink = SwitchOf(topology, device);
  if (!uplink.has_value()) return {};
  const PcieSwitch& pcie = topology.switches[*uplink];
  return {Slower(pcie.to_host, pcie.from_host), pcie.latency};
}

CopyLinkRate PeerLink(const Topology& topology, DeviceId owner, DeviceId lender) {
  const std::optional<TopologyLink> out = FindLink(topology, owner, lender);
  const std::optional<TopologyLink> back = FindLink(topology, lender, owner);
  if (!out.has_value() || !back.has_value()) return {};
  return {Slower(out->rate, back->rate), std::max(out->latency, back->latency)};
}

// All workers share the drive, each is held to its whole rate: links know nothing of each other.
CopyLinkRate LinkToDrive(const Topology& topology) {
  if (topology.drives.empty()) return {};
  const NvmeDrive& drive = topology.drives[0];
  return {Slower(drive.write, drive.read), drive.latency};
}

// The places of a worker, the host first, which has a link even where nothing goes there.
std::vector<ParkingPlace> PlacesOf(const WorkerParking& parking) {
  std::vector<ParkingPlace> places = {kHost};
  for (const auto& [place, bytes] : parking.bytes) {
    if (place != kHost) places.push_back(place);
  }
  return places;
}

// The plan's topology has the rates that links are held to.
std::vector<CopyLinkRate> LinksOf(const PreparedJob& prepared, DeviceId owner,
                                  const std::vector<ParkingPlace>& places) {
  std::vector<CopyLinkRate> links(places.size());
  if (prepared.job.topology.throttle == "none") return links;
  const Topology& topology = prepared.plan_text.topology;
  links[0] = HostLink(topology, owner);
  for (size_t link = 1; link < places.size(); ++link) {
    links[link] = places[link] == kDrive ? LinkToDrive(topology)
                                         : PeerLink(topology, owner, places[link].lender);
  }
  return links;
}

CopyLinkId LinkOf(const std::vector<ParkingPlace>& places, const ParkingPlace& place) {
  const auto found = std::find(places.begin(), places.end(), place);
  return CopyLinkId(static_cast<int>(found - places.begin()));
}

bool IsFirstOnDrive(const PreparedJob& prepared, WorkerId me) {
  for (int worker = 0; worker < me.value; ++worker) {
    if (prepared.parking[worker].bytes.contains(kDrive)) return false;
  }
  return true;
}

// Null where the worker parks nothing there. Of all workers the first says what is worth saying.
absl::StatusOr<std::unique_ptr<NvmeParking>> MakeDrive(const PreparedJob& prepared, WorkerId me) {
  const WorkerParking& parking = prepared.parking[me.value];
  const auto bytes = parking.bytes.find(kDrive);
  if (bytes == parking.bytes.end()) return nullptr;
  const std::string directory = DriveDirectory(prepared.job);
  SIPHON_ASSIGN_OR_RETURN(
      std::unique_ptr<NvmeParking> drive,
      NvmeParking::Make({.file = {.directory = directory,
                                  .name = absl::StrCat("siphon-", getpid(), "-worker-", me.value),
                                  .bytes = bytes->second}}));
  if (!drive->file().direct() && IsFirstOnDrive(prepared, me)) {
    LogWarning(absl::StrCat(directory,
                            " has no O_DIRECT: what is parked there takes memory of the machine as "
                            "well, in its page cache"));
  }
  return drive;
}

SwapCheck CheckOf(const JobConfig& job) {
  if (job.memory.check == "off") return SwapCheck::kOff;
  return job.memory.check == "full" ? SwapCheck::kFull : SwapCheck::kCheap;
}

}  // namespace

absl::StatusOr<HostMapping> HostMapping::Make(Bytes bytes) {
  if (bytes == Bytes(0)) return HostMapping();
  const auto size = static_cast<size_t>(bytes.value);
  void* const begin = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (begin == MAP_FAILED) {
    return absl::ResourceExhaustedError(
        absl::StrCat("host memory for swapping: ", FormatBytes(bytes),
                     " are not to be had: ", std::strerror(errno)));
  }
  return HostMapping(absl::Span<std::byte>(static_cast<std::byte*>(begin), size));
}

HostMapping::HostMapping(HostMapping&& other) noexcept
    : bytes_(std::exchange(other.bytes_, absl::Span<std::byte>())) {}

HostMapping& HostMapping::operator=(HostMapping&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

HostMapping::~HostMapping() {
  if (!bytes_.empty()) munmap(bytes_.data(), bytes_.size());
}

Bytes ParkingRegionBytes(const PreparedJob& prepared) {
  return LayOutRegion(prepared.parking).bytes;
}

Bytes LentByWorker(const PreparedJob& prepared, WorkerId worker) {
  return LentBytes(prepared.parking, DeviceOf(prepared, worker));
}

std::string DriveDirectory(const JobConfig& job) {
  return job.memory.nvme_directory.empty() ? job.output.directory : job.memory.nvme_directory;
}

absl::Status CheckDriveRoom(const PreparedJob& prepared) {
  const Bytes bytes = DriveBytes(prepared.parking);
  if (bytes == Bytes(0)) return absl::OkStatus();
  const absl::Status room = CheckRoomOnDrive(DriveDirectory(prepared.job), bytes);
  if (!absl::IsResourceExhausted(room)) return room;
  return absl::ResourceExhaustedError(
      absl::StrCat("memory.strategy ", prepared.job.memory.strategy, ": ", room.message(),
                   "; free some, or name another drive in memory.nvme_directory"));
}

absl::StatusOr<std::unique_ptr<ParkingRoom>> ParkingRoom::Make(const PreparedJob& prepared,
                                                               WorkerId me,
                                                               absl::Span<std::byte> lent) {
  const WorkerParking& parking = prepared.parking[me.value];
  const std::vector<ParkingPlace> places = PlacesOf(parking);
  std::map<ParkingPlace, ParkingMemory> memory;
  HostMapping host;
  if (const auto on_host = parking.bytes.find(kHost); on_host != parking.bytes.end()) {
    SIPHON_ASSIGN_OR_RETURN(host, HostMapping::Make(on_host->second));
    memory[kHost] = {host.bytes(), CopyLinkId(0)};
  }
  for (const ParkingRegion::Part& part : LayOutRegion(prepared.parking).parts) {
    if (part.owner != me) continue;
    const ParkingPlace place{Placement::kPeerSwap, part.lender};
    memory[place] = {lent.subspan(part.offset.value, part.bytes.value), LinkOf(places, place)};
  }
  CpuBackendOptions options{.links = LinksOf(prepared, DeviceOf(prepared, me), places)};
  SIPHON_ASSIGN_OR_RETURN(std::unique_ptr<NvmeParking> drive, MakeDrive(prepared, me));
  if (drive != nullptr) {
    memory[kDrive] = {drive->bytes(), LinkOf(places, kDrive)};
    const auto move = [to = drive.get()](CopyLane lane, absl::Span<const CopyPart> parts) {
      return to->Move(lane, parts);
    };
    options.drive = DriveLink{memory[kDrive].link, move};
  }
  return std::unique_ptr<ParkingRoom>(new ParkingRoom(std::move(host), std::move(drive),
                                                      std::move(options), parking,
                                                      std::move(memory), CheckOf(prepared.job)));
}

ParkingRoom::ParkingRoom(HostMapping host, std::unique_ptr<NvmeParking> drive,
                         CpuBackendOptions links, WorkerParking parking,
                         std::map<ParkingPlace, ParkingMemory> memory, SwapCheck check)
    : host_(std::move(host)),
      drive_(std::move(drive)),
      backend_(std::move(links)),
      engine_(&backend_, std::move(parking), std::move(memory), check) {}

}  // namespace siphon
