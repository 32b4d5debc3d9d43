"""How tests wait: what hangs is ended with the name of what was awaited."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import settings

from patience import cpu_unit_s, patience, ticks, until


def test_a_wait_that_hangs_says_what_was_awaited() -> None:
    async def main() -> None:
        async with patience("the first page", 0.01):
            await asyncio.Event().wait()

    with pytest.raises(TimeoutError, match=r"waited 0\.01 s in vain for the first page"):
        asyncio.run(main())


def test_a_wait_without_a_name_says_the_line_of_the_test() -> None:
    async def main() -> None:
        async with patience(seconds=0.01):
            await asyncio.Event().wait()

    with pytest.raises(TimeoutError, match=r"test_patience\.py:\d+: async with patience\(seconds=0\.01\):"):
        asyncio.run(main())


def test_a_time_out_of_the_code_under_test_is_left_as_it_is() -> None:
    async def main() -> None:
        async with patience("the first page"):
            raise TimeoutError("the server was silent")

    with pytest.raises(TimeoutError, match="the server was silent"):
        asyncio.run(main())


def test_until_asks_again_and_again() -> None:
    asked: list[int] = []

    def happened() -> bool:
        asked.append(1)
        return len(asked) == 3

    async def later() -> bool:
        return happened()

    asyncio.run(until(happened, "three questions"))
    asked.clear()
    asyncio.run(until(later, "three questions"))
    assert len(asked) == 3


def test_ticks_let_run_what_is_ready() -> None:
    async def main() -> list[int]:
        done: list[int] = []

        async def five_steps() -> None:
            for number in range(5):
                await asyncio.sleep(0)
                done.append(number)

        task = asyncio.create_task(five_steps())
        await ticks(10)
        assert task.done()
        return done

    assert asyncio.run(main()) == [0, 1, 2, 3, 4]


def test_the_unit_of_cpu_is_measured() -> None:
    assert cpu_unit_s() > 0.0


def test_property_tests_have_no_deadline() -> None:
    assert settings().deadline is None
