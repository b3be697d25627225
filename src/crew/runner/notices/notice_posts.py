"""Posts a notice to a URL; a module of its own, since its imports are slow."""

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
    """Post a notice; a failure is logged with the host only, since the URL may be a secret."""
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
    """Treats a redirect as a failure: to follow it would turn the POST into an empty GET."""

    def redirect_request(self, *_args: object, **_more: object) -> None:
        return None


_OPENER = urllib.request.build_opener(_Straight)


def host_of(url: str) -> str:
    return urlsplit(url).hostname or "?"
