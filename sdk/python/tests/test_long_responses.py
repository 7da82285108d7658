"""Responses that are longer than what a connection gives at once, as blocking calls read them."""

from __future__ import annotations

import tracemalloc

import pytest
from raw_server import RawServer

from dayfly import AnswerLost, AnswerTimeout, Client
from dayfly._wire import Answer, get

# No two pieces of it are alike, and no piece of a connection ends where it does.
BODY = b"".join(number.to_bytes(4, "big") for number in range(1 << 21)) + b"end"


def response(body: bytes, length: int | None = None) -> bytes:
    told = len(body) if length is None else length
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % told + body


def fetched(client: Client) -> Answer:
    session = client.session
    return session.pool.send(session.facts, get("/v1/anything"))


def test_a_response_with_a_length_is_in_memory_once() -> None:
    with (
        RawServer(response(b"warm"), response(BODY)) as server,
        Client(server.url, "key") as client,
    ):
        fetched(client)
        tracemalloc.start()
        try:
            body = fetched(client).body
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert body == BODY
    assert peak < 1.25 * len(BODY)


def test_its_connection_is_used_again() -> None:
    with RawServer(response(BODY)) as server, Client(server.url, "key") as client:
        assert [fetched(client).body == BODY for _ in range(3)] == [True] * 3
        assert server.connections == 1


def test_what_comes_behind_it_is_not_taken_for_the_next_response() -> None:
    answers = response(BODY + b"HTTP/1.1 200 OK\r\n\r\n", len(BODY)), response(b"second")
    with RawServer(*answers) as server, Client(server.url, "key") as client:
        assert fetched(client).body == BODY
        assert fetched(client).body == b"second"
        assert server.connections == 2


@pytest.mark.parametrize("length", [len(BODY) + 1, 1 << 40, 10**30])
def test_one_that_is_cut_off_is_lost_however_long_it_was_said_to_be(length: int) -> None:
    with (
        RawServer(response(BODY, length), hangs_up=True) as server,
        Client(server.url, "key") as client,
        pytest.raises(AnswerLost, match="cut off"),
    ):
        fetched(client)


def test_one_that_stops_has_the_time_of_the_whole_call() -> None:
    with (
        RawServer(response(BODY, len(BODY) + 1)) as server,
        Client(server.url, "key", timeout=1) as client,
        pytest.raises(AnswerTimeout),
    ):
        fetched(client)
