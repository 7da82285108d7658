"""Another way to carry calls out: the package ``httpx2``, for trio, HTTP/2 and SOCKS proxies.

Install it with ``pip install 'dayfly[httpx2]'`` and pass the client on::

    from dayfly import AsyncSandbox
    from dayfly.httpx2 import AsyncClient

    async def main():
        async with AsyncClient() as client:
            sandbox = await AsyncSandbox.create("base", client=client)

    trio.run(main)
"""

from __future__ import annotations

import asyncio
import os
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import anyio
import httpx2

from ._async import AsyncBodyLike, AsyncSession
from ._async_client import AsyncClient as _AsyncClient
from ._content import WholeBody, check_coding, check_head
from ._facts import CONNECTIONS_DEFAULT, ClientFacts, Logger
from ._failures import connect_failure, no_place, proxy_refusal, words
from ._headers import CONNECT_SECONDS, IDLE_MAX, IDLE_SECONDS
from ._http1 import Head
from ._settings import load_settings
from ._sockets import body_pieces
from ._tls import make_context
from ._wire import Answer, Request
from .client import checked_limit
from .errors import AnswerLost, AnswerTimeout, DayflyError, InvalidSettings

__all__ = ["AsyncClient"]


class _Body:
    """A response whose body is still coming."""

    def __init__(self, transport: _Transport, response: httpx2.Response, head: Head) -> None:
        self._transport = transport
        self._response: httpx2.Response | None = response
        self._pieces = response.aiter_bytes()
        self.status = head.status
        self.headers = head.headers

    async def read(self, timeout: float | None) -> bytes:
        if self._response is None:
            return b""
        try:
            with anyio.fail_after(timeout):
                piece = b""
                while not piece:
                    piece = await anext(self._pieces)
                return piece
        except StopAsyncIteration:
            await self._end()
            return b""
        except TimeoutError:
            await self._end()
            raise AnswerTimeout("the server said nothing for too long") from None
        except (httpx2.TransportError, httpx2.StreamError, httpx2.DecodingError) as error:
            await self._end()
            raise AnswerLost(f"the response was cut off ({words(error)})") from None
        except BaseException:
            await self._end()
            raise

    async def _end(self) -> None:
        response, self._response = self._response, None
        if response is not None:
            with anyio.CancelScope(shield=True):
                await response.aclose()

    def close(self) -> None:
        response, self._response = self._response, None
        if response is not None:
            self._transport.abandon(response)


class _Transport:
    """Two pools: of kept connections, and of fresh ones for what must not be repeated."""

    def __init__(
        self, facts: ClientFacts, limit: int, tls: ssl.SSLContext | None, *, http2: bool
    ) -> None:
        self._limit = limit
        if tls is None and facts.route.is_secure:
            tls = make_context(facts.route.authorities)
        proxy = facts.route.proxy
        options: dict[str, Any] = {
            "verify": False if tls is None else tls,
            "http2": http2,
            "proxy": None if proxy is None else httpx2.Proxy(proxy.address, auth=proxy.credentials),
            # What the environment says was read by us, by the same rules as without httpx2.
            "trust_env": False,
        }
        self._kept = httpx2.AsyncClient(limits=_limits(limit, IDLE_MAX), **options)
        self._fresh = httpx2.AsyncClient(limits=_limits(limit, 0), **options)
        self._abandoned: list[httpx2.Response] = []

    async def send(self, facts: ClientFacts, request: Request) -> Answer:
        began = time.monotonic()
        body = await self.open(facts, request)
        deadline = facts.body_deadline(request, began)
        whole = WholeBody(request, body)
        while True:
            rest = None if deadline is None else max(deadline - time.monotonic(), 0.001)
            piece = await body.read(rest)
            if not piece:
                return whole.answer(facts.settings.url)
            whole.add(piece)

    async def open(self, facts: ClientFacts, request: Request) -> AsyncBodyLike:
        began = time.monotonic()
        try:
            response = await self._response(facts, request)
        except DayflyError as error:
            facts.log_failure(request, error, began)
            raise
        headers = {name.lower(): value for name, value in response.headers.items()}
        head = Head(response.status_code, headers, is_version_1_1=True)
        facts.log_response(request, head.status, head.headers, began)
        try:
            check_head(facts, request, head)
            check_coding(head)
        except DayflyError:
            await response.aclose()
            raise
        return _Body(self, response, head)

    async def _response(self, facts: ClientFacts, request: Request) -> httpx2.Response:
        if self._kept.is_closed:
            raise InvalidSettings("this client was closed")
        await self._end_abandoned()
        timeout = facts.timeout_of(request)
        client = self._kept if request.is_repeatable else self._fresh
        headers = facts.headers_of(request)
        if request.content_length or request.method in ("POST", "PUT", "PATCH"):
            headers["Content-Length"] = str(request.content_length)
        built = client.build_request(
            request.method,
            facts.settings.url + request.path,
            headers=headers,
            content=_content(request),
            # How long a response takes is counted as a whole, by us.
            timeout=httpx2.Timeout(None, connect=CONNECT_SECONDS, pool=timeout),
        )
        try:
            with anyio.fail_after(timeout):
                return await client.send(built, stream=True)
        except httpx2.PoolTimeout:
            raise no_place(self._limit, timeout or 0) from None
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            raise connect_failure(facts, _cause(error)) from None
        except httpx2.ProxyError as error:
            status = str(error)[:3]
            raise proxy_refusal(facts, int(status) if status.isdigit() else 502) from None
        except TimeoutError:
            raise AnswerTimeout(f"no response within {timeout or 0:g} s") from None
        except httpx2.TransportError as error:
            raise AnswerLost(f"the connection was lost ({words(error)})") from None

    async def connect(
        self, facts: ClientFacts
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        raise InvalidSettings(
            "this client has no connections but those of httpx2",
            hint="use dayfly.AsyncClient for terminals",
        )

    async def sleep(self, seconds: float) -> None:
        await anyio.sleep(seconds)

    async def within(self, seconds: float, work: Awaitable[Any]) -> Any:
        with anyio.fail_after(seconds):
            return await work

    async def together(
        self, calls: Sequence[Callable[[], Awaitable[Any]]], at_once: int
    ) -> list[Any]:
        places = anyio.Semaphore(max(1, at_once))
        found: list[Any] = [None] * len(calls)

        async def one(number: int, call: Callable[[], Awaitable[Any]]) -> None:
            async with places:
                try:
                    found[number] = await call()
                except Exception as error:
                    found[number] = error

        async with anyio.create_task_group() as group:
            for number, call in enumerate(calls):
                group.start_soon(one, number, call)
        return found

    def shield(self) -> AbstractContextManager[object]:
        return anyio.CancelScope(shield=True)

    def abandon(self, response: httpx2.Response) -> None:
        """Closing takes an await, and whoever abandons it cannot give one: done with the next."""
        self._abandoned.append(response)

    async def _end_abandoned(self) -> None:
        while self._abandoned:
            await self._abandoned.pop().aclose()

    def close_idle(self) -> None:
        # Done by httpx2, after the same time.
        return

    async def close(self) -> None:
        with anyio.CancelScope(shield=True):
            await self._end_abandoned()
            await self._kept.aclose()
            await self._fresh.aclose()


def _limits(limit: int, kept: int) -> httpx2.Limits:
    return httpx2.Limits(
        max_connections=limit, max_keepalive_connections=kept, keepalive_expiry=IDLE_SECONDS
    )


def _content(request: Request) -> bytes | AsyncIterator[bytes]:
    if isinstance(request.body, bytes):
        return request.body

    async def pieces() -> AsyncIterator[bytes]:
        for piece in body_pieces(request):
            yield piece

    return pieces()


def _cause(error: BaseException) -> BaseException:
    """What the system said, below what httpx2 made of it."""
    found: BaseException | None = error
    while found is not None and not isinstance(found, OSError):
        found = found.__cause__ or found.__context__
    return found or error


class AsyncClient(_AsyncClient):
    """As ``dayfly.AsyncClient``, carried out by httpx2: for asyncio and for trio.

    ``http2=True`` speaks HTTP/2 where the server does, over TLS. ``proxy`` may also be an address
    such as ``socks5://host:1080``.
    """

    def __init__(
        self,
        api_url: str | None = None,
        api_key: str | None = None,
        *,
        ca_file: str | os.PathLike[str] | None = None,
        ssl_context: ssl.SSLContext | None = None,
        proxy: str | None = None,
        timeout: float | None = None,
        max_retries: int | None = None,
        max_connections: int = CONNECTIONS_DEFAULT,
        headers: Mapping[str, str] | None = None,
        logger: Logger | None = None,
        http2: bool = False,
    ) -> None:
        facts = ClientFacts(
            load_settings(api_url, api_key),
            ca_file=ca_file,
            ssl_context=ssl_context,
            proxy=proxy,
            timeout=timeout,
            max_retries=max_retries,
            headers=headers,
            logger=logger,
            allows_socks=True,
        )
        limit = checked_limit(max_connections)
        transport = _Transport(facts, limit, ssl_context, http2=http2)
        self._session = AsyncSession(facts, transport)
