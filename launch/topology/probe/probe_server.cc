#include "launch/topology/probe/probe_server.h"

#include <unistd.h>

#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "launch/checkpoint/checksum.h"
#include "launch/output/cache_directory.h"
#include "launch/output/text_file.h"
#include "launch/topology/server_facts.h"
#include "launch/topology/topology_file.h"
#include "planner/status.h"
#include "swap/device/load_cuda_module.h"

namespace siphon {
namespace {

namespace fs = std::filesystem;

// Of what is measured, and how it is written.
constexpr int kFormat = 2;
constexpr absl::string_view kNote = "# note: ";

// Where it is kept; empty: nowhere.
std::string FileOf(const ProbeSources& sources, absl::string_view key, bool knows_driver) {
  if (!knows_driver || sources.cache.empty() || sources.sizes.has_value()) return "";
  return (fs::path(sources.cache) / absl::StrCat("topology-", ChecksumText(Checksum(key)), ".yaml"))
      .string();
}

// One line; what is kept under it holds for these devices, in this order, and this driver.
std::string KeyOf(const std::vector<CudaDeviceInfo>& devices, absl::string_view driver) {
  std::string key = absl::StrCat("# Measured by siphon topology --probe, format ", kFormat,
                                 ", driver ", driver, ", devices");
  for (const CudaDeviceInfo& device : devices) absl::StrAppend(&key, " ", device.uuid);
  return absl::StrJoin(absl::StrSplit(key, '\n'), " ");
}

// Notes are kept with what they are about.
std::string FileText(absl::string_view key, const ServerFacts& facts) {
  std::string text = absl::StrCat(key, "\n");
  for (const std::string& note : facts.notes) {
    absl::StrAppend(&text, kNote, absl::StrJoin(absl::StrSplit(note, '\n'), " "), "\n");
  }
  return text + TopologyYaml(facts.keys);
}

absl::StatusOr<ProbedServer> FromText(std::string text, absl::string_view name) {
  ProbedServer probed;
  SIPHON_ASSIGN_OR_RETURN(probed.discovered, ParseDiscovered(text, name));
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    if (!absl::StartsWith(line, kNote)) continue;
    probed.discovered.notes.emplace_back(line.substr(kNote.size()));
  }
  probed.yaml = std::move(text);
  return probed;
}

// None: nothing is kept under the key, or not in a way that can be read.
std::optional<ProbedServer> Kept(const std::string& file, absl::string_view key) {
  const absl::StatusOr<std::string> text = ReadTextFileIfThere(file);
  if (!text.ok() || !absl::StartsWith(*text, absl::StrCat(key, "\n"))) return std::nullopt;
  absl::StatusOr<ProbedServer> kept = FromText(*text, file);
  if (!kept.ok()) return std::nullopt;
  kept->file = file;
  kept->discovered.notes.push_back(absl::StrCat(
      "measured earlier, with the same devices and driver (", file, "); --fresh measures again"));
  return *std::move(kept);
}

absl::Status Keep(const std::string& file, const std::string& text) {
  std::error_code error;
  fs::create_directories(fs::path(file).parent_path(), error);
  if (error) return absl::InvalidArgumentError(absl::StrCat(file, ": ", error.message()));
  return WriteTextFile(file, text);
}

}  // namespace

absl::StatusOr<ProbedServer> ProbeServer(const ProbeSources& sources) {
  SIPHON_ASSIGN_OR_RETURN(const std::vector<CudaDeviceInfo> devices, sources.module->Devices());
  const absl::StatusOr<NvmlServer> nvml = sources.nvml();
  const std::string key = KeyOf(devices, nvml.ok() ? nvml->driver : "not known");
  const std::string file = FileOf(sources, key, nvml.ok());
  if (!file.empty() && !sources.is_fresh) {
    if (std::optional<ProbedServer> kept = Kept(file, key)) return *std::move(kept);
  }
  if (!sources.measures) {
    return absl::FailedPreconditionError(
        "nothing is kept of these devices with this driver; siphon topology --probe measures");
  }
  std::vector<PciePlace> places;
  for (const CudaDeviceInfo& device : devices) {
    places.push_back(ReadPciePlace(sources.sysfs, CanonicalBusId(device.bus_id)));
  }
  ServerFacts facts =
      CombineFacts(devices, nvml.ok() ? std::optional<NvmlServer>(*nvml) : std::nullopt,
                   nvml.status().message(), std::move(places));
  facts.keys.host_memory = sources.host_memory;
  const CalibrationSizes sizes = sources.sizes.value_or(CalibrationSizes());
  if (sources.sizes.has_value()) {
    facts.notes.push_back(absl::StrCat("measured with copies of ", FormatBytes(sizes.bytes)));
  }
  SIPHON_RETURN_IF_ERROR(CalibrateLinks(*sources.module, sizes, &facts));
  SIPHON_ASSIGN_OR_RETURN(ProbedServer probed, FromText(FileText(key, facts), "what was measured"));
  if (sources.sizes.has_value()) {
    probed.discovered.notes.push_back(
        absl::StrCat("not kept for the next time, as what is kept is measured with copies of ",
                     FormatBytes(CalibrationSizes().bytes)));
  }
  if (file.empty()) return probed;
  const absl::Status is_kept = Keep(file, probed.yaml);
  if (is_kept.ok()) {
    probed.file = file;
  } else {
    probed.discovered.notes.push_back(
        absl::StrCat("warning: could not be kept for the next time: ", is_kept.message()));
  }
  return probed;
}

absl::StatusOr<ProbeSources> ProbeSourcesHere() {
  return ProbeSourcesWith(FindCudaModule("/proc/self/exe"));
}

absl::StatusOr<ProbeSources> ProbeSourcesWith(const std::string& cuda_module) {
  ProbeSources sources;
  NumberCudaDevicesByBus();
  SIPHON_ASSIGN_OR_RETURN(sources.module, LoadCudaModule(cuda_module));
  sources.host_memory =
      Bytes(static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE));
  sources.cache = CacheDirectory();
  return sources;
}

}  // namespace siphon
