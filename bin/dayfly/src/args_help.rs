//! What stands below the options in the help of a command.

pub(crate) const EXAMPLES: &str = "\
Examples:
  dayfly run -- python3 -c 'print(6 * 7)'
  id=$(dayfly create --ttl 10m); dayfly cp main.py $id:/workspace/
  dayfly exec $id -- python3 main.py; dayfly rm $id";

pub(crate) const RUN_HELP: &str = "\
Exits with the status of the command; `dayfly help` lists the exit statuses. Ctrl-C and SIGTERM
stop the command and delete the sandbox. With --json the output is not streamed: one object follows
at the end, with sandbox_id, stdout, stderr, exit_code, reason, signal, duration_ms, truncated and
sandbox_deleted.

Examples:
  dayfly run -- python3 -c 'print(6 * 7)'
  dayfly run --timeout 30s --env DEBUG=1 -- sh -c 'make test'
  dayfly run --stdin -- python3 - < script.py";

pub(crate) const EXEC_HELP: &str = "\
Exits with the status of the command; `dayfly help` lists the exit statuses. With --json the
output is not streamed: one object follows at the end, with sandbox_id, stdout, stderr, exit_code,
reason, signal, duration_ms and truncated. After a lost connection it reconnects and continues: no
byte is lost or printed twice.

Examples:
  dayfly exec ID -- make test
  dayfly exec -it ID -- bash
  dayfly exec -d ID -- python3 -m http.server";

pub(crate) const ATTACH_HELP: &str = "\
Exits with the status of the command. Of a command that has a terminal only new output is shown.

Examples:
  dayfly attach ID ex-4k...
  dayfly attach --offset 1048576 ID ex-4k...";

pub(crate) const TTL_HELP: &str = "\
Without options it shows the current settings. What is not named is not changed. A new time to live
counts from now.

Examples:
  dayfly ttl ID 2h
  dayfly ttl ID none --idle 10m --on-timeout hibernate";

pub(crate) const FORK_HELP: &str = "\
The sandbox pauses for a moment and continues. Each child has its own id, address, clock and
randomness; random numbers that programs had already drawn are the same in all. When some children
cannot be created, the others are printed and the exit status is 125.";

pub(crate) const EXPLORE_HELP: &str = "\
One fork, with a child for each candidate. The winner is the child with the highest score, of several
the first; its id is printed. All other children are deleted, also after Ctrl-C, and their time to
live ends them when this program is killed. The sandbox itself stays as it was. A candidate counts
whatever its exit status is; one that is lost or runs past --timeout has no score. Without any score
no child stays and the exit status is 125. With --json one object follows at the end, with winner,
best and attempts (candidate, result, score, error, skipped).

Examples:
  dayfly explore ID --candidate 'git apply a.patch' --candidate 'git apply b.patch' \\
    --score 'pytest -q >/dev/null && echo 1 || echo 0' --stop-at 1
  best=$(dayfly explore ID --candidates commands.txt --score ./score.sh --promote)";

pub(crate) const COPY_HELP: &str = "\
Relative paths in a sandbox start at /workspace. A local file with a colon in its name is ./NAME. A
directory is copied into a target directory that exists, else it gets the target's name;
DIRECTORY/. copies its content only. Symbolic links stay links; pipes, sockets and devices are
skipped. A directory of a sandbox copied to `-` is a tar archive.

Examples:
  dayfly cp main.py ID:/workspace/
  dayfly cp project ID:
  dayfly cp ID:/workspace/results .
  dayfly cp ID:/var/log/syslog - | less";

pub(crate) const FILES_HELP: &str = "\
Relative paths start at /workspace.

Examples:
  dayfly fs ls ID
  dayfly fs ls --depth 3 ID:/var/log
  dayfly fs mv ID:draft.txt final.txt
  dayfly fs watch --recursive ID:/workspace
  dayfly fs link ID:report.pdf
  curl -T data.csv \"$(dayfly fs link --upload ID:data.csv)\"
  dayfly fs revoke ID dfk_...
  dayfly fs changes ID";
