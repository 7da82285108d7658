// Generated from openapi/v1.json by `npm run generate`. Not to be edited.

export interface components {
    schemas: {
        /** @description The hint of a response. */
        Advice: {
            /** @description What to do about it, in words for users of REST. */
            hint?: string | null;
            /** @description Which hint it is: one of `HintCode`, or one that only a later server has. */
            hint_code?: string | null;
            /** @description What the words of that hint need, such as the name of a template. */
            hint_parameters?: {
                [key: string]: string;
            };
        };
        /** @description Body of `POST /v1/sandboxes/{id}/network/allow`. */
        AllowNetwork: {
            rules: components["schemas"]["RuleWish"][];
        };
        /** @description One thing that somebody did, or tried to do. */
        AuditEntry: {
            /** @description RFC 3339, UTC. */
            at: string;
            /**
             * @description The address that the request came from, or that a trusted proxy named. Absent where nobody
             *     asked, and in entries from before there was one.
             */
            client?: string | null;
            /**
             * @description What there is to say beyond that: of a command its input, its end, and sizes and digests of
             *     its output.
             */
            detail: Record<string, never>;
            /** @description Of the key that was used. */
            key_prefix: string;
            /** @description Method and path. */
            operation: string;
            /** @description Whose it is, in a view over all projects. */
            project?: string | null;
            request_id: string;
            /** Format: int64 */
            seq: number;
            /**
             * Format: int32
             * @description The HTTP status of the response.
             */
            status: number;
            /** @description The sandbox, snapshot, volume or key that it was about. */
            subject?: string | null;
        };
        /** @description Response of `GET /v1/audit`. */
        AuditList: {
            /** @description Newest first. */
            items: components["schemas"]["AuditEntry"][];
            /** @description Ask with this as `cursor` for what is older. Null: there is nothing older. */
            next_cursor?: string | null;
        };
        /**
         * @description Body of `POST /v1/templates/{name}/bake`. Every field may be absent or null; with none the
         *     template is baked in its own size.
         */
        BakeTemplate: {
            /**
             * Format: int64
             * @description CPUs: the template's, or more.
             */
            cpu?: number | null;
            /**
             * Format: int64
             * @description MiB of memory: the template's, or a larger multiple of 128.
             */
            memory_mb?: number | null;
        };
        /**
         * @description The form of `POST /v1/templates/build`. Every field is a text; every part with a file name is a
         *     file of the build context, and its field name is the path below it.
         */
        BuildTemplateForm: {
            /** @description Values of `ARG`, as a JSON object of texts. */
            build_args?: string | null;
            /** @description Modes of files of the build context that are not 0644: JSON, paths with octal texts. */
            "context.modes"?: string | null;
            /** @description CPUs. Default: those of the base. */
            cpu?: string | null;
            /** @description For people. */
            description?: string | null;
            /** @description The text of a Dockerfile. Either this or `image_ref`. */
            dockerfile?: string | null;
            /** @description `true`: do every step, whatever is kept of earlier builds. */
            fresh?: string | null;
            /** @description An image: the same as a Dockerfile with nothing but `FROM`. */
            image_ref?: string | null;
            /** @description MiB. Default: that of the base. */
            memory_mb?: string | null;
            /** @description Of the template. */
            name: string;
            /** @description What steps may reach: JSON, as `network` of a sandbox. */
            network?: string | null;
            /** @description MiB of disk. A wish: it has at least what the base needs. */
            size_mb?: string | null;
            /** @description Which is to mean the new version. Default `latest`. */
            tag?: string | null;
            /** @description The stage to build. Default: the last. */
            target?: string | null;
        };
        /** @description What one capture cost. Times are milliseconds. */
        Capture: {
            /**
             * Format: double
             * @description Of the pause: device state.
             */
            device_ms: number;
            /** Format: int64 */
            disk_bytes: number;
            /**
             * Format: double
             * @description Of the pause: the disk.
             */
            disk_ms: number;
            /**
             * Format: double
             * @description How long its user processes did.
             */
            frozen_ms: number;
            /** Format: int64 */
            memory_bytes: number;
            /**
             * Format: double
             * @description Of the pause: changed memory.
             */
            memory_ms: number;
            /**
             * Format: double
             * @description How long the machine stood still.
             */
            pause_ms: number;
            /**
             * Format: double
             * @description From the call to a snapshot that is safe on disk.
             */
            total_ms: number;
        };
        /** @description Body of `PATCH /v1/sandboxes/{id}/lifecycle`. What is absent stays; a null takes away. */
        ChangeLifecycle: {
            /**
             * Format: int64
             * @description Seconds without activity after which `on_timeout` happens. Null: never.
             */
            idle_seconds?: number | null;
            on_timeout?: components["schemas"]["OnTimeout"] | null;
            /** @description Never reaped for idleness. */
            persistent?: boolean | null;
            /**
             * Format: int64
             * @description Seconds from now until the sandbox is deleted. Null: no deadline.
             */
            ttl_seconds?: number | null;
        };
        /** @description Body of `PATCH /v1/projects/{project}`: what is absent stays, null takes a limit away. */
        ChangeLimits: {
            /** Format: int64 */
            disk_mb?: number | null;
            keeps_output?: boolean | null;
            /** Format: int64 */
            memory_mb?: number | null;
            /** Format: int64 */
            requests_per_second?: number | null;
            /** Format: int64 */
            sandboxes?: number | null;
            /** Format: int64 */
            snapshot_mb?: number | null;
            /** Format: int64 */
            vcpus?: number | null;
            /** Format: int64 */
            volume_mb?: number | null;
        };
        /** @description Response of `GET /v1/sandboxes/{id}/fs/changes`. */
        ChangeList: {
            /** @description In the order of paths. */
            entries: components["schemas"]["ChangedFile"][];
            /** @description There were more than one response holds: ask for a directory below. */
            truncated: boolean;
        };
        /** @description Body of `POST /v1/sandboxes/{id}/fs/chmod`. */
        ChangeMode: {
            /** @description Permission bits in octal, such as `0644`. */
            mode: string;
            path: string;
            /** @description Whose permissions count. Default: `agent`. */
            user?: string | null;
        };
        /** @description One file or directory that differs. */
        ChangedFile: {
            is_dir: boolean;
            /** @description added, modified or removed. */
            kind: string;
            /**
             * Format: int64
             * @description Unix seconds.
             */
            mtime: number;
            path: string;
            /**
             * Format: int64
             * @description 0 for what is removed.
             */
            size: number;
        };
        /** @description A stateful interpreter. */
        Context: {
            created_at: string;
            /** Format: int64 */
            execution_count: number;
            id: string;
            language: string;
            /** @description idle, busy or dead. */
            state: string;
        };
        /** @description Response of `GET /v1/sandboxes/{id}/repl/sessions`. */
        ContextList: {
            items: components["schemas"]["Context"][];
        };
        /** @description Body of `POST /v1/sandboxes/{id}/repl/sessions`. */
        CreateContext: {
            /** @description Default `/workspace`. */
            cwd?: string | null;
            /** @description Names the context, so that the request may be repeated. Made up when absent. */
            id?: string | null;
            /** @description python, bash or javascript, as the template has them. Default python. */
            language?: string | null;
        };
        /** @description Body of `POST /v1/sandboxes/{id}/fs/links`. */
        CreateFileLink: {
            operation?: components["schemas"]["FileLinkOperation"] | null;
            /** @description The file. A relative path is below `/workspace`. */
            path: string;
            /**
             * Format: int64
             * @description Seconds until the link expires. Default 3600, and never longer than the key that makes it.
             */
            ttl_seconds?: number | null;
        };
        /**
         * @description Body of `POST /v1/sandboxes/{id}/ports/{port}/links`. Unknown fields are refused: one that is
         *     not understood might have been meant to narrow.
         */
        CreatePortLink: {
            /** @description Opens the port to anybody, without a token. Default false. */
            public?: boolean | null;
            /**
             * Format: int64
             * @description How long the link works. Default 3600.
             */
            ttl_seconds?: number | null;
        };
        /** @description Body of `POST /v1/projects`. */
        CreateProject: {
            /** @description A DNS label. */
            id: string;
            limits?: components["schemas"]["ChangeLimits"] | null;
        };
        /**
         * @description Body of `POST /v1/sandboxes`. Every field may be absent, and null unless it says
         *     otherwise. Unknown fields are refused: one that is not understood might have been meant to
         *     narrow.
         */
        CreateSandbox: {
            class?: components["schemas"]["PromiseClass"] | null;
            /**
             * Format: double
             * @description CPUs that it may use at most; may be a fraction. Default: all of the template's. More than
             *     the template has makes it a sandbox of a variant with as many, see `memory_mb`.
             */
            cpu?: number | null;
            /**
             * Format: double
             * @description GiB of disk; may be a fraction, and not less than the template's. Default: the template's.
             */
            disk_gb?: number | null;
            /**
             * @description Take the disk of `from_snapshot` alone: the machine boots anew on it, in the engine of today.
             *     All files are there and no process is. This also works where the snapshot's memory cannot
             *     be restored any more. The response comes when the machine is up, which takes half a minute
             *     under emulation and three minutes at most. Default false; true needs `from_snapshot`.
             */
            disk_only?: boolean | null;
            /**
             * @description Short for a `network` of mode `allowlist` with these rules. An empty list lets nothing
             *     through.
             */
            egress_allowlist?: components["schemas"]["RuleWish"][];
            /**
             * @description Environment variables of every command and every context of the sandbox. What runs already keeps its own. 128 KiB together at most. No response has the values. Names hold no `=`; neither names nor values hold a NUL.
             * @example {
             *       "API_TOKEN": "...",
             *       "STAGE": "test"
             *     }
             */
            env?: {
                [key: string]: string;
            } | null;
            /** @description Restore this snapshot; its template is then the sandbox's, whatever `template` says. */
            from_snapshot?: string | null;
            /**
             * Format: int64
             * @description Seconds without activity after which `on_timeout` happens. Default: never.
             */
            idle_seconds?: number | null;
            /**
             * @description Make it from the image of a container instead: `python:3.12`, `HOST/NAME:TAG`,
             *     `HOST/NAME@sha256:DIGEST`. The first time the image is fetched and baked
             *     (`template_baking`).
             */
            image?: string | null;
            /**
             * Format: int64
             * @description MiB of memory: the template's, or a larger multiple of 128. Default: the template's. Another
             *     size than the template's is a variant of it, which is baked when somebody first asks for it:
             *     until then the response is `template_baking` with `Retry-After` and `percent`, and the same
             *     request succeeds later. With `from_snapshot` it can only be what the snapshot has.
             */
            memory_mb?: number | null;
            metadata?: {
                [key: string]: string;
            } | null;
            /**
             * @description A name of the caller's own, which stands for the sandbox wherever a path has its id, until
             *     it is deleted: a second sandbox of the same name is refused (`already_exists`).
             */
            name?: string | null;
            /**
             * @description What it may reach. Absent: what the project's default says. Not null, and not together with
             *     `egress_allowlist`.
             */
            network?: components["schemas"]["NetworkWish"];
            on_timeout?: components["schemas"]["OnTimeout"] | null;
            /** @description Never reaped for idleness and not deleted by a client's context manager. */
            persistent?: boolean | null;
            /**
             * @description Which template to restore: one of the server, or one of the project as `NAME` (its tag
             *     `latest`), `NAME:TAG` or `NAME@VERSION`. Default `base`.
             */
            template?: string | null;
            /**
             * Format: int64
             * @description Seconds until the sandbox is deleted. Default 3600; a persistent sandbox has none unless
             *     it is given here.
             */
            ttl_seconds?: number | null;
            volumes?: components["schemas"]["VolumeMount"][] | null;
        };
        /** @description Body of `POST /v1/sandboxes/{id}/snapshots`. Every field may be absent or null. */
        CreateSnapshot: {
            /**
             * @description A name of the caller's own. One of lower-case letters, digits and dashes, of at most 50, that
             *     does not begin with `snap-`, is unique within the project and stands for the snapshot wherever
             *     an id may. Any other is a label for people.
             */
            name?: string | null;
            /**
             * Format: int64
             * @description Seconds until the snapshot is deleted by itself. Default: never.
             */
            retain_seconds?: number | null;
        };
        /** @description Body of `POST /v1/templates`. */
        CreateTemplate: {
            /**
             * Format: int64
             * @description CPUs. Default: what the sandbox of the snapshot has.
             */
            cpu?: number | null;
            description?: string | null;
            directory?: string | null;
            /** @description Started before the capture and left running in every sandbox. */
            entry_point?: string[] | null;
            env?: {
                [key: string]: string;
            } | null;
            /**
             * @description Whose disk it has. Nothing of its memory is used: the machine boots anew on the disk, the
             *     entry point is started, and what runs when the health check is good runs in every sandbox.
             */
            from_snapshot: string;
            health_check?: components["schemas"]["TemplateHealthCheck"] | null;
            /**
             * Format: int64
             * @description MiB. Default: what the sandbox of the snapshot has.
             */
            memory_mb?: number | null;
            name: string;
            /** @description How it came to be, in the words of whoever made it. Kept as it is, at most 64 KiB. */
            provenance?: Record<string, never> | null;
            /** @description Of commands that do not say otherwise: a name or a number, behind a colon a group. */
            user?: string | null;
        };
        /**
         * @description Body of `POST /v1/me/tokens`. Unknown fields are refused: one that is not understood might have
         *     been meant to narrow.
         */
        CreateToken: {
            /**
             * Format: int64
             * @description Default: it does not expire.
             */
            expires_in_days?: number | null;
            /**
             * Format: int64
             * @description The same in seconds; at most one of the two.
             */
            expires_in_seconds?: number | null;
            /** @description What people call it. Default empty. */
            label?: string | null;
            /** @description Lets it be used on this sandbox only. */
            sandbox_id?: string | null;
            /** @description Default: those of the key that makes it, without `operator`. */
            scopes?: string[] | null;
        };
        /** @description Body of `POST /v1/volumes`. One of the two sizes must be given. */
        CreateVolume: {
            name: string;
            /**
             * Format: double
             * @description GiB; may be a fraction.
             */
            size_gb?: number | null;
            /**
             * Format: int64
             * @description MiB.
             */
            size_mb?: number | null;
        };
        /** @description Response of `GET /v1/sandboxes/{id}/fs/dir`. */
        DirectoryListing: {
            /** @description In the order of names; with a depth, a directory stands right before what is in it. */
            entries: components["schemas"]["FileEntry"][];
            /** @description There is more behind the last entry. */
            has_more?: boolean;
            /** @description The `after` that gives the next page. */
            next_after?: string | null;
            /** @description The same as `has_more`. */
            truncated: boolean;
        };
        /** @description Body of `POST /v1/templates/images`. */
        EnsureImage: {
            /**
             * Format: int64
             * @description CPUs. Default 1.
             */
            cpu?: number | null;
            /**
             * Format: double
             * @description GiB. Default 4.
             */
            disk_gb?: number | null;
            /** @description Host, name, and tag or digest: `docker.io/library/debian:12`. */
            image: string;
            /**
             * Format: int64
             * @description MiB. Default 512.
             */
            memory_mb?: number | null;
        };
        /** @description Flat on purpose: the published clients read `error` as a string. */
        ErrorBody: components["schemas"]["Advice"] & {
            /** @description A stable word that programs may match; the list is in the documentation. */
            code: string;
            /** @description What went wrong, why, for a person. Never empty. */
            error: string;
            /**
             * Format: int32
             * @description With `template_baking`: how far the bake is, 0 to 100.
             */
            percent?: number | null;
            /** @description Finds this request in the server's log. */
            request_id: string;
        };
        /** @description Body of `POST /v1/sandboxes/{id}/exec` and `.../exec/stream`. */
        ExecRequest: {
            /** @description Returns at once, with the process as it is; `processes/{exec_id}` follows it. */
            background?: boolean | null;
            /** @description A text for the shell, or a program with its arguments. */
            cmd: string | [
                string
            ];
            /**
             * Format: double
             * @description CPU time of the command and all its child processes, likewise.
             */
            cpu_seconds?: number | null;
            /** @description Default `/workspace`. */
            cwd?: string | null;
            /** @description Environment variables of the command, over those of its sandbox. Names hold no `=`; neither names nor values hold a NUL. */
            env?: {
                [key: string]: string;
            } | null;
            /**
             * @description Names the exec, so that the request may be repeated and its output read again: the same id
             *     with the same command never starts a second process. Made up when absent.
             */
            exec_id?: string | null;
            /**
             * Format: int64
             * @description What the guest keeps of each stream. Default 64 MiB.
             */
            log_max_bytes?: number | null;
            /**
             * @description What happens to more than that: `drop_oldest` (default; readers learn of the gap), or
             *     `block` (the process waits for a reader).
             */
            log_when_full?: string | null;
            /**
             * Format: int64
             * @description Shapes the output for a model: of a longer stream the head, the tail and the lines around
             *     errors are given, with a mark for what is left out. Counted for each stream.
             */
            max_output_bytes?: number | null;
            /**
             * Format: int64
             * @description Processes and threads of the command at once. More cannot be started.
             */
            max_processes?: number | null;
            /**
             * Format: int64
             * @description Memory of the command and all its children. Over it they are killed, with the reason
             *     `limit_exceeded`.
             */
            memory_mb?: number | null;
            /** @description Lists the files that changed while the command ran. */
            report_changes?: boolean | null;
            /** @description Given to the process as its whole standard input. */
            stdin?: string | null;
            /** @description Leaves standard input open: more comes through `processes/{exec_id}/stdin` or a socket. */
            stdin_open?: boolean | null;
            terminal?: components["schemas"]["TerminalSize"] | null;
            /**
             * Format: double
             * @description After this many seconds the process is killed and the response is `timeout`. May be a
             *     fraction. Default: no limit but the sandbox's own.
             */
            timeout_seconds?: number | null;
            /** @description Default `agent`. */
            user?: string | null;
        };
        /** @description Response of `POST /v1/sandboxes/{id}/exec`. */
        ExecResult: components["schemas"]["Advice"] & {
            /** @description With `report_changes`: what changed while the command ran. */
            changed_files?: string[] | null;
            /** Format: int64 */
            duration_ms: number;
            exec_id: string;
            /**
             * Format: int32
             * @description Always a number: 128 + n for signal n.
             */
            exit_code: number;
            /** @description Limits of its own that the command ran into: memory, cpu, processes. */
            limits_hit?: string[];
            /** @description What is left out of `stdout` and `stderr`. */
            omitted?: components["schemas"]["Omission"][];
            /** @description exited, signaled, out_of_memory, limit_exceeded or killed. */
            reason: string;
            /** Format: int32 */
            signal?: number | null;
            stderr: string;
            /** Format: int64 */
            stderr_bytes?: number;
            /** @description Bytes that are not UTF-8 are replaced; `exec/stream` and files carry the rest. */
            stdout: string;
            /**
             * Format: int64
             * @description How long the streams really were.
             */
            stdout_bytes?: number;
            /** @description A stream was longer than what is given here; `processes/{exec_id}/output` has the rest. */
            truncated: boolean;
        };
        /** @description One event of `POST /v1/sandboxes/{id}/exec/stream`. */
        ExecStreamEvent: {
            /**
             * @description A JSON object in pure ASCII: `{"exec_id": id}` with `started`, `{"chunk": text}` with
             *     output, `{"stream": name, "offset": number, "bytes": number}` with `gap`,
             *     `{"exit_code": number, ...}` with `exit`, `{"error": text, "code": word}` with `error`,
             *     `{}` with `lost`.
             */
            data: string;
            /**
             * @description `started`, `stdout`, `stderr`, `gap`, `exit`, `error` or `lost`. The last event is `exit`
             *     or `error`.
             */
            event: string;
        };
        /** @description Response of `GET /v1/export`. */
        ExportPage: {
            /** @description In the order in which they were written. */
            audit: components["schemas"]["ExportedAudit"][];
            egress?: components["schemas"]["ExportedDecisions"] | null;
            /** @description In the order in which they happened. */
            events: components["schemas"]["SandboxEvent"][];
            /** @description Of which the numbers are. Another one means that a backup was put back: begin anew. */
            series: string;
        };
        /** @description An entry of `GET /v1/export`. */
        ExportedAudit: components["schemas"]["AuditEntry"] & {
            /**
             * Format: int64
             * @description Among the entries of all projects. Ask with this as `after_audit` for what comes behind it.
             */
            number: number;
        };
        /** @description A decision about egress, of `GET /v1/export`. */
        ExportedDecision: {
            /**
             * Format: int64
             * @description Among the decisions about all sandboxes. Ask with this as `after_egress` for what comes
             *     behind it.
             */
            number: number;
            project: string;
            /** @description As in the network log of the sandbox. */
            record: components["schemas"]["NetworkRecord"];
            sandbox_id: string;
        };
        /** @description The decisions about egress of `GET /v1/export`. */
        ExportedDecisions: {
            /** @description In the order in which they were recorded. */
            decisions: components["schemas"]["ExportedDecision"][];
            /**
             * @description Of which their numbers are. Another one means that the host has lost its decisions, or is
             *     another one: begin anew.
             */
            series: string;
            /**
             * Format: int64
             * @description Ask with this as `after_egress` for what comes behind the page. A number up to this one that
             *     is in no page is of a decision that is gone.
             */
            through: number;
        };
        /** @description A step whose command failed. */
        FailedBuildStep: {
            /** Format: int32 */
            exit_code: number;
            /**
             * Format: int64
             * @description Of the Dockerfile.
             */
            line: number;
            /** Format: int64 */
            number: number;
            /** @description Where it failed. It is there for some minutes. */
            sandbox: string;
            /** Format: int64 */
            steps: number;
            /** @description The last lines that it said. */
            tail: string[];
            text: string;
        };
        /** @description Data of a `change` event of `GET /v1/sandboxes/{id}/fs/watch`. */
        FileChange: {
            /** @description Where a moved entry was before, if that is watched too. */
            from?: string | null;
            is_dir: boolean;
            /** @description created, modified, removed or moved. */
            kind: string;
            path: string;
        };
        /** @description One directory entry, as `lstat` says. */
        FileEntry: {
            /** Format: int32 */
            gid: number;
            /** @description False for a link to a directory. */
            is_dir: boolean;
            is_symlink: boolean;
            /** @description Octal text, such as `0644`. */
            mode: string;
            /**
             * Format: int64
             * @description Unix seconds.
             */
            mtime: number;
            /** @description Relative to the listed directory. */
            name: string;
            path: string;
            /** Format: int64 */
            size: number;
            /** Format: int32 */
            uid: number;
        };
        /** @description A way to one file for those who have no key. */
        FileLink: {
            /** @description Path and query, behind the address of this API. Shown this once. */
            address: string;
            /** @description RFC 3339, UTC. */
            expires_at: string;
            /** @description The prefix of its key, by which it is listed and revoked among tokens. */
            id: string;
            /** @description `GET` for a download. `PUT` for an upload, with the content as the body. */
            method: string;
        };
        /**
         * @description What a link to a file is for.
         * @enum {string}
         */
        FileLinkOperation: "download" | "upload";
        /** @description Response of `PUT /v1/sandboxes/{id}/fs` and `fs/tar`. */
        FileWritten: {
            /**
             * Format: int64
             * @description How many bytes were sent.
             */
            bytes: number;
            path: string;
        };
        /**
         * @description What every child gets. Labels, environment variables, time to live, idle time and `on_timeout`
         *     are the source's unless they are given here; a time to live counts from the fork.
         */
        ForkOptions: {
            /** @description When one child cannot be made, none stays. Default false. */
            all_or_nothing?: boolean | null;
            /**
             * @description Short for a `network` of mode `allowlist` with these rules. An empty list lets nothing
             *     through.
             */
            egress_allowlist?: components["schemas"]["RuleWish"][];
            /**
             * @description Environment variables in place of those that it would have; `{}` leaves none. What runs already keeps its own. 128 KiB together at most. No response has the values. Names hold no `=`; neither names nor values hold a NUL.
             * @example {
             *       "API_TOKEN": "...",
             *       "STAGE": "test"
             *     }
             */
            env?: {
                [key: string]: string;
            } | null;
            /** Format: int64 */
            idle_seconds?: number | null;
            metadata?: {
                [key: string]: string;
            } | null;
            /**
             * @description What each child may reach, within what its source may. Absent: the same. Not null, and not
             *     together with `egress_allowlist`.
             */
            network?: components["schemas"]["NetworkWish"];
            on_timeout?: components["schemas"]["OnTimeout"] | null;
            persistent?: boolean | null;
            /** @description Also run the guest's reseed hooks, for generators in user space. Default false. */
            reseed_user_space?: boolean | null;
            /**
             * Format: int64
             * @description Absent: the source's, or an hour when it has none.
             */
            ttl_seconds?: number | null;
        };
        /**
         * @description Body of `POST /v1/sandboxes/{id}/fork`. Every field may be absent, and null unless it says
         *     otherwise; unknown fields are refused.
         */
        ForkSandbox: components["schemas"]["ForkOptions"] & {
            /**
             * Format: int64
             * @description How many children. Default 1.
             */
            count?: number | null;
        };
        /** @description Body of `POST /v1/sandboxes/{id}/fork-tree`. Unknown fields are refused. */
        ForkTree: components["schemas"]["ForkOptions"] & {
            /**
             * Format: int64
             * @description How many children.
             */
            count: number;
        };
        /** @description Response of a fork that made at least one child. */
        Forked: {
            capture: components["schemas"]["Capture"];
            children: components["schemas"]["Sandbox"][];
            /** @description Why a child was not made, by the id that it would have had. */
            failures: {
                [key: string]: string;
            };
            /** @description What children share with their source until their own code changes it. */
            not_renewed: string[];
            /** @description What every child has of its own. */
            renewed: string[];
            sandbox?: components["schemas"]["Sandbox"] | null;
        };
        /** @description Body of `PATCH /v1/volumes/{name}`. One of the two sizes must be given. */
        GrowVolume: {
            /**
             * Format: double
             * @description GiB; may be a fraction.
             */
            size_gb?: number | null;
            /**
             * Format: int64
             * @description MiB.
             */
            size_mb?: number | null;
        };
        /** @description Response of `GET /health`. */
        Health: {
            /** @description What is wrong, when something is. */
            conditions?: components["schemas"]["HealthCondition"][];
            /** @description `ok`, or `degraded` when there are `conditions`. */
            status: string;
            version: string;
        };
        /** @description Something that is wrong with the server. */
        HealthCondition: {
            /** @description Why. */
            detail: string;
            /** @description A stable word that programs may match, as `store_unwritable` or `node_unreachable`. */
            name: string;
            /** @description What the operator can do about it. */
            remedy: string;
        };
        /**
         * @description The codes of hints. A later server may have more: show `hint` for those.
         * @enum {string}
         */
        HintCode: "send_key" | "key_permissions" | "key_scopes" | "key_ended" | "revoke_keys" | "revoke_file_links" | "revoke_port_links" | "quota" | "make_room" | "server_health" | "health_remedy" | "known_names" | "no_names" | "metadata_example" | "time_example" | "new_idempotency_key" | "sandbox_status" | "sandbox_name_taken" | "template_baking" | "template_failed" | "snapshot_name_taken" | "snapshot_corrupt" | "snapshot_unfit" | "fork_wider" | "promote_child" | "tree_of_child" | "volume_users" | "grow_volume" | "smaller_volume" | "output_kept" | "silent_command" | "out_of_memory" | "no_memory_left" | "network_denied" | "network_changed" | "network_not_widened" | "context_busy" | "context_restarted" | "state_lost" | "silent_code" | "environment_of_sandbox" | "port_closed" | "nothing_listens" | "port_timeout";
        /** @description An image of a container that sandboxes can be made from. */
        ImageTemplate: {
            /** @description The last arguments, or the program itself: what a build may put another in the place of. */
            command?: string[];
            /** Format: int32 */
            cpu: number;
            /** @description The step of the bake, or why it failed. */
            detail?: string | null;
            /** @description Of the image's manifest, once it is known. */
            digest?: string | null;
            directory?: string | null;
            /** Format: int64 */
            disk_mb: number;
            /** @description The program that it is for, with its arguments. */
            entry_point?: string[];
            env?: {
                [key: string]: string;
            };
            health_check?: components["schemas"]["TemplateHealthCheck"] | null;
            image: string;
            /** Format: int64 */
            memory_mb: number;
            /** @description The first instruction that the image has for whoever builds on it (`ONBUILD`). */
            on_build?: string | null;
            /**
             * Format: int32
             * @description 0 to 100.
             */
            percent: number;
            /** @description What a build gives commands to that are one text, if the image says it. */
            shell?: string[];
            state: components["schemas"]["TemplateState"];
            /** @description Whether sandboxes can be made from it now. */
            usable: boolean;
            /** @description What the image says of commands in it. */
            user?: string | null;
        };
        /** @description Response of `GET` and `PATCH /v1/sandboxes/{id}/lifecycle`. */
        Lifecycle: {
            /** @description When it is deleted, RFC 3339, UTC. Null: no deadline. */
            expires_at?: string | null;
            /**
             * Format: int64
             * @description How long ago it was last seen to do something.
             */
            idle_for_seconds: number;
            /**
             * Format: int64
             * @description Null: never reaped for idleness.
             */
            idle_seconds?: number | null;
            on_timeout: components["schemas"]["OnTimeout"];
            persistent: boolean;
            /**
             * Format: int64
             * @description As it was set; the clock started then. Null: no deadline.
             */
            ttl_seconds?: number | null;
        };
        /** @description Body of `POST /v1/sandboxes/{id}/fs/mkdir`. */
        MakeDirectory: {
            /** @description Permission bits in octal. Default: `0755`. */
            mode?: string | null;
            /** @description Also make those above it; one that is there already is then a success. */
            parents?: boolean | null;
            path: string;
            /** @description Whose permissions count. Default: `agent`. */
            user?: string | null;
        };
        /** @description Response of `GET /v1/me`. */
        Me: {
            key_prefix: string;
            project: string;
            /** @description The only sandbox that it may be used on. */
            sandbox_id?: string | null;
            /** @description What the key may be used for: of `read`, `create`, `exec`, `admin` and `operator`. */
            scopes?: string[];
        };
        /** @description Body of `POST /v1/sandboxes/{id}/fs/move`. */
        MoveFile: {
            from: string;
            /** @description Whether something that is at the new place may be replaced. Default: false. */
            replace?: boolean | null;
            to: string;
            /** @description Whose permissions count. Default: `agent`. */
            user?: string | null;
        };
        /** @description What a sandbox may reach. */
        Network: {
            /**
             * @description Whether connections are decided by this policy now. False while the sandbox is hibernated,
             *     and while its host has not yet confirmed a change, which is sent again until it has.
             */
            enforced: boolean;
            /**
             * Format: int64
             * @description Grows with every change.
             */
            epoch: number;
            mode: components["schemas"]["NetworkMode"];
            rules: components["schemas"]["NetworkRule"][];
        };
        /** @description What a new sandbox of the project may reach when its create does not say. */
        NetworkDefault: {
            mode: components["schemas"]["NetworkMode"];
            rules: components["schemas"]["NetworkRule"][];
        };
        /** @description Response of `GET /v1/sandboxes/{id}/network/log`. */
        NetworkLog: {
            /**
             * Format: int64
             * @description The newest sequence there ever was; 0 when there was none.
             */
            latest: number;
            /**
             * Format: int64
             * @description How many records behind `after` are no longer there, or were never written.
             */
            lost: number;
            /**
             * Format: int64
             * @description The oldest sequence that is still kept; 0 when there is none.
             */
            oldest: number;
            /** @description Oldest first. */
            records: components["schemas"]["NetworkRecord"][];
        };
        /**
         * @description What is let through.
         * @enum {string}
         */
        NetworkMode: "deny" | "allowlist" | "public" | "observe";
        /** @description Rules that go by one name: `preset:NAME`. */
        NetworkPreset: {
            description: string;
            /** @description `public` for the preset that is a mode and has no rules. */
            mode: components["schemas"]["NetworkMode"];
            name: string;
            rules: components["schemas"]["NetworkRule"][];
        };
        /** @description Response of `GET /v1/network-presets`. */
        NetworkPresetList: {
            items: components["schemas"]["NetworkPreset"][];
        };
        /** @description One decision, or the end of a connection that was let through. */
        NetworkRecord: {
            /** @description Addresses in the response to a DNS query. */
            answers?: string[];
            /** @description RFC 3339, UTC. */
            at: string;
            /** Format: int64 */
            bytes_down: number;
            /** Format: int64 */
            bytes_up: number;
            /** @description allowed, denied, closed, cut or failed. */
            decision: string;
            /** @description Where the guest's packet was addressed to. */
            destination?: string | null;
            /** @description Where the connection really goes. */
            dialed?: string | null;
            /** Format: int64 */
            duration_ms: number;
            /** @description The internal network of the operator's that it goes into. */
            internal_network?: string | null;
            /** @description dns, tls, http or tcp. */
            kind: string;
            /** @description What the guest asked for. */
            name?: string | null;
            /** @description sni, host, dns or none. */
            name_source: string;
            /**
             * Format: int32
             * @description Of a connection.
             */
            port?: number | null;
            /** @description Why it was denied, as a stable word. */
            reason?: string | null;
            /** @description The rule that let it through. */
            rule?: string | null;
            /**
             * Format: int64
             * @description Counts the records of one sandbox.
             */
            sequence: number;
            /**
             * Format: int64
             * @description How many like it were not recorded since the last one that was.
             */
            suppressed: number;
            /** @description In mode `observe`: an allowlist with the same rules would have denied it. */
            would_deny?: boolean;
        };
        /** @description One thing that is let through, in its canonical form. It has `host` or `cidr`. */
        NetworkRule: {
            cidr?: string | null;
            host?: string | null;
            id: string;
            ports: number[];
        };
        /** @description Response of `GET /v1/sandboxes/{id}/network/suggest`: a policy for `PUT .../network`. */
        NetworkSuggestion: {
            /**
             * Format: int64
             * @description How many records were no longer there to draw from.
             */
            lost: number;
            mode: components["schemas"]["NetworkMode"];
            /**
             * Format: int64
             * @description How many records it is drawn from.
             */
            records: number;
            /** @description Enough for every connection to a name that was let through, and none is left over. */
            rules: components["schemas"]["NetworkRule"][];
            /** @description There were more names than a policy has rules; the most used ones are here. */
            truncated: boolean;
            /** @description Connections of which only the address was known, as `address:port`. No rule covers them. */
            unnamed: string[];
        };
        /** @description A wished-for policy. */
        NetworkWish: {
            mode: components["schemas"]["NetworkMode"];
            /** @description Only with `allowlist` and `observe`. An allowlist without rules lets nothing through. */
            rules?: components["schemas"]["RuleWish"][];
        };
        /** @description A key that was just made. The secret is shown once. */
        NewToken: components["schemas"]["Token"] & {
            /** @description The key itself. */
            token: string;
        };
        /** @description Response of `GET /v1/node`: the host's own account of itself. */
        NodeView: {
            accelerator: string;
            /** Format: int64 */
            disk_available_mb: number;
            /** Format: int64 */
            disk_committed_mb: number;
            /** Format: int64 */
            disk_reserve_mb: number;
            /**
             * Format: int64
             * @description The same of their disks.
             */
            disk_share?: number;
            engine: string;
            engine_version: string;
            isolation: string;
            /**
             * Format: int64
             * @description Where there are shared sandboxes: what the host could give when it was looked at last.
             */
            memory_available_mb?: number | null;
            /** Format: int64 */
            memory_committed_mb: number;
            /** Format: int64 */
            memory_reserve_mb: number;
            /**
             * Format: int64
             * @description How many times over the memory of shared sandboxes is promised. 1: there are none.
             */
            memory_share?: number;
            /** Format: int64 */
            memory_total_mb: number;
            node: string;
            parked_engines: components["schemas"]["PoolView"][];
            /** Format: int64 */
            parked_slots: number;
            /** Format: int64 */
            parked_slots_target: number;
            /** @description What is short of memory now, for a person. */
            pressure?: string | null;
            /**
             * Format: int64
             * @description Sandboxes that were put to sleep for others since the node process began.
             */
            put_to_sleep?: number;
            /** Format: int64 */
            sandboxes: number;
        };
        /** @description A part of a stream that a response leaves out. */
        Omission: {
            /** Format: int64 */
            bytes: number;
            /** Format: int64 */
            offset: number;
            /** @description False when the guest has dropped it. */
            readable: boolean;
            /** @description stdout or stderr. */
            stream: string;
        };
        /**
         * @description What happens to a sandbox that was idle for too long.
         * @enum {string}
         */
        OnTimeout: "delete" | "hibernate";
        /** @description Parked engines of one template. */
        PoolView: {
            /** Format: int64 */
            parked: number;
            /** Format: int64 */
            target: number;
            template: string;
        };
        /** @description A TCP port on which something in the sandbox listens. */
        Port: {
            /** @description The address in the guest that it is bound to. */
            address: string;
            /** @description Where it is reached by path, with a key or a link. */
            path_url: string;
            /** Format: int32 */
            port: number;
            /** @description Where it is reached by host name, with a key or a link. */
            url: string;
        };
        /** @description Something that opens a port to those who have no key. */
        PortLink: {
            /** @description RFC 3339, UTC. */
            created_at: string;
            /** @description RFC 3339, UTC. */
            expires_at: string;
            id: string;
            /** @description The prefix of the key that made it. Null: it is not known. */
            made_by?: string | null;
            /** @description By path. Has the token in it when the link was just made. */
            path_url: string;
            /** Format: int32 */
            port: number;
            /** @description Whether anybody may use the port. */
            public: boolean;
            /** @description Only when the link was just made, and only if it is not public: it is not kept. */
            token?: string | null;
            /** @description By host name. Has the token in it when the link was just made. */
            url: string;
        };
        /** @description Response of `GET /v1/sandboxes/{id}/ports/{port}/links` and of `GET /v1/sandboxes/{id}/links`. */
        PortLinkList: {
            items: components["schemas"]["PortLink"][];
        };
        /** @description Response of `GET /v1/sandboxes/{id}/ports`. */
        PortList: {
            /** @description Empty while the sandbox is hibernated; asking does not wake it. */
            ports: components["schemas"]["Port"][];
        };
        /** @description One exec of a sandbox, as `processes` gives it. */
        Process: {
            /** Format: int64 */
            duration_ms: number;
            exec_id: string;
            /**
             * Format: int32
             * @description Of an exited one. Always a number then.
             */
            exit_code?: number | null;
            limits_hit?: string[];
            /** Format: int32 */
            pid: number;
            /** @description exited, signaled, timed_out, out_of_memory, limit_exceeded or killed. */
            reason?: string | null;
            /** Format: int32 */
            signal?: number | null;
            started_at: string;
            /** @description running or exited. */
            state: string;
            stderr: components["schemas"]["StreamExtent"];
            /**
             * Format: int64
             * @description Bytes of input that the guest has taken: where a client that was cut off goes on.
             */
            stdin_bytes: number;
            stdout: components["schemas"]["StreamExtent"];
            takes_stdin: boolean;
            terminal: boolean;
            /** @description The beginning of the command. */
            title: string;
            user: string;
        };
        /** @description Response of `GET /v1/sandboxes/{id}/processes`, oldest first. */
        ProcessList: {
            items: components["schemas"]["Process"][];
        };
        /** @description A project. */
        Project: {
            /** @description RFC 3339, UTC. */
            created_at: string;
            id: string;
            limits: components["schemas"]["ProjectLimits"];
            /** @description Why it is suspended. */
            reason?: string | null;
            /** @description active, suspended, or deleting. */
            state?: string;
        };
        /** @description What a project may use at once. Null is as much as there is. */
        ProjectLimits: {
            /**
             * Format: int64
             * @description Disks of its sandboxes, in full.
             */
            disk_mb?: number | null;
            /** @description Whether the audit record keeps what commands printed. */
            keeps_output: boolean;
            /** Format: int64 */
            memory_mb?: number | null;
            /** Format: int64 */
            requests_per_second?: number | null;
            /** Format: int64 */
            sandboxes?: number | null;
            /** Format: int64 */
            snapshot_mb?: number | null;
            /** Format: int64 */
            vcpus?: number | null;
            /** Format: int64 */
            volume_mb?: number | null;
        };
        /** @description Response of `GET /v1/projects`. */
        ProjectList: {
            /** @description Oldest first. */
            items: components["schemas"]["Project"][];
        };
        /** @description Response of `POST /v1/projects/{project}/suspend`. */
        ProjectSuspension: {
            /** @description Ids of sandboxes that could not be hibernated. The log of the server says why; ask again. */
            failed: string[];
            /** @description Ids of sandboxes that were hibernated now. */
            hibernated: string[];
            project: components["schemas"]["Project"];
        };
        /** @description Response of `GET /v1/usage`. */
        ProjectUsage: {
            /**
             * Format: int64
             * @description Disks of its sandboxes, in full, asleep or not.
             */
            disk_mb?: number;
            limits: components["schemas"]["ProjectLimits"];
            /** Format: int64 */
            memory_mb: number;
            /** @description Whose it is, in a view over all projects. */
            project?: string | null;
            /** Format: int64 */
            sandboxes: number;
            /** Format: int64 */
            snapshot_mb: number;
            /** Format: int64 */
            vcpus: number;
            /** Format: int64 */
            volume_mb: number;
        };
        /** @description Response of `GET /v1/usage/projects`. */
        ProjectUsageList: {
            /** @description One for each project, oldest first. */
            items: components["schemas"]["ProjectUsage"][];
        };
        /**
         * @description How much of its size a sandbox is promised of its host.
         * @enum {string}
         */
        PromiseClass: "reserved" | "shared";
        /** @description Body of `POST /v1/sandboxes/{id}/promote`. Every field may be absent or null. */
        PromoteSandbox: {
            /** @description Delete the other children of the same fork. Default false. */
            cleanup_siblings?: boolean | null;
            /** @description Must be the child's own tree when it is given and not empty. */
            tree_id?: string | null;
        };
        /** @description Response of `POST /v1/sandboxes/{id}/promote`. */
        Promoted: {
            /** @description The siblings that are gone. */
            deleted: string[];
            /** @description Why a sibling may still exist, by id. */
            failures: {
                [key: string]: string;
            };
            tree_id: string;
            winner: string;
        };
        /** @description Body of `POST /v1/sandboxes/{id}/rollback`. */
        RollbackSandbox: {
            /**
             * @description Environment variables in place of those that it would have; `{}` leaves none. What runs already keeps its own. 128 KiB together at most. No response has the values. Names hold no `=`; neither names nor values hold a NUL.
             * @example {
             *       "API_TOKEN": "...",
             *       "STAGE": "test"
             *     }
             */
            env?: {
                [key: string]: string;
            } | null;
            snapshot_id: string;
        };
        /** @description A wished-for rule in its parts: one of `host` and `cidr`. */
        RuleParts: {
            /** @description A range of IPv4 addresses, for what has no name. */
            cidr?: string | null;
            /** @description A name; `*.name` for one part in front of it, `**.name` for any number of them. */
            host?: string | null;
            /** @description What records call the rule. Default: its host or range. */
            id?: string | null;
            /** @description Default: 80 and 443. */
            ports?: number[] | null;
        };
        /** @description A wished-for rule: a text, or an object with `host` or `cidr`. */
        RuleWish: string | components["schemas"]["RuleParts"];
        /** @description Body of `POST /v1/sandboxes/{id}/repl/sessions/{sid}/run`. */
        RunCode: {
            code: string;
            /**
             * Format: int64
             * @description Shapes stdout and stderr for a model, each into so many bytes.
             */
            max_output_bytes?: number | null;
            /** @description Lists the files that changed while the code ran. */
            report_changes?: boolean | null;
            /**
             * @description Names the run, so that the request may be repeated: it then gives the same results and the
             *     code does not run a second time. Made up when absent.
             */
            run_id?: string | null;
            /**
             * Format: int64
             * @description After this the code is interrupted and the response is `timeout`; the context stays.
             */
            timeout_ms?: number | null;
        };
        /** @description Body of `POST /v1/sandboxes/{id}/run`. */
        RunRequest: {
            code: string;
            /** Format: int64 */
            max_output_bytes?: number | null;
            /**
             * @description Default: what the template declares. `shell` runs the code as a command, `python` in a
             *     fresh interpreter, `python_context` in the context `default`, which keeps its state.
             */
            mode?: string | null;
            report_changes?: boolean | null;
            /** Format: double */
            timeout_seconds?: number | null;
        };
        /** @description Response of a run. */
        RunResult: components["schemas"]["Advice"] & {
            changed_files?: string[] | null;
            /** Format: int64 */
            duration_ms: number;
            /** @description The error that ended the code, in one line. */
            error?: string | null;
            exec_id?: string | null;
            /** Format: int64 */
            execution_count?: number | null;
            /**
             * Format: int32
             * @description 0, or 1 after an error. Twice, because clients differ in where they look.
             */
            exit: number;
            /** Format: int32 */
            exit_code: number;
            omitted?: components["schemas"]["Omission"][];
            /**
             * @description What the code displayed, each as MIME types with their data: text as it is, JSON as its
             *     text, images in base 64.
             */
            results: {
                [key: string]: string;
            }[];
            run_id?: string | null;
            /**
             * @description The interpreter of the context had ended, and this run has a new one: variables and imports
             *     of before are gone.
             */
            state_lost?: boolean;
            /** @description ok, error, interrupted or died. */
            status: string;
            stderr: string;
            stdout: string;
            traceback?: string[];
            /** @description Something was longer than what is given here. */
            truncated: boolean;
        };
        /** @description One event of `POST /v1/sandboxes/{id}/repl/sessions/{sid}/run/stream`. */
        RunStreamEvent: {
            /** @description A JSON object in pure ASCII. */
            data: string;
            /**
             * @description `started`, `restarted` (the interpreter had ended, and its state is lost), `stdout`, `stderr`,
             *     `result`, `failure`, `dropped`, `end` or `error`. The last is `end`, or `error` when the
             *     outcome is not known.
             */
            event: string;
        };
        /** @description One sandbox. */
        Sandbox: {
            /** @description `restore`, or `boot` for one that was created with `disk_only`. */
            boot_mode: string;
            /**
             * Format: int64
             * @description Milliseconds from the node's start of work to a guest that runs user code.
             */
            boot_ms?: number | null;
            /** @description The parts of `boot_ms`, in microseconds. */
            boot_stages_us?: {
                [key: string]: number;
            };
            /** @description How much of its size the host promises. */
            class?: components["schemas"]["PromiseClass"];
            /**
             * @description What is wrong with it beside its status. `disk_full`: the host's disk has no room for what
             *     it writes; it stands still, loses nothing, and goes on by itself. `disk_damaged`: a write
             *     to its disk failed; it is not captured any more.
             */
            condition?: string | null;
            /** Format: int32 */
            cpu: number;
            /**
             * Format: double
             * @description CPUs that it may use at most. Null: all of `cpu`.
             */
            cpu_limit?: number | null;
            /** @description RFC 3339, UTC. */
            created_at: string;
            /**
             * Format: double
             * @description GiB.
             */
            disk_gb?: number;
            /** @description The names of its environment variables, sorted. Their values are never told. */
            env_names?: string[];
            /** @description When the node deletes it, RFC 3339, UTC. */
            expires_at?: string | null;
            /** @description The snapshot that it was created from. */
            from_snapshot?: string | null;
            id: string;
            /**
             * Format: int64
             * @description Null: never reaped for idleness.
             */
            idle_seconds?: number | null;
            /** @description What stands between the guest and its host: hardware or emulated. */
            isolation: string;
            /** Format: int64 */
            memory_mb: number;
            metadata: {
                [key: string]: string;
            };
            /** @description What the project calls it. */
            name?: string | null;
            /** @description What it may reach: deny, allowlist, public or observe. `GET .../network` has the rules. */
            network_mode?: components["schemas"]["NetworkMode"];
            on_timeout?: components["schemas"]["OnTimeout"];
            persistent: boolean;
            /** @description Whose it is, in a view over all projects. */
            project?: string | null;
            /** @description Why it failed or is unavailable. */
            reason?: string | null;
            /**
             * @description Why it sleeps, if neither its user nor its rules asked for that. `pressure`: it was idle, and
             *     others needed the memory; the next request wakes it, and what runs in it goes on by itself
             *     when there is room.
             */
            sleep_reason?: string | null;
            /**
             * @description creating, running, pausing, paused, resuming, hibernating, hibernated, waking, deleting,
             *     deleted, failed, or unavailable: the node keeps it and cannot use it until what `reason` says
             *     is over.
             */
            status: string;
            template: string;
            /**
             * Format: int64
             * @description Null: no deadline.
             */
            ttl_seconds?: number | null;
            variant?: components["schemas"]["SandboxVariant"] | null;
            volumes?: components["schemas"]["VolumeMount"][];
        };
        /** @description An event of `GET /v1/events`: a sandbox came into a state. */
        SandboxEvent: {
            /** @description RFC 3339, UTC. */
            at: string;
            /** @description Ask with this as `after`, or as `Last-Event-ID`, for what comes behind it. */
            cursor: string;
            /** @description Whose it is, in a view over all projects. */
            project?: string | null;
            reason?: string | null;
            sandbox_id: string;
            state: string;
        };
        /** @description Response of `GET /v1/sandboxes`. */
        SandboxList: {
            /** @description Oldest first. */
            items: components["schemas"]["Sandbox"][];
            /** @description Ask with this as `cursor` for the next page. Absent: this was the last. */
            next_cursor?: string | null;
        };
        /** @description What a sandbox that runs costs the host. */
        SandboxLoad: {
            /**
             * Format: int64
             * @description CPU time in microseconds since its machine was started. A wake starts it anew.
             */
            cpu_us: number;
            id: string;
            /**
             * Format: int64
             * @description Memory that it alone has, in bytes. What it shares with others of its template does not count.
             */
            memory_bytes: number;
            /** @description Whose it is, in a view over all projects. */
            project?: string | null;
        };
        /** @description Response of `GET /v1/usage/sandboxes`. */
        SandboxLoadList: {
            /**
             * Format: int64
             * @description When this was read, in milliseconds since 1970: CPU time between two readings is a load.
             */
            at_ms: number;
            /** @description Those that run now. */
            items: components["schemas"]["SandboxLoad"][];
        };
        /** @description Response of `GET /v1/sandboxes/{id}/metrics`. */
        SandboxMetrics: {
            /** @description Oldest first. There are none of the time in which it had no machine. */
            items: components["schemas"]["SandboxSample"][];
        };
        /** @description What a sandbox had used at one moment of its life, and had then. */
        SandboxSample: {
            /** @description RFC 3339, UTC. */
            at: string;
            /**
             * Format: int64
             * @description CPU time in microseconds since the sandbox was made, over hibernations: between two samples
             *     it is a load.
             */
            cpu_us: number;
            /**
             * Format: int64
             * @description What its disk takes on the host since its last snapshot, fork or hibernation, in bytes; whole
             *     MiB.
             */
            disk_bytes: number;
            /**
             * Format: int64
             * @description Memory that it alone has, in bytes. What it shares with others of its template does not count.
             */
            memory_bytes: number;
            /**
             * Format: int64
             * @description What its network interface received since the sandbox was made, in bytes.
             */
            network_in_bytes: number;
            /**
             * Format: int64
             * @description What it sent.
             */
            network_out_bytes: number;
        };
        /** @description The variant of a template that a sandbox was made from. */
        SandboxVariant: {
            /**
             * Format: int64
             * @description Milliseconds that its bake took, whenever that was.
             */
            bake_ms?: number | null;
            /**
             * Format: int32
             * @description CPUs.
             */
            cpu: number;
            /**
             * @description It had to be baked for a create, and this is the first sandbox since: the time was spent
             *     waiting. False: it was there.
             */
            first_use: boolean;
            /**
             * Format: int64
             * @description MiB.
             */
            memory_mb: number;
        };
        /** @description Body of `PUT /v1/templates/{name}/tags/{tag}`. */
        SetTemplateTag: {
            /** @description The id of a version of the same template. */
            version: string;
        };
        /** @description The OpenID provider that people sign in with. */
        SignInOffer: {
            /** @description What this server is called there. Ask for a token with this audience. */
            client_id: string;
            /** @description Where a client asks for a code that is entered in a browser, if the provider has that. */
            device_authorization_endpoint?: string | null;
            /** @description Its name, which is also its address. */
            issuer: string;
            /** @description What to ask the provider for. */
            scopes: string[];
            /** @description Where a client gets its tokens. */
            token_endpoint?: string | null;
        };
        /** @description Body of `POST /v1/sign-in`. */
        SignInRequest: {
            /** @description An ID token of the provider, for this server. */
            id_token: string;
            /** @description Which project the key is to be of. Needed by people who have roles in several. */
            project?: string | null;
        };
        /** @description Body of `POST /v1/sandboxes/{id}/processes/{exec_id}/signal`. */
        SignalRequest: {
            /**
             * Format: int32
             * @description A number, such as 15. Goes to the process group; 9 ends everything of the exec.
             */
            signal: number;
        };
        /** @description One snapshot. */
        Snapshot: {
            capture: components["schemas"]["Capture"];
            /** @description RFC 3339, UTC. */
            created_at: string;
            /** @description Null: kept until it is deleted. */
            expires_at?: string | null;
            id: string;
            name?: string | null;
            /** @description The sandbox that it was taken of, which may be gone. */
            sandbox_id: string;
            /**
             * Format: int64
             * @description Bytes on disk that only this snapshot holds.
             */
            size_bytes: number;
            template: string;
        };
        /** @description Response of `GET /v1/snapshots`, newest first. */
        SnapshotList: {
            snapshots: components["schemas"]["Snapshot"][];
        };
        /** @description Response of `POST /v1/sandboxes/{id}/processes/{exec_id}/stdin`. */
        StdinTaken: {
            /**
             * Format: int64
             * @description Bytes of input that the guest has taken in total.
             */
            stdin_bytes: number;
        };
        /** @description The part of a stream that can be read: from `start` up to `end`. */
        StreamExtent: {
            /** Format: int64 */
            end: number;
            /** Format: int64 */
            start: number;
        };
        /** @description Body of `POST /v1/projects/{project}/suspend`. */
        SuspendProject: {
            /** @description Shown to whoever uses a key of the project. */
            reason: string;
            /** @description Also hibernate its sandboxes. Default false: what runs goes on. */
            stop_sandboxes?: boolean | null;
        };
        /** @description One template. */
        Template: {
            /** @description The template that this is only a further name of. */
            alias_of?: string | null;
            /** @description RFC 3339, UTC. */
            baked_at?: string | null;
            /** @description Languages in which its sandboxes can hold contexts. */
            contexts: string[];
            /** Format: int32 */
            cpu: number;
            description: string;
            /** @description The step of the bake, or why it failed. */
            detail?: string | null;
            /** Format: int64 */
            disk_mb: number;
            /** @description The operator's templates are seen by all projects. */
            is_global: boolean;
            /** Format: int64 */
            memory_mb: number;
            name: string;
            /**
             * Format: int32
             * @description 0 to 100.
             */
            percent: number;
            run: components["schemas"]["TemplateRun"];
            /**
             * Format: int64
             * @description Bytes on the host's disk.
             */
            size_bytes: number;
            /** @description How far its last bake is. */
            state: components["schemas"]["TemplateState"];
            /**
             * @description Whether sandboxes can be made from it now: also while it is baked anew, and when that failed.
             *     Sizes and times are those of the bake that is used.
             */
            usable?: boolean;
            /** @description Its other sizes that were asked for, smallest first. */
            variants?: components["schemas"]["TemplateVariant"][];
        };
        /** @description A build of a template that the server runs, or ran. */
        TemplateBuild: {
            /**
             * Format: int64
             * @description Of the template on the host's disk, when it is done.
             */
            bytes: number;
            /**
             * Format: int64
             * @description How many of them were done before.
             */
            cached: number;
            /** @description RFC 3339. */
            ended_at?: string | null;
            /** @description Why it failed. */
            error?: string | null;
            id: string;
            /**
             * @description What a sandbox is created with when it is done; until then the image that was asked for, if
             *     one was.
             */
            image_ref: string;
            /** @description Of the template. */
            name: string;
            /**
             * Format: int64
             * @description MiB of disk: what was asked for, and when it is done what sandboxes have.
             */
            size_mb: number;
            /** @description RFC 3339. */
            started_at?: string | null;
            status: components["schemas"]["TemplateBuildStatus"];
            /** Format: int64 */
            steps: number;
            tag: string;
            /** @description The version that it made. */
            version?: string | null;
        };
        /** @description One event of a build. The last is `built` or `failed`. */
        TemplateBuildEvent: {
            detail?: string | null;
            /** @enum {string} */
            event: "base";
            image: string;
            /** Format: int32 */
            percent: number;
        } | {
            /** @enum {string} */
            event: "stage";
            name: string;
            /** Format: int64 */
            steps: number;
        } | {
            /** @enum {string} */
            event: "cached";
            /** Format: int64 */
            number: number;
            /** Format: int64 */
            steps: number;
            text: string;
        } | {
            /** @enum {string} */
            event: "started";
            /** Format: int64 */
            number: number;
            /** Format: int64 */
            steps: number;
            text: string;
        } | {
            /** @enum {string} */
            event: "output";
            is_error: boolean;
            text: string;
        } | {
            /** Format: int64 */
            elapsed_ms: number;
            /** @enum {string} */
            event: "finished";
            /** Format: int64 */
            number: number;
        } | {
            detail?: string | null;
            /** @enum {string} */
            event: "baking";
            /** Format: int32 */
            percent: number;
        } | {
            /** @enum {string} */
            event: "dropped";
            /** Format: int64 */
            lines: number;
        } | {
            /** Format: int64 */
            cached: number;
            /** Format: int64 */
            elapsed_ms: number;
            /** @enum {string} */
            event: "built";
            name: string;
            /** Format: int64 */
            steps: number;
            tag: string;
            version: string;
        } | {
            error: string;
            /** @enum {string} */
            event: "failed";
            step?: components["schemas"]["FailedBuildStep"] | null;
        };
        /**
         * @description How far a build is.
         * @enum {string}
         */
        TemplateBuildStatus: "queued" | "running" | "done" | "failed";
        /** @description How it is found out that a template's program is ready. */
        TemplateHealthCheck: {
            /** @description A text for the shell, or a program with its arguments. */
            command: string | [
                string
            ];
            /**
             * Format: double
             * @description Between two looks. Default 1.
             */
            interval_seconds?: number | null;
            /**
             * Format: int64
             * @description How many may fail in a row after that. Default 3.
             */
            retries?: number | null;
            /**
             * Format: double
             * @description How long failures do not count. Default 60.
             */
            start_period_seconds?: number | null;
            /**
             * Format: double
             * @description Of one look. Default 30.
             */
            timeout_seconds?: number | null;
        };
        /**
         * @description What `run` means in a template's sandboxes.
         * @enum {string}
         */
        TemplateRun: "shell" | "python" | "python_context";
        /**
         * @description How far a template is.
         * @enum {string}
         */
        TemplateState: "not_baked" | "waiting" | "baking" | "ready" | "failed";
        /** @description A template in another size than its own. */
        TemplateVariant: {
            /**
             * Format: int64
             * @description Milliseconds that the bake took.
             */
            bake_ms?: number | null;
            /** @description RFC 3339, UTC. */
            baked_at?: string | null;
            /** Format: int32 */
            cpu: number;
            /** @description The step of the bake, or why it failed. */
            detail?: string | null;
            /**
             * Format: int64
             * @description MiB.
             */
            memory_mb: number;
            /**
             * Format: int32
             * @description 0 to 100.
             */
            percent: number;
            /**
             * Format: int64
             * @description Bytes on the host's disk.
             */
            size_bytes: number;
            /** @description How far its last bake is. */
            state: components["schemas"]["TemplateState"];
            /** @description Whether sandboxes can be made from it now. */
            usable: boolean;
        };
        /** @description A version of a template of a project. Nothing about it changes but its tags. */
        TemplateVersion: {
            /** Format: int32 */
            cpu: number;
            /** @description RFC 3339, UTC. */
            created_at: string;
            description: string;
            /** @description The step of the bake, or why it failed. */
            detail?: string | null;
            /** Format: int64 */
            disk_mb: number;
            from_snapshot: string;
            id: string;
            /** @description The prefix of the key that it was made with. */
            made_by?: string | null;
            /** Format: int64 */
            memory_mb: number;
            name: string;
            /**
             * Format: int32
             * @description 0 to 100.
             */
            percent: number;
            /** @description As it was given. */
            provenance: Record<string, never>;
            /**
             * Format: int64
             * @description Bytes on the host's disk.
             */
            size_bytes: number;
            state: components["schemas"]["TemplateState"];
            /** @description Tags that mean it, in order. */
            tags: string[];
            /** @description Whether sandboxes can be made from it now. */
            usable: boolean;
        };
        /** @description All versions of a template, newest first. */
        TemplateVersionList: {
            items: components["schemas"]["TemplateVersion"][];
        };
        TerminalSize: {
            /** Format: int32 */
            columns: number;
            /** Format: int32 */
            rows: number;
        };
        /** @description A key, without its secret. */
        Token: {
            /** @description RFC 3339, UTC. */
            created_at: string;
            /** @description RFC 3339, UTC. Null: it does not expire. */
            expires_at?: string | null;
            label: string;
            /** @description The prefix of the key that made it. Null: it is not known. */
            made_by?: string | null;
            /** @description What it begins with; names it in this API. */
            prefix: string;
            /** @description Whose it is, in a view over all projects. */
            project?: string | null;
            /** @description The only sandbox that it may be used on. */
            sandbox_id?: string | null;
            /** @description Of `read`, `create`, `exec`, `admin`, `operator`, with those that others include. */
            scopes: string[];
        };
        /** @description Response of `GET /v1/me/tokens`. */
        TokenList: {
            /** @description Those that work now, oldest first. */
            items: components["schemas"]["Token"][];
            /** @description Ask with this as `cursor` for the next page. Absent: there is none. */
            next_cursor?: string | null;
        };
        /** @description What a project used in one hour. The hour that goes on grows. */
        UsageHour: {
            /**
             * Format: double
             * @description CPU time that was used, as measured at samples: what a machine used after its last one is not
             *     in it.
             */
            cpu_seconds: number;
            /** @description When it began (RFC 3339, UTC). */
            hour: string;
            /**
             * Format: double
             * @description The same, times the memory of each sandbox in MiB.
             */
            memory_mb_seconds: number;
            /**
             * Format: int64
             * @description What sandboxes received and sent, measured in the same way.
             */
            network_in_bytes: number;
            /** Format: int64 */
            network_out_bytes: number;
            /** @description Whose it is, in a view over all projects. */
            project?: string | null;
            /**
             * Format: double
             * @description Time in which sandboxes had a machine, running or paused, added up. Exact to a millisecond.
             */
            sandbox_seconds: number;
            /**
             * Format: int64
             * @description Sandboxes that came to run for the first time.
             */
            sandboxes_started: number;
            /**
             * Format: double
             * @description The same, times the vCPUs of each sandbox.
             */
            vcpu_seconds: number;
        };
        /** @description Response of `GET /v1/usage/hours`. */
        UsageHourList: {
            /** @description Oldest first, and by project within an hour. An hour in which nothing was used is not there. */
            items: components["schemas"]["UsageHour"][];
            /** @description Ask with this as `cursor` for what comes behind. Null: there is nothing more. */
            next_cursor?: string | null;
        };
        /** @description One volume. */
        Volume: {
            /** @description RFC 3339, UTC. */
            created_at: string;
            name: string;
            /** @description The sandboxes that read. */
            readers: string[];
            /** Format: int64 */
            size_mb: number;
            /**
             * Format: int64
             * @description Bytes on the host's disk.
             */
            used_bytes: number;
            /** @description The sandbox that may write, when there is one. */
            writer?: string | null;
        };
        /** @description Response of `GET /v1/volumes`. */
        VolumeList: {
            items: components["schemas"]["Volume"][];
        };
        /** @description A volume in a sandbox. */
        VolumeMount: {
            name: string;
            /** @description Where it is in the guest: absolute, without `.` and `..`. Default `/volumes/NAME`. */
            path?: string | null;
            /** @description Many sandboxes can read a volume that nobody writes; one can write. Default false. */
            read_only?: boolean | null;
        };
        /** @description Body of `POST /v1/sandboxes/{id}/ports/{port}/wait`. Unknown fields are refused. */
        WaitForPort: {
            /**
             * Format: int64
             * @description How long to wait; 0 looks once. Default 60000.
             */
            timeout_ms?: number | null;
        };
        /**
         * @description Body of `POST /v1/sandboxes/{id}/wake`. Every field may be absent or null; unknown fields are
         *     refused.
         */
        WakeSandbox: {
            /**
             * @description Environment variables in place of those that it would have; `{}` leaves none. What runs already keeps its own. 128 KiB together at most. No response has the values. Names hold no `=`; neither names nor values hold a NUL.
             * @example {
             *       "API_TOKEN": "...",
             *       "STAGE": "test"
             *     }
             */
            env?: {
                [key: string]: string;
            } | null;
        };
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
