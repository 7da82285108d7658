"""The tools of a sandbox as a toolset of pydantic-ai.

::

    from dayfly import AsyncSandbox
    from dayfly.adapters.pydantic_ai import toolset
    from pydantic_ai import Agent

    async with AsyncSandbox.create("code-interpreter", ttl_seconds=600) as sandbox:
        agent = Agent("...", toolsets=[toolset(sandbox.tools())])
        print((await agent.run("...")).output)

The schemas are those of ``sandbox.tools()``. Charts reach the model as images. A call that failed
is told to the model as such; what Dayfly says of it is at the beginning of the text.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from .._async_tools import AsyncTools
from ..tools import ToolResult, Tools
from ._framework import framework

_ai = framework("pydantic-ai", "pydantic_ai")
_exceptions = framework("pydantic-ai", "pydantic_ai.exceptions")
_toolsets = framework("pydantic-ai", "pydantic_ai.toolsets")

__all__ = ["toolset"]


def toolset(tools: Tools | AsyncTools) -> Any:
    """A ``FunctionToolset`` with these tools: ``toolset(sandbox.tools("run_code"))``.

    Those of a ``Sandbox`` run in threads of the framework, those of an ``AsyncSandbox`` do not.
    """
    return _toolsets.FunctionToolset([_tool(tools, one["function"]) for one in tools.openai()])


def _tool(tools: Tools | AsyncTools, function: Mapping[str, Any]) -> Any:
    name = function["name"]
    shape = {"description": function["description"], "json_schema": function["parameters"]}
    if isinstance(tools, AsyncTools):

        async def run_async(**arguments: Any) -> Any:
            return _said(await tools.call(name, arguments))

        return _ai.Tool.from_schema(run_async, name=name, **shape)

    def run(**arguments: Any) -> Any:
        return _said(tools.call(name, arguments))

    return _ai.Tool.from_schema(run, name=name, **shape)


def _said(result: ToolResult) -> Any:
    if result.is_error:
        # Not a retry: of those a run has few, and a command that fails is no mistake in the call.
        raise _exceptions.ToolFailed(result.text)
    if not result.images:
        return result.text
    images = [
        _ai.BinaryContent(data=base64.b64decode(one.data), media_type=one.media_type)
        for one in result.images
    ]
    return [result.text, *images]
