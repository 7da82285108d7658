// Generated from sdk/tools by `npm run generate`. Not to be edited.

import type { ToolDefinition } from "../tools/definition.js";

/** The tools of a sandbox. */
export type SandboxToolName =
  | "run_code"
  | "run_shell"
  | "read_file"
  | "write_file"
  | "edit_file"
  | "list_files"
  | "search_files"
  | "fork"
  | "snapshot"
  | "rollback"
  | "expose_port";

/** Arguments of the tool `run_code`. */
export interface RunCodeArguments {
  /** The code to run, as it would be typed into a notebook cell. */
  code: string;
  /** Which interpreter runs it. Each language has its own state. Default "python". */
  language?: "python" | "javascript" | undefined;
  /** After this long the code is interrupted. What was printed until then comes back. Default 120. */
  timeoutSeconds?: number | undefined;
}

/** Arguments of the tool `run_shell`. */
export interface RunShellArguments {
  /** The command line. Pipes, redirections and && work. */
  command: string;
  /** Where it runs. Default: the sandbox's workspace. */
  workingDirectory?: string | undefined;
  /** After this long the command is ended. What was printed until then comes back. Default 120. */
  timeoutSeconds?: number | undefined;
}

/** Arguments of the tool `read_file`. */
export interface ReadFileArguments {
  /** Path of the file. A relative one is below the workspace. */
  path: string;
  /** The first line to read, counted from 1. Default 1. */
  firstLine?: number | undefined;
  /** How many lines to read at most. Default 400. */
  maxLines?: number | undefined;
}

/** Arguments of the tool `write_file`. */
export interface WriteFileArguments {
  /** Path of the file. A relative one is below the workspace. */
  path: string;
  /** What the file is to contain, whole. */
  content: string;
}

/** Arguments of the tool `edit_file`. */
export interface EditFileArguments {
  /** Path of the file. A relative one is below the workspace. */
  path: string;
  /** The text to replace, without line numbers, with enough around it to be unique. */
  oldText: string;
  /** What comes in its place. An empty text deletes it. */
  newText: string;
  /** Replace every place where the old text is. Default false. */
  replaceAll?: boolean | undefined;
}

/** Arguments of the tool `list_files`. */
export interface ListFilesArguments {
  /** The directory. A relative one is below the workspace. Default ".". */
  path?: string | undefined;
  /** How many levels to list. Default 1. */
  depth?: number | undefined;
  /** How many entries to list at most. Default 400. */
  maxEntries?: number | undefined;
}

/** Arguments of the tool `search_files`. */
export interface SearchFilesArguments {
  /** The regular expression to look for in each line. */
  pattern: string;
  /** Where to search: a directory or a file. A relative one is below the workspace. Default ".". */
  path?: string | undefined;
  /** Search only files whose name matches this shell pattern, for example *.py. */
  name?: string | undefined;
  /** Take upper and lower case as the same. Default false. */
  ignoreCase?: boolean | undefined;
  /** How many matches to give at most. Default 100. */
  maxMatches?: number | undefined;
}

/** Arguments of the tool `fork`. */
export interface ForkArguments {
  /** The command lines to try, one for each copy. */
  commands: readonly string[];
  /** After this long a command is ended. Default 120. */
  timeoutSeconds?: number | undefined;
}

/** Arguments of the tool `snapshot`. */
export interface SnapshotArguments {
  /** A name to remember it by. */
  name?: string | undefined;
}

/** Arguments of the tool `rollback`. */
export interface RollbackArguments {
  /** The id that snapshot gave. */
  snapshotId: string;
}

/** Arguments of the tool `expose_port`. */
export interface ExposePortArguments {
  /** The port that the program listens on. */
  port: number;
  /** How long the link works. Default 60. */
  minutes?: number | undefined;
  /** How long to wait for the program to listen. Default 30. */
  timeoutSeconds?: number | undefined;
}

export const SANDBOX_TOOLS: readonly ToolDefinition[] = [
  {
    "name": "run_code",
    "title": "Run code",
    "description": "Run code in an interpreter of the sandbox that keeps its state: variables, imports and functions of earlier calls are still there. The value of the last expression, charts and printed output come back. If the interpreter ended, it is started again and the result says that its state is lost. Use run_shell for programs and packages.",
    "read_only": false,
    "destructive": true,
    "idempotent": false,
    "input": {
      "type": "object",
      "properties": {
        "code": {
          "type": "string",
          "description": "The code to run, as it would be typed into a notebook cell."
        },
        "language": {
          "type": "string",
          "enum": [
            "python",
            "javascript"
          ],
          "default": "python",
          "description": "Which interpreter runs it. Each language has its own state."
        },
        "timeout_seconds": {
          "type": "number",
          "exclusiveMinimum": 0,
          "default": 120,
          "description": "After this long the code is interrupted. What was printed until then comes back."
        }
      },
      "required": [
        "code"
      ],
      "additionalProperties": false
    }
  },
  {
    "name": "run_shell",
    "title": "Run a shell command",
    "description": "Run a command with the shell of the sandbox and wait for its end. Each call is a new shell: the working directory and environment variables of earlier calls are not kept, files are. A server must run in the background: `nohup python3 -m http.server 8000 >server.log 2>&1 &`.",
    "read_only": false,
    "destructive": true,
    "idempotent": false,
    "input": {
      "type": "object",
      "properties": {
        "command": {
          "type": "string",
          "description": "The command line. Pipes, redirections and && work."
        },
        "working_directory": {
          "type": "string",
          "description": "Where it runs. Default: the sandbox's workspace."
        },
        "timeout_seconds": {
          "type": "number",
          "exclusiveMinimum": 0,
          "default": 120,
          "description": "After this long the command is ended. What was printed until then comes back."
        }
      },
      "required": [
        "command"
      ],
      "additionalProperties": false
    }
  },
  {
    "name": "read_file",
    "title": "Read a text file",
    "description": "Read a text file of the sandbox, or some of its lines. Lines come with their numbers, which are not part of the file. Of a long file only the first lines come; the result says which, and first_line reads on.",
    "read_only": true,
    "destructive": false,
    "idempotent": true,
    "input": {
      "type": "object",
      "properties": {
        "path": {
          "type": "string",
          "description": "Path of the file. A relative one is below the workspace."
        },
        "first_line": {
          "type": "integer",
          "minimum": 1,
          "default": 1,
          "description": "The first line to read, counted from 1."
        },
        "max_lines": {
          "type": "integer",
          "minimum": 1,
          "maximum": 2000,
          "default": 400,
          "description": "How many lines to read at most."
        }
      },
      "required": [
        "path"
      ],
      "additionalProperties": false
    }
  },
  {
    "name": "write_file",
    "title": "Write a text file",
    "description": "Write a text file of the sandbox, whole. Directories that are missing are made; a file that is there is replaced. To change a part of a file use edit_file.",
    "read_only": false,
    "destructive": true,
    "idempotent": true,
    "input": {
      "type": "object",
      "properties": {
        "path": {
          "type": "string",
          "description": "Path of the file. A relative one is below the workspace."
        },
        "content": {
          "type": "string",
          "description": "What the file is to contain, whole."
        }
      },
      "required": [
        "path",
        "content"
      ],
      "additionalProperties": false
    }
  },
  {
    "name": "edit_file",
    "title": "Edit a text file",
    "description": "Replace a piece of a text file of the sandbox by another. The old text must be in the file exactly once, with its spaces and line ends, unless replace_all is set. If it is not there, or more than once, nothing is changed and the result says so.",
    "read_only": false,
    "destructive": true,
    "idempotent": false,
    "input": {
      "type": "object",
      "properties": {
        "path": {
          "type": "string",
          "description": "Path of the file. A relative one is below the workspace."
        },
        "old_text": {
          "type": "string",
          "minLength": 1,
          "description": "The text to replace, without line numbers, with enough around it to be unique."
        },
        "new_text": {
          "type": "string",
          "description": "What comes in its place. An empty text deletes it."
        },
        "replace_all": {
          "type": "boolean",
          "default": false,
          "description": "Replace every place where the old text is."
        }
      },
      "required": [
        "path",
        "old_text",
        "new_text"
      ],
      "additionalProperties": false
    }
  },
  {
    "name": "list_files",
    "title": "List files",
    "description": "List a directory of the sandbox, and what is below it as deep as asked. Directories end with a slash; files have their size.",
    "read_only": true,
    "destructive": false,
    "idempotent": true,
    "input": {
      "type": "object",
      "properties": {
        "path": {
          "type": "string",
          "default": ".",
          "description": "The directory. A relative one is below the workspace."
        },
        "depth": {
          "type": "integer",
          "minimum": 1,
          "maximum": 8,
          "default": 1,
          "description": "How many levels to list."
        },
        "max_entries": {
          "type": "integer",
          "minimum": 1,
          "maximum": 2000,
          "default": 400,
          "description": "How many entries to list at most."
        }
      },
      "required": [],
      "additionalProperties": false
    }
  },
  {
    "name": "search_files",
    "title": "Search in files",
    "description": "Search the text files below a directory of the sandbox for a regular expression (POSIX extended). Gives path, line number and line of each match.",
    "read_only": true,
    "destructive": false,
    "idempotent": true,
    "input": {
      "type": "object",
      "properties": {
        "pattern": {
          "type": "string",
          "minLength": 1,
          "description": "The regular expression to look for in each line."
        },
        "path": {
          "type": "string",
          "default": ".",
          "description": "Where to search: a directory or a file. A relative one is below the workspace."
        },
        "name": {
          "type": "string",
          "description": "Search only files whose name matches this shell pattern, for example *.py."
        },
        "ignore_case": {
          "type": "boolean",
          "default": false,
          "description": "Take upper and lower case as the same."
        },
        "max_matches": {
          "type": "integer",
          "minimum": 1,
          "maximum": 1000,
          "default": 100,
          "description": "How many matches to give at most."
        }
      },
      "required": [
        "pattern"
      ],
      "additionalProperties": false
    }
  },
  {
    "name": "fork",
    "title": "Try commands in copies",
    "description": "Try several shell commands, each in its own copy of this sandbox as it is now: files, running programs and memory. Gives what each printed and how it ended. The copies are deleted afterwards and this sandbox stays as it is, so repeat the command that was best with run_shell. Use it to compare approaches, or for something that may go wrong.",
    "read_only": false,
    "destructive": false,
    "idempotent": false,
    "input": {
      "type": "object",
      "properties": {
        "commands": {
          "type": "array",
          "items": {
            "type": "string"
          },
          "minItems": 1,
          "maxItems": 8,
          "description": "The command lines to try, one for each copy."
        },
        "timeout_seconds": {
          "type": "number",
          "exclusiveMinimum": 0,
          "default": 120,
          "description": "After this long a command is ended."
        }
      },
      "required": [
        "commands"
      ],
      "additionalProperties": false
    }
  },
  {
    "name": "snapshot",
    "title": "Take a snapshot",
    "description": "Keep this moment of the sandbox: files, running programs, memory and the state of interpreters. Gives an id for rollback. Take one before something that may be hard to undo.",
    "read_only": false,
    "destructive": false,
    "idempotent": false,
    "input": {
      "type": "object",
      "properties": {
        "name": {
          "type": "string",
          "description": "A name to remember it by."
        }
      },
      "required": [],
      "additionalProperties": false
    }
  },
  {
    "name": "rollback",
    "title": "Go back to a snapshot",
    "description": "Put the sandbox back to a moment that snapshot kept: files, running programs, memory and the state of interpreters. Everything after that moment is lost.",
    "read_only": false,
    "destructive": true,
    "idempotent": true,
    "input": {
      "type": "object",
      "properties": {
        "snapshot_id": {
          "type": "string",
          "description": "The id that snapshot gave."
        }
      },
      "required": [
        "snapshot_id"
      ],
      "additionalProperties": false
    }
  },
  {
    "name": "expose_port",
    "title": "Give a link to a port",
    "description": "Wait until a program in the sandbox listens on a port, and give a link under which a browser reaches it for a limited time. The program must run in the background.",
    "read_only": false,
    "destructive": false,
    "idempotent": false,
    "input": {
      "type": "object",
      "properties": {
        "port": {
          "type": "integer",
          "minimum": 1,
          "maximum": 65535,
          "description": "The port that the program listens on."
        },
        "minutes": {
          "type": "integer",
          "minimum": 1,
          "maximum": 1440,
          "default": 60,
          "description": "How long the link works."
        },
        "timeout_seconds": {
          "type": "number",
          "exclusiveMinimum": 0,
          "default": 30,
          "description": "How long to wait for the program to listen."
        }
      },
      "required": [
        "port"
      ],
      "additionalProperties": false
    }
  }
];

/** Tools that need a run of an agent. */
export const AGENT_TOOLS: readonly ToolDefinition[] = [
  {
    "name": "undo",
    "title": "Undo tool calls",
    "description": "Undo your last tool calls that changed the sandbox: files, running programs, memory and the state of interpreters are as they were before them. Calls that only read do not count. Use it when an attempt made things worse; what you learned from the results stays in this conversation.",
    "read_only": false,
    "destructive": true,
    "idempotent": false,
    "input": {
      "type": "object",
      "properties": {
        "steps": {
          "type": "integer",
          "minimum": 1,
          "maximum": 100,
          "default": 1,
          "description": "How many of your tool calls to undo, counted from the last one."
        }
      },
      "required": [],
      "additionalProperties": false
    }
  }
];
