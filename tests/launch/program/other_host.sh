#!/usr/bin/env bash
# In place of ssh: `other_host.sh HOST COMMAND...` runs the command on this machine, on what looks like another host: a host name,
# processes and shared memory of its own, and where SIPHON_OTHER_DISK is a directory, that is too. Needs the rights of root.
host=$1
shift
exec unshare --uts --ipc --mount --pid --fork --kill-child bash -c '
  hostname "$0" && mount --make-rprivate / && mount -t proc proc /proc && mount -t tmpfs tmpfs /dev/shm &&
  { [ -z "${SIPHON_OTHER_DISK:-}" ] || mount -t tmpfs tmpfs "$SIPHON_OTHER_DISK"; } && eval "$*"' "$host" "$@"
