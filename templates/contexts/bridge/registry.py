"""All contexts of a sandbox, and the interpreter that waits warm for the first of them."""

import asyncio
import os

from .bash_driver import BashDriver
from .context import Context, Refused
from .driver import StartFailed
from .javascript_driver import JavascriptDriver
from .limits import CONTEXTS_MAX
from .python_driver import PythonDriver, make_zmq_context
from .spawner import Spawner

LANGUAGES = ("python", "bash", "javascript")
PRELOADED = (
    "numpy",
    "pandas",
    "matplotlib.pyplot",
    "matplotlib_inline.backend_inline",
    "scipy.stats",
    "scipy.optimize",
    "sklearn.linear_model",
    "sklearn.model_selection",
    "requests",
    "PIL.Image",
)
# Shows a table, a figure, a dict and an error once, so that the first user waits for none of them.
REHEARSALS = (
    """
def _dayfly_rehearse():
    import sys
    pyplot = sys.modules.get("matplotlib.pyplot")
    pandas = sys.modules.get("pandas")
    if pyplot is not None:
        pyplot.plot([1, 2, 3])
        pyplot.show()
    if pandas is not None:
        display(pandas.DataFrame({"a": [1, 2]}))
    display({"a": [1, 2]})
    print("x")
_dayfly_rehearse()
del _dayfly_rehearse
""",
    "1 / 0",
)


class Registry:
    def __init__(self, runtime, workspace):
        self._runtime = runtime
        self._workspace = workspace
        self._spawner = Spawner()
        self._zmq_context = make_zmq_context()
        self._spare = None
        self._contexts = {}

    async def warm_up(self):
        """Imports the scientific stack and starts the interpreter of the first Python context."""
        if not await self._spawner.preload(PRELOADED):
            return
        spare = self._make_driver("python")
        try:
            await spare.start(self._workspace)
        except StartFailed:
            await discard(spare)
            return
        for code in REHEARSALS:
            await spare.prepare(code)
        self._spare = spare

    @property
    def is_warm(self):
        return self._spare is not None and not self._spare.ended.done()

    def _make_driver(self, language):
        if language == "python":
            return PythonDriver(self._runtime, self._spawner, self._zmq_context)
        if language == "bash":
            return BashDriver(self._runtime)
        return JavascriptDriver()

    async def create(self, name, language, cwd):
        """The context of that name, made now if there is none."""
        known = self._contexts.get(name)
        if known is not None:
            context = await asyncio.shield(known)
            if context.language != language:
                raise Refused("invalid", f"context {name} speaks {context.language}")
            return context
        if language not in LANGUAGES:
            raise Refused("unsupported", f"languages are: {', '.join(LANGUAGES)}")
        if len(self._contexts) >= CONTEXTS_MAX:
            raise Refused("too_many", f"{CONTEXTS_MAX} contexts is the limit")
        cwd = self._workspace if cwd is None else cwd
        if not os.path.isdir(cwd):
            raise Refused("invalid", f"there is no directory {cwd}")
        # A repeat of the call waits for the same start, also when this caller leaves.
        starting = asyncio.ensure_future(self._start(name, language, cwd))
        self._contexts[name] = starting
        return await asyncio.shield(starting)

    async def _start(self, name, language, cwd):
        context = Context(name, language, cwd, lambda: self._make_driver(language))
        try:
            await context.start(await self._take_spare(cwd) if language == "python" else None)
        except BaseException as error:
            del self._contexts[name]
            if isinstance(error, StartFailed):
                raise Refused("failed", str(error)) from error
            raise
        return context

    async def _take_spare(self, cwd):
        spare, self._spare = self._spare, None
        if spare is None:
            return None
        if spare.ended.done():
            await discard(spare)
            return None
        # Also brings back what the restored machine needs for a first run, so that the creation of
        # a context pays for it and not the run.
        await spare.prepare(f"__import__('os').chdir({cwd!r})")
        return spare

    async def find(self, name):
        known = self._contexts.get(name)
        if known is None:
            raise Refused("not_found", f"no context {name}")
        return await asyncio.shield(known)

    async def delete(self, name):
        """An absent one is a success."""
        known = self._contexts.get(name)
        if known is None:
            return
        try:
            context = await asyncio.shield(known)
        except Refused:
            return
        if self._contexts.get(name) is known:
            del self._contexts[name]
        await context.delete()

    def describe(self):
        started = [one.result() for one in self._contexts.values() if _is_started(one)]
        return [context.describe() for context in started]


async def discard(driver):
    driver.kill()
    await driver.close()


def _is_started(future):
    return future.done() and not future.cancelled() and future.exception() is None
