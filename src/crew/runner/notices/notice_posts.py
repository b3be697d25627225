"""Posts a notice to an address of the web; apart, for what it needs is slow to load."""

import json
import logging
import urllib.request
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import crew
from crew.system.crash_points import effect

log = logging.getLogger(__name__)


@effect("notices.post")
def post_notice(url: str, document: Mapping[str, Any], *, timeout_s: float) -> None:
    """A failure is logged, with the host only: the address may be a secret in itself."""
    request = urllib.request.Request(  # noqa: S310 - the config takes http and https only
        url,
        data=json.dumps(document).encode(),
        headers={"Content-Type": "application/json", "User-Agent": f"crew/{crew.__version__}"},
    )
    try:
        with _OPENER.open(request, timeout=timeout_s):
            return
    except (OSError, ValueError) as error:
        log.warning("[notify] urls: %s: %s", host_of(url), error)


class _Straight(urllib.request.HTTPRedirectHandler):
    """A redirect would turn the message into a question and lose it: it counts as a failure."""

    def redirect_request(self, *_args: object, **_more: object) -> None:
        return None


_OPENER = urllib.request.build_opener(_Straight)


def host_of(url: str) -> str:
    return urlsplit(url).hostname or "?"
