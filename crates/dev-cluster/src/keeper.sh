# A child's parent that outlives ours. Arguments: signal, directory to remove (or empty), log, program and its own.
# Standard input is the pipe: its end means that whoever started us is gone or lets go.
signal=$1 doomed=$2 log=$3
shift 3
exec 3<&0
"$@" </dev/null 3<&- >>"$log" 2>&1 &
child=$!
gone=
# A stopped child acts on nothing but SIGKILL until it is continued.
trap 'gone=1; kill -"$signal" "$child"; kill -CONT "$child"' TERM
(read -r _ <&3; kill -TERM $$) &
reader=$!
echo "$child"
wait "$child"
status=$?
# `wait` returns early when the trap runs: then the child is still ending.
[ -z "$gone" ] || wait "$child"
kill "$reader"
[ -z "$gone" ] || [ -z "$doomed" ] || rm -rf "$doomed"
exit "$status"
