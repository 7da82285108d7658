"""The tools of an agent, bound to a sandbox: see ``Sandbox.tools``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ._sync import Session
from ._tool_calls import call_tool
from ._tool_result import ToolImage, ToolResult
from ._tool_set import CodeLanguage, ToolSet, described, given

__all__ = ["CodeLanguage", "ToolImage", "ToolResult", "Tools"]


class Tools(ToolSet[Session]):
    """Tools of a sandbox: plain functions for frameworks, shapes and ``call`` for a loop.

    ::

        tools = sandbox.tools()
        reply = client.messages.create(tools=tools.anthropic(), ...)
        result = tools.call(block.name, block.input)     # never raises for what a model did
        tools.run_shell("ls")                            # the same as a function

    Iterating gives the functions: ``tools=list(sandbox.tools())`` of a framework.
    """

    def call(self, name: str, arguments: Mapping[str, Any] | str) -> ToolResult:
        """Carries out what a model asked for: the arguments as an object, or as its JSON.

        What does not fit, and what the server refuses, is a result with ``is_error``.
        """
        return self._session.run(call_tool(self._target, self._selection, name, arguments))

    def __iter__(self) -> Iterator[Callable[..., str]]:
        return iter(self._functions())

    def _say(self, name: str, /, **arguments: Any) -> str:
        return self.call(name, given(arguments)).text

    @described
    def run_code(
        self,
        code: str,
        language: CodeLanguage = "python",
        timeout_seconds: float = 120,
    ) -> str:
        return self._say("run_code", code=code, language=language, timeout_seconds=timeout_seconds)

    @described
    def run_shell(
        self,
        command: str,
        working_directory: str | None = None,
        timeout_seconds: float = 120,
    ) -> str:
        return self._say(
            "run_shell",
            command=command,
            working_directory=working_directory,
            timeout_seconds=timeout_seconds,
        )

    @described
    def read_file(self, path: str, first_line: int = 1, max_lines: int = 400) -> str:
        return self._say("read_file", path=path, first_line=first_line, max_lines=max_lines)

    @described
    def write_file(self, path: str, content: str) -> str:
        return self._say("write_file", path=path, content=content)

    @described
    def edit_file(self, path: str, old_text: str, new_text: str, replace_all: bool = False) -> str:
        return self._say(
            "edit_file", path=path, old_text=old_text, new_text=new_text, replace_all=replace_all
        )

    @described
    def list_files(self, path: str = ".", depth: int = 1, max_entries: int = 400) -> str:
        return self._say("list_files", path=path, depth=depth, max_entries=max_entries)

    @described
    def search_files(
        self,
        pattern: str,
        path: str = ".",
        name: str | None = None,
        ignore_case: bool = False,
        max_matches: int = 100,
    ) -> str:
        return self._say(
            "search_files",
            pattern=pattern,
            path=path,
            name=name,
            ignore_case=ignore_case,
            max_matches=max_matches,
        )

    @described
    def fork(self, commands: list[str], timeout_seconds: float = 120) -> str:
        return self._say("fork", commands=commands, timeout_seconds=timeout_seconds)

    @described
    def snapshot(self, name: str | None = None) -> str:
        return self._say("snapshot", name=name)

    @described
    def rollback(self, snapshot_id: str) -> str:
        return self._say("rollback", snapshot_id=snapshot_id)

    @described
    def expose_port(self, port: int, minutes: int = 60, timeout_seconds: float = 30) -> str:
        return self._say("expose_port", port=port, minutes=minutes, timeout_seconds=timeout_seconds)
