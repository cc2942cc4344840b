"""Subtitles in SRT, WebVTT and JSON."""

import json

import pytest

from myxtts.errors import UserError
from myxtts.inference.subtitles import Timed, check_subtitles, to_json, to_srt, to_vtt
from myxtts.inference.times import TimedSentence, TimedUnit, TimedWord


def word(text: str, start: float, end: float, is_exact: bool = True) -> TimedWord:
    return TimedWord(text, start, end, is_exact, (TimedUnit("x", start, end),))


def timed(*words: TimedWord) -> Timed:
    text = " ".join(one.text for one in words)
    return Timed([TimedSentence(text, words[0].start, words[-1].end, words)], 4000.0, "phonemes")


SPEECH = timed(word("Hello", 0.5, 1.0), word("<you>", 1.25, 3661.0004))


def test_srt_has_numbered_cues():
    assert to_srt(SPEECH) == "1\n00:00:00,500 --> 01:01:01,000\nHello <you>\n"


def test_vtt_has_the_times_of_words():
    assert to_vtt(SPEECH) == (
        "WEBVTT\n\n00:00:00.500 --> 01:01:01.000\nHello <00:00:01.250>&lt;you&gt;\n"
    )


def test_json_has_everything_and_says_what_is_a_guess():
    document = json.loads(to_json(timed(word("a", 0.1, 0.2), word("b", 0.2, 1 / 3, False))))
    assert document == {
        "version": 1,
        "seconds": 4000.0,
        "units": "phonemes",
        "sentences": [
            {
                "text": "a b",
                "start": 0.1,
                "end": 0.333333,
                "words": [
                    {
                        "text": "a",
                        "start": 0.1,
                        "end": 0.2,
                        "units": [{"symbol": "x", "start": 0.1, "end": 0.2}],
                    },
                    {
                        "text": "b",
                        "start": 0.2,
                        "end": 0.333333,
                        "approximate": True,
                        "units": [{"symbol": "x", "start": 0.2, "end": 0.333333}],
                    },
                ],
            }
        ],
    }


def test_a_long_sentence_becomes_several_cues_of_two_lines():
    words = [word(f"word{number:02d}", number, number + 0.5) for number in range(30)]
    cues = to_srt(timed(*words)).strip().split("\n\n")
    lines = [cue.split("\n")[2:] for cue in cues]
    assert all(len(cue) <= 2 and all(len(line) <= 42 for line in cue) for cue in lines)
    assert " ".join(line for cue in lines for line in cue) == " ".join(one.text for one in words)
    assert cues[1].split("\n")[1].startswith(f"00:00:{int(lines[1][0][4:6]):02d},000 --> ")


def test_text_cannot_pose_as_a_time():
    assert to_srt(timed(word("-->", 0, 1))).count("-->") == 1


@pytest.mark.parametrize(
    "name, ending", [("a.srt", ".srt"), ("x/a.VTT", ".vtt"), ("json", ".json"), (".srt", ".srt")]
)
def test_the_ending_says_which_format(name, ending):
    assert check_subtitles(name) == ending


@pytest.mark.parametrize("name", ["a.txt", "a", ""])
def test_another_ending_is_an_error(name):
    with pytest.raises(UserError, match="end it in one of .srt, .vtt, .json"):
        check_subtitles(name)


def test_nothing_said_is_an_empty_file_of_its_format():
    assert to_vtt(Timed([], 0.0, "phonemes")) == "WEBVTT\n"
    assert to_srt(Timed([], 0.0, "phonemes")).strip() == ""
