"""`/sites`: what can be asked; and deleting a site."""

from __future__ import annotations

from aiohttp import web

from core.errors import UnknownSite
from core.names import check_site_name
from server.auth import require_admin
from server.keys import DOCUMENTS, LIBRARY, LOADER
from server.middleware import json_response

routes = web.RouteTableDef()


@routes.get("/sites")
async def sites(request: web.Request) -> web.Response:
    """NLWeb's list of names, with our details beside it."""
    counts = await request.app[DOCUMENTS].sites()
    library = request.app[LIBRARY]
    details = [
        {
            "name": site.name,
            "description": library.site(site.name).description,
            "access": site.access,
            "documents": site.documents,
            "chunks": site.chunks,
        }
        for site in counts
    ]
    return json_response({"message-type": "sites", "sites": [s.name for s in counts], "details": details})


@routes.delete("/sites/{site}")
async def delete(request: web.Request) -> web.Response:
    """Delete a site with everything in it; says how much went and that nothing is left."""
    require_admin(request)
    site = check_site_name(request.match_info["site"])
    if site not in await request.app[DOCUMENTS].site_names():
        raise UnknownSite(f"there is no site `{site}`", field="site")
    gone = await request.app[LOADER].delete(site, None)
    return json_response(
        {"site": site, "documents": gone.documents, "chunks": gone.chunks, "left": gone.left}
    )
