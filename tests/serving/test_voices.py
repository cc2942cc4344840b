"""Which voices a server has."""

from myxtts.resources import default_voice
from myxtts.serving.voices import read_served


def test_the_voice_of_the_package_is_served_where_none_is_named():
    (served,) = read_served([])
    assert served.path == default_voice() and served.speakers == ("kathleen_en",)
