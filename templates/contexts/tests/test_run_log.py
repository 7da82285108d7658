"""The log of a run and the shape of its events, without a bridge."""

import asyncio
import json
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from bridge import events  # noqa: E402
from bridge.limits import EVENT_BYTES_MAX  # noqa: E402
from bridge.run_log import RunLog  # noqa: E402


def read(log, after=0):
    async def collect():
        return [json.loads(line) async for line in log.read(after)]

    return asyncio.run(collect())


def ended(log):
    log.add({"type": "end", "status": "ok"})
    return log


class RunLogTest(unittest.TestCase):
    def test_events_are_numbered_and_replayed_behind_a_number(self):
        log = RunLog()
        for text in "abc":
            log.add({"type": "stdout", "text": text})
        ended(log)
        self.assertEqual([event["seq"] for event in read(log)], [1, 2, 3, 4])
        self.assertEqual([event["seq"] for event in read(log, after=2)], [3, 4])
        self.assertEqual(read(log, after=4), [])

    def test_oldest_events_go_and_a_line_says_how_many(self):
        log = RunLog(bytes_max=1000)
        sizes = []
        for index in range(100):
            event = {"type": "stdout", "text": f"{index:03}"}
            sizes.append(len(events.encode({"seq": index + 1, **event})))
            log.add(event)
        ended(log)
        for after in (0, 10):
            first, *rest = read(log, after=after)
            self.assertEqual(first["type"], "dropped")
            self.assertEqual(first["seq"] + 1, rest[0]["seq"])
            self.assertEqual(first["events"], first["seq"] - after)
            self.assertEqual(first["bytes"], sum(sizes[after : first["seq"]]))
            self.assertEqual(rest[-1]["type"], "end")
            self.assertLessEqual(sum(len(events.encode(event)) for event in rest), 1000)

    def test_nothing_follows_the_end(self):
        log = ended(RunLog())
        log.add({"type": "stdout", "text": "late"})
        self.assertEqual([event["type"] for event in read(log)], ["end"])

    def test_reader_gets_what_comes_later(self):
        async def scenario():
            log = RunLog()
            log.add({"type": "stdout", "text": "a"})
            reading = asyncio.ensure_future(_collect(log))
            await asyncio.sleep(0)
            log.add({"type": "stdout", "text": "b"})
            await asyncio.sleep(0)
            ended(log)
            return await reading

        types = [json.loads(line)["type"] for line in asyncio.run(scenario())]
        self.assertEqual(types, ["stdout", "stdout", "end"])


async def _collect(log):
    return [line async for line in log.read()]


class EventsTest(unittest.TestCase):
    def test_long_text_is_split_and_whole(self):
        text = "\x01é" * 1_500_000
        pieces = list(events.stream("stdout", text))
        self.assertEqual("".join(piece["text"] for piece in pieces), text)
        sizes = [len(events.encode({"seq": 1 << 60, **piece})) for piece in pieces]
        self.assertLessEqual(max(sizes), EVENT_BYTES_MAX)

    def test_data_that_does_not_fit_is_left_out_and_named(self):
        bundle = {"image/png": "A" * (5 << 20), "text/plain": "<Figure>"}
        event = events.result(bundle, is_main=True)
        self.assertEqual(event["data"], {"text/plain": "<Figure>"})
        self.assertEqual(event["left_out"], {"image/png": 5 << 20})
        alone = events.result({"image/png": "A" * (5 << 20)}, is_main=False)
        self.assertIn("image/png of 5242880 bytes", alone["data"]["text/plain"])

    def test_values_are_texts_of_known_types(self):
        bundle = {
            "application/json": {"a": [1]},
            "image/png": "QUJD\nREVG\n",
            "application/x-other": "no",
        }
        event = events.result(bundle, is_main=True)
        self.assertEqual(event["data"], {"image/png": "QUJDREVG", "application/json": '{"a": [1]}'})
        self.assertIsNone(events.result({"application/x-other": "no"}, is_main=True))

    def test_errors_fit_in_a_line(self):
        event = events.error("E" * 100_000, "\x01" * 1_000_000, ["\x01" * 100_000] * 5000)
        self.assertLessEqual(len(events.encode(event)), EVENT_BYTES_MAX)
        self.assertIn("left out", event["traceback"][len(event["traceback"]) // 2])

    def test_half_a_surrogate_pair_does_not_break_a_line(self):
        json.loads(events.encode({"text": "a\ud800b"}))


if __name__ == "__main__":
    unittest.main()
