# Ends a process when its supervisor is gone, however that ended: `guard.sh <pid> <start time> <signal>`.
# The supervisor holds the other end of standard input; the kernel closes it with the supervisor.
pid=$1
start_time=$2
signal=$3

# A pid may be given to another process; together with the start time it names one. The name in the second field of
# /proc/<pid>/stat may contain spaces, so fields are counted behind it.
runs() {
  { IFS= read -r stat <"/proc/$pid/stat"; } 2>/dev/null || return 1
  set -- ${stat##*) }
  [ "$1" != Z ] && [ "${20}" = "$start_time" ]
}

read -r _ && exit
runs || exit
kill -s "$signal" "$pid"

# Seven seconds to end in order, then it is killed with everything that it has started.
tick=0
while [ "$tick" -lt 35 ]; do
  sleep 0.2
  runs || exit 0
  tick=$((tick + 1))
done
children=$(cat "/proc/$pid/task/$pid/children")
for each in $pid $children; do
  kill -s KILL -- "-$each" "$each"
done
