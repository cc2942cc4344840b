"""Who may change something in a studio: its own page, and nobody else."""

import hmac
import secrets

from fastapi import Request
from starlette.exceptions import HTTPException

from myxtts.serving.gate import is_own_origin

TOKEN_HEADER = "X-Studio-Token"


class Guard:
    """Lets requests of the studio's own page pass: they name its token, and its origin.

    The token is another one at each start. A page of another origin can neither read it, since
    nothing here is shared across origins, nor send a header of its own without asking before.
    """

    def __init__(self) -> None:
        self.token = secrets.token_urlsafe(24)

    async def __call__(self, request: Request) -> None:
        origin, host = request.headers.get("origin"), request.headers.get("host")
        if origin is None or not is_own_origin(origin, host):
            raise HTTPException(403, "only the studio's own page may do this")
        sent = request.headers.get(TOKEN_HEADER, "")
        if not hmac.compare_digest(sent.encode("latin-1", "replace"), self.token.encode()):
            raise HTTPException(403, "the page is of an earlier start of the server: reload it")
