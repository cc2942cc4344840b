"""Which voices a server has, and when they are loaded and unloaded."""

import asyncio
import threading

import pytest

from myxtts.resources import default_voice
from myxtts.serving.voices import Voices, read_served
from tests.helpers.speech_server import SECONDS, fake_synthesizer, served


def test_the_voice_of_the_package_is_served_where_none_is_named():
    (served,) = read_served([])
    assert served.path == default_voice() and served.speakers == ("kathleen_en",)


def test_a_voice_is_loaded_once_although_all_who_wait_for_it_leave():
    go, loaded = threading.Event(), []

    def load(path):
        loaded.append(path)
        assert go.wait(SECONDS)
        return fake_synthesizer()

    async def run() -> None:
        (voice,) = served("lj")
        voices = Voices([voice], load, 1)

        async def ask() -> None:
            async with voices.use(voice):
                pass

        for _ in range(5):
            asking = asyncio.create_task(ask())
            await asyncio.sleep(0.01)
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
        go.set()
        await asyncio.wait_for(ask(), SECONDS)
        assert voices.num_loaded == 1

    asyncio.run(run())
    assert loaded == ["lj"]


def test_a_voice_that_cannot_be_loaded_is_tried_again():
    tries = []

    def load(path):
        tries.append(path)
        if len(tries) == 1:
            raise OSError("the disk is away")
        return fake_synthesizer()

    async def run() -> None:
        (voice,) = served("lj")
        voices = Voices([voice], load, 1)
        with pytest.raises(OSError, match="away"):
            async with voices.use(voice):
                pass
        async with voices.use(voice):
            assert voices.num_loaded == 1

    asyncio.run(run())


def test_voices_in_use_are_unloaded_once_nobody_uses_them():
    async def run() -> None:
        first, second, third = served("a", "b", "c")
        voices = Voices([first, second, third], lambda path: fake_synthesizer(), 1)
        async with voices.use(first), voices.use(second), voices.use(third):
            assert voices.num_loaded == 3
        assert voices.num_loaded == 1

    asyncio.run(run())
