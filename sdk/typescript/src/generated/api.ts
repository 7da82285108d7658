// Generated from openapi/v1.json by `npm run generate`. Not to be edited.

export interface paths {
    "/health": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Is the server there, and well? A server that can change nothing refuses with
         *     `store_unavailable` or `audit_unavailable`, and the fields of `Health` stand beside the refusal's.
         */
        get: operations["health"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/audit": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Who did what in this project, newest first: every call that changed something, every command,
         *     and what was refused for want of a right.
         */
        get: operations["read_audit"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * What happens to the sandboxes of this project, as server-sent events named `sandbox`, for as
         *     long as the caller stays. Each has its cursor as `id`, from which a later request goes on;
         *     events are kept for a week.
         */
        get: operations["follow_events"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/me": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Whose key is this? */
        get: operations["get_me"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/me/tokens": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The keys of this project that work now. */
        get: operations["list_tokens"];
        put?: never;
        /** Makes a key of this project, for no more than the key that asks. The secret is told this once. */
        post: operations["create_token"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/me/tokens/{prefix}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Ends a key, at once, and with `descendants` the keys and links that it made, and that those made. */
        delete: operations["revoke_token"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/network-default": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What a new sandbox may reach when its create does not say. */
        get: operations["get_network_default"];
        /**
         * Replaces what a new sandbox may reach when its create does not say. Sandboxes that exist stay
         *     as they are.
         */
        put: operations["set_network_default"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/network-presets": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists of hosts that a rule can name as `preset:NAME`. */
        get: operations["list_network_presets"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/node": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** How is the host? */
        get: operations["get_node"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/openapi.json": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** This document. */
        get: operations["get_openapi"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/projects": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** All projects. */
        get: operations["list_projects"];
        put?: never;
        /** Makes a project. It has no key yet. */
        post: operations["create_project"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/projects/{project}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** One project. */
        get: operations["get_project"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        /** Changes what a project may use. What it has already stays. */
        patch: operations["change_project"];
        trace?: never;
    };
    "/v1/projects/{project}/tokens": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Makes a key of any project, for an operator. */
        post: operations["create_project_token"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Sandboxes that were not deleted, oldest first: all, or those that have everything that the query
         *     names.
         */
        get: operations["list_sandboxes"];
        put?: never;
        /** Makes a sandbox and waits until it runs. */
        post: operations["create_sandbox"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** One sandbox. */
        get: operations["get_sandbox"];
        put?: never;
        post?: never;
        /** Deletes a sandbox, whatever it is doing. May be repeated. */
        delete: operations["delete_sandbox"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{id}/exec": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Runs a command and answers when it has ended, or at once with `background`. Hanging up leaves
         *     the command alone: `processes` has it.
         */
        post: operations["exec"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{id}/exec/socket": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Starts a command on a WebSocket; its first message is the request. */
        get: operations["exec_socket"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{id}/exec/stream": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Runs a command and sends its output as it comes, as server-sent events: `started` with the
         *     exec's id, `stdout` and `stderr` with `{"chunk": text}`, then one `exit` with
         *     `{"exit_code": number}` or one `error` with `{"error": text}`. Hanging up leaves the command
         *     alone: `processes/{exec_id}/attach` goes on.
         */
        post: operations["exec_stream"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{id}/fork": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Makes children that continue from this moment of a sandbox. It answers with those that were
         *     made, and fails when none was.
         */
        post: operations["fork_sandbox"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{id}/fork-tree": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** As `fork`, with a count that must be given. */
        post: operations["fork_sandbox_tree"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{id}/fs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Reads a file, or one range of its bytes. */
        get: operations["read_file"];
        /**
         * Writes a file, with its parent directories, in one step: readers see the old content or the
         *     new. With `append` or `offset` it is written in place instead.
         */
        put: operations["write_file"];
        post?: never;
        /** Removes a file or an empty directory, or a directory with everything in it. */
        delete: operations["remove_file"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{id}/fs/changes": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists what differs on the sandbox's disk since it began or since one of its snapshots. */
        get: operations["list_changes"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{id}/fs/chmod": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Changes permission bits. A link has none, and what it leads to is not changed through it. */
        post: operations["change_mode"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{id}/fs/dir": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists a directory: all of it up to a limit, or page by page. */
        get: operations["list_directory"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{id}/fs/mkdir": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Makes a directory. */
        post: operations["make_directory"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{id}/fs/move": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Gives a file or a directory another path, in one step. */
        post: operations["move_file"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{id}/fs/stat": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Describes a file, without following a link. */
        get: operations["stat_file"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{id}/fs/tar": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Gives a directory, or one file, as a tar archive with relative names. Pipes, sockets and
         *     devices are left out. A body that breaks off means that something could not be read.
         */
        get: operations["download_tree"];
        /**
         * Unpacks a tar archive below a directory, which is made if it is not there. Nothing is written
         *     outside of it: an archive that wants to is refused at that member, and what came before stays.
         */
        put: operations["upload_tree"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{id}/fs/watch": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Reports changes of a directory until the caller leaves: `ready`, then `change` events, and
         *     `overflow` where some were lost. `end` when the directory is gone, `error` when the guest is.
         */
        get: operations["watch_files"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{id}/hibernate": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Moves a sandbox to disk; no process and no memory are left. The next call that needs the guest
         *     wakes it. May be repeated.
         */
        post: operations["hibernate_sandbox"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{id}/lifecycle": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** How long the sandbox lives. */
        get: operations["get_lifecycle"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        /**
         * Changes how long the sandbox lives. What is absent stays; a null takes away; a time to live
         *     counts from now.
         */
        patch: operations["set_lifecycle"];
        trace?: never;
    };
    "/v1/sandboxes/{id}/links": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The links of all ports of a sandbox that work now, without their tokens. */
        get: operations["list_sandbox_links"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{id}/logs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * What the sandbox's commands have printed, oldest command first, as text. With `follow` as
         *     server-sent events of `{"line": text}`, until the last of those that run now has ended.
         */
        get: operations["read_logs"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{id}/network": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What the sandbox may reach, and whether that is in force. */
        get: operations["get_network"];
        /**
         * Replaces what the sandbox may reach; open connections that it no longer may are cut. A narrower
         *     policy that the host has not confirmed yet is answered with `enforced: false` and sent until it
         *     has; a wider one that it does not confirm is refused, and the old one stays.
         */
        put: operations["set_network"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{id}/network/allow": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Adds rules. A sandbox that may reach nothing gets an allowlist. */
        post: operations["allow_network"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{id}/network/log": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * What the sandbox tried to reach, and what was decided. With `Accept: text/event-stream` it is a
         *     stream: a `record` event for each record from `after` on, for as long as the caller stays,
         *     `lost` where some are gone, `end` when the sandbox is, `error` when its host is.
         */
        get: operations["read_network_log"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{id}/network/suggest": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Drafts the smallest allowlist for the connections that were let through so far. Nothing is
         *     changed.
         */
        get: operations["suggest_network"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{id}/pause": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Stops the guest's processors. Memory stays where it is. May be repeated. */
        post: operations["pause_sandbox"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{id}/ports": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What listens in the sandbox now. One that is hibernated has nothing, and is not woken. */
        get: operations["list_ports"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{id}/ports/{port}/links": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The links of a port that work now, without their tokens. */
        get: operations["list_port_links"];
        put?: never;
        /** Opens a port to those who have the token, or to anybody. The token is shown once. */
        post: operations["create_port_link"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{id}/ports/{port}/links/{link}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Ends a link, and every connection that came by it. */
        delete: operations["revoke_port_link"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{id}/processes": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists the execs of a sandbox, those that ended included, oldest first. */
        get: operations["list_processes"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{id}/processes/{exec_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Describes an exec. With `wait_seconds`, answers when it has ended or the time is over. */
        get: operations["get_process"];
        put?: never;
        post?: never;
        /** Ends an exec with everything that it started and drops its output. Repeating it is fine. */
        delete: operations["delete_process"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{id}/processes/{exec_id}/attach": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Sends the output of an exec from offsets on, as `exec/stream` does. */
        get: operations["attach_process"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{id}/processes/{exec_id}/output": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Gives a part of a stream as bytes, as far as it was written by now. The header
         *     `Dayfly-Offset` says where it really begins: behind the asked offset when the guest has
         *     dropped bytes. `Dayfly-End` says where the stream ends by now.
         */
        get: operations["read_process_output"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{id}/processes/{exec_id}/resize": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Tells the terminal of an exec how large it is. */
        post: operations["resize_process"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{id}/processes/{exec_id}/signal": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Sends a signal to the process group of an exec; 9 ends everything that it started. */
        post: operations["signal_process"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{id}/processes/{exec_id}/socket": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Attaches to an exec on a WebSocket, from offsets on. */
        get: operations["process_socket"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{id}/processes/{exec_id}/stdin": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Sends input to an exec that was started with `stdin_open`. With `offset`, bytes that the guest
         *     has taken already are left out, so the request may be repeated.
         */
        post: operations["write_process_stdin"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{id}/promote": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Keeps one child of a fork, and deletes the others when that is asked for. */
        post: operations["promote_sandbox"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{id}/repl/sessions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists the contexts of a sandbox. */
        get: operations["list_contexts"];
        put?: never;
        /** Makes a context: an interpreter that keeps its state between runs. */
        post: operations["create_context"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{id}/repl/sessions/{sid}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Ends a context. Repeating it is fine. */
        delete: operations["delete_context"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{id}/repl/sessions/{sid}/interrupt": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Interrupts what runs in a context. Its state stays. */
        post: operations["interrupt_context"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{id}/repl/sessions/{sid}/restart": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Starts a context afresh: its variables are gone. */
        post: operations["restart_context"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{id}/repl/sessions/{sid}/run": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Runs code in a context and answers when it has ended. Code that raises is a success with
         *     `error` set.
         */
        post: operations["run_code"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{id}/repl/sessions/{sid}/run/stream": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Runs code in a context and sends what it gives as it comes, as server-sent events. */
        post: operations["run_code_stream"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{id}/resume": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Lets a paused guest go on. May be repeated. */
        post: operations["resume_sandbox"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{id}/rollback": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Takes a sandbox back to a snapshot of its own, in place. */
        post: operations["rollback_sandbox"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{id}/run": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Runs code and answers when it has ended: as a shell command, in a fresh Python, or in a Python
         *     context that keeps its state, as the template declares unless `mode` says so.
         */
        post: operations["run"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{id}/snapshots": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Takes a snapshot of a sandbox that goes on. */
        post: operations["create_snapshot"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{id}/wake": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Brings a hibernated sandbox back. May be repeated. */
        post: operations["wake_sandbox"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/snapshots": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** All snapshots of the project, newest first. */
        get: operations["list_snapshots"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/snapshots/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** One snapshot. */
        get: operations["get_snapshot"];
        put?: never;
        post?: never;
        /** Deletes a snapshot. What was made from it stays. May be repeated. */
        delete: operations["delete_snapshot"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/templates": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** All templates. A bare array, because the published clients read one. */
        get: operations["list_templates"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/templates/builds": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Builds of templates out of images or archives, of which there are none: templates are baked from
         *     recipes. The published clients ask for the list.
         */
        get: operations["list_builds"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/templates/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** One template. */
        get: operations["get_template"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/templates/{name}/bake": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Has a template baked, unless it is, and does not wait for it. May be repeated; a bake that failed
         *     is tried again.
         */
        post: operations["bake_template"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/usage": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What this project uses, and may use. */
        get: operations["get_usage"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/usage/sandboxes": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What each sandbox of this project that runs costs the host. */
        get: operations["get_sandbox_loads"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/volumes": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** All volumes of the project, by name. */
        get: operations["list_volumes"];
        put?: never;
        /** Makes a volume. One with the same name and size is answered with as it is. */
        post: operations["create_volume"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/volumes/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** One volume. */
        get: operations["get_volume"];
        put?: never;
        post?: never;
        /** Deletes a volume with what is on it. May be repeated. */
        delete: operations["delete_volume"];
        options?: never;
        head?: never;
        /** Makes a volume larger. */
        patch: operations["grow_volume"];
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        /** @description Body of `POST /v1/sandboxes/{id}/network/allow`. */
        AllowNetwork: {
            rules: components["schemas"]["RuleWish"][];
        };
        /** @description One thing that somebody did, or tried to do. */
        AuditEntry: {
            /** @description RFC 3339, UTC. */
            at: string;
            /**
             * @description What there is to say beyond that: of a command its input, its end, and sizes and digests of
             *     its output.
             */
            detail: Record<string, never>;
            /** @description Of the key that was used. */
            key_prefix: string;
            /** @description Method and path. */
            operation: string;
            request_id: string;
            /** Format: int64 */
            seq: number;
            /**
             * Format: int32
             * @description The HTTP status of the answer.
             */
            status: number;
            /** @description The sandbox, snapshot, volume or key that it was about. */
            subject?: string | null;
        };
        /** @description Answer of `GET /v1/audit`. */
        AuditList: {
            /** @description Newest first. */
            items: components["schemas"]["AuditEntry"][];
            /** @description Ask with this as `cursor` for what is older. Null: there is nothing older. */
            next_cursor?: string | null;
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
        /** @description Answer of `GET /v1/sandboxes/{id}/fs/changes`. */
        ChangeList: {
            /** @description In the order of paths. */
            entries: components["schemas"]["ChangedFile"][];
            /** @description There were more than one answer holds: ask for a directory below. */
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
        /** @description Answer of `GET /v1/sandboxes/{id}/repl/sessions`. */
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
            /**
             * Format: double
             * @description Processors that it may use at most; may be a fraction. Default: all of the template's.
             */
            cpu?: number | null;
            /**
             * Format: double
             * @description GiB of disk; may be a fraction, and not less than the template's. Default: the template's.
             */
            disk_gb?: number | null;
            /**
             * @description Short for a `network` of mode `allowlist` with these rules. An empty list lets nothing
             *     through.
             */
            egress_allowlist?: components["schemas"]["RuleWish"][];
            /** @description Restore this snapshot; its template is then the sandbox's, whatever `template` says. */
            from_snapshot?: string | null;
            /**
             * Format: int64
             * @description Seconds without activity after which `on_timeout` happens. Default: never.
             */
            idle_seconds?: number | null;
            metadata?: {
                [key: string]: string;
            } | null;
            /**
             * @description What it may reach. Absent: what the project's default says. Not null, and not together with
             *     `egress_allowlist`.
             */
            network?: components["schemas"]["NetworkWish"];
            on_timeout?: components["schemas"]["OnTimeout"] | null;
            /** @description Never reaped for idleness and not deleted by a client's context manager. */
            persistent?: boolean | null;
            /** @description Which template to restore. Default `base`. */
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
            /** @description A label of the caller's own; need not be unique. */
            name?: string | null;
            /**
             * Format: int64
             * @description Seconds until the snapshot is deleted by itself. Default: never.
             */
            retain_seconds?: number | null;
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
        /** @description Answer of `GET /v1/sandboxes/{id}/fs/dir`. */
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
        /** @description Flat on purpose: the published clients read `error` as a string. */
        ErrorBody: {
            /** @description A stable word that programs may match; the list is in the documentation. */
            code: string;
            /** @description What went wrong, why, for a person. Never empty. */
            error: string;
            /** @description What to do about it. */
            hint?: string | null;
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
            /** @description Answers at once, with the process as it is; `processes/{exec_id}` follows it. */
            background?: boolean | null;
            /** @description A text for the shell, or a program with its arguments. */
            cmd: string | [
                string
            ];
            /**
             * Format: double
             * @description Processor time of the command and all its children, likewise.
             */
            cpu_seconds?: number | null;
            /** @description Default `/workspace`. */
            cwd?: string | null;
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
             * @description What happens to more than that: `drop_oldest` (default; readers are told of the gap), or
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
             * @description After this many seconds the process is killed and the answer is `timeout`. May be a
             *     fraction. Default: no limit but the sandbox's own.
             */
            timeout_seconds?: number | null;
            /** @description Default `agent`. */
            user?: string | null;
        };
        /** @description Answer of `POST /v1/sandboxes/{id}/exec`. */
        ExecResult: {
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
            /** @description What to do about it, in words for a model. */
            hint?: string | null;
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
        /** @description Answer of `PUT /v1/sandboxes/{id}/fs` and `fs/tar`. */
        FileWritten: {
            /**
             * Format: int64
             * @description How many bytes were sent.
             */
            bytes: number;
            path: string;
        };
        /** @description What every child gets. Nothing of the source's own lifecycle is inherited. */
        ForkOptions: {
            /** @description When one child cannot be made, none stays. Default false. */
            all_or_nothing?: boolean | null;
            /**
             * @description Short for a `network` of mode `allowlist` with these rules. An empty list lets nothing
             *     through.
             */
            egress_allowlist?: components["schemas"]["RuleWish"][];
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
             * @description As with a create.
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
        /** @description Answer of a fork that made at least one child. */
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
        /** @description Answer of `GET /health`. */
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
        /** @description Answer of `GET` and `PATCH /v1/sandboxes/{id}/lifecycle`. */
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
        /** @description Answer of `GET /v1/me`. */
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
        /** @description Answer of `GET /v1/sandboxes/{id}/network/log`. */
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
        /** @description Answer of `GET /v1/network-presets`. */
        NetworkPresetList: {
            items: components["schemas"]["NetworkPreset"][];
        };
        /** @description One decision, or the end of a connection that was let through. */
        NetworkRecord: {
            /** @description Addresses that a question was answered with. */
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
        /** @description Answer of `GET /v1/sandboxes/{id}/network/suggest`: a policy for `PUT .../network`. */
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
        /** @description A key that was just made. The secret is told this once. */
        NewToken: components["schemas"]["Token"] & {
            /** @description The key itself. */
            token: string;
        };
        /** @description Answer of `GET /v1/node`: the host's own account of itself. */
        NodeView: {
            accelerator: string;
            /** Format: int64 */
            disk_available_mb: number;
            /** Format: int64 */
            disk_committed_mb: number;
            /** Format: int64 */
            disk_reserve_mb: number;
            engine: string;
            engine_version: string;
            isolation: string;
            /** Format: int64 */
            memory_committed_mb: number;
            /** Format: int64 */
            memory_reserve_mb: number;
            /** Format: int64 */
            memory_total_mb: number;
            node: string;
            parked_engines: components["schemas"]["PoolView"][];
            /** Format: int64 */
            parked_slots: number;
            /** Format: int64 */
            parked_slots_target: number;
            /** Format: int64 */
            sandboxes: number;
        };
        /** @description A part of a stream that an answer leaves out. */
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
        /** @description Answer of `GET /v1/sandboxes/{id}/ports/{port}/links` and of `GET /v1/sandboxes/{id}/links`. */
        PortLinkList: {
            items: components["schemas"]["PortLink"][];
        };
        /** @description Answer of `GET /v1/sandboxes/{id}/ports`. */
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
        /** @description Answer of `GET /v1/sandboxes/{id}/processes`, oldest first. */
        ProcessList: {
            items: components["schemas"]["Process"][];
        };
        /** @description A project. */
        Project: {
            /** @description RFC 3339, UTC. */
            created_at: string;
            id: string;
            limits: components["schemas"]["ProjectLimits"];
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
        /** @description Answer of `GET /v1/projects`. */
        ProjectList: {
            /** @description Oldest first. */
            items: components["schemas"]["Project"][];
        };
        /** @description Answer of `GET /v1/usage`. */
        ProjectUsage: {
            /**
             * Format: int64
             * @description Disks of its sandboxes, in full, asleep or not.
             */
            disk_mb?: number;
            limits: components["schemas"]["ProjectLimits"];
            /** Format: int64 */
            memory_mb: number;
            /** Format: int64 */
            sandboxes: number;
            /** Format: int64 */
            snapshot_mb: number;
            /** Format: int64 */
            vcpus: number;
            /** Format: int64 */
            volume_mb: number;
        };
        /** @description Body of `POST /v1/sandboxes/{id}/promote`. Every field may be absent or null. */
        PromoteSandbox: {
            /** @description Delete the other children of the same fork. Default false. */
            cleanup_siblings?: boolean | null;
            /** @description Must be the child's own tree when it is given and not empty. */
            tree_id?: string | null;
        };
        /** @description Answer of `POST /v1/sandboxes/{id}/promote`. */
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
             * @description After this the code is interrupted and the answer is `timeout`; the context stays.
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
        /** @description Answer of a run. */
        RunResult: {
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
            /** @description What to do about it, in words for a model. */
            hint?: string | null;
            omitted?: components["schemas"]["Omission"][];
            /**
             * @description What the code displayed, each as MIME types with their data: text as it is, JSON as its
             *     text, images in base 64.
             */
            results: {
                [key: string]: string;
            }[];
            run_id?: string | null;
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
             * @description `started`, `stdout`, `stderr`, `result`, `failure`, `dropped`, `end` or `error`. The last is
             *     `end`, or `error` when the outcome is not known.
             */
            event: string;
        };
        /** @description One sandbox. */
        Sandbox: {
            /** @description Always `restore`: a sandbox is never booted. */
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
             * @description Processors that it may use at most. Null: all of `cpu`.
             */
            cpu_limit?: number | null;
            /** @description RFC 3339, UTC. */
            created_at: string;
            /**
             * Format: double
             * @description GiB.
             */
            disk_gb?: number;
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
            /** @description What it may reach: deny, allowlist, public or observe. `GET .../network` has the rules. */
            network_mode?: components["schemas"]["NetworkMode"];
            on_timeout?: components["schemas"]["OnTimeout"];
            persistent: boolean;
            /** @description Why it failed or is unavailable. */
            reason?: string | null;
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
            volumes?: components["schemas"]["VolumeMount"][];
        };
        /** @description An event of `GET /v1/events`: a sandbox came into a state. */
        SandboxEvent: {
            /** @description RFC 3339, UTC. */
            at: string;
            /** @description Ask with this as `after`, or as `Last-Event-ID`, for what comes behind it. */
            cursor: string;
            reason?: string | null;
            sandbox_id: string;
            state: string;
        };
        /** @description Answer of `GET /v1/sandboxes`. */
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
             * @description Processor time in microseconds since its machine was started. A wake starts it anew.
             */
            cpu_us: number;
            id: string;
            /**
             * Format: int64
             * @description Memory that it alone has, in bytes. What it shares with others of its template does not count.
             */
            memory_bytes: number;
        };
        /** @description Answer of `GET /v1/usage/sandboxes`. */
        SandboxLoadList: {
            /**
             * Format: int64
             * @description When this was read, in milliseconds since 1970: processor time between two readings is a load.
             */
            at_ms: number;
            /** @description Those that run now. */
            items: components["schemas"]["SandboxLoad"][];
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
        /** @description Answer of `GET /v1/snapshots`, newest first. */
        SnapshotList: {
            snapshots: components["schemas"]["Snapshot"][];
        };
        /** @description Answer of `POST /v1/sandboxes/{id}/processes/{exec_id}/stdin`. */
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
            /** Format: int64 */
            size_bytes: number;
            state: components["schemas"]["TemplateState"];
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
            /** @description The only sandbox that it may be used on. */
            sandbox_id?: string | null;
            /** @description Of `read`, `create`, `exec`, `admin`, `operator`, with those that others include. */
            scopes: string[];
        };
        /** @description Answer of `GET /v1/me/tokens`. */
        TokenList: {
            /** @description Those that work now, oldest first. */
            items: components["schemas"]["Token"][];
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
        /** @description Answer of `GET /v1/volumes`. */
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
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    health: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Health"];
                };
            };
            /** @description No capacity, template not ready, node not reachable, or the database takes no writes. */
            503: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    read_audit: {
        parameters: {
            query?: {
                /** @description Only what was about this sandbox, snapshot, volume or key. */
                subject?: string;
                /** @description `next_cursor` of the page before. */
                cursor?: number;
                /** @description At most this many entries. Default 100. */
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AuditList"];
                };
            };
            /** @description The request does not fit the documented shape. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No key, or a key that is not known. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Not permitted; the text says why. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Too many at once. Nothing was done. */
            429: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A fault of the server. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No capacity, template not ready, node not reachable, or the database takes no writes. */
            503: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    follow_events: {
        parameters: {
            query?: {
                /**
                 * @description The `cursor` of the last event that was seen; `0` for all that are kept. `Last-Event-ID`
                 *     does the same. Default: only what happens from now on.
                 */
                after?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": components["schemas"]["SandboxEvent"];
                };
            };
            /** @description The request does not fit the documented shape. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No key, or a key that is not known. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Not permitted; the text says why. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Too many at once. Nothing was done. */
            429: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A fault of the server. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No capacity, template not ready, node not reachable, or the database takes no writes. */
            503: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    get_me: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Me"];
                };
            };
            /** @description No key, or a key that is not known. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Not permitted; the text says why. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Too many at once. Nothing was done. */
            429: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A fault of the server. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No capacity, template not ready, node not reachable, or the database takes no writes. */
            503: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    list_tokens: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TokenList"];
                };
            };
            /** @description No key, or a key that is not known. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Not permitted; the text says why. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Too many at once. Nothing was done. */
            429: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A fault of the server. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No capacity, template not ready, node not reachable, or the database takes no writes. */
            503: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    create_token: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["CreateToken"] | null;
            };
        };
        responses: {
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["NewToken"];
                };
            };
            /** @description The request does not fit the documented shape. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No key, or a key that is not known. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Not permitted; the text says why. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No such object in this project. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The object is in a state that does not allow this. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A body, a file or a list is over its limit. */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The body is not JSON. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Too many at once. Nothing was done. */
            429: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A fault of the server. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No capacity, template not ready, node not reachable, or the database takes no writes. */
            503: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    revoke_token: {
        parameters: {
            query?: {
                /**
                 * @description Also end what the key made: keys and links, and what those made. Of a key that was revoked
                 *     before, too. `true`, `1`, `false` or `0`. Default false.
                 */
                descendants?: string;
            };
            header?: never;
            path: {
                /** @description What the key begins with. */
                prefix: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It is refused from now on. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description The request does not fit the documented shape. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No key, or a key that is not known. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Not permitted; the text says why. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No such object in this project. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Too many at once. Nothing was done. */
            429: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A fault of the server. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No capacity, template not ready, node not reachable, or the database takes no writes. */
            503: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    get_network_default: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["NetworkDefault"];
                };
            };
            /** @description No key, or a key that is not known. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Not permitted; the text says why. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Too many at once. Nothing was done. */
            429: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A fault of the server. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No capacity, template not ready, node not reachable, or the database takes no writes. */
            503: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    set_network_default: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NetworkWish"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["NetworkDefault"];
                };
            };
            /** @description The request does not fit the documented shape. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No key, or a key that is not known. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Not permitted; the text says why. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A body, a file or a list is over its limit. */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The body is not JSON. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Too many at once. Nothing was done. */
            429: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A fault of the server. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No capacity, template not ready, node not reachable, or the database takes no writes. */
            503: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    list_network_presets: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["NetworkPresetList"];
                };
            };
            /** @description No key, or a key that is not known. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Not permitted; the text says why. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Too many at once. Nothing was done. */
            429: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A fault of the server. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No capacity, template not ready, node not reachable, or the database takes no writes. */
            503: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    get_node: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["NodeView"];
                };
            };
            /** @description No key, or a key that is not known. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Not permitted; the text says why. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Too many at once. Nothing was done. */
            429: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A fault of the server. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No capacity, template not ready, node not reachable, or the database takes no writes. */
            503: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    get_openapi: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": Record<string, never>;
                };
            };
            /** @description No key, or a key that is not known. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Not permitted; the text says why. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Too many at once. Nothing was done. */
            429: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A fault of the server. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No capacity, template not ready, node not reachable, or the database takes no writes. */
            503: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    list_projects: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ProjectList"];
                };
            };
            /** @description No key, or a key that is not known. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Not permitted; the text says why. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Too many at once. Nothing was done. */
            429: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A fault of the server. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No capacity, template not ready, node not reachable, or the database takes no writes. */
            503: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    create_project: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["CreateProject"];
            };
        };
        responses: {
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Project"];
                };
            };
            /** @description The request does not fit the documented shape. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No key, or a key that is not known. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Not permitted; the text says why. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No such object in this project. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The object is in a state that does not allow this. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A body, a file or a list is over its limit. */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The body is not JSON. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Too many at once. Nothing was done. */
            429: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A fault of the server. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No capacity, template not ready, node not reachable, or the database takes no writes. */
            503: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    get_project: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The project. */
                project: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Project"];
                };
            };
            /** @description No key, or a key that is not known. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Not permitted; the text says why. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No such object in this project. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Too many at once. Nothing was done. */
            429: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A fault of the server. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No capacity, template not ready, node not reachable, or the database takes no writes. */
            503: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    change_project: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The project. */
                project: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["ChangeLimits"] | null;
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Project"];
                };
            };
            /** @description The request does not fit the documented shape. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No key, or a key that is not known. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Not permitted; the text says why. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No such object in this project. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The object is in a state that does not allow this. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A body, a file or a list is over its limit. */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The body is not JSON. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Too many at once. Nothing was done. */
            429: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A fault of the server. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No capacity, template not ready, node not reachable, or the database takes no writes. */
            503: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    create_project_token: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The project. */
                project: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["CreateToken"] | null;
            };
        };
        responses: {
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["NewToken"];
                };
            };
            /** @description The request does not fit the documented shape. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No key, or a key that is not known. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Not permitted; the text says why. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No such object in this project. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The object is in a state that does not allow this. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A body, a file or a list is over its limit. */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The body is not JSON. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Too many at once. Nothing was done. */
            429: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A fault of the server. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No capacity, template not ready, node not reachable, or the database takes no writes. */
            503: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    list_sandboxes: {
        parameters: {
            query?: {
                /** @description Only those in this state, such as `running` or `hibernated`. */
                status?: string;
                /** @description Only those of this template. */
                template?: string;
                /** @description Only those with all of these labels: a JSON object with text values, such as `{"task":"7"}`. */
                metadata?: string;
                /** @description At most this many, and `next_cursor` if there are more. Default: all. */
                limit?: number;
                /** @description `next_cursor` of the page before. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SandboxList"];
                };
            };
            /** @description The request does not fit the documented shape. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No key, or a key that is not known. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Not permitted; the text says why. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Too many at once. Nothing was done. */
            429: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A fault of the server. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No capacity, template not ready, node not reachable, or the database takes no writes. */
            503: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    create_sandbox: {
        parameters: {
            query?: never;
            header?: {
                /** @description Makes the request repeatable: the same key and body answer with what the first one made. */
                "Idempotency-Key"?: string | null;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["CreateSandbox"] | null;
            };
        };
        responses: {
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Sandbox"];
                };
            };
            /** @description The request does not fit the documented shape. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No key, or a key that is not known. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Not permitted; the text says why. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No such object in this project. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The object is in a state that does not allow this. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A body, a file or a list is over its limit. */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The body is not JSON. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Too many at once. Nothing was done. */
            429: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A fault of the server. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The guest stopped answering. */
            502: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No capacity, template not ready, node not reachable, or the database takes no writes. */
            503: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A time limit passed; the text contains `timeout`. */
            504: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The disk of the guest, or of its host, is full. */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    get_sandbox: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The sandbox. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Sandbox"];
                };
            };
            /** @description No key, or a key that is not known. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Not permitted; the text says why. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No such object in this project. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Too many at once. Nothing was done. */
            429: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A fault of the server. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No capacity, template not ready, node not reachable, or the database takes no writes. */
            503: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    delete_sandbox: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The sandbox. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It is gone. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description The request does not fit the documented shape. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No key, or a key that is not known. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Not permitted; the text says why. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No such object in this project. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Too many at once. Nothing was done. */
            429: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A fault of the server. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The guest stopped answering. */
            502: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No capacity, template not ready, node not reachable, or the database takes no writes. */
            503: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    exec: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The sandbox. */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ExecRequest"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ExecResult"];
                };
            };
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Process"];
                };
            };
            /** @description The request does not fit the documented shape. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No key, or a key that is not known. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Not permitted; the text says why. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No such object in this project. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The object is in a state that does not allow this. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A body, a file or a list is over its limit. */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The body is not JSON. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Too many at once. Nothing was done. */
            429: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A fault of the server. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The guest stopped answering. */
            502: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No capacity, template not ready, node not reachable, or the database takes no writes. */
            503: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A time limit passed; the text contains `timeout`. */
            504: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The disk of the guest, or of its host, is full. */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    exec_socket: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The sandbox. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            101: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description The request does not fit the documented shape. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No key, or a key that is not known. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Not permitted; the text says why. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No such object in this project. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The object is in a state that does not allow this. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Too many at once. Nothing was done. */
            429: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A fault of the server. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The guest stopped answering. */
            502: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No capacity, template not ready, node not reachable, or the database takes no writes. */
            503: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A time limit passed; the text contains `timeout`. */
            504: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The disk of the guest, or of its host, is full. */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    exec_stream: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The sandbox. */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ExecRequest"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": components["schemas"]["ExecStreamEvent"];
                };
            };
            /** @description The request does not fit the documented shape. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No key, or a key that is not known. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Not permitted; the text says why. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No such object in this project. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The object is in a state that does not allow this. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A body, a file or a list is over its limit. */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The body is not JSON. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Too many at once. Nothing was done. */
            429: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A fault of the server. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The guest stopped answering. */
            502: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No capacity, template not ready, node not reachable, or the database takes no writes. */
            503: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A time limit passed; the text contains `timeout`. */
            504: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The disk of the guest, or of its host, is full. */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    fork_sandbox: {
        parameters: {
            query?: never;
            header?: {
                /** @description Makes the request repeatable: the same key and body answer with what the first one made. */
                "Idempotency-Key"?: string | null;
            };
            path: {
                /** @description The sandbox. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["ForkSandbox"] | null;
            };
        };
        responses: {
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Forked"];
                };
            };
            /** @description The request does not fit the documented shape. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No key, or a key that is not known. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Not permitted; the text says why. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No such object in this project. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The object is in a state that does not allow this. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A body, a file or a list is over its limit. */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The body is not JSON. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Too many at once. Nothing was done. */
            429: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A fault of the server. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The guest stopped answering. */
            502: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No capacity, template not ready, node not reachable, or the database takes no writes. */
            503: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A time limit passed; the text contains `timeout`. */
            504: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The disk of the guest, or of its host, is full. */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    fork_sandbox_tree: {
        parameters: {
            query?: never;
            header?: {
                /** @description Makes the request repeatable: the same key and body answer with what the first one made. */
                "Idempotency-Key"?: string | null;
            };
            path: {
                /** @description The sandbox. */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ForkTree"];
            };
        };
        responses: {
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Forked"];
                };
            };
            /** @description The request does not fit the documented shape. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No key, or a key that is not known. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Not permitted; the text says why. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No such object in this project. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The object is in a state that does not allow this. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A body, a file or a list is over its limit. */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The body is not JSON. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Too many at once. Nothing was done. */
            429: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A fault of the server. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The guest stopped answering. */
            502: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No capacity, template not ready, node not reachable, or the database takes no writes. */
            503: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A time limit passed; the text contains `timeout`. */
            504: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The disk of the guest, or of its host, is full. */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    read_file: {
        parameters: {
            query: {
                /** @description A path in the guest. A relative one starts at `/workspace`. */
                path: string;
                /** @description Whose permissions count. Default: `agent`. */
                user?: string;
            };
            header?: {
                /**
                 * @description One range of bytes, such as `bytes=0-499`, `bytes=500-` or `bytes=-500`. Anything else is
                 *     as none.
                 */
                Range?: string | null;
            };
            path: {
                /** @description The sandbox. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/octet-stream": number[];
                };
            };
            /** @description The range that was asked for. */
            206: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/octet-stream": number[];
                };
            };
            /** @description The request does not fit the documented shape. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No key, or a key that is not known. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Not permitted; the text says why. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No such object in this project. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The object is in a state that does not allow this. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A body, a file or a list is over its limit. */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The file has none of the bytes that were asked for; `Content-Range` says its size. */
            416: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Too many at once. Nothing was done. */
            429: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A fault of the server. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The guest stopped answering. */
            502: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No capacity, template not ready, node not reachable, or the database takes no writes. */
            503: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A time limit passed; the text contains `timeout`. */
            504: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The disk of the guest, or of its host, is full. */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    write_file: {
        parameters: {
            query: {
                /** @description A path in the guest. A relative one starts at `/workspace`. */
                path: string;
                /** @description Adds to the file in place. Not together with `offset`. */
                append?: boolean;
                /** @description Writes into the file in place from this byte on, and leaves the rest of it. */
                offset?: number;
                /** @description Permission bits in octal. An existing file keeps its own when absent; a new one has `0644`. */
                mode?: string;
                /** @description Whose permissions count. Default: `agent`. */
                user?: string;
            };
            header?: never;
            path: {
                /** @description The sandbox. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/octet-stream": number[];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["FileWritten"];
                };
            };
            /** @description The request does not fit the documented shape. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No key, or a key that is not known. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Not permitted; the text says why. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No such object in this project. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The object is in a state that does not allow this. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A body, a file or a list is over its limit. */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Too many at once. Nothing was done. */
            429: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A fault of the server. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The guest stopped answering. */
            502: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No capacity, template not ready, node not reachable, or the database takes no writes. */
            503: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A time limit passed; the text contains `timeout`. */
            504: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The disk of the guest, or of its host, is full. */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    remove_file: {
        parameters: {
            query: {
                /** @description A path in the guest. A relative one starts at `/workspace`. */
                path: string;
                /** @description Also everything below. Default: false. */
                recursive?: boolean;
                /** @description Whose permissions count. Default: `agent`. */
                user?: string;
            };
            header?: never;
            path: {
                /** @description The sandbox. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It is gone. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description The request does not fit the documented shape. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No key, or a key that is not known. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Not permitted; the text says why. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No such object in this project. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The object is in a state that does not allow this. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A body, a file or a list is over its limit. */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Too many at once. Nothing was done. */
            429: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A fault of the server. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The guest stopped answering. */
            502: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No capacity, template not ready, node not reachable, or the database takes no writes. */
            503: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A time limit passed; the text contains `timeout`. */
            504: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The disk of the guest, or of its host, is full. */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    list_changes: {
        parameters: {
            query: {
                /** @description A path in the guest. A relative one starts at `/workspace`. */
                path: string;
                /** @description `create`, or the id of a snapshot of this sandbox. Default: `create`. */
                since?: string;
            };
            header?: never;
            path: {
                /** @description The sandbox. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ChangeList"];
                };
            };
            /** @description The request does not fit the documented shape. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No key, or a key that is not known. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Not permitted; the text says why. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No such object in this project. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The object is in a state that does not allow this. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A body, a file or a list is over its limit. */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Too many at once. Nothing was done. */
            429: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A fault of the server. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The guest stopped answering. */
            502: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No capacity, template not ready, node not reachable, or the database takes no writes. */
            503: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A time limit passed; the text contains `timeout`. */
            504: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The disk of the guest, or of its host, is full. */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    change_mode: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The sandbox. */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ChangeMode"];
            };
        };
        responses: {
            /** @description It has them. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description The request does not fit the documented shape. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No key, or a key that is not known. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Not permitted; the text says why. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No such object in this project. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The object is in a state that does not allow this. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A body, a file or a list is over its limit. */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The body is not JSON. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Too many at once. Nothing was done. */
            429: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A fault of the server. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The guest stopped answering. */
            502: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No capacity, template not ready, node not reachable, or the database takes no writes. */
            503: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A time limit passed; the text contains `timeout`. */
            504: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The disk of the guest, or of its host, is full. */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    list_directory: {
        parameters: {
            query: {
                /** @description A path in the guest. A relative one starts at `/workspace`. */
                path: string;
                /** @description How many levels; 1 is the directory alone. Links are never followed. */
                depth?: number;
                /** @description At most this many entries. Default: as many as an answer holds. */
                limit?: number;
                /** @description Only what comes behind this name: the `next_after` of the page before. */
                after?: string;
                /** @description Whose permissions count. Default: `agent`. */
                user?: string;
            };
            header?: never;
            path: {
                /** @description The sandbox. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DirectoryListing"];
                };
            };
            /** @description The request does not fit the documented shape. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No key, or a key that is not known. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Not permitted; the text says why. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No such object in this project. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The object is in a state that does not allow this. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A body, a file or a list is over its limit. */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Too many at once. Nothing was done. */
            429: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A fault of the server. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The guest stopped answering. */
            502: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No capacity, template not ready, node not reachable, or the database takes no writes. */
            503: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A time limit passed; the text contains `timeout`. */
            504: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The disk of the guest, or of its host, is full. */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    make_directory: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The sandbox. */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["MakeDirectory"];
            };
        };
        responses: {
            /** @description It is there. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description The request does not fit the documented shape. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No key, or a key that is not known. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Not permitted; the text says why. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No such object in this project. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The object is in a state that does not allow this. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A body, a file or a list is over its limit. */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The body is not JSON. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Too many at once. Nothing was done. */
            429: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A fault of the server. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The guest stopped answering. */
            502: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No capacity, template not ready, node not reachable, or the database takes no writes. */
            503: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A time limit passed; the text contains `timeout`. */
            504: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The disk of the guest, or of its host, is full. */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    move_file: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The sandbox. */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["MoveFile"];
            };
        };
        responses: {
            /** @description It is at its new place. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description The request does not fit the documented shape. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No key, or a key that is not known. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Not permitted; the text says why. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No such object in this project. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The object is in a state that does not allow this. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A body, a file or a list is over its limit. */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The body is not JSON. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Too many at once. Nothing was done. */
            429: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A fault of the server. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The guest stopped answering. */
            502: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No capacity, template not ready, node not reachable, or the database takes no writes. */
            503: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A time limit passed; the text contains `timeout`. */
            504: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The disk of the guest, or of its host, is full. */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    stat_file: {
        parameters: {
            query: {
                /** @description A path in the guest. A relative one starts at `/workspace`. */
                path: string;
                /** @description Whose permissions count. Default: `agent`. */
                user?: string;
            };
            header?: never;
            path: {
                /** @description The sandbox. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["FileEntry"];
                };
            };
            /** @description The request does not fit the documented shape. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No key, or a key that is not known. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Not permitted; the text says why. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No such object in this project. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The object is in a state that does not allow this. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A body, a file or a list is over its limit. */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Too many at once. Nothing was done. */
            429: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A fault of the server. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The guest stopped answering. */
            502: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No capacity, template not ready, node not reachable, or the database takes no writes. */
            503: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A time limit passed; the text contains `timeout`. */
            504: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The disk of the guest, or of its host, is full. */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    download_tree: {
        parameters: {
            query: {
                /** @description A path in the guest. A relative one starts at `/workspace`. */
                path: string;
                /** @description Whose permissions count. Default: `agent`. */
                user?: string;
            };
            header?: never;
            path: {
                /** @description The sandbox. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/x-tar": number[];
                };
            };
            /** @description The request does not fit the documented shape. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No key, or a key that is not known. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Not permitted; the text says why. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No such object in this project. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The object is in a state that does not allow this. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A body, a file or a list is over its limit. */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Too many at once. Nothing was done. */
            429: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A fault of the server. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The guest stopped answering. */
            502: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No capacity, template not ready, node not reachable, or the database takes no writes. */
            503: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A time limit passed; the text contains `timeout`. */
            504: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The disk of the guest, or of its host, is full. */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    upload_tree: {
        parameters: {
            query: {
                /** @description A path in the guest. A relative one starts at `/workspace`. */
                path: string;
                /** @description Whose permissions count. Default: `agent`. */
                user?: string;
            };
            header?: never;
            path: {
                /** @description The sandbox. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/x-tar": number[];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["FileWritten"];
                };
            };
            /** @description The request does not fit the documented shape. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No key, or a key that is not known. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Not permitted; the text says why. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No such object in this project. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The object is in a state that does not allow this. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A body, a file or a list is over its limit. */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Too many at once. Nothing was done. */
            429: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A fault of the server. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The guest stopped answering. */
            502: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No capacity, template not ready, node not reachable, or the database takes no writes. */
            503: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A time limit passed; the text contains `timeout`. */
            504: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The disk of the guest, or of its host, is full. */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    watch_files: {
        parameters: {
            query: {
                /** @description A path in the guest. A relative one starts at `/workspace`. */
                path: string;
                /** @description Also everything below. Default: false. */
                recursive?: boolean;
                /** @description Whose permissions count. Default: `agent`. */
                user?: string;
            };
            header?: never;
            path: {
                /** @description The sandbox. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The data of `change` events. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": components["schemas"]["FileChange"];
                };
            };
            /** @description The request does not fit the documented shape. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No key, or a key that is not known. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Not permitted; the text says why. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No such object in this project. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The object is in a state that does not allow this. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A body, a file or a list is over its limit. */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Too many at once. Nothing was done. */
            429: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A fault of the server. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The guest stopped answering. */
            502: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No capacity, template not ready, node not reachable, or the database takes no writes. */
            503: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A time limit passed; the text contains `timeout`. */
            504: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The disk of the guest, or of its host, is full. */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    hibernate_sandbox: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The sandbox. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It is on disk. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description The request does not fit the documented shape. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No key, or a key that is not known. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Not permitted; the text says why. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No such object in this project. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The object is in a state that does not allow this. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Too many at once. Nothing was done. */
            429: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A fault of the server. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The guest stopped answering. */
            502: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No capacity, template not ready, node not reachable, or the database takes no writes. */
            503: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A time limit passed; the text contains `timeout`. */
            504: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The disk of the guest, or of its host, is full. */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    get_lifecycle: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The sandbox. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Lifecycle"];
                };
            };
            /** @description No key, or a key that is not known. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Not permitted; the text says why. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No such object in this project. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The object is in a state that does not allow this. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Too many at once. Nothing was done. */
            429: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A fault of the server. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The guest stopped answering. */
            502: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No capacity, template not ready, node not reachable, or the database takes no writes. */
            503: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A time limit passed; the text contains `timeout`. */
            504: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The disk of the guest, or of its host, is full. */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    set_lifecycle: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The sandbox. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["ChangeLifecycle"] | null;
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Lifecycle"];
                };
            };
            /** @description The request does not fit the documented shape. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No key, or a key that is not known. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Not permitted; the text says why. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No such object in this project. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The object is in a state that does not allow this. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A body, a file or a list is over its limit. */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The body is not JSON. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Too many at once. Nothing was done. */
            429: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A fault of the server. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The guest stopped answering. */
            502: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No capacity, template not ready, node not reachable, or the database takes no writes. */
            503: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A time limit passed; the text contains `timeout`. */
            504: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The disk of the guest, or of its host, is full. */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    list_sandbox_links: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The sandbox. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PortLinkList"];
                };
            };
            /** @description No key, or a key that is not known. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Not permitted; the text says why. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No such object in this project. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Too many at once. Nothing was done. */
            429: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A fault of the server. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No capacity, template not ready, node not reachable, or the database takes no writes. */
            503: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    read_logs: {
        parameters: {
            query?: {
                /** @description `stdout`, `stderr` or `both`. Default `both`. */
                stream?: string;
                /** @description Whether to wait for what the commands that run now will print. `true`, `1`, `false` or `0`. */
                follow?: string;
            };
            header?: never;
            path: {
                /** @description The sandbox. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/plain": string;
                    "text/event-stream": string;
                };
            };
            /** @description The request does not fit the documented shape. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No key, or a key that is not known. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Not permitted; the text says why. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No such object in this project. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The object is in a state that does not allow this. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Too many at once. Nothing was done. */
            429: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A fault of the server. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The guest stopped answering. */
            502: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No capacity, template not ready, node not reachable, or the database takes no writes. */
            503: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A time limit passed; the text contains `timeout`. */
            504: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The disk of the guest, or of its host, is full. */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    get_network: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The sandbox. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Network"];
                };
            };
            /** @description No key, or a key that is not known. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Not permitted; the text says why. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No such object in this project. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Too many at once. Nothing was done. */
            429: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A fault of the server. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No capacity, template not ready, node not reachable, or the database takes no writes. */
            503: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    set_network: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The sandbox. */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NetworkWish"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Network"];
                };
            };
            /** @description The request does not fit the documented shape. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No key, or a key that is not known. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Not permitted; the text says why. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No such object in this project. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The object is in a state that does not allow this. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A body, a file or a list is over its limit. */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The body is not JSON. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Too many at once. Nothing was done. */
            429: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A fault of the server. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The guest stopped answering. */
            502: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No capacity, template not ready, node not reachable, or the database takes no writes. */
            503: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A time limit passed; the text contains `timeout`. */
            504: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The disk of the guest, or of its host, is full. */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    allow_network: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The sandbox. */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["AllowNetwork"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Network"];
                };
            };
            /** @description The request does not fit the documented shape. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No key, or a key that is not known. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Not permitted; the text says why. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No such object in this project. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The object is in a state that does not allow this. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A body, a file or a list is over its limit. */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The body is not JSON. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Too many at once. Nothing was done. */
            429: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A fault of the server. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The guest stopped answering. */
            502: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No capacity, template not ready, node not reachable, or the database takes no writes. */
            503: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A time limit passed; the text contains `timeout`. */
            504: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The disk of the guest, or of its host, is full. */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    read_network_log: {
        parameters: {
            query?: {
                /** @description Only records with a greater sequence. Default 0. */
                after?: number;
                /** @description At most this many records. Default 500. */
                limit?: number;
                /** @description Wait this long for a first record when there is none yet. Default 0. */
                wait_seconds?: number;
            };
            header?: never;
            path: {
                /** @description The sandbox. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["NetworkLog"];
                    "text/event-stream": components["schemas"]["NetworkRecord"];
                };
            };
            /** @description The request does not fit the documented shape. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No key, or a key that is not known. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Not permitted; the text says why. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No such object in this project. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Too many at once. Nothing was done. */
            429: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A fault of the server. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No capacity, template not ready, node not reachable, or the database takes no writes. */
            503: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    suggest_network: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The sandbox. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["NetworkSuggestion"];
                };
            };
            /** @description No key, or a key that is not known. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Not permitted; the text says why. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No such object in this project. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Too many at once. Nothing was done. */
            429: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A fault of the server. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No capacity, template not ready, node not reachable, or the database takes no writes. */
            503: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    pause_sandbox: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The sandbox. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It is paused. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description The request does not fit the documented shape. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No key, or a key that is not known. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Not permitted; the text says why. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No such object in this project. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The object is in a state that does not allow this. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Too many at once. Nothing was done. */
            429: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A fault of the server. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The guest stopped answering. */
            502: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No capacity, template not ready, node not reachable, or the database takes no writes. */
            503: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A time limit passed; the text contains `timeout`. */
            504: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The disk of the guest, or of its host, is full. */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    list_ports: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The sandbox. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PortList"];
                };
            };
            /** @description No key, or a key that is not known. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Not permitted; the text says why. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No such object in this project. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The object is in a state that does not allow this. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Too many at once. Nothing was done. */
            429: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A fault of the server. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The guest stopped answering. */
            502: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No capacity, template not ready, node not reachable, or the database takes no writes. */
            503: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A time limit passed; the text contains `timeout`. */
            504: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The disk of the guest, or of its host, is full. */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    list_port_links: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The sandbox. */
                id: string;
                /** @description The port in the sandbox. */
                port: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PortLinkList"];
                };
            };
            /** @description No key, or a key that is not known. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Not permitted; the text says why. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No such object in this project. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Too many at once. Nothing was done. */
            429: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A fault of the server. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No capacity, template not ready, node not reachable, or the database takes no writes. */
            503: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    create_port_link: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The sandbox. */
                id: string;
                /** @description The port in the sandbox. */
                port: number;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["CreatePortLink"] | null;
            };
        };
        responses: {
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PortLink"];
                };
            };
            /** @description The request does not fit the documented shape. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No key, or a key that is not known. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Not permitted; the text says why. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No such object in this project. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The object is in a state that does not allow this. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A body, a file or a list is over its limit. */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The body is not JSON. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Too many at once. Nothing was done. */
            429: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A fault of the server. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The guest stopped answering. */
            502: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No capacity, template not ready, node not reachable, or the database takes no writes. */
            503: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A time limit passed; the text contains `timeout`. */
            504: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The disk of the guest, or of its host, is full. */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    revoke_port_link: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The sandbox. */
                id: string;
                /** @description The port in the sandbox. */
                port: number;
                /** @description The link. */
                link: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description The request does not fit the documented shape. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No key, or a key that is not known. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Not permitted; the text says why. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No such object in this project. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Too many at once. Nothing was done. */
            429: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A fault of the server. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No capacity, template not ready, node not reachable, or the database takes no writes. */
            503: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    list_processes: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The sandbox. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ProcessList"];
                };
            };
            /** @description The request does not fit the documented shape. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No key, or a key that is not known. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Not permitted; the text says why. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No such object in this project. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The object is in a state that does not allow this. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Too many at once. Nothing was done. */
            429: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A fault of the server. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The guest stopped answering. */
            502: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No capacity, template not ready, node not reachable, or the database takes no writes. */
            503: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A time limit passed; the text contains `timeout`. */
            504: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The disk of the guest, or of its host, is full. */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    get_process: {
        parameters: {
            query?: {
                /** @description Wait this long for the end of the exec. */
                wait_seconds?: number;
            };
            header?: never;
            path: {
                /** @description The sandbox. */
                id: string;
                /** @description The exec. */
                exec_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Process"];
                };
            };
            /** @description The request does not fit the documented shape. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No key, or a key that is not known. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Not permitted; the text says why. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No such object in this project. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The object is in a state that does not allow this. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Too many at once. Nothing was done. */
            429: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A fault of the server. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The guest stopped answering. */
            502: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No capacity, template not ready, node not reachable, or the database takes no writes. */
            503: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A time limit passed; the text contains `timeout`. */
            504: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The disk of the guest, or of its host, is full. */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    delete_process: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The sandbox. */
                id: string;
                /** @description The exec. */
                exec_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description The request does not fit the documented shape. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No key, or a key that is not known. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Not permitted; the text says why. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No such object in this project. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The object is in a state that does not allow this. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Too many at once. Nothing was done. */
            429: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A fault of the server. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The guest stopped answering. */
            502: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No capacity, template not ready, node not reachable, or the database takes no writes. */
            503: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A time limit passed; the text contains `timeout`. */
            504: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The disk of the guest, or of its host, is full. */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    attach_process: {
        parameters: {
            query?: {
                /** @description Where to begin. Default 0. */
                stdout_offset?: number;
                /** @description Where to begin. Default 0. */
                stderr_offset?: number;
            };
            header?: never;
            path: {
                /** @description The sandbox. */
                id: string;
                /** @description The exec. */
                exec_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": components["schemas"]["ExecStreamEvent"];
                };
            };
            /** @description The request does not fit the documented shape. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No key, or a key that is not known. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Not permitted; the text says why. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No such object in this project. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The object is in a state that does not allow this. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Too many at once. Nothing was done. */
            429: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A fault of the server. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The guest stopped answering. */
            502: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No capacity, template not ready, node not reachable, or the database takes no writes. */
            503: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A time limit passed; the text contains `timeout`. */
            504: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The disk of the guest, or of its host, is full. */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    read_process_output: {
        parameters: {
            query?: {
                /** @description Default stdout. */
                stream?: string;
                /** @description Default 0. */
                offset?: number;
                /** @description At most this many bytes. Default 1 MiB. */
                limit?: number;
            };
            header?: never;
            path: {
                /** @description The sandbox. */
                id: string;
                /** @description The exec. */
                exec_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/octet-stream": number[];
                };
            };
            /** @description The request does not fit the documented shape. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No key, or a key that is not known. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Not permitted; the text says why. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No such object in this project. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The object is in a state that does not allow this. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Too many at once. Nothing was done. */
            429: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A fault of the server. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The guest stopped answering. */
            502: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No capacity, template not ready, node not reachable, or the database takes no writes. */
            503: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A time limit passed; the text contains `timeout`. */
            504: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The disk of the guest, or of its host, is full. */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    resize_process: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The sandbox. */
                id: string;
                /** @description The exec. */
                exec_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["TerminalSize"];
            };
        };
        responses: {
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description The request does not fit the documented shape. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No key, or a key that is not known. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Not permitted; the text says why. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No such object in this project. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The object is in a state that does not allow this. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A body, a file or a list is over its limit. */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The body is not JSON. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Too many at once. Nothing was done. */
            429: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A fault of the server. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The guest stopped answering. */
            502: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No capacity, template not ready, node not reachable, or the database takes no writes. */
            503: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A time limit passed; the text contains `timeout`. */
            504: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The disk of the guest, or of its host, is full. */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    signal_process: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The sandbox. */
                id: string;
                /** @description The exec. */
                exec_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["SignalRequest"];
            };
        };
        responses: {
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description The request does not fit the documented shape. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No key, or a key that is not known. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Not permitted; the text says why. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No such object in this project. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The object is in a state that does not allow this. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A body, a file or a list is over its limit. */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The body is not JSON. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Too many at once. Nothing was done. */
            429: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A fault of the server. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The guest stopped answering. */
            502: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No capacity, template not ready, node not reachable, or the database takes no writes. */
            503: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A time limit passed; the text contains `timeout`. */
            504: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The disk of the guest, or of its host, is full. */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    process_socket: {
        parameters: {
            query?: {
                /** @description Where to begin. Default 0. */
                stdout_offset?: number;
                /** @description Where to begin. Default 0. */
                stderr_offset?: number;
            };
            header?: never;
            path: {
                /** @description The sandbox. */
                id: string;
                /** @description The exec. */
                exec_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            101: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description The request does not fit the documented shape. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No key, or a key that is not known. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Not permitted; the text says why. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No such object in this project. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The object is in a state that does not allow this. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Too many at once. Nothing was done. */
            429: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A fault of the server. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The guest stopped answering. */
            502: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No capacity, template not ready, node not reachable, or the database takes no writes. */
            503: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A time limit passed; the text contains `timeout`. */
            504: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The disk of the guest, or of its host, is full. */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    write_process_stdin: {
        parameters: {
            query?: {
                /**
                 * @description Where the first byte of the body is in the input as a whole. Default: behind all that the
                 *     guest has taken.
                 */
                offset?: number;
                /** @description Closes the input behind the body. */
                close?: boolean;
            };
            header?: never;
            path: {
                /** @description The sandbox. */
                id: string;
                /** @description The exec. */
                exec_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/octet-stream": number[];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StdinTaken"];
                };
            };
            /** @description The request does not fit the documented shape. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No key, or a key that is not known. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Not permitted; the text says why. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No such object in this project. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The object is in a state that does not allow this. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A body, a file or a list is over its limit. */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The body is not JSON. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Too many at once. Nothing was done. */
            429: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A fault of the server. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The guest stopped answering. */
            502: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No capacity, template not ready, node not reachable, or the database takes no writes. */
            503: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A time limit passed; the text contains `timeout`. */
            504: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The disk of the guest, or of its host, is full. */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    promote_sandbox: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The sandbox. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["PromoteSandbox"] | null;
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Promoted"];
                };
            };
            /** @description The request does not fit the documented shape. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No key, or a key that is not known. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Not permitted; the text says why. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No such object in this project. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The object is in a state that does not allow this. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A body, a file or a list is over its limit. */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The body is not JSON. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Too many at once. Nothing was done. */
            429: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A fault of the server. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The guest stopped answering. */
            502: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No capacity, template not ready, node not reachable, or the database takes no writes. */
            503: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A time limit passed; the text contains `timeout`. */
            504: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The disk of the guest, or of its host, is full. */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    list_contexts: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The sandbox. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ContextList"];
                };
            };
            /** @description The request does not fit the documented shape. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No key, or a key that is not known. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Not permitted; the text says why. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No such object in this project. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The object is in a state that does not allow this. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Too many at once. Nothing was done. */
            429: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A fault of the server. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Not built yet, or not in this template. Nothing was done. */
            501: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The guest stopped answering. */
            502: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No capacity, template not ready, node not reachable, or the database takes no writes. */
            503: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A time limit passed; the text contains `timeout`. */
            504: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The disk of the guest, or of its host, is full. */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    create_context: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The sandbox. */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["CreateContext"];
            };
        };
        responses: {
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Context"];
                };
            };
            /** @description The request does not fit the documented shape. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No key, or a key that is not known. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Not permitted; the text says why. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No such object in this project. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The object is in a state that does not allow this. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A body, a file or a list is over its limit. */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The body is not JSON. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Too many at once. Nothing was done. */
            429: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A fault of the server. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Not built yet, or not in this template. Nothing was done. */
            501: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The guest stopped answering. */
            502: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No capacity, template not ready, node not reachable, or the database takes no writes. */
            503: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A time limit passed; the text contains `timeout`. */
            504: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The disk of the guest, or of its host, is full. */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    delete_context: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The sandbox. */
                id: string;
                /** @description The context. */
                sid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description The request does not fit the documented shape. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No key, or a key that is not known. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Not permitted; the text says why. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No such object in this project. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The object is in a state that does not allow this. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Too many at once. Nothing was done. */
            429: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A fault of the server. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Not built yet, or not in this template. Nothing was done. */
            501: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The guest stopped answering. */
            502: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No capacity, template not ready, node not reachable, or the database takes no writes. */
            503: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A time limit passed; the text contains `timeout`. */
            504: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The disk of the guest, or of its host, is full. */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    interrupt_context: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The sandbox. */
                id: string;
                /** @description The context. */
                sid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description The request does not fit the documented shape. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No key, or a key that is not known. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Not permitted; the text says why. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No such object in this project. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The object is in a state that does not allow this. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Too many at once. Nothing was done. */
            429: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A fault of the server. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Not built yet, or not in this template. Nothing was done. */
            501: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The guest stopped answering. */
            502: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No capacity, template not ready, node not reachable, or the database takes no writes. */
            503: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A time limit passed; the text contains `timeout`. */
            504: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The disk of the guest, or of its host, is full. */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    restart_context: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The sandbox. */
                id: string;
                /** @description The context. */
                sid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description The request does not fit the documented shape. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No key, or a key that is not known. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Not permitted; the text says why. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No such object in this project. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The object is in a state that does not allow this. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Too many at once. Nothing was done. */
            429: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A fault of the server. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Not built yet, or not in this template. Nothing was done. */
            501: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The guest stopped answering. */
            502: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No capacity, template not ready, node not reachable, or the database takes no writes. */
            503: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A time limit passed; the text contains `timeout`. */
            504: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The disk of the guest, or of its host, is full. */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    run_code: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The sandbox. */
                id: string;
                /** @description The context. */
                sid: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["RunCode"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RunResult"];
                };
            };
            /** @description The request does not fit the documented shape. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No key, or a key that is not known. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Not permitted; the text says why. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No such object in this project. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The object is in a state that does not allow this. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A body, a file or a list is over its limit. */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The body is not JSON. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Too many at once. Nothing was done. */
            429: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A fault of the server. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Not built yet, or not in this template. Nothing was done. */
            501: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The guest stopped answering. */
            502: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No capacity, template not ready, node not reachable, or the database takes no writes. */
            503: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A time limit passed; the text contains `timeout`. */
            504: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The disk of the guest, or of its host, is full. */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    run_code_stream: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The sandbox. */
                id: string;
                /** @description The context. */
                sid: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["RunCode"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": components["schemas"]["RunStreamEvent"];
                };
            };
            /** @description The request does not fit the documented shape. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No key, or a key that is not known. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Not permitted; the text says why. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No such object in this project. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The object is in a state that does not allow this. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A body, a file or a list is over its limit. */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The body is not JSON. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Too many at once. Nothing was done. */
            429: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A fault of the server. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Not built yet, or not in this template. Nothing was done. */
            501: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The guest stopped answering. */
            502: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No capacity, template not ready, node not reachable, or the database takes no writes. */
            503: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A time limit passed; the text contains `timeout`. */
            504: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The disk of the guest, or of its host, is full. */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    resume_sandbox: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The sandbox. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It runs. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description The request does not fit the documented shape. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No key, or a key that is not known. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Not permitted; the text says why. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No such object in this project. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The object is in a state that does not allow this. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Too many at once. Nothing was done. */
            429: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A fault of the server. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The guest stopped answering. */
            502: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No capacity, template not ready, node not reachable, or the database takes no writes. */
            503: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A time limit passed; the text contains `timeout`. */
            504: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The disk of the guest, or of its host, is full. */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    rollback_sandbox: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The sandbox. */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["RollbackSandbox"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Sandbox"];
                };
            };
            /** @description The request does not fit the documented shape. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No key, or a key that is not known. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Not permitted; the text says why. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No such object in this project. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The object is in a state that does not allow this. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A body, a file or a list is over its limit. */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The body is not JSON. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Too many at once. Nothing was done. */
            429: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A fault of the server. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The guest stopped answering. */
            502: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No capacity, template not ready, node not reachable, or the database takes no writes. */
            503: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A time limit passed; the text contains `timeout`. */
            504: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The disk of the guest, or of its host, is full. */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    run: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The sandbox. */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["RunRequest"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RunResult"];
                };
            };
            /** @description The request does not fit the documented shape. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No key, or a key that is not known. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Not permitted; the text says why. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No such object in this project. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The object is in a state that does not allow this. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A body, a file or a list is over its limit. */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The body is not JSON. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Too many at once. Nothing was done. */
            429: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A fault of the server. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Not built yet, or not in this template. Nothing was done. */
            501: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The guest stopped answering. */
            502: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No capacity, template not ready, node not reachable, or the database takes no writes. */
            503: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A time limit passed; the text contains `timeout`. */
            504: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The disk of the guest, or of its host, is full. */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    create_snapshot: {
        parameters: {
            query?: never;
            header?: {
                /** @description Makes the request repeatable: the same key and body answer with what the first one made. */
                "Idempotency-Key"?: string | null;
            };
            path: {
                /** @description The sandbox. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["CreateSnapshot"] | null;
            };
        };
        responses: {
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Snapshot"];
                };
            };
            /** @description The request does not fit the documented shape. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No key, or a key that is not known. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Not permitted; the text says why. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No such object in this project. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The object is in a state that does not allow this. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A body, a file or a list is over its limit. */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The body is not JSON. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Too many at once. Nothing was done. */
            429: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A fault of the server. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The guest stopped answering. */
            502: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No capacity, template not ready, node not reachable, or the database takes no writes. */
            503: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A time limit passed; the text contains `timeout`. */
            504: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The disk of the guest, or of its host, is full. */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    wake_sandbox: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The sandbox. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It runs. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description The request does not fit the documented shape. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No key, or a key that is not known. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Not permitted; the text says why. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No such object in this project. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The object is in a state that does not allow this. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Too many at once. Nothing was done. */
            429: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A fault of the server. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The guest stopped answering. */
            502: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No capacity, template not ready, node not reachable, or the database takes no writes. */
            503: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A time limit passed; the text contains `timeout`. */
            504: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The disk of the guest, or of its host, is full. */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    list_snapshots: {
        parameters: {
            query?: {
                /** @description Only what was taken of this sandbox. */
                sandbox_id?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SnapshotList"];
                };
            };
            /** @description The request does not fit the documented shape. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No key, or a key that is not known. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Not permitted; the text says why. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Too many at once. Nothing was done. */
            429: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A fault of the server. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No capacity, template not ready, node not reachable, or the database takes no writes. */
            503: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    get_snapshot: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The snapshot. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Snapshot"];
                };
            };
            /** @description No key, or a key that is not known. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Not permitted; the text says why. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No such object in this project. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Too many at once. Nothing was done. */
            429: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A fault of the server. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No capacity, template not ready, node not reachable, or the database takes no writes. */
            503: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    delete_snapshot: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The snapshot. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It is gone. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description The request does not fit the documented shape. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No key, or a key that is not known. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Not permitted; the text says why. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No such object in this project. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The object is in a state that does not allow this. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Too many at once. Nothing was done. */
            429: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A fault of the server. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The guest stopped answering. */
            502: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No capacity, template not ready, node not reachable, or the database takes no writes. */
            503: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    list_templates: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Template"][];
                };
            };
            /** @description No key, or a key that is not known. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Not permitted; the text says why. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Too many at once. Nothing was done. */
            429: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A fault of the server. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No capacity, template not ready, node not reachable, or the database takes no writes. */
            503: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    list_builds: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": Record<string, never>[];
                };
            };
            /** @description No key, or a key that is not known. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Not permitted; the text says why. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Too many at once. Nothing was done. */
            429: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A fault of the server. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No capacity, template not ready, node not reachable, or the database takes no writes. */
            503: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    get_template: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The template. */
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Template"];
                };
            };
            /** @description No key, or a key that is not known. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Not permitted; the text says why. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No such object in this project. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Too many at once. Nothing was done. */
            429: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A fault of the server. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No capacity, template not ready, node not reachable, or the database takes no writes. */
            503: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    bake_template: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The template. */
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Template"];
                };
            };
            /** @description The request does not fit the documented shape. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No key, or a key that is not known. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Not permitted; the text says why. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No such object in this project. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Too many at once. Nothing was done. */
            429: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A fault of the server. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No capacity, template not ready, node not reachable, or the database takes no writes. */
            503: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    get_usage: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ProjectUsage"];
                };
            };
            /** @description No key, or a key that is not known. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Not permitted; the text says why. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Too many at once. Nothing was done. */
            429: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A fault of the server. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No capacity, template not ready, node not reachable, or the database takes no writes. */
            503: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    get_sandbox_loads: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SandboxLoadList"];
                };
            };
            /** @description No key, or a key that is not known. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Not permitted; the text says why. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Too many at once. Nothing was done. */
            429: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A fault of the server. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No capacity, template not ready, node not reachable, or the database takes no writes. */
            503: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    list_volumes: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["VolumeList"];
                };
            };
            /** @description No key, or a key that is not known. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Not permitted; the text says why. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Too many at once. Nothing was done. */
            429: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A fault of the server. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No capacity, template not ready, node not reachable, or the database takes no writes. */
            503: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    create_volume: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["CreateVolume"];
            };
        };
        responses: {
            /** @description It was there. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Volume"];
                };
            };
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Volume"];
                };
            };
            /** @description The request does not fit the documented shape. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No key, or a key that is not known. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Not permitted; the text says why. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No such object in this project. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The object is in a state that does not allow this. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A body, a file or a list is over its limit. */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The body is not JSON. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Too many at once. Nothing was done. */
            429: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A fault of the server. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The guest stopped answering. */
            502: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No capacity, template not ready, node not reachable, or the database takes no writes. */
            503: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A time limit passed; the text contains `timeout`. */
            504: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The disk of the guest, or of its host, is full. */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    get_volume: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The volume. */
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Volume"];
                };
            };
            /** @description No key, or a key that is not known. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Not permitted; the text says why. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No such object in this project. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Too many at once. Nothing was done. */
            429: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A fault of the server. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No capacity, template not ready, node not reachable, or the database takes no writes. */
            503: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    delete_volume: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The volume. */
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It is gone. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description The request does not fit the documented shape. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No key, or a key that is not known. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Not permitted; the text says why. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No such object in this project. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The object is in a state that does not allow this. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Too many at once. Nothing was done. */
            429: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A fault of the server. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The guest stopped answering. */
            502: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No capacity, template not ready, node not reachable, or the database takes no writes. */
            503: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    grow_volume: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The volume. */
                name: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["GrowVolume"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Volume"];
                };
            };
            /** @description The request does not fit the documented shape. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No key, or a key that is not known. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Not permitted; the text says why. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No such object in this project. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The object is in a state that does not allow this. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A body, a file or a list is over its limit. */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The body is not JSON. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Too many at once. Nothing was done. */
            429: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A fault of the server. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The guest stopped answering. */
            502: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description No capacity, template not ready, node not reachable, or the database takes no writes. */
            503: {
                headers: {
                    /** @description Seconds after which it is worth asking again, when that is known. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description A time limit passed; the text contains `timeout`. */
            504: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The disk of the guest, or of its host, is full. */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
}
