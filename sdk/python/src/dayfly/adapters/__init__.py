"""Dayfly in the frameworks that agents are written with, one module for each.

| module | what it is there | install |
| --- | --- | --- |
| ``dayfly.adapters.deepagents`` | a backend | ``pip install 'dayfly[deepagents]'`` |
| ``dayfly.adapters.inspect`` | the sandbox ``dayfly`` | ``pip install 'dayfly[inspect]'`` |
| ``dayfly.adapters.openai_agents`` | a sandbox client | ``pip install 'dayfly[openai-agents]'`` |
| ``dayfly.adapters.smolagents`` | an executor | ``pip install 'dayfly[smolagents]'`` |
| ``dayfly.adapters.mini_swe`` | an environment | ``pip install 'dayfly[mini-swe]'`` |
| ``dayfly.adapters.pydantic_ai`` | a toolset | ``pip install 'dayfly[pydantic-ai]'`` |
| ``dayfly.adapters.langchain`` | tools | ``pip install 'dayfly[langchain]'`` |

Nothing here is imported unless it is asked for, and each module imports its own framework only.
"""
