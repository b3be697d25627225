"""Whether this process belongs to an agent, fast enough for hooks of other programs."""

import os

from crew.system.processes.ownership import markers_above


def is_agent_process() -> bool:
    """Whether it has the token of a step, or a process above it carries the marker of a crew."""
    return bool(os.environ.get("CREW_TOKEN")) or bool(markers_above())
