"""`myxtts doctor`: what works here, what does not, and why."""

import argparse

from myxtts.cli.terminal import FAILED, add_command, import_tensorflow


def add(verbs: argparse._SubParsersAction) -> None:
    add_command(verbs, "doctor", "say what works here, what does not, and why", run)


def run(args: argparse.Namespace) -> int:
    """Print all findings; fail where something is broken that should work."""
    from myxtts.workflows.doctor import BROKEN, describe, diagnose, gather

    findings = diagnose(gather(import_tensorflow))
    print(describe(findings))
    return FAILED if any(one.state == BROKEN for one in findings) else 0
