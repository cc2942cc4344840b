"""Which voices a server has, and when they are loaded and unloaded."""

import asyncio
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from myxtts.resources import default_voice
from myxtts.serving.clones import Clones
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


@pytest.mark.parametrize("moved", [False, True])
def test_a_voice_that_is_replaced_while_it_loads_is_loaded_again(moved):
    begun, go, loaded = threading.Event(), threading.Event(), []

    def load(path):
        loaded.append((path, fake_synthesizer()))
        begun.set()
        assert go.wait(SECONDS)
        return loaded[-1][1]

    async def run() -> None:
        (voice,) = served("lj")
        voices = Voices([voice], load, 1)

        async def ask():
            async with voices.use(voice) as found:
                return found

        asking = asyncio.create_task(ask())
        await asyncio.to_thread(begun.wait, SECONDS)
        if moved:
            voices.replace([replace(voice, path=Path("elsewhere"))])
        else:
            voices.replace([voice], ["lj"])
        go.set()
        assert await asyncio.wait_for(asking, SECONDS) is loaded[1][1]

    asyncio.run(run())
    assert [path for path, _ in loaded] == ["lj", "elsewhere" if moved else "lj"]


def test_a_clone_is_embedded_anew_by_each_voice_that_is_loaded(tmp_path):
    clones = Clones(tmp_path / "clones", 1)
    clone = clones.add("Ada", "lj", "I agree to this.", np.zeros(100, np.float32), 24000)
    before, after, made = fake_synthesizer(), fake_synthesizer(), []

    def embed(path):
        made.append(path)
        return np.full(1, len(made))

    assert [clones.embedding(clone, one, embed)[0] for one in (before, before, after)] == [1, 1, 2]
    # Somebody who still speaks with the old voice leaves nothing for the new one.
    assert clones.embedding(clone, before, embed)[0] == 3
    assert clones.embedding(clone, after, embed)[0] == 4
