#include "launch/run/parking_room.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "launch/plan_job/parking_region.h"
#include "planner/status.h"
#include "planner/topology.h"

namespace siphon {
namespace {

constexpr ParkingPlace kHost{Placement::kHostSwap, DeviceId(0)};

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
    links[link] = PeerLink(topology, owner, places[link].lender);
  }
  return links;
}

absl::Status NotToBeHad(Bytes bytes) {
  return absl::ResourceExhaustedError(absl::StrCat("host memory for swapping: ", FormatBytes(bytes),
                                                   " are not to be had: ", std::strerror(errno)));
}

std::map<ParkingPlace, ParkingMemory> WithHostMemory(std::map<ParkingPlace, ParkingMemory> memory,
                                                     const HostMapping& host) {
  if (!host.bytes().empty()) memory[kHost] = {host.bytes(), CopyLinkId(0)};
  return memory;
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
  if (begin == MAP_FAILED) return NotToBeHad(bytes);
  return HostMapping(absl::Span<std::byte>(static_cast<std::byte*>(begin), size));
}

absl::Status HostMapping::Grow(Bytes bytes) {
  const auto size = static_cast<size_t>(bytes.value);
  if (size <= bytes_.size()) return absl::OkStatus();
  if (bytes_.empty()) {
    SIPHON_ASSIGN_OR_RETURN(*this, Make(bytes));
    return absl::OkStatus();
  }
  void* const begin = mremap(bytes_.data(), bytes_.size(), size, MREMAP_MAYMOVE);
  if (begin == MAP_FAILED) return NotToBeHad(bytes);
  const size_t before = bytes_.size();
  bytes_ = absl::Span<std::byte>(static_cast<std::byte*>(begin), size);
  // There from now on, and not only when it is first used.
  std::memset(bytes_.data() + before, 0, size - before);
  return absl::OkStatus();
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

absl::StatusOr<std::unique_ptr<ParkingRoom>> ParkingRoom::Make(const PreparedJob& prepared,
                                                               WorkerId me,
                                                               const WorkerParking& parking,
                                                               absl::Span<std::byte> lent) {
  // Of the plan, so that there is a link to each place that any second choice may be at.
  std::vector<ParkingPlace> places = PlacesOf(prepared.parking[me.value]);
  std::map<ParkingPlace, ParkingMemory> memory;
  HostMapping host;
  if (const auto on_host = parking.bytes.find(kHost); on_host != parking.bytes.end()) {
    SIPHON_ASSIGN_OR_RETURN(host, HostMapping::Make(on_host->second));
  }
  for (const ParkingRegion::Part& part : LayOutRegion(prepared.parking).parts) {
    if (part.owner != me) continue;
    const ParkingPlace place{Placement::kPeerSwap, part.lender};
    const auto link = std::find(places.begin(), places.end(), place) - places.begin();
    memory[place] = {lent.subspan(part.offset.value, part.bytes.value),
                     CopyLinkId(static_cast<int>(link))};
  }
  CpuBackendOptions options{.links = LinksOf(prepared, DeviceOf(prepared, me), places)};
  return std::unique_ptr<ParkingRoom>(new ParkingRoom(std::move(host), std::move(places),
                                                      std::move(options), parking,
                                                      std::move(memory), CheckOf(prepared.job)));
}

ParkingRoom::ParkingRoom(HostMapping host, std::vector<ParkingPlace> places,
                         CpuBackendOptions links, const WorkerParking& parking,
                         std::map<ParkingPlace, ParkingMemory> memory, SwapCheck check)
    : host_(std::move(host)),
      places_(std::move(places)),
      planned_(links.links),
      memory_(std::move(memory)),
      backend_(std::move(links)),
      engine_(&backend_, parking, WithHostMemory(memory_, host_), check) {}

absl::Status ParkingRoom::Rehouse(const WorkerParking& parking) {
  const auto on_host = parking.bytes.find(kHost);
  if (on_host != parking.bytes.end()) SIPHON_RETURN_IF_ERROR(host_.Grow(on_host->second));
  return engine_.Rehouse(parking, WithHostMemory(memory_, host_));
}

std::vector<LinkState> ParkingRoom::TakeLinkUse() {
  std::vector<LinkState> links;
  for (const CopyLinkUse& use : backend_.TakeUse()) {
    links.push_back({places_[links.size()], planned_[links.size()], use});
  }
  return links;
}

void ParkingRoom::SlowDown(const ParkingPlace& place, double factor) {
  const auto found = std::find(places_.begin(), places_.end(), place);
  if (found == places_.end()) return;
  backend_.SlowDown(CopyLinkId(static_cast<int>(found - places_.begin())), factor);
}

}  // namespace siphon
