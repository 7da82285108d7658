"""What the end of ``with`` does, for everything that is deleted then."""

from __future__ import annotations

from typing import Self

from .errors import DayflyError


class Closing:
    """Something that ``with`` closes."""

    def close(self) -> None:
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            self.close()
        except DayflyError:
            # What went wrong inside is the better news; a TTL, or the sandbox's end, ends it too.
            if error is None:
                raise


class AsyncClosing:
    """Something that ``async with`` closes."""

    async def close(self) -> None:
        raise NotImplementedError

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            await self.close()
        except DayflyError:
            # As above.
            if error is None:
                raise
