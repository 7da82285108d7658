"""The tools of a sandbox as tools of LangChain and LangGraph.

::

    from dayfly import Sandbox
    from dayfly.adapters.langchain import langchain_tools
    from langchain.agents import create_agent

    with Sandbox("code-interpreter", ttl_seconds=600) as sandbox:
        agent = create_agent("...", tools=langchain_tools(sandbox.tools()))

The schemas are those of ``sandbox.tools()``. A call that failed is a ``ToolMessage`` with the
status ``error``; charts are blocks of its content.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._async_tools import AsyncTools
from ..tools import ToolResult, Tools
from ._framework import framework

_tools = framework("langchain", "langchain_core.tools")

__all__ = ["langchain_tools"]


def langchain_tools(tools: Tools | AsyncTools) -> list[Any]:
    """These tools, each as a ``StructuredTool``: ``langchain_tools(sandbox.tools("run_code"))``.

    Those of an ``AsyncSandbox`` can be awaited only (``ainvoke``).
    """
    return [_tool(tools, one["function"]) for one in tools.openai()]


def _tool(tools: Tools | AsyncTools, function: Mapping[str, Any]) -> Any:
    name = function["name"]
    options: dict[str, Any] = {
        "name": name,
        "description": function["description"],
        "args_schema": function["parameters"],
        "handle_tool_error": True,
    }
    if isinstance(tools, AsyncTools):

        async def run_async(**arguments: Any) -> Any:
            return _said(await tools.call(name, arguments))

        return _tools.StructuredTool(coroutine=run_async, **options)

    def run(**arguments: Any) -> Any:
        return _said(tools.call(name, arguments))

    return _tools.StructuredTool(func=run, **options)


def _said(result: ToolResult) -> Any:
    if result.is_error:
        raise _tools.ToolException(result.text)
    if not result.images:
        return result.text
    images = [
        {"type": "image", "base64": one.data, "mime_type": one.media_type} for one in result.images
    ]
    return [{"type": "text", "text": result.text}, *images]
