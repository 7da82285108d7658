"""Output that is asked for instead of told: one operation, stopped wherever it says something."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from ._effects import Ask, Operation

T = TypeVar("T")


class Sign:
    """Stands for a callback. It is never called: to be asked for it is the sign to stop."""

    def __init__(self, *before: Any) -> None:
        self.before = before

    def __call__(self, *said: Any) -> None:
        raise AssertionError("a sign is not called")


class Pulled(Generic[T]):
    """Carries an operation on until it tells something, and stands still there.

    The operation is given a ``Sign`` as its callback. Whatever else it wants done is passed on to
    the session, so that both kinds of client can iterate over what one operation says.
    """

    def __init__(self) -> None:
        self._operation: Operation[T] | None = None
        self.result: T | None = None

    def begin(self, operation: Operation[T]) -> None:
        self._operation = operation

    def next(self) -> Operation[tuple[Any, ...] | None]:
        """What is said next; ``None`` when the operation has come to its end."""
        operation = self._operation
        if operation is None:
            return None
        try:
            effect = next(operation)
            while not (isinstance(effect, Ask) and isinstance(effect.function, Sign)):
                try:
                    outcome = yield effect
                except GeneratorExit:
                    operation.close()
                    raise
                except BaseException as error:
                    effect = operation.throw(error)
                else:
                    effect = operation.send(outcome)
            return (*effect.function.before, *effect.arguments)
        except StopIteration as stop:
            self._operation, self.result = None, stop.value
            return None
        except BaseException:
            self._operation = None
            raise

    def close(self) -> None:
        operation, self._operation = self._operation, None
        if operation is not None:
            operation.close()
