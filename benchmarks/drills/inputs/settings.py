"""Settings files from strangers: YAML that grows, nests, calls, or says what no setting means."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from random import Random

from benchmarks.drills.inputs.mutate import mutated
from benchmarks.drills.judging import Bounds, Input

KIND = "settings files"
COUNT, PER_CASE = 1800, 45
BOUNDS = Bounds(cpu_seconds=1.5, cpu_per_byte=100e-6, megabytes=150.0, memory_per_byte=2000.0)

_NUMBERS = (0, -1, 1, 2, 3, 10**6, 10**9, 2**31, 2**63, 10**18, 10**400, "1e400", 1e-320, 0.5)
_ODD = (
    *(".inf", "-.inf", ".nan", "null", "~", "yes", "''", "' '", "[]", "{}", "[1, 2]", "{a: 1}"),
    *("0x7fffffff", "0b1", "0o17", "017", "1_000", "190:20:30", "1e3", "1e-3", "2001-01-01"),
    *("2001-99-99", "!!binary aGk=", "!!set {a}", "!!str 5", "!!int '5'", "!!float x", "- 1"),
    *("|\n    text", ">-\n    text", "'\\0'", '"\\0"', '"\\ud800"', '"\\x1b[31m"', "*missing"),
    *("&a 5", "!local x", "!!python/none", "!!timestamp x", "=", "<<", "? a", "@a", "`a`", "%a"),
)


def set_up(folder: Path, seed: int) -> None:
    """Nothing: files are made as they are used."""


def warm_up() -> None:
    _plain()


def inputs(folder: Path, seed: int, count: int) -> Iterator[Input]:
    random = Random(f"settings {seed}")
    for _ in range(count):
        draw = random.random()
        if draw < 0.25:
            name, data = mutated(random, _plain())
        elif draw < 0.7:
            name, data = _with_odd_values(random)
        else:
            name, make = random.choice(_WHOLE)
            data = make(random).encode("utf-8", "surrogatepass")
        yield Input(name, len(data), _show(data))


def _show(data: bytes):
    def run(own: Path) -> int:
        from myxtts.cli.main import main

        path = own / "settings.yaml"
        path.write_bytes(data)
        return main(["config", "show", "--explain", "--config", str(path)])

    return run


@cache
def _plain() -> bytes:
    """Every setting with its default."""
    import yaml

    from myxtts.config.config import XTTSConfig
    from myxtts.config.io import to_dict

    return yaml.safe_dump(to_dict(XTTSConfig()), sort_keys=False).encode()


def _with_odd_values(random: Random) -> tuple[str, bytes]:
    """Some settings with values of another size, type or form."""
    from myxtts.config.config import SECTIONS, SETTINGS

    chosen = random.sample(list(SETTINGS), random.choice((1, 1, 2, 8)))
    lines = {name: [] for name in SECTIONS}
    said = ""
    for path in chosen:
        section, name = path.split(".")
        value = random.choice(_NUMBERS if random.random() < 0.5 else _ODD)
        lines[section].append(f"  {name}: {value}\n")
        if random.random() < 0.1:
            lines[section].append(f"  {name}: 5\n")
        said = f"{name}-{str(value)[:20]}"
    text = "".join(f"{name}:\n{''.join(own)}" for name, own in lines.items() if own)
    return said, text.encode()


def _laughs(random: Random) -> str:
    """Aliases of aliases: a few hundred bytes that stand for billions."""
    width, depth = random.choice((2, 5, 9)), random.choice((5, 9, 30))
    lines = ["a0: &a0 [x, x]"]
    for level in range(1, depth):
        lines.append(f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * width)}]")
    under = random.choice(("model", "data", "zz"))
    return "\n".join(lines) + f"\n{under}: {{dropout: *a{depth - 1}}}\n"


def _merges(random: Random) -> str:
    """Merges of merges, which grow as aliases do."""
    width, depth = random.choice((2, 9)), random.choice((5, 9, 25))
    lines = ["a0: &a0 {dropout: 0.1}"]
    for level in range(1, depth):
        merged = ", ".join([f"*a{level - 1}"] * width)
        lines.append(f"a{level}: &a{level} {{<<: [{merged}], k{level}: 1}}")
    return "\n".join(lines) + f"\nmodel:\n  <<: *a{depth - 1}\n"


def _calls(random: Random) -> str:
    tag = random.choice(
        (
            "object/apply:os.system",
            "object/new:os.system",
            "object/apply:subprocess.call",
            "name:os",
        )
    )
    what = random.choice(
        ("['touch ran']", "[[touch, ran]]", "{args: ['touch ran']}", "'touch ran'")
    )
    return f"model:\n  dropout: !!python/{tag} {what}\n"


def _deep(random: Random) -> str:
    depth = random.choice((50, 1000, 20_000))
    start, end = random.choice((("[", "]"), ("{a: ", "}"), ("- ", ""), ("? ", "")))
    return "model: " * random.randrange(2) + start * depth + "1" + end * depth


def _many(random: Random) -> str:
    count = random.choice((100, 3000))
    return "model:\n" + "".join(f"  key{n}: {n}\n" for n in range(count))


_WHOLE = (
    ("aliases", _laughs),
    ("aliases", _laughs),
    ("merges", _merges),
    ("merges", _merges),
    ("self", lambda random: "model: &a\n  dropout: *a\n"),
    ("self-merge", lambda random: "model: &a\n  <<: *a\n"),
    ("calls", _calls),
    ("calls", _calls),
    ("deep", _deep),
    ("many-keys", _many),
    ("digits", lambda random: f"model:\n  dropout: {'9' * random.choice((4000, 5000, 100_000))}\n"),
    ("base-60", lambda random: f"model:\n  dropout: 1{':59' * random.choice((10, 3000))}\n"),
    ("long-key", lambda random: f"model:\n  {'k' * random.choice((100, 2000, 100_000))}: 1\n"),
    ("long-text", lambda random: f"data:\n  dataset_path: {'a' * 200_000}\n"),
    ("long-comment", lambda random: "# x" + "x" * 500_000),
    ("comments", lambda random: "# x\n" * 50_000),
    ("empty", lambda random: random.choice(("", "---", "...", "~", "[]", "5", "'x'", "\ufeff"))),
    ("documents", lambda random: "---\nmodel: {}\n" * 100),
    ("directive", lambda random: "%YAML 9.9\n%TAG ! tag:x,2000:\n---\nmodel: {}\n"),
    ("tabs", lambda random: "model:\n\tdropout: 0.1\n"),
    ("sections", lambda random: "model: 5\ndata: [1]\ntraining: x\n"),
    ("same-keys", lambda random: "model:\n  dropout: 0.1\nmodel:\n  dropout: 0.2\n"),
    ("odd-keys", lambda random: "[1, 2]: 3\n{a: 1}: 2\nnull: 1\n1.5: 2\nmodel: {5: 1, null: 2}\n"),
    ("nested", lambda random: "model:\n  dropout:\n    dropout:\n      dropout: 1\n"),
    ("escapes", lambda random: 'model:\n  "\\x1b[2J\\u202e": 1\n'),
    ("pattern", lambda random: f"data:\n  speaker_pattern: '{'(a+)+' * 500}('\n"),
    ("spaces", lambda random: " " * 100_000 + "x: 1"),
    ("quotes", lambda random: '"' * 9999),
)
