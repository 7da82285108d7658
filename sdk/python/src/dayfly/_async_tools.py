"""As ``tools``, for asyncio."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any

from ._async import AsyncSession
from ._async_ending import run_and_undo
from ._tool_calls import call_tool
from ._tool_result import ToolResult
from ._tool_set import CodeLanguage, ToolSet, described, given


class AsyncTools(ToolSet[AsyncSession]):
    """As ``Tools``, for asyncio: ``call`` and the functions are awaited."""

    async def call(self, name: str, arguments: Mapping[str, Any] | str) -> ToolResult:
        """Carries out what a model asked for: the arguments as an object, or as its JSON.

        What does not fit, and what the server refuses, is a result with ``is_error``.
        """
        calling = call_tool(self._target, self._selection, name, arguments)
        return await run_and_undo(self._session, calling)

    def __iter__(self) -> Iterator[Callable[..., Awaitable[str]]]:
        return iter(self._functions())

    async def _say(self, name: str, /, **arguments: Any) -> str:
        return (await self.call(name, given(arguments))).text

    @described
    async def run_code(
        self,
        code: str,
        language: CodeLanguage = "python",
        timeout_seconds: float = 120,
    ) -> str:
        return await self._say(
            "run_code", code=code, language=language, timeout_seconds=timeout_seconds
        )

    @described
    async def run_shell(
        self,
        command: str,
        working_directory: str | None = None,
        timeout_seconds: float = 120,
    ) -> str:
        return await self._say(
            "run_shell",
            command=command,
            working_directory=working_directory,
            timeout_seconds=timeout_seconds,
        )

    @described
    async def read_file(self, path: str, first_line: int = 1, max_lines: int = 400) -> str:
        return await self._say("read_file", path=path, first_line=first_line, max_lines=max_lines)

    @described
    async def write_file(self, path: str, content: str) -> str:
        return await self._say("write_file", path=path, content=content)

    @described
    async def edit_file(
        self,
        path: str,
        old_text: str,
        new_text: str,
        replace_all: bool = False,
    ) -> str:
        return await self._say(
            "edit_file", path=path, old_text=old_text, new_text=new_text, replace_all=replace_all
        )

    @described
    async def list_files(self, path: str = ".", depth: int = 1, max_entries: int = 400) -> str:
        return await self._say("list_files", path=path, depth=depth, max_entries=max_entries)

    @described
    async def search_files(
        self,
        pattern: str,
        path: str = ".",
        name: str | None = None,
        ignore_case: bool = False,
        max_matches: int = 100,
    ) -> str:
        return await self._say(
            "search_files",
            pattern=pattern,
            path=path,
            name=name,
            ignore_case=ignore_case,
            max_matches=max_matches,
        )

    @described
    async def fork(self, commands: list[str], timeout_seconds: float = 120) -> str:
        return await self._say("fork", commands=commands, timeout_seconds=timeout_seconds)

    @described
    async def snapshot(self, name: str | None = None) -> str:
        return await self._say("snapshot", name=name)

    @described
    async def rollback(self, snapshot_id: str) -> str:
        return await self._say("rollback", snapshot_id=snapshot_id)

    @described
    async def expose_port(self, port: int, minutes: int = 60, timeout_seconds: float = 30) -> str:
        return await self._say(
            "expose_port", port=port, minutes=minutes, timeout_seconds=timeout_seconds
        )
