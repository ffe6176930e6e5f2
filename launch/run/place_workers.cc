#include "launch/run/place_workers.h"

#include <map>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace siphon {
namespace {

// Who is in each, in order.
std::map<int, std::vector<int>> Members(const std::vector<int>& place_of) {
  std::map<int, std::vector<int>> members;
  for (size_t one = 0; one < place_of.size(); ++one) {
    members[place_of[one]].push_back(static_cast<int>(one));
  }
  return members;
}

// "3 and 1"
std::string Sizes(const std::map<int, std::vector<int>>& members) {
  std::vector<size_t> sizes;
  for (const auto& [place, those] : members) sizes.push_back(those.size());
  const size_t last = sizes.back();
  if (sizes.size() == 1) return absl::StrCat(last);
  sizes.pop_back();
  return absl::StrCat(absl::StrJoin(sizes, ", "), " and ", last);
}

}  // namespace

absl::StatusOr<std::vector<WorkerId>> PlaceWorkers(const std::vector<int>& server_of_worker,
                                                   const std::vector<int>& host_of_rank) {
  const std::map<int, std::vector<int>> servers = Members(server_of_worker);
  std::map<int, std::vector<int>> hosts = Members(host_of_rank);
  const std::string started = Sizes(hosts);
  std::vector<WorkerId> worker_of(host_of_rank.size());
  for (const auto& [server, workers] : servers) {
    const auto host = absl::c_find_if(
        hosts, [&](const auto& one) { return one.second.size() == workers.size(); });
    if (host == hosts.end()) {
      return absl::FailedPreconditionError(absl::StrCat(
          "the plan has ", Sizes(servers), " workers in its ",
          servers.size() == 1 ? "server" : "servers", ", and ", started, " were started on ",
          started.find(' ') == std::string::npos ? "one host" : "the hosts", "; mpirun --host one:",
          servers.begin()->second.size(), ",other:N starts so many on each"));
    }
    for (size_t place = 0; place < workers.size(); ++place) {
      worker_of[host->second[place]] = WorkerId(workers[place]);
    }
    hosts.erase(host);
  }
  return worker_of;
}

absl::Status CheckOneServer(const JobConfig& job) {
  if (job.topology.servers == 1) return absl::OkStatus();
  return ConfigError(job, "topology.servers",
                     absl::StrCat("is ", job.topology.servers,
                                  ", and all workers would be started on this one; start them "
                                  "with mpirun: mpirun --hostfile HOSTS siphon train JOB"));
}

}  // namespace siphon
