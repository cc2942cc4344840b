"""The files around the package: they parse, agree with it, and point to what exists."""

import re
import subprocess
from pathlib import Path

import pytest
import yaml

from myxtts import __version__
from tests.conftest import FAST

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
TEMPLATES = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
DOCKERFILES = sorted((ROOT / "docker").glob("Dockerfile*"))
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


def load(path: Path) -> dict:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def make_targets() -> set[str]:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    return set(re.findall(r"^([a-z-]+):(?!=)", makefile, re.MULTILINE))


def test_the_citation_names_the_version_of_the_package():
    citation = load(ROOT / "CITATION.cff")
    assert {"cff-version", "message", "title", "authors"} <= citation.keys()
    assert citation["version"] == __version__


@pytest.mark.parametrize("path", WORKFLOWS, ids=name)
def test_a_workflow_runs_what_exists_with_actions_of_a_known_version(path):
    jobs = load(path)["jobs"].values()
    steps = [step for job in jobs for step in job["steps"]]
    for action in [step["uses"] for step in steps if "uses" in step]:
        assert re.fullmatch(r"[\w-]+/[\w/-]+@v\d+", action)
    commands = [step["run"] for step in steps if "run" in step]
    wanted = {target for command in commands for target in re.findall(r"make ([a-z-]+)", command)}
    assert {"lint", "docs", "wheel"} <= wanted <= make_targets()
    assert ".ci/run" in commands


def test_the_workflow_tests_every_python_that_the_package_supports():
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    supported = re.findall(r"Python :: (3\.\d+)\"", project)
    matrix = load(ROOT / ".github/workflows/ci.yml")["jobs"]["check"]["strategy"]["matrix"]
    assert matrix["python"] == supported == ["3.11", "3.12", "3.13"]


@pytest.mark.parametrize("path", TEMPLATES, ids=name)
def test_an_issue_template_asks_for_something(path):
    template = load(path)
    assert template["name"] and template["description"]
    questions = [part for part in template["body"] if part["type"] != "markdown"]
    assert len({part["id"] for part in questions}) == len(questions)
    assert any(part.get("validations", {}).get("required") for part in questions)


def test_commit_hooks_are_the_tools_of_the_environment():
    hooks = [
        hook for repo in load(ROOT / ".pre-commit-config.yaml")["repos"] for hook in repo["hooks"]
    ]
    assert [hook["id"] for hook in hooks] == ["ruff-check", "ruff-format", "mypy"]
    assert all(hook["entry"].startswith(".venv/bin/") for hook in hooks)


def test_every_command_of_the_guide_for_contributors_exists():
    guide = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = set(re.findall(r"(?:^|`)make ([a-z-]+)", guide, re.MULTILINE))
    assert {"test", "test-fast", "lint", "reference", "docs"} <= named <= make_targets()


def test_the_fast_tests_exist():
    assert [path for path in FAST if not (ROOT / "tests" / path).exists()] == []


@pytest.mark.parametrize("path", PAGES, ids=name)
def test_every_file_that_a_page_links_to_exists(path):
    targets = re.findall(r"\]\(([^)#\s]+)[^)]*\)", path.read_text(encoding="utf-8"))
    local = [
        target for target in targets if "://" not in target and not target.startswith("mailto")
    ]
    assert [target for target in local if not (path.parent / target).exists()] == []


@pytest.mark.parametrize("path", [ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md"], ids=name)
def test_prose_wraps_at_100_columns(path):
    lines = path.read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if len(line) > 100 and not line.startswith("|")] == []


@pytest.mark.parametrize("path", DOCKERFILES, ids=name)
def test_an_image_has_a_pinned_base_and_runs_as_a_user_without_rights(path):
    text = path.read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    bases = [line.split()[1] for line in lines if line.startswith("FROM ")]
    assert len(bases) > 1 and all(
        re.fullmatch(r"[\w./-]+:[\w.-]*\d[\w.-]*", base) for base in bases
    )
    final = lines[max(i for i, line in enumerate(lines) if line.startswith("FROM ")) :]
    (user,) = [line.split()[1] for line in final if line.startswith("USER ")]
    assert int(user) > 0
    assert 'ENTRYPOINT ["myxtts"]' in final
    for line in lines:
        assert "apt-get install" not in line or "rm -rf /var/lib/apt/lists" in line
        assert "pip install" not in line or "--no-cache-dir" in line
        assert not re.search(r"(?i)(secret|password|token)", line)


def test_an_image_is_built_from_files_that_are_sent():
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    sent = {line[1:] for line in ignored if line.startswith("!")}
    assert "*" in ignored and all((ROOT / one).exists() for one in sent)
    for path in DOCKERFILES:
        copies = re.findall(r"^COPY (?!--from)(.+) \S+$", path.read_text(), re.MULTILINE)
        assert {word for copy in copies for word in copy.split()} <= sent


# The scripts of docs/cluster.md, which no scheduler runs here.


def blocks(kind: str) -> list[str]:
    page = (ROOT / "docs" / "cluster.md").read_text(encoding="utf-8")
    return re.findall(rf"^```{kind}\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("script", blocks("bash"), ids=lambda script: script.split("\n")[1])
def test_a_script_of_slurm_is_a_script(script):
    assert script.startswith("#!/bin/bash\n#SBATCH ")
    assert subprocess.run(["bash", "-n"], input=script, text=True).returncode == 0


def test_the_jobs_of_kubernetes_name_the_workers_that_they_start():
    objects = [one for block in blocks("yaml") for one in yaml.safe_load_all(block)]
    service, training, preparing = objects
    spec, pod = training["spec"], training["spec"]["template"]["spec"]
    job, domain = training["metadata"]["name"], service["metadata"]["name"]
    assert service["spec"]["selector"] == {"job-name": job} and pod["subdomain"] == domain
    (variable,) = pod["containers"][0]["env"]
    assert variable["name"] == "MYXTTS_WORKERS"
    expected = [f"{job}-{index}.{domain}:2222" for index in range(spec["completions"])]
    assert variable["value"].split(",") == expected and spec["parallelism"] == len(expected)
    (container,) = preparing["spec"]["template"]["spec"]["containers"]
    assert container["command"][-1].endswith(f"/{preparing['spec']['completions']}")
